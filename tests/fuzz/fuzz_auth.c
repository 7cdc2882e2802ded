// SPDX-License-Identifier: PostgreSQL
//
// Headers that say who sends a request, and from where.

#include <string.h>

#include "fuzz.h"
#include "handler/trace.h"
#include "http/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hosts[] = {"jobs.example", NULL};
    struct auth_token known = {.name = "a", .rights = RIGHT_READ};
    unsigned char hash[SHA256_SIZE];
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    const char *token = auth_bearer(text);
    if (token) {
        MUST(strlen(token) > 0 && strlen(token) <= AUTH_TOKEN_MAX);
        MUST(auth_find(&known, 1, token) == NULL);
    }
    auth_parse_hash(text, hash);
    if (auth_host_allowed(text, hosts)) {
        MUST(text[0] && !strchr(text, '/') && !strchr(text, '@'));
    }
    auth_origin_allowed(text, "jobs.example");
    MUST(!trace_is_parent(text) || strlen(text) == TRACE_SIZE - 1);
    free(text);
    return 0;
}
