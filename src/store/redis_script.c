// SPDX-License-Identifier: PostgreSQL
//
// The Lua scripts that are compiled in: see redis_script.h.

#include "store/redis_script.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define NAME_SIZE 64

const struct redis_script *redis_script_find(const char *name, size_t *ret_at)
{
    for (size_t i = 0; i < REDIS_SCRIPTS_MAX && redis_scripts[i].name; i++) {
        if (str_equal(redis_scripts[i].name, name)) {
            *ret_at = i;
            return &redis_scripts[i];
        }
    }
    return NULL;
}

char *redis_script_text(const struct redis_script *script)
{
    const char *slash = strrchr(script->name, '/');
    const struct redis_script *common = NULL;
    char name[NAME_SIZE], *text = NULL;
    size_t at = 0;

    if (slash) {
        snprintf(name, sizeof(name), "%.*s/common.lua", (int)(slash - script->name), script->name);
        common = redis_script_find(name, &at);
    }
    return asprintf(&text, "%s%s", common ? (const char *)common->text : "",
                    (const char *)script->text) < 0
               ? NULL
               : text;
}
