// SPDX-License-Identifier: PostgreSQL
//
// A small multi-tenant service on libmillrace: people send faces to be registered and verified, on
// behalf of a tenant. One program, four commands; what they share is in the database that
// MILLRACE_DSN names, and reached by mr_ calls alone.

#ifndef TOOLBOX_H
#define TOOLBOX_H

#include <jansson.h>
#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TENANT_TTL_MS = 5 * 60 * 1000, // of a tenant's configuration in the cache
    FACE_TTL_MS = 60 * 60 * 1000,  // of what is known about a face
    KEY_SIZE = 160,                // of a cache key, with names of 60 bytes at most
    NAME_MAX_BYTES = 60,
};

#define REGISTER_QUEUE "registrations"
#define VERIFY_QUEUE   "verifications"

// ---- main.c ----

int command_web(int argc, char **argv);
int command_work(int argc, char **argv);
int command_verifier(int argc, char **argv);
int command_nightly(int argc, char **argv);

// Connects to what MILLRACE_DSN names. Says what is wrong, and returns not 0, where it cannot.
int db_open(mr_conn **ret);
// One line on standard error; always 1.
int complain(const char *what, const mr_error *err);
// Letters, digits, - and _, 1 to NAME_MAX_BYTES of them: what may be part of a key and of a path.
bool name_is_good(const char *name);
// Whether SIGTERM or SIGINT came, which are blocked from the beginning; waits so long for it, or
// for ever when wait_ms is negative.
bool signal_came(int wait_ms);

// ---- tenant.c ----

enum tenant_found { TENANT_UNKNOWN, TENANT_CACHED, TENANT_LOADED, TENANT_ERROR };

// The configuration of a tenant, from the cache, otherwise from DIRECTORY/NAME.json and into the
// cache. *ret is the caller's, written when it was found.
enum tenant_found tenant_config(mr_conn *conn, const char *directory, const char *name,
                                json_t **ret, mr_error *err);
void tenant_key(char key[KEY_SIZE], const char *name);

// What is known about a face: its tenant, whether it was registered, verified, given up. Returns as
// mr_cache_set() does.
int face_note(mr_conn *conn, const char *tenant, const char *face, const char *standing,
              mr_error *err);
void face_key(char key[KEY_SIZE], const char *tenant, const char *face);

// ---- http.c ----

struct http_request {
    const char *method;
    const char *path;
    const char *body; // ends with a zero byte
};

struct http_reply {
    unsigned status;
    json_t *body;          // given away to the server
    const char *cache;     // for X-Cache; NULL: none
    int64_t retry_after_s; // 0: none
};

typedef void http_handler(const struct http_request *request, struct http_reply *reply, void *arg);

// Serves on a free port of the loopback, one request at a time, until SIGTERM. Prints
// `NAME listens on PORT`. Returns what the command exits with.
int http_serve(const char *name, http_handler *handler, void *arg);
// {"error": message}
void http_refuse(struct http_reply *reply, unsigned status, const char *message);
// `/tenants/acme/faces` is like `/tenants/*/faces`; a star is one part, copied to names[], of which
// there are two at most.
bool path_is(const char *path, const char *pattern, char names[2][NAME_MAX_BYTES + 1]);

// ---- call.c ----

// POST of a JSON text. The status of the answer, 0 where there was none.
long call_post(const char *url, const char *body);

#endif
