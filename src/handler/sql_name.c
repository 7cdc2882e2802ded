// SPDX-License-Identifier: PostgreSQL
//
// The name of a function: see sql_name.h.

#include "handler/sql_name.h"

#include <stdbool.h>
#include <stddef.h>

// Without regard to the locale: bytes above 127 are letters, as PostgreSQL has it.
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Reads a part in quotes, `text` at the first of them; NULL when it does not end.
static const char *read_quoted(const char *text, struct buf *out)
{
    for (text++; *text; text++) {
        if (*text == '"' && text[1] != '"') {
            return text + 1;
        }
        if (*text == '"') {
            text++;
            buf_add(out, "\"", 1); // and once more below: a quote inside is doubled
        }
        buf_add(out, text, 1);
    }
    return NULL;
}

static const char *read_plain(const char *text, struct buf *out)
{
    for (; is_letter(*text) || is_digit(*text) || *text == '$'; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text + ('a' - 'A')) : *text;
        buf_add(out, &c, 1);
    }
    return text;
}

// Appends one part; returns what follows it, NULL when there is none or it is wrong.
static const char *read_part(const char *text, struct buf *out)
{
    const char *end = NULL;
    size_t quotes = 2;

    buf_puts(out, "\"");
    size_t from = out->len;
    if (*text == '"') {
        end = read_quoted(text, out);
    } else if (is_letter(*text)) {
        end = read_plain(text, out);
    }
    buf_puts(out, "\"");
    size_t size = out->len - from + 1 - quotes;
    return size == 0 || size > SQL_NAME_PART_MAX ? NULL : end;
}

int sql_name_quote(const char *text, struct buf *out, struct mr_error *err)
{
    const char *rest = read_part(text, out);

    if (rest && *rest == '.') {
        buf_puts(out, ".");
        rest = read_part(rest + 1, out);
    }
    if (!rest || *rest) {
        mr_error_set(err, MR_ECONFIG, "not the name of a function: \"%.100s\"", text);
        mr_error_hint(err, "Write schema.function, without parentheses; a name that is not in "
                           "lower case needs double quotes.");
        return MR_ECONFIG;
    }
    return buf_status(out, err);
}
