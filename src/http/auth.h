// SPDX-License-Identifier: PostgreSQL
//
// Who may do what: tokens with their roles, and whether a request comes from where it should.

#ifndef MILLRACE_HTTP_AUTH_H
#define MILLRACE_HTTP_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/sha256.h"

// What a token allows, as bits. A route needs one of them; RIGHT_NONE: it is open.
enum right {
    RIGHT_NONE = 0,
    RIGHT_READ = 1,
    RIGHT_PRODUCE = 2,
    RIGHT_WORK = 4,
    RIGHT_ADMIN = 8,
};

#define AUTH_TOKENS_MAX 1000
// The longest token that is looked at.
#define AUTH_TOKEN_MAX 512
// Of auth_make_token(): mr_ and 43 characters of base64url, and its zero byte.
#define AUTH_TOKEN_SIZE 47
// sha256: and 64 digits, and its zero byte.
#define AUTH_HASH_SIZE (7 + SHA256_HEX_SIZE)

struct auth_token {
    const char *name; // borrowed from the configuration
    unsigned char hash[SHA256_SIZE];
    unsigned rights;
};

// The bits of a role: reader, producer, worker, admin. False for another word.
bool auth_parse_role(const char *role, unsigned *ret);
// The name of the role that has this right, for messages.
const char *auth_role_of(enum right right);
// Reads `sha256:` and 64 hexadecimal digits. False for anything else.
bool auth_parse_hash(const char *text, unsigned char ret[SHA256_SIZE]);

// A random token, and the hash that a configuration has of it. Fails with MR_EIO.
int auth_make_token(char ret_token[AUTH_TOKEN_SIZE], char ret_hash[AUTH_HASH_SIZE],
                    struct mr_error *err);
void auth_hash_token(const char *token, char ret_hash[AUTH_HASH_SIZE]);

// The token in a header `Authorization: Bearer TOKEN`; NULL when it is none.
const char *auth_bearer(const char *header);
// Finds a token among those that are known; NULL: unknown. Takes as long whichever it is.
const struct auth_token *auth_find(const struct auth_token *tokens, size_t count,
                                   const char *token);

// Whether the host of a Host header may be ours: an address (so that a name somewhere else that
// points here does not count), localhost, or one of `hosts`, which ends with NULL and may be NULL.
// Ports do not matter.
bool auth_host_allowed(const char *header, const char *const *hosts);
// Whether an Origin header names the host of the Host header; NULL, which no browser sends across
// sites, is fine.
bool auth_origin_allowed(const char *origin, const char *host);

#endif
