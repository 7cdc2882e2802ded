// SPDX-License-Identifier: PostgreSQL
//
// ${NAME} in a configuration file. libconfuse puts the values in, and an empty text where a
// variable is not set: a worker with an empty secret or queue would be the consequence, so that
// is refused before.

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "daemon/config_parts.h"

#define NAME_MAX_SIZE 200

// Where the reader stands, as libconfuse sees it.
enum place {
    PLACE_BARE,
    PLACE_LINE_COMMENT,
    PLACE_BLOCK_COMMENT,
    PLACE_SINGLE, // 'nothing is replaced here'
    PLACE_DOUBLE,
};

// What moves the reader from one place to another, the first that fits.
static const struct {
    enum place from;
    const char *text;
    enum place to;
} moves[] = {
    {PLACE_BARE, "#", PLACE_LINE_COMMENT},   {PLACE_BARE, "//", PLACE_LINE_COMMENT},
    {PLACE_BARE, "/*", PLACE_BLOCK_COMMENT}, {PLACE_BARE, "'", PLACE_SINGLE},
    {PLACE_BARE, "\"", PLACE_DOUBLE},        {PLACE_LINE_COMMENT, "\n", PLACE_BARE},
    {PLACE_BLOCK_COMMENT, "*/", PLACE_BARE}, {PLACE_SINGLE, "\\\\", PLACE_SINGLE},
    {PLACE_SINGLE, "\\'", PLACE_SINGLE},     {PLACE_SINGLE, "'", PLACE_BARE},
    {PLACE_DOUBLE, "\\\\", PLACE_DOUBLE},    {PLACE_DOUBLE, "\\\"", PLACE_DOUBLE},
    {PLACE_DOUBLE, "\\$", PLACE_DOUBLE},     {PLACE_DOUBLE, "\"", PLACE_BARE},
};

// How many characters are behind the reader after one step.
static size_t step(enum place *place, const char *at)
{
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        if (moves[i].from == *place && str_starts(at, moves[i].text)) {
            *place = moves[i].to;
            return strlen(moves[i].text);
        }
    }
    return 1;
}

static int check_variable(const char *path, const char *text, const char *at, struct mr_error *err)
{
    size_t length = strcspn(at + 2, "}:\n");
    char name[NAME_MAX_SIZE];

    if (at[2 + length] != '}' || length >= sizeof(name)) {
        return 0; // it has a default, or libconfuse knows what it is
    }
    memcpy(name, at + 2, length);
    name[length] = '\0';
    if (getenv(name)) {
        return 0;
    }
    int line = 1;
    for (const char *c = text; c < at; c++) {
        line += *c == '\n';
    }
    mr_error_set(err, MR_ECONFIG, "%s:%d: the environment variable %s is not set", path, line,
                 name);
    mr_error_hint(err, "Set it, or write a default: ${%s:-value}.", name);
    return MR_ECONFIG;
}

int config_check_variables(const char *path, const char *text, struct mr_error *err)
{
    enum place place = PLACE_BARE;

    for (const char *at = text; *at; at += step(&place, at)) {
        if ((place == PLACE_BARE || place == PLACE_DOUBLE) && str_starts(at, "${")) {
            int code = check_variable(path, text, at, err);
            if (code) {
                return code;
            }
        }
    }
    return 0;
}
