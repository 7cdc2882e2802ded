// SPDX-License-Identifier: PostgreSQL
//
// A PostgreSQL server of our own: see private_server.h. Start, watch and stop.

#include "daemon/private_server.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/private_server_parts.h"
#include "daemon/proc.h"
#include "daemon/server_conf.h"

// Without any answer, and while the server says that it is starting: a recovery takes its time.
#define START_MS   60000
#define RECOVER_MS (30 * 60 * 1000)
#define PING_MS    50
// A fast shutdown writes a checkpoint; an immediate one writes nothing.
#define FAST_MS      60000
#define IMMEDIATE_MS 10000
// Between a death and the next start; doubled from death to death.
#define PAUSE_MS 250
// A port that is free when we look can be somebody's when the server binds it.
#define PORT_TRIES 10

// ---- what an earlier run has left ----

static pid_t postmaster_pid(const struct server_dir *dir)
{
    AUTO_BUF text;
    bool there = false;

    buf_init(&text, SERVER_DIR_FILE_MAX);
    if (server_dir_read(dir, "data/postmaster.pid", &text, &there, NULL) || !there) {
        return 0;
    }
    return (pid_t)atoi(buf_peek(&text));
}

// Whether it is alive and was started on our data.
static bool is_postmaster(const struct server_dir *dir, pid_t pid)
{
    int64_t started = 0;

    return proc_started(pid, &started) && proc_has_argument(pid, dir->data);
}

static bool gone_within(struct sigwatch *watch, const struct server_dir *dir, pid_t pid,
                        int64_t timeout_ms)
{
    int64_t until_ms = clock_ms() + timeout_ms;

    while (is_postmaster(dir, pid)) {
        if (clock_ms() >= until_ms) {
            return false;
        }
        sigwatch_wait(watch, PING_MS);
    }
    return true;
}

// The directory is locked: whoever had it before is dead, and so should be its server.
static void clean_up(struct private_server *server)
{
    pid_t pid = postmaster_pid(&server->dir);

    if (pid <= 0) {
        return;
    }
    if (is_postmaster(&server->dir, pid)) {
        log_put(LEVEL_WARNING, "server.leftover", NULL, 0,
                "stopping the server that an earlier run has left (pid %d)", (int)pid);
        kill(pid, SIGINT);
        if (!gone_within(server->watch, &server->dir, pid, FAST_MS)) {
            kill(pid, SIGQUIT);
        }
        if (!gone_within(server->watch, &server->dir, pid, IMMEDIATE_MS)) {
            kill(pid, SIGKILL);
            gone_within(server->watch, &server->dir, pid, IMMEDIATE_MS);
        }
    }
    // a zombie, or somebody else's process of that number, would keep the new one from starting
    server_dir_remove(&server->dir, "data/postmaster.pid");
}

// ---- start ----

static int open_log(struct private_server *server, struct mr_error *err)
{
    server->log_fd =
        openat(server->dir.fd, "log", O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return server->log_fd < 0
               ? server_dir_error(errno, err, "cannot write %s/log", server->dir.path)
               : 0;
}

static int launch(struct private_server *server, struct mr_error *err)
{
    char program[PG_BINARIES_DIR_SIZE + 16];
    char conf[SERVER_DIR_MAX + 32];
    const char *argv[] = {program, "-D", server->dir.data, "-c", conf, NULL};
    // fast shutdown when we are gone
    struct subprocess_plan plan = {.argv = argv,
                                   .watch = server->watch,
                                   .user = &server->dir.user,
                                   .input = -1,
                                   .output = server->log_fd,
                                   .death_signal = SIGINT};

    snprintf(program, sizeof(program), "%s/postgres", server->binaries.dir);
    snprintf(conf, sizeof(conf), "config_file=%s/postgresql.conf", server->dir.path);
    private_server_mark_log(server);
    return subprocess_start(&plan, &server->pid, err);
}

static PGPing ping(const struct private_server *server)
{
    char port[16];
    const char *const keywords[] = {"host", "port", "user", "dbname", "connect_timeout", NULL};
    const char *const values[] = {server->dir.socket,      port, PRIVATE_SERVER_USER,
                                  PRIVATE_SERVER_DATABASE, "2",  NULL};

    snprintf(port, sizeof(port), "%d", server->port);
    return PQpingParams(keywords, values, 0);
}

static bool has_ended(struct private_server *server)
{
    if (server->pid > 0 && waitpid(server->pid, NULL, WNOHANG) != 0) {
        server->pid = 0;
    }
    return server->pid == 0;
}

static int wait_ready(struct private_server *server, struct mr_error *err)
{
    int64_t began_ms = clock_ms();
    int stops = server->watch->stops;

    for (;;) {
        PGPing answer = ping(server);
        if (answer == PQPING_OK) {
            return 0;
        }
        if (has_ended(server)) {
            return private_server_log_reason(server, err, "PostgreSQL did not start");
        }
        if (server->watch->stops > stops) {
            return mr_error_set(err, MR_ETIMEOUT, "stopped by a signal");
        }
        if (clock_ms() - began_ms > (answer == PQPING_REJECT ? RECOVER_MS : START_MS)) {
            mr_error_set(err, MR_ETIMEOUT, "PostgreSQL did not become ready");
            mr_error_hint(err, "See %s/log.", server->dir.path);
            return MR_ETIMEOUT;
        }
        sigwatch_wait(server->watch, PING_MS);
    }
}

// Waits for the end of the server; its status is of no interest.
static bool ended_within(struct private_server *server, int64_t timeout_ms)
{
    int64_t until_ms = clock_ms() + timeout_ms;
    int stops = server->watch->stops;

    while (!has_ended(server)) {
        int64_t left_ms = until_ms - clock_ms();
        if (left_ms <= 0 || server->watch->stops > stops) {
            return false;
        }
        sigwatch_wait(server->watch, left_ms < 1000 ? left_ms : 1000);
    }
    return true;
}

static void shut_down(struct private_server *server)
{
    static const struct {
        int signal;
        int64_t wait_ms;
    } steps[] = {{SIGINT, FAST_MS}, {SIGQUIT, IMMEDIATE_MS}, {SIGKILL, IMMEDIATE_MS}};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && server->pid > 0; i++) {
        kill(server->pid, steps[i].signal);
        if (!ended_within(server, steps[i].wait_ms) && i + 1 < sizeof(steps) / sizeof(steps[0])) {
            log_put(LEVEL_WARNING, "server.stop", NULL, 0,
                    "the server has not ended yet: no longer waiting for it");
        }
    }
}

static int start_at_port(struct private_server *server, struct mr_error *err)
{
    int code = server_conf_write(&server->dir, server->port, PRIVATE_SERVER_USER, err);

    if (code || (code = launch(server, err))) {
        return code;
    }
    code = wait_ready(server, err);
    if (code) {
        shut_down(server);
    }
    return code;
}

static int start(struct private_server *server, int wanted_port, struct mr_error *err)
{
    int code = 0;

    for (int try = 0; try < PORT_TRIES; try++) {
        code = private_server_choose_port(server, wanted_port, err);
        code = code ? code : start_at_port(server, err);
        // only a port that was taken meanwhile is worth another try
        if (code == 0 || wanted_port || private_server_port_is_free(server->port)) {
            break;
        }
    }
    return code;
}

// ---- one that died ----

static void note_death(struct private_server *server, int status)
{
    const char *how = WIFSIGNALED(status) ? "signal" : "status";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

    server->pid = 0;
    server->deaths_ms[server->deaths++ % PRIVATE_SERVER_DEATHS] = clock_ms();
    log_put(LEVEL_ERROR, "server.died", NULL, 0, "PostgreSQL has ended by itself (%s %d)", how,
            number);
}

// How many of the last deaths are recent.
static int recent_deaths(const struct private_server *server)
{
    int kept = server->deaths < PRIVATE_SERVER_DEATHS ? server->deaths : PRIVATE_SERVER_DEATHS;
    int recent = 0;

    for (int i = 0; i < kept; i++) {
        recent += clock_ms() - server->deaths_ms[i] < PRIVATE_SERVER_DEATH_MS;
    }
    return recent;
}

static int give_up(struct private_server *server, struct mr_error *err)
{
    int code = private_server_log_reason(server, err, "PostgreSQL keeps dying");

    mr_error_detail(err, "It was started %d times within a minute.", PRIVATE_SERVER_DEATHS);
    return code;
}

// The whole time, whoever ends meanwhile; not longer than a stop signal.
static void pause_for(struct sigwatch *watch, int64_t time_ms)
{
    int64_t until_ms = clock_ms() + time_ms;
    int stops = watch->stops;

    for (int64_t left_ms = time_ms; left_ms > 0 && watch->stops == stops;
         left_ms = until_ms - clock_ms()) {
        sigwatch_wait(watch, left_ms);
    }
}

// Its children notice the death by themselves; until the last of them is gone a new server
// refuses to start, hence the pauses.
static int revive_once(struct private_server *server, struct mr_error *err)
{
    pause_for(server->watch, (int64_t)PAUSE_MS << recent_deaths(server));
    clean_up(server);
    int code = server_dir_make_socket(&server->dir, err);
    return code ? code : start(server, server->port, err);
}

int private_server_revive(struct private_server *server, int status, struct mr_error *err)
{
    int stops = server->watch->stops;
    int code = 0;

    do {
        if (recent_deaths(server) == PRIVATE_SERVER_DEATHS) {
            return give_up(server, err);
        }
        note_death(server, status);
        code = revive_once(server, err);
        status = 1 << 8;
    } while (code && server->watch->stops == stops);
    if (code == 0) {
        log_put(LEVEL_INFO, "server.ready", NULL, 0, "PostgreSQL runs again");
    }
    return code;
}

pid_t private_server_pid(const struct private_server *server)
{
    return server->pid;
}

// ---- the whole of it ----

static int open_dir(struct private_server *server, const char *path, struct mr_error *err)
{
    char standard[SERVER_DIR_MAX + 1];
    int code = 0;

    if (!path) {
        code = server_dir_default(standard, err);
        path = standard;
    }
    return code ? code : server_dir_open(&server->dir, path, server->watch, err);
}

static int set_up(struct private_server *server, struct mr_error *err)
{
    int major = 0;
    int code = server_dir_version(&server->dir, &major, err);

    if (code == 0) {
        code = pg_binaries_find(major, server->watch, &server->binaries, err);
    }
    if (code || (code = open_log(server, err))) {
        return code;
    }
    server_dir_remove(&server->dir, "dsn");
    clean_up(server);
    if (major == 0 && (code = private_server_make(server, err))) {
        return code;
    }
    return server_dir_make_socket(&server->dir, err);
}

int private_server_open(const struct private_server_options *options, struct sigwatch *watch,
                        struct private_server **ret, struct mr_error *err)
{
    struct private_server *server = calloc(1, sizeof(*server));

    if (!server) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    server->watch = watch;
    server->log_fd = -1;
    int code = open_dir(server, options->dir, err);
    if (code) {
        free(server);
        return code;
    }
    if ((code = set_up(server, err)) || (code = start(server, options->port, err)) ||
        (code = private_server_settle(server, err))) {
        private_server_stop(server);
        return code;
    }
    log_put(LEVEL_INFO, "server.ready", NULL, 0, "PostgreSQL %d is ready in %s, port %d",
            server->binaries.major, server->dir.path, server->port);
    *ret = server;
    return 0;
}

void private_server_stop(struct private_server *server)
{
    if (!server) {
        return;
    }
    server_dir_remove(&server->dir, "dsn");
    shut_down(server);
    server_dir_remove_socket(&server->dir);
    if (server->log_fd >= 0) {
        close(server->log_fd);
    }
    server_dir_close(&server->dir);
    free(server);
}

void private_server_leave(struct private_server *server)
{
    close(server->log_fd);
    close(server->dir.lock_fd);
    close(server->dir.fd);
    free(server);
}

const char *private_server_dsn(const struct private_server *server)
{
    return server->dsn;
}

const char *private_server_dir(const struct private_server *server)
{
    return server->dir.path;
}

const char *private_server_socket(const struct private_server *server)
{
    return server->dir.socket;
}

int private_server_port(const struct private_server *server)
{
    return server->port;
}
