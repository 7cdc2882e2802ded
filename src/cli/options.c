// SPDX-License-Identifier: PostgreSQL
//
// Command-line options as tables: see options.h.

#include "cli/options.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "client/dsn_list.h"

#define HELP_COLUMN   26
#define HINT_DISTANCE 3

static const struct option_row *find(const struct option_row *rows, const char *name, size_t len)
{
    for (; rows->name; rows++) {
        if (strlen(rows->name) == len && strncmp(rows->name, name, len) == 0) {
            return rows;
        }
    }
    return NULL;
}

static int unknown(const struct option_row *rows, const char *name, size_t len,
                   struct mr_error *err)
{
    const char *nearest = NULL;
    int nearest_distance = HINT_DISTANCE;
    char typed[STR_DISTANCE_MAX + 1];

    snprintf(typed, sizeof(typed), "%.*s", (int)len, name);
    for (; rows->name; rows++) {
        int distance = str_distance(typed, rows->name);
        if (distance < nearest_distance) {
            nearest = rows->name;
            nearest_distance = distance;
        }
    }
    mr_error_set(err, MR_EUSAGE, "unknown option: --%s", typed);
    mr_error_hint(err, nearest ? "Did you mean --%s?" : "See the options with --help.", nearest);
    return MR_EUSAGE;
}

// A second address makes it a list, which lives as long as the program.
static bool store_dsn(const char **target, const char *value)
{
    static struct buf lists[2]; // the one that is read while the other is written
    static int next;

    if (!*target) {
        *target = value;
        return true;
    }
    struct buf *list = &lists[next++ % 2];
    buf_done(list);
    buf_init(list, DSN_LIST_SIZE_MAX);
    dsn_list_add(list, *target);
    dsn_list_add(list, value);
    *target = buf_peek(list);
    return list->status == 0;
}

// Writes the value into the target; false when it is not of the type.
static bool store(const struct option_row *row, const char *value)
{
    switch (row->type) {
    case OPTION_FLAG: *(bool *)row->target = true; return true;
    case OPTION_STRING: *(const char **)row->target = value; return true;
    case OPTION_DSN: return store_dsn(row->target, value);
    case OPTION_DURATION: return str_parse_duration_ms(value, row->target);
    case OPTION_SPAN: return str_parse_span_ms(value, row->target);
    case OPTION_NUMBER: return str_parse_int(value, 0, INT32_MAX, row->target);
    case OPTION_COUNT: return str_parse_int(value, 0, INT64_MAX, row->target);
    case OPTION_REAL: return str_parse_real(value, row->target);
    }
    return false;
}

static const char *hint_of(enum option_type type)
{
    switch (type) {
    case OPTION_FLAG:
    case OPTION_STRING: break;
    case OPTION_DSN: return "Give fewer or shorter addresses.";
    case OPTION_DURATION:
        return "Write a duration with its unit, at most 24h: 500ms, 5s, 2min, 1h.";
    case OPTION_SPAN: return "Write a duration with its unit: 500ms, 5s, 2min, 1h, 7d.";
    case OPTION_NUMBER:
    case OPTION_COUNT: return "Write a whole number, 0 or more.";
    case OPTION_REAL: return "Write a number, 0 or more, such as 0.5.";
    }
    return "";
}

static int bad_value(const struct option_row *row, const char *value, struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "wrong value for --%s: \"%s\"", row->name, value);
    mr_error_hint(err, "%s", hint_of(row->type));
    return MR_EUSAGE;
}

// Reads the option argv[i]; *ret_next is the index of the argument behind it.
static int parse_one(const struct option_row *rows, char **argv, int i, int *ret_next,
                     struct mr_error *err)
{
    bool letter = argv[i][1] != '-';
    const char *name = argv[i] + (letter ? 1 : 2);
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    const struct option_row *row = (len == 1) == letter ? find(rows, name, len) : NULL;

    if (!row && letter) {
        mr_error_set(err, MR_EUSAGE, "unknown option: %s", argv[i]);
        mr_error_hint(err, "See the options with --help.");
        return MR_EUSAGE;
    }
    if (!row) {
        return unknown(rows, name, len, err);
    }
    *ret_next = i + 1;
    if (row->type == OPTION_FLAG && value) {
        return mr_error_set(err, MR_EUSAGE, "--%s takes no value", row->name);
    }
    if (row->type != OPTION_FLAG && !value) {
        value = argv[i + 1];
        *ret_next = i + 2;
    }
    if (row->type != OPTION_FLAG && !value) {
        return mr_error_set(err, MR_EUSAGE, "--%s needs a value", row->name);
    }
    return store(row, value) ? 0 : bad_value(row, value, err);
}

// Moves argv[from..to) before argv[first..from).
static void move_forward(char **argv, int first, int from, int to)
{
    for (; from < to; first++, from++) {
        char *moved = argv[from];

        memmove(&argv[first + 1], &argv[first], (size_t)(from - first) * sizeof(*argv));
        argv[first] = moved;
    }
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1];
}

int options_parse(const struct option_row *rows, int argc, char **argv, struct mr_error *err)
{
    int first = 1; // of the arguments seen so far, which stand before argv[i]
    int next = 1;

    for (int i = 1; i < argc; i = next) {
        next = i + 1;
        if (!is_option(argv[i])) {
            continue;
        }
        bool ends = str_equal(argv[i], "--");
        int code = ends ? 0 : parse_one(rows, argv, i, &next, err);
        if (code) {
            return code;
        }
        move_forward(argv, first, i, next);
        first += next - i;
        if (ends) {
            break;
        }
    }
    return first;
}

void options_help(const struct option_row *rows, FILE *out)
{
    for (; rows->name; rows++) {
        int used = fprintf(out, "  %s%s%s%s", rows->name[1] ? "--" : "-", rows->name,
                           rows->value ? " " : "", rows->value ? rows->value : "");
        fprintf(out, "%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", rows->help);
    }
}
