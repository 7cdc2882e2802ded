// SPDX-License-Identifier: PostgreSQL
//
// Command-line options as tables: see options.h.

#include "cli/options.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

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

// Writes the value into the target; false when it is not of the type.
static bool store(const struct option_row *row, const char *value)
{
    switch (row->type) {
    case OPTION_FLAG: *(bool *)row->target = true; return true;
    case OPTION_STRING: *(const char **)row->target = value; return true;
    case OPTION_DURATION: return str_parse_duration_ms(value, row->target);
    case OPTION_NUMBER: return str_parse_int(value, 0, INT32_MAX, row->target);
    }
    return false;
}

static int bad_value(const struct option_row *row, const char *value, struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "wrong value for --%s: \"%s\"", row->name, value);
    mr_error_hint(err, row->type == OPTION_DURATION
                           ? "Write a duration with its unit, at most 24h: 500ms, 5s, 2min, 1h."
                           : "Write a whole number, 0 or more.");
    return MR_EUSAGE;
}

// Reads the option argv[i]; *ret_next is the index of the argument behind it.
static int parse_one(const struct option_row *rows, char **argv, int i, int *ret_next,
                     struct mr_error *err)
{
    const char *name = argv[i] + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    const struct option_row *row = find(rows, name, len);

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

int options_parse(const struct option_row *rows, int argc, char **argv, struct mr_error *err)
{
    int i = 1;

    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        if (str_equal(argv[i], "--")) {
            return i + 1;
        }
        if (argv[i][1] != '-') {
            mr_error_set(err, MR_EUSAGE, "unknown option: %s", argv[i]);
            mr_error_hint(err, "See the options with --help.");
            return MR_EUSAGE;
        }
        int code = parse_one(rows, argv, i, &i, err);
        if (code) {
            return code;
        }
    }
    return i;
}

void options_help(const struct option_row *rows, FILE *out)
{
    for (; rows->name; rows++) {
        int used = fprintf(out, "  --%s%s%s", rows->name, rows->value ? " " : "",
                           rows->value ? rows->value : "");
        fprintf(out, "%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 1, "", rows->help);
    }
}
