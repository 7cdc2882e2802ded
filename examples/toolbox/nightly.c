// SPDX-License-Identifier: PostgreSQL
//
// The nightly job: a report about all tenants. Whoever is started takes the lock `nightly`, for an
// owner and a time, and renews it while it works; the report carries the fencing number. One that
// is killed has the lock until its time is over, and not longer.
//
//   nightly TENANT_DIRECTORY REPORT_DIRECTORY TTL_MS WAIT_MS [GO_FILE]
//
// WAIT_MS: how long to ask for the lock. GO_FILE: the report takes until this file is there.

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "toolbox.h"

enum { TENANTS_MAX = 100, PAUSE_MS = 50, ANOTHER_HAS_IT = 75 };

struct night {
    mr_conn *conn;
    char owner[128];
    int64_t ttl_ms;
    int64_t fence;
};

// *ret_fence 0: another has it.
static int ask(struct night *night, int64_t *ret_fence)
{
    mr_error err;

    if (mr_lock_lease(night->conn, "nightly", night->owner, night->ttl_ms, ret_fence, &err) != 0) {
        return complain("lock", &err);
    }
    return 0;
}

static int take(struct night *night, int64_t wait_ms)
{
    int64_t waited_ms = 0;

    for (;;) {
        if (ask(night, &night->fence) != 0) {
            return 1;
        }
        if (night->fence != 0) {
            printf("%s has the lock, number %lld\n", night->owner, (long long)night->fence);
            return 0;
        }
        if (waited_ms >= wait_ms) {
            printf("%s: another has the lock\n", night->owner);
            return ANOTHER_HAS_IT;
        }
        if (signal_came(PAUSE_MS)) {
            return 1;
        }
        waited_ms += PAUSE_MS;
    }
}

// A number that has changed means that the lock was lost in between: what is half done here may be
// half done elsewhere, too.
static bool still_has_it(struct night *night)
{
    int64_t fence = 0;

    return ask(night, &fence) == 0 && fence == night->fence;
}

static bool wait_for_go(struct night *night, const char *go)
{
    while (go != NULL && access(go, F_OK) != 0) {
        if (signal_came(PAUSE_MS) || !still_has_it(night)) {
            return false;
        }
    }
    return true;
}

// The names of all tenants; the number of them.
static size_t tenant_names(const char *directory, char names[TENANTS_MAX][NAME_MAX_BYTES + 1])
{
    DIR *tenants = opendir(directory);
    const struct dirent *entry;
    size_t count = 0;

    while (tenants != NULL && count < TENANTS_MAX && (entry = readdir(tenants)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');

        if (dot != NULL && strcmp(dot, ".json") == 0 && dot - entry->d_name <= NAME_MAX_BYTES) {
            snprintf(names[count++], NAME_MAX_BYTES + 1, "%.*s", (int)(dot - entry->d_name),
                     entry->d_name);
        }
    }
    if (tenants != NULL) {
        closedir(tenants);
    }
    return count;
}

// All of them with one look into the cache; those that are not there are loaded.
static int configs_of(struct night *night, const char *directory, json_t *report)
{
    static char names[TENANTS_MAX][NAME_MAX_BYTES + 1], keys[TENANTS_MAX][KEY_SIZE];
    const char *asked[TENANTS_MAX];
    char *found[TENANTS_MAX];
    size_t count = tenant_names(directory, names);
    mr_error err = {0};

    for (size_t i = 0; i < count; i++) {
        tenant_key(keys[i], names[i]);
        asked[i] = keys[i];
    }
    if (mr_cache_get_many(night->conn, asked, count, found, &err) != 0) {
        return complain("cache", &err);
    }
    for (size_t i = 0; i < count; i++) {
        json_t *config = found[i] != NULL ? json_loads(found[i], 0, NULL) : NULL;

        mr_free(found[i]);
        if (config == NULL &&
            tenant_config(night->conn, directory, names[i], &config, &err) == TENANT_ERROR) {
            config = json_pack("{s: s}", "error", err.message);
        }
        json_object_set_new(report, names[i], config);
    }
    return 0;
}

static int write_report(struct night *night, const char *tenants, const char *directory)
{
    json_t *report = json_object();
    char path[4096];
    int status = configs_of(night, tenants, report);

    snprintf(path, sizeof(path), "%s/report-%lld.json", directory, (long long)night->fence);
    if (status == 0 && !still_has_it(night)) {
        printf("%s has lost the lock\n", night->owner);
        status = 1;
    } else if (status == 0) {
        status = json_dump_file(report, path, JSON_SORT_KEYS) == 0 ? 0 : 1;
        printf("%s has written the report about %zu tenants\n", night->owner,
               json_object_size(report));
    }
    json_decref(report);
    return status;
}

int command_nightly(int argc, char **argv)
{
    struct night night = {.ttl_ms = strtoll(argv[2], NULL, 10)};
    char host[64] = "";
    int held = 0, status;
    mr_error err;

    gethostname(host, sizeof(host) - 1);
    snprintf(night.owner, sizeof(night.owner), "%s-%d", host, (int)getpid());
    if (db_open(&night.conn) != 0) {
        return 1;
    }
    status = take(&night, strtoll(argv[3], NULL, 10));
    if (status == 0) {
        status = wait_for_go(&night, argc > 4 ? argv[4] : NULL)
                     ? write_report(&night, argv[0], argv[1])
                     : 1;
        if (mr_unlock_lease(night.conn, "nightly", night.owner, &held, &err) != 0) {
            status = complain("unlock", &err);
        }
    }
    mr_conn_free(night.conn);
    return status;
}
