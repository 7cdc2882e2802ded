// SPDX-License-Identifier: PostgreSQL
//
// One line an event: see log.h.

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

// A field's text is cut like a message, and of more fields than this the rest is left out.
#define FIELD_MAX  1024
#define FIELDS_MAX 16
// Every byte of a text can become six in JSON.
#define LINE_MAX_SIZE (6 * (LOG_MESSAGE_MAX + FIELDS_MAX * FIELD_MAX) + 4096)

// What is set may be changed by a reload while other threads write.
static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_format_now = LOG_TEXT;
static atomic_int log_least = LEVEL_INFO;

static const char *const level_names[] = {
    [LEVEL_DEBUG] = "debug",
    [LEVEL_INFO] = "info",
    [LEVEL_WARNING] = "warning",
    [LEVEL_ERROR] = "error",
};

static const char *const format_names[] = {
    [LOG_TEXT] = "text",
    [LOG_JSON] = "json",
};

void log_setup(int fd, enum log_format format, enum log_level least)
{
    atomic_store(&log_fd, fd);
    atomic_store(&log_format_now, (int)format);
    atomic_store(&log_least, (int)least);
}

static bool find_name(const char *const *names, size_t count, const char *text, size_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(text, names[i])) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool log_parse_format(const char *text, enum log_format *ret)
{
    size_t at = 0;

    if (!find_name(format_names, sizeof(format_names) / sizeof(format_names[0]), text, &at)) {
        return false;
    }
    *ret = (enum log_format)at;
    return true;
}

bool log_parse_level(const char *text, enum log_level *ret)
{
    size_t at = 0;

    if (!find_name(level_names, sizeof(level_names) / sizeof(level_names[0]), text, &at)) {
        return false;
    }
    *ret = (enum log_level)at;
    return true;
}

bool log_wants(enum log_level level)
{
    return (int)level >= atomic_load(&log_least);
}

// ---- texts of unknown origin ----

// Replaces what is not UTF-8 with question marks and control characters, which could move a
// terminal's cursor or begin a line of their own, with spaces.
static void clean(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t length = utf8_length((const char *)c);
        if (length == 0) {
            *c = '?';
        } else if (*c < 0x20 || *c == 0x7f) {
            *c = ' ';
        }
        c += length ? length : 1;
    }
}

// A copy of at most size - 1 bytes that is fit to be shown.
static void copy_clean(char *target, size_t size, const char *text)
{
    snprintf(target, size, "%s", text);
    str_trim_utf8(target);
    clean(target);
}

// ---- lines ----

static void add_time(struct buf *line, char between, const char *zone)
{
    int64_t now_ms = clock_wall_us() / 1000;
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts;

    gmtime_r(&seconds, &parts);
    buf_printf(line, "%04d-%02d-%02d%c%02d:%02d:%02d.%03d%s", parts.tm_year + 1900,
               parts.tm_mon + 1, parts.tm_mday, between, parts.tm_hour, parts.tm_min, parts.tm_sec,
               (int)(now_ms % 1000), zone);
}

static bool is_shown(const struct log_field *field)
{
    return field->is_number || field->text;
}

// Quoted where it would not be one word.
static void add_text_value(struct buf *line, const char *value)
{
    if (value[0] && !strpbrk(value, " \"=()\\")) {
        buf_puts(line, value);
    } else {
        json_add_string(line, value);
    }
}

static void add_text_fields(struct buf *line, const struct log_field *fields, size_t count)
{
    bool any = false;
    char value[FIELD_MAX];

    for (size_t i = 0; i < count; i++) {
        if (!is_shown(&fields[i])) {
            continue;
        }
        buf_printf(line, "%s%s=", any ? " " : " (", fields[i].name);
        any = true;
        if (fields[i].is_number) {
            buf_printf(line, "%lld", (long long)fields[i].number);
        } else {
            copy_clean(value, sizeof(value), fields[i].text);
            add_text_value(line, value);
        }
    }
    if (any) {
        buf_puts(line, ")");
    }
}

static void add_text(struct buf *line, enum log_level level, const char *event,
                     const struct log_field *fields, size_t count, const char *message)
{
    add_time(line, ' ', " UTC ");
    buf_printf(line, "%s %s: %s", level_names[level], event, message);
    add_text_fields(line, fields, count);
    buf_puts(line, "\n");
}

static void add_json(struct buf *line, enum log_level level, const char *event,
                     const struct log_field *fields, size_t count, const char *message)
{
    char value[FIELD_MAX];

    buf_puts(line, "{\"time\":\"");
    add_time(line, 'T', "Z");
    buf_printf(line, "\",\"level\":\"%s\",\"event\":\"%s\",\"message\":", level_names[level],
               event);
    json_add_string(line, message);
    for (size_t i = 0; i < count; i++) {
        if (is_shown(&fields[i])) {
            buf_printf(line, ",\"%s\":", fields[i].name);
        }
        if (fields[i].is_number) {
            buf_printf(line, "%lld", (long long)fields[i].number);
        } else if (fields[i].text) {
            copy_clean(value, sizeof(value), fields[i].text);
            json_add_string(line, value);
        }
    }
    buf_puts(line, "}\n");
}

// A log that cannot be written is nothing to stop for.
static void write_line(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done < 0 && errno != EINTR) {
            return;
        }
        if (done > 0) {
            data += done;
            size -= (size_t)done;
        }
    }
}

static void put_line(enum log_level level, const char *event, const struct log_field *fields,
                     size_t count, const char *message)
{
    AUTO_BUF line;

    buf_init(&line, LINE_MAX_SIZE);
    if (atomic_load(&log_format_now) == LOG_JSON) {
        add_json(&line, level, event, fields, count, message);
    } else {
        add_text(&line, level, event, fields, count, message);
    }
    write_line(atomic_load(&log_fd), buf_peek(&line), line.len);
}

void log_put(enum log_level level, const char *event, const struct log_field *fields, size_t count,
             const char *format, ...)
{
    char message[LOG_MESSAGE_MAX + 1];
    int saved = errno;
    va_list args;

    if (!log_wants(level)) {
        return;
    }
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    str_trim_utf8(message);
    clean(message);
    put_line(level, event, fields, count < FIELDS_MAX ? count : FIELDS_MAX, message);
    errno = saved;
}
