// SPDX-License-Identifier: PostgreSQL
//
// Small questions about strings: see str.h.

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool str_equal(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_empty(const char *text)
{
    return !text || !*text;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

// How many bytes a character takes that begins with `lead`.
static size_t utf8_width(char lead)
{
    unsigned char c = (unsigned char)lead;

    return c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
}

void str_trim_utf8(char *text)
{
    size_t len = strlen(text);
    size_t start = len;

    while (start > 0 && is_continuation(text[start - 1])) {
        start--;
    }
    if (start > 0 && start - 1 + utf8_width(text[start - 1]) > len) {
        text[start - 1] = '\0';
    }
}

void str_one_line(char *text)
{
    for (; (text = strpbrk(text, "\r\n\t")); text++) {
        *text = ' ';
    }
}

int str_line_of(const char *text, int position)
{
    int line = 1;
    int seen = 0;

    for (const char *c = text; *c; c++) {
        if (!is_continuation(*c)) {
            seen++;
        }
        if (seen >= position) {
            break;
        }
        line += *c == '\n';
    }
    return line;
}

static int min3(int a, int b, int c)
{
    int least = a < b ? a : b;

    return least < c ? least : c;
}

int str_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    int rows[3][STR_DISTANCE_MAX + 1]; // two rows back, one row back, this row

    if (a_len > STR_DISTANCE_MAX || b_len > STR_DISTANCE_MAX) {
        return INT_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        int *row = rows[i % 3];
        const int *last = rows[(i - 1) % 3];

        row[0] = (int)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                int swapped = rows[(i - 2) % 3][j - 2] + 1;
                row[j] = swapped < row[j] ? swapped : row[j];
            }
        }
    }
    return rows[a_len % 3][b_len];
}

bool str_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    char *end = NULL;

    if (!isdigit((unsigned char)text[0]) && text[0] != '-') {
        return false;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < min || number > max) {
        return false;
    }
    *ret = number;
    return true;
}

static bool parse_time(const char *text, int64_t max_ms, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {
        {"ms", 1},
        {"s", 1000},
        {"min", 60 * 1000},
        {"h", 60 * 60 * 1000},
        {"d", 24 * 60 * 60 * 1000},
    };
    char *end = NULL;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || number <= 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (str_equal(end, units[i].unit) && number <= max_ms / units[i].ms) {
            *ret_ms = number * units[i].ms;
            return true;
        }
    }
    return false;
}

bool str_parse_duration_ms(const char *text, int64_t *ret_ms)
{
    return parse_time(text, STR_DURATION_MAX_MS, ret_ms);
}

bool str_parse_span_ms(const char *text, int64_t *ret_ms)
{
    return parse_time(text, STR_SPAN_MAX_MS, ret_ms);
}

bool str_parse_real(const char *text, double *ret)
{
    size_t len = strspn(text, "0123456789.");
    char *end = NULL;

    // neither signs nor exponents, hexadecimal or names of infinity
    if (len == 0 || text[len] || !strpbrk(text, "0123456789")) {
        return false;
    }
    double number = strtod(text, &end);
    if (*end || number > DBL_MAX) {
        return false;
    }
    *ret = number;
    return true;
}

int str_version_compare(const char *a, const char *b)
{
    for (;;) {
        char *a_end = NULL;
        char *b_end = NULL;
        unsigned long a_part = strtoul(a, &a_end, 10);
        unsigned long b_part = strtoul(b, &b_end, 10);

        if (a_part != b_part) {
            return a_part < b_part ? -1 : 1;
        }
        if (*a_end != '.' && *b_end != '.') {
            return 0;
        }
        a = *a_end == '.' ? a_end + 1 : "";
        b = *b_end == '.' ? b_end + 1 : "";
    }
}
