// SPDX-License-Identifier: PostgreSQL
//
// Errors of Redis: see redis_error.h.

#include "store/redis_error.h"

#include <string.h>

#include "base/str.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// The first word of an error. One that passes is answered for as long as something lasts, and the
// command has not been carried out.
static const struct row {
    const char *word;
    int code;
    bool passes;
    const char *hint;
} rows[] = {
    {"LOADING", MR_ECONNECT, true, "It reads its data after a start; try again in a moment."},
    {"BUSYGROUP", MR_ECONFLICT, false, "Somebody else was first."},
    {"BUSY", MR_ECONNECT, true, "A script of somebody's runs for long; see SCRIPT KILL."},
    {"MASTERDOWN", MR_ECONNECT, true, "A replica without its master; try again in a moment."},
    {"CLUSTERDOWN", MR_ECONNECT, true, "Part of the cluster is gone; try again in a moment."},
    {"TRYAGAIN", MR_ECONNECT, true, "The cluster moves its slots; try again in a moment."},
    {"NOREPLICAS", MR_ECONNECT, false, "Too few replicas are connected (min-replicas-to-write)."},
    {"OOM", MR_EFULLDISK, false,
     "Its memory is used up: raise maxmemory, or let entries of the cache end sooner. Keep "
     "maxmemory-policy noeviction, or Redis throws away jobs and locks."},
    {"MISCONF", MR_EFULLDISK, false,
     "Redis cannot write to its disk and only reads are answered; see its log."},
    {"READONLY", MR_EREADONLY, false, "It is a replica; give the address of its master."},
    {"NOAUTH", MR_EPRIVILEGE, false,
     "It wants a password: redis://[USER]:PASSWORD@HOST[:PORT][/DATABASE]."},
    {"WRONGPASS", MR_EPRIVILEGE, false, "The user or the password is another one."},
    {"NOPERM", MR_EPRIVILEGE, false,
     "The user of Redis's may not do this; it needs the keys mr:* and their commands."},
    {"WRONGTYPE", MR_EFOREIGN, false,
     "A key that begins with mr: was made by another program; delete it, or use another database."},
    {"MOVED", MR_ECONFIG, false,
     "It is one node of a cluster, and the key lives on another: connect through a proxy that "
     "knows the cluster, or to that node."},
    {"ASK", MR_ECONFIG, false, "The cluster moves this key to another node right now."},
    {"CROSSSLOT", MR_EINTERNAL, false, "Two keys of one call lie in different slots: a defect."},
    {"NOSCRIPT", MR_EINTERNAL, false, "A script was forgotten twice in one call."},
    {"ERR unknown command", MR_ESERVER, false, "Redis 6.2 or newer is needed."},
    {"ERR invalid password", MR_EPRIVILEGE, false, "The password is another one."},
    {"ERR AUTH", MR_EPRIVILEGE, false, "It has no password: leave it out of the address."},
    {"ERR DB index", MR_ECONFIG, false, "It has fewer databases; see its setting `databases`."},
    {"ERR max number of clients", MR_ECONNECT, false, "Raise its setting maxclients."},
};

// An old Redis refuses commands inside of scripts in words that stand in the middle.
static const struct row not_in_scripts = {"not allowed from script", MR_ESERVER, false,
                                          "Redis 6.2 or newer is needed."};

// Before Redis 7 an error inside of a script stands behind where it happened, once or twice.
static const char *skip_place(const char *text)
{
    const char *inner = text;

    if (str_starts(text, "ERR Error running script")) {
        for (const char *at = text; (at = strstr(at, "user_script")); inner = at) {
            at += strlen("user_script");
            at += strspn(at, ": 0123456789-");
        }
    }
    return inner;
}

static const struct row *find(const char *text)
{
    const char *inner = skip_place(text);

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t size = strlen(rows[i].word);
        // whole words: BUSY is not BUSYGROUP
        if (str_starts(inner, rows[i].word) && strchr(" ", inner[size])) {
            return &rows[i];
        }
    }
    return strstr(inner, not_in_scripts.word) ? &not_in_scripts : NULL;
}

int redis_error_set(const char *text, const char *place, struct mr_error *err)
{
    const struct row *row = find(text);
    int code = row ? row->code : MR_EDATABASE;

    mr_error_set(err, code, "Redis at %s: %s", place, text);
    if (row) {
        mr_error_hint(err, "%s", row->hint);
    }
    return code;
}

bool redis_error_passes(const redisReply *reply)
{
    const struct row *row = reply->type == REDIS_REPLY_ERROR ? find(reply->str) : NULL;

    return row && row->passes;
}

bool redis_error_reads(const char *text)
{
    return str_starts(text, "MISCONF ");
}
