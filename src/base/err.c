// SPDX-License-Identifier: PostgreSQL
//
// Error values: see err.h.

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

// One row per code; the order does not matter.
static const struct {
    int code;
    enum mr_class error_class;
} classes[] = {
    {MR_OK, MR_CLASS_NONE},
    {MR_ENOMEM, MR_CLASS_INTERNAL},
    {MR_ELIMIT, MR_CLASS_REJECTED},
    {MR_EUSAGE, MR_CLASS_CONFIG},
    {MR_ECONNECT, MR_CLASS_TRANSIENT},
    {MR_EDATABASE, MR_CLASS_INTERNAL},
    {MR_ELOCK, MR_CLASS_TRANSIENT},
    {MR_ECONFLICT, MR_CLASS_CONFLICT},
    {MR_EPRIVILEGE, MR_CLASS_CONFIG},
    {MR_EROLES, MR_CLASS_CONFIG},
    {MR_EREADONLY, MR_CLASS_CONFIG},
    {MR_ESERVER, MR_CLASS_CONFIG},
    {MR_EFOREIGN, MR_CLASS_CONFIG},
    {MR_ENEWER, MR_CLASS_CONFIG},
    {MR_EALTERED, MR_CLASS_CONFIG},
    {MR_EIO, MR_CLASS_TRANSIENT},
    {MR_EINTERNAL, MR_CLASS_INTERNAL},
    {MR_ELEASE, MR_CLASS_CONFLICT},
    {MR_EFULL, MR_CLASS_TRANSIENT},
    {MR_EUNKNOWN, MR_CLASS_REJECTED},
    {MR_ERESTORED, MR_CLASS_CONFIG},
    {MR_EINVALID, MR_CLASS_REJECTED},
    {MR_ETIMEOUT, MR_CLASS_TRANSIENT},
    {MR_ESCHEMA, MR_CLASS_CONFIG},
    {MR_ECONFIG, MR_CLASS_CONFIG},
    {MR_EFULLDISK, MR_CLASS_TRANSIENT},
    {MR_EDAMAGED, MR_CLASS_REJECTED},
};

enum mr_class mr_code_class(int code)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (classes[i].code == code) {
            return classes[i].error_class;
        }
    }
    return MR_CLASS_INTERNAL;
}

__attribute__((format(printf, 3, 0))) static void fill(char *text, size_t size, const char *format,
                                                       va_list args)
{
    int wanted = vsnprintf(text, size, format, args);

    if (wanted < 0) {
        text[0] = '\0';
    } else if ((size_t)wanted >= size) {
        str_trim_utf8(text);
    }
}

int mr_error_set(struct mr_error *err, int code, const char *format, ...)
{
    if (!err) {
        return code;
    }
    *err = (struct mr_error){.code = code, .error_class = mr_code_class(code)};

    va_list args;
    va_start(args, format);
    fill(err->message, sizeof(err->message), format, args);
    va_end(args);
    str_one_line(err->message);
    return code;
}

int mr_error_recode(struct mr_error *err, int code)
{
    if (err) {
        err->code = code;
        err->error_class = mr_code_class(code);
    }
    return code;
}

void mr_error_prefix(struct mr_error *err, const char *format, ...)
{
    if (!err) {
        return;
    }
    char text[MR_ERROR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    fill(text, sizeof(text), format, args);
    va_end(args);

    size_t used = strlen(text);
    int added = snprintf(text + used, sizeof(text) - used, ": %s", err->message);
    if (added < 0 || used + (size_t)added >= sizeof(text)) {
        str_trim_utf8(text);
    }
    memcpy(err->message, text, sizeof(text));
}

void mr_error_detail(struct mr_error *err, const char *format, ...)
{
    if (!err) {
        return;
    }
    va_list args;
    va_start(args, format);
    fill(err->detail, sizeof(err->detail), format, args);
    va_end(args);
}

void mr_error_hint(struct mr_error *err, const char *format, ...)
{
    if (!err) {
        return;
    }
    va_list args;
    va_start(args, format);
    fill(err->hint, sizeof(err->hint), format, args);
    va_end(args);
}

void mr_error_sqlstate(struct mr_error *err, const char *sqlstate)
{
    size_t len = strlen(sqlstate);

    if (err && len < sizeof(err->sqlstate)) {
        memcpy(err->sqlstate, sqlstate, len + 1);
    }
}
