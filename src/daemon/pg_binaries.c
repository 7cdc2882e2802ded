// SPDX-License-Identifier: PostgreSQL
//
// Finds the programs of a PostgreSQL server: see pg_binaries.h.

#include "daemon/pg_binaries.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "daemon/subprocess.h"

#define ASK_MS     10000
#define ANSWER_MAX 4096

// A search: what is wanted and the best so far.
struct search {
    int major; // 0: the newest
    struct sigwatch *watch;
    struct pg_binaries best;
    int seen; // the newest major version that was found but does not fit
};

int pg_binaries_parse_version(const char *line)
{
    const char *mark = strstr(line, "(PostgreSQL) ");
    char *end = NULL;

    if (!mark) {
        return 0;
    }
    long major = strtol(mark + strlen("(PostgreSQL) "), &end, 10);
    // 9.6 was the last with two numbers
    return end && major > 0 && major < 1000 ? (int)major : 0;
}

static bool is_program(const char *dir, const char *name)
{
    char path[PG_BINARIES_DIR_SIZE + 16];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, X_OK) == 0;
}

static int version_of(const char *dir, struct sigwatch *watch)
{
    char path[PG_BINARIES_DIR_SIZE + 16];
    const char *argv[] = {path, "--version", NULL};
    AUTO_BUF answer;

    buf_init(&answer, ANSWER_MAX);
    snprintf(path, sizeof(path), "%s/postgres", dir);
    if (subprocess_ask(argv, watch, ASK_MS, &answer, NULL)) {
        return 0;
    }
    return pg_binaries_parse_version(buf_peek(&answer));
}

static void try_dir(struct search *search, const char *given)
{
    char dir[PATH_MAX];

    if (!realpath(given, dir) || strlen(dir) >= sizeof(search->best.dir) ||
        !is_program(dir, "postgres") || !is_program(dir, "initdb")) {
        return;
    }
    int major = version_of(dir, search->watch);
    bool fits = search->major ? major == search->major : major >= PG_BINARIES_MAJOR_MIN;
    if (fits && major > search->best.major) {
        snprintf(search->best.dir, sizeof(search->best.dir), "%s", dir);
        search->best.major = major;
    } else if (!fits && major > search->seen) {
        search->seen = major;
    }
}

// ---- where to look ----

static void try_known_places(struct search *search)
{
    static const char *const patterns[] = {
        "/usr/lib/postgresql/*/bin", // Debian, Ubuntu
        "/usr/pgsql-*/bin",          // the project's own packages for Red Hat and its kin
        "/usr/lib/postgresql*/bin",  // SUSE
        "/usr/libexec/postgresql*",  // Alpine
        "/opt/homebrew/opt/postgresql@*/bin",
        "/usr/local/pgsql/bin", // compiled
    };

    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found)) {
            continue;
        }
        for (size_t j = 0; j < found.gl_pathc; j++) {
            try_dir(search, found.gl_pathv[j]);
        }
        globfree(&found);
    }
}

// The first `name` on the PATH; false when there is none.
static bool find_on_path(const char *name, char *ret, size_t size)
{
    const char *path = getenv("PATH");

    for (const char *at = path; at && *at;) {
        size_t len = strcspn(at, ":");
        if (len > 0 && snprintf(ret, size, "%.*s/%s", (int)len, at, name) < (int)size &&
            access(ret, X_OK) == 0) {
            return true;
        }
        at += len + (at[len] == ':');
    }
    return false;
}

static void try_pg_config(struct search *search)
{
    char path[PG_BINARIES_DIR_SIZE];
    const char *argv[] = {path, "--bindir", NULL};
    AUTO_BUF answer;

    buf_init(&answer, ANSWER_MAX);
    if (find_on_path("pg_config", path, sizeof(path)) &&
        subprocess_ask(argv, search->watch, ASK_MS, &answer, NULL) == 0 && answer.len > 1) {
        answer.data[strcspn(answer.data, "\n")] = '\0';
        try_dir(search, answer.data);
    }
}

static void try_path(struct search *search)
{
    char path[PG_BINARIES_DIR_SIZE];

    if (find_on_path("postgres", path, sizeof(path))) {
        *strrchr(path, '/') = '\0';
        try_dir(search, path);
    }
}

// ---- what to say ----

static int wrong_directory(const struct search *search, const char *dir, struct mr_error *err)
{
    if (search->seen) {
        mr_error_set(err, MR_ECONFIG, "MILLRACE_PGBIN=%s: holds PostgreSQL %d", dir, search->seen);
    } else {
        mr_error_set(err, MR_ECONFIG, "MILLRACE_PGBIN=%s: holds no PostgreSQL server", dir);
    }
    if (search->major) {
        mr_error_hint(err, "Name the directory with postgres and initdb of PostgreSQL %d.",
                      search->major);
    } else {
        mr_error_hint(err, "Name the directory with postgres and initdb of PostgreSQL %d or later.",
                      PG_BINARIES_MAJOR_MIN);
    }
    return MR_ECONFIG;
}

static int not_found(const struct search *search, struct mr_error *err)
{
    if (search->major) {
        mr_error_set(err, MR_ECONFIG,
                     "PostgreSQL %d not found: the data directory is of that "
                     "version",
                     search->major);
        mr_error_hint(err,
                      "Install it (on Debian and Ubuntu: apt-get install postgresql-%d), or name "
                      "its directory of programs in MILLRACE_PGBIN. To move the data to another "
                      "version use pg_upgrade or a dump.",
                      search->major);
        return MR_ECONFIG;
    }
    mr_error_set(err, MR_ECONFIG, "PostgreSQL server not found");
    if (search->seen) {
        mr_error_set(err, MR_ECONFIG, "PostgreSQL server not found: %d is too old", search->seen);
    }
    mr_error_hint(err,
                  "Install version %d or later (on Debian and Ubuntu: apt-get install postgresql), "
                  "or name its directory of programs in MILLRACE_PGBIN.",
                  PG_BINARIES_MAJOR_MIN);
    return MR_ECONFIG;
}

int pg_binaries_find(int major, struct sigwatch *watch, struct pg_binaries *ret,
                     struct mr_error *err)
{
    struct search search = {.major = major, .watch = watch};
    const char *chosen = getenv("MILLRACE_PGBIN");

    if (!str_empty(chosen)) {
        try_dir(&search, chosen);
    } else {
        try_known_places(&search);
        if (!search.best.major) {
            try_pg_config(&search);
        }
        if (!search.best.major) {
            try_path(&search);
        }
    }
    if (!search.best.major) {
        return str_empty(chosen) ? not_found(&search, err) : wrong_directory(&search, chosen, err);
    }
    *ret = search.best;
    return 0;
}
