// SPDX-License-Identifier: PostgreSQL
//
// The Lua scripts of src/store/lua, compiled in. tools/embed_files writes the C file behind this
// header; everything in it is constant and lives as long as the program.

#ifndef MILLRACE_STORE_REDIS_SCRIPT_H
#define MILLRACE_STORE_REDIS_SCRIPT_H

#include <stddef.h>

struct redis_script {
    const char *name; // of the file: rate_limit.lua
    const char *tag;
    const unsigned char *text; // ends with a zero byte
    size_t size;
};

// At most so many.
enum { REDIS_SCRIPTS_MAX = 64 };

// Sorted by name; the last one has none.
extern const struct redis_script redis_scripts[];

// The one of this name, and its place among them; NULL: there is none.
const struct redis_script *redis_script_find(const char *name, size_t *ret_at);

// What Redis is given: the text of a script, and before it that of common.lua, where its folder has
// one. The caller frees it; NULL: out of memory.
char *redis_script_text(const struct redis_script *script);

#endif
