// SPDX-License-Identifier: PostgreSQL
//
// A database that HTTP serves, with all that belongs to it: the only one, or one shard of several.
//
// 1. Of several, a site is used only after its database has said which shard it is, and again
//    after a connection was lost: another server may answer there. It is looked at every three
//    seconds besides.
// 2. The number of one that is down is remembered: that is what it is called.
// 3. With one database nothing of this is asked, and everything is as if there were no sites.

#ifndef MILLRACE_HTTP_SITE_H
#define MILLRACE_HTTP_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/policy.h"
#include "http/database.h"

struct enqueue_group;
struct http;
struct wakeup;

#define SITE_NAME_SIZE 24

struct site {
    struct http *http;
    int at;    // which address it is, from 0
    char *dsn; // or NULL
    char name[SITE_NAME_SIZE];
    struct database *db;
    struct enqueue_group *group;
    struct wakeup *wakeup;
    struct policies policies; // of payloads, as the queues were asked
    uv_timer_t linger;        // of the group: see enqueue_group.c
    bool ticks;               // that timer is there
    // of several
    bool asking;         // which shard it is
    bool sure;           // it has said so
    int64_t sure_of;     // database_reconnects() then
    struct mr_error why; // it cannot be used, whatever the connection; code 0
};

// Opens all of http->options.dsn. On failure sites_close() follows all the same.
int sites_open(struct http *http, struct mr_error *err);
// Calls that have no answer are answered with MR_ECONNECT inside of this or later; `closed` follows
// on the loop, or at once where nothing is open.
void sites_close(struct http *http, void (*closed)(void *arg), void *arg);
void sites_free(struct http *http); // after that
void sites_abandon(struct http *http);
// Once a second: what has to be asked again.
void sites_look(struct http *http);

bool sites_several(const struct http *http);
// Whether the database can be asked: of several, whether one can.
bool sites_connected(const struct http *http);
// Connections that were lost.
int64_t sites_reconnects(const struct http *http);

// Whether calls may go there now. Fails with MR_ECONNECT.
int site_check(const struct site *site, struct mr_error *err);
// The same for new jobs: not one that drains or is read-only.
int site_check_open(const struct site *site, struct mr_error *err);
// The number of its shard; -1: not known yet.
int site_number(const struct site *site);

// The site of a shard, usable or not. Fails with MR_ECONNECT where it may be one that was not
// reached yet, MR_EUNKNOWN where there is none.
int sites_find(struct http *http, int number, struct site **ret, struct mr_error *err);
// The one with the lowest number, as far as any of them says which there are.
int sites_first(struct http *http, struct site **ret, struct mr_error *err);

// {"shard":1,"address":2,"status":"down","error":"..."}; `err`: why it did not answer, NULL: as it
// is now.
void site_describe(const struct site *site, const struct mr_error *err, struct buf *out);
// All of them, in an array.
void sites_describe(const struct http *http, struct buf *out);

#endif
