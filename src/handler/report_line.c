// SPDX-License-Identifier: PostgreSQL
//
// A line in which a child says how far its job is: see report_line.h.

#include "handler/report_line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/str.h"

// The longest number that is read as one.
#define NUMBER_SIZE_MAX 64

enum member { ID, PROGRESS, NOTE, MEMBERS };

static const char *const names[MEMBERS] = {"id", "progress", "note"};

struct found {
    struct json_slice values[MEMBERS]; // at NULL: not there, or null
    bool other;                        // there is another key
};

// Of a key that is there twice the last one counts, as in jsonb.
static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct found *found = arg;

    for (int i = 0; i < MEMBERS; i++) {
        if (json_slice_is(key, names[i])) {
            found->values[i] = json_slice_is(value, "null") ? (struct json_slice){NULL, 0} : value;
            return;
        }
    }
    found->other = true;
}

// The slice as a string of its own; false: too long to be a number.
static bool number_text(struct json_slice slice, char *ret)
{
    if (slice.len >= NUMBER_SIZE_MAX) {
        return false;
    }
    memcpy(ret, slice.at, slice.len);
    ret[slice.len] = '\0';
    return true;
}

static bool read_id(struct json_slice slice, int64_t *ret)
{
    char text[NUMBER_SIZE_MAX];

    return !slice.at || (number_text(slice, text) && str_parse_int(text, 0, INT64_MAX, ret));
}

static bool read_percent(struct json_slice slice, double *ret)
{
    char text[NUMBER_SIZE_MAX];

    if (!strchr("-0123456789", slice.at[0]) || !number_text(slice, text)) {
        return false;
    }
    *ret = strtod(text, NULL);
    return *ret >= 0 && *ret <= 100;
}

// A note ends at a zero byte: PostgreSQL has none in its texts.
static bool read_note(struct json_slice slice, struct report_line *line)
{
    if (!slice.at) {
        return true;
    }
    line->holder = json_loadb(slice.at, slice.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    line->note = json_string_value(line->holder);
    return line->note != NULL;
}

// What is wrong with the values; NULL: nothing.
static const char *read_values(const struct found *found, struct report_line *line)
{
    if (!read_id(found->values[ID], &line->id)) {
        return "\"id\" is not the number of a job";
    }
    if (!read_percent(found->values[PROGRESS], &line->percent)) {
        return "\"progress\" is not a number from 0 to 100";
    }
    return read_note(found->values[NOTE], line) ? NULL : "\"note\" is not a text";
}

enum report_verdict report_line_parse(const char *text, size_t size, struct report_line *ret,
                                      struct mr_error *err)
{
    struct found found = {0};
    struct report_line line = {.id = -1};

    if (size > REPORT_LINE_MAX ||
        json_each_member((struct json_slice){text, size}, on_member, &found, NULL) || found.other ||
        !found.values[PROGRESS].at) {
        return REPORT_NONE;
    }
    const char *why = read_values(&found, &line);
    if (why) {
        report_line_done(&line);
        mr_error_set(err, MR_EINVALID, "%s", why);
        return REPORT_BAD;
    }
    *ret = line;
    return REPORT_GOOD;
}

void report_line_done(struct report_line *line)
{
    json_decref(line->holder);
    *line = (struct report_line){.id = -1};
}
