// SPDX-License-Identifier: PostgreSQL
//
// `millrace up`: a PostgreSQL server of its own, the schema in it, and the daemon, as one command.
//
// This process keeps the server and does nothing else; the daemon is a child of its own. So the
// server is shut down properly however the daemon ends: gracefully, at once after a second
// signal, or by a crash.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "client/conn.h"
#include "client/embedded.h"
#include "client/schema.h"
#include "config.h"
#include "daemon/private_server.h"
#include "daemon/serve.h"
#include "daemon/subprocess.h"
#include "http/listen.h"

// How often the server's log is looked after.
#define UPKEEP_MS 60000
// When there is no server any more: between the signals that end the daemon.
#define DAEMON_END_MS 1000

struct up {
    struct private_server_options server_options;
    struct serve_options serve;
    const char *roles;
    int64_t port;
    bool help;
    struct sigwatch watch;
    struct private_server *server;
    char *dsn;        // outlives the server
    char listen[128]; // of HTTP; "": as the file says
    bool tls;
    char token[AUTH_TOKEN_MAX + 1];
    char hash[AUTH_HASH_SIZE];
    pid_t daemon;
    int passed_stops;
    int passed_reloads;
};

static int print_help(const struct option_row *rows)
{
    puts("usage: millrace up [--data DIR] [-c FILE] [OPTION...]\n"
         "\n"
         "Starts a PostgreSQL server of its own, puts the schema into it and runs the daemon.\n"
         "Prints how to connect and where the dashboard is, and runs until it is stopped.\n");
    options_help(rows, stdout);
    puts("\nSIGTERM or SIGINT ends daemon and server gracefully, the second one ends the daemon\n"
         "at once; SIGHUP reads the file again. Exit status: 0 done, 1 failed, 2 wrong usage.\n"
         "See millrace-up(1).");
    return command_finish(EXIT_DONE);
}

// ---- before the server ----

static int check_usage(struct up *up, int argc, char **argv, int next, struct mr_error *err)
{
    if (next < 0) {
        return next;
    }
    if (next < argc) {
        return mr_error_set(err, MR_EUSAGE, "up takes no argument: \"%s\"", argv[next]);
    }
    if (up->port > 65535 || (up->port > 0 && up->port < 1024)) {
        mr_error_set(err, MR_EUSAGE, "wrong value for --port: \"%lld\"", (long long)up->port);
        mr_error_hint(err, "Write a number from 1024 to 65535, or leave it out.");
        return MR_EUSAGE;
    }
    up->server_options.port = (int)up->port;
    if (!up->serve.config_path && !str_empty(getenv("MILLRACE_CONFIG"))) {
        up->serve.config_path = getenv("MILLRACE_CONFIG");
    }
    return serve_parse_roles(up->roles, &up->serve.roles, err);
}

// A mistake in the file is told before a server is made for it. That there is no token yet is none.
static int check_config(struct up *up, struct mr_error *err)
{
    struct config *config = NULL;
    auth_hash_token("", up->hash);
    up->serve.http_hash = up->serve.roles & SERVE_HTTP ? up->hash : NULL;
    int code = serve_load(&up->serve, &config, err);

    if (code) {
        return code;
    }
    code = config_setup_log(config, err);
    if (code == 0 && config->dsn) {
        log_put(LEVEL_WARNING, "up.dsn", NULL, 0,
                "%s names a database; `millrace up` uses its own instead", up->serve.config_path);
    }
    if (config->http.given) {
        snprintf(up->listen, sizeof(up->listen), "%s", config->http.options.listen);
        up->tls = config->http.options.tls_key;
    }
    config_free(config);
    return code;
}

// ---- the address of HTTP ----

// The usual port, or any that is free when somebody else has it.
static int choose_listen(struct up *up, struct mr_error *err)
{
    int fd = -1;
    int port = 0;

    if (up->listen[0]) {
        return 0;
    }
    int code = listen_open(HTTP_DEFAULT_LISTEN, &fd, &port, err);
    if (code == MR_EIO) {
        code = listen_open("127.0.0.1:0", &fd, &port, err);
    }
    if (code) {
        return code;
    }
    snprintf(up->listen, sizeof(up->listen), "127.0.0.1:%d", port);
    up->serve.http_listen = up->listen;
    up->serve.http_fd = fd; // held until the daemon has it: nobody gets in between
    return 0;
}

// Where a browser on this machine finds it: every address is also the local one.
static const char *local_address(const char *listen)
{
    static char text[32];
    const char *colon = strrchr(listen, ':');

    if (!str_starts(listen, "0.0.0.0:") && !str_starts(listen, "[::]:")) {
        return listen;
    }
    snprintf(text, sizeof(text), "127.0.0.1%s", colon);
    return text;
}

// The token is in the fragment, which no browser sends.
static int publish_url(struct up *up, struct mr_error *err)
{
    char url[AUTH_TOKEN_MAX + 256];

    if (!(up->serve.roles & SERVE_HTTP)) {
        return private_server_publish_url(up->server, NULL, err);
    }
    int code = private_server_token(up->server, up->token, up->hash, err);
    code = code ? code : choose_listen(up, err);
    if (code) {
        return code;
    }
    snprintf(url, sizeof(url), "%s://%s/#token=%s", up->tls ? "https" : "http",
             local_address(up->listen), up->token);
    code = private_server_publish_url(up->server, url, err);
    if (code == 0) {
        printf("export MILLRACE_URL='%s'\n", url);
    }
    return code;
}

// ---- the server and its schema ----

static int migrate(const struct up *up, struct mr_error *err)
{
    const struct schema_options options = {
        .program_version = MILLRACE_VERSION, .lock_timeout_ms = 5000, .wait_timeout_ms = 60000};
    AUTO_CONN *conn = NULL;
    size_t steps = 0;
    int code = conn_open(up->dsn, &conn, err);

    code = code ? code : schema_migrate(conn, &embedded, &options, &steps, err);
    if (code == 0 && steps > 0) {
        log_put(LEVEL_INFO, "up.migrated", NULL, 0, "the schema is the one of version %s now",
                MILLRACE_VERSION);
    }
    return code;
}

// Handlers find the private server, with libmillrace, this program, psql or any other client.
static int set_environment(const struct up *up, struct mr_error *err)
{
    char port[16];

    snprintf(port, sizeof(port), "%d", private_server_port(up->server));
    if (setenv("MILLRACE_DSN", up->dsn, 1) ||
        setenv("PGHOST", private_server_socket(up->server), 1) || setenv("PGPORT", port, 1) ||
        setenv("PGUSER", PRIVATE_SERVER_USER, 1) ||
        setenv("PGDATABASE", PRIVATE_SERVER_DATABASE, 1)) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

static int prepare(struct up *up, struct mr_error *err)
{
    up->dsn = strdup(private_server_dsn(up->server));
    if (!up->dsn) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    up->serve.dsn = up->dsn;
    int code = migrate(up, err);
    code = code ? code : set_environment(up, err);
    code = code ? code : publish_url(up, err);
    code = code ? code : private_server_publish(up->server, err);
    if (code == 0) {
        // a URI without quotes in it
        printf("export MILLRACE_DSN='%s'\n", up->dsn);
        fflush(stdout);
    }
    return code;
}

// ---- the daemon ----

// In a process group of its own: Ctrl-C reaches this process only, which passes it on. The
// system ends it gracefully should this process be killed.
static int run_daemon(struct up *up, pid_t parent)
{
    struct mr_error err;

    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    sigwatch_end(&up->watch);
    private_server_leave(up->server);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent) {
        return EXIT_FAILED;
    }
    return serve_run(&up->serve, &err) ? command_fail(&err) : EXIT_DONE;
}

static int start_daemon(struct up *up, struct mr_error *err)
{
    pid_t parent = getpid();

    fflush(stdout);
    up->daemon = fork();
    if (up->daemon == 0) {
        int status = run_daemon(up, parent);
        free(up->dsn);
        exit(status);
    }
    if (up->serve.http_fd) {
        close(up->serve.http_fd);
    }
    return up->daemon < 0
               ? mr_error_set(err, MR_EIO, "cannot start the daemon: %s", strerror(errno))
               : 0;
}

// A daemon that has begun does not die of SIGTERM: one that does was told to stop before.
static int daemon_exit(const struct up *up, int status)
{
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    if (WTERMSIG(status) == SIGTERM && up->passed_stops > 0) {
        return EXIT_DONE;
    }
    log_put(LEVEL_ERROR, "up.daemon", NULL, 0, "the daemon was ended by signal %d",
            WTERMSIG(status));
    return EXIT_FAILED;
}

// The server is gone for good: nothing that the daemon does can be written any more.
static void end_daemon(struct up *up)
{
    static const int steps[] = {SIGTERM, SIGTERM, SIGKILL};

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        kill(up->daemon, steps[i]);
        for (int turn = 0; turn < 10; turn++) {
            if (waitpid(up->daemon, NULL, WNOHANG) != 0) {
                return;
            }
            sigwatch_wait(&up->watch, DAEMON_END_MS / 10);
        }
    }
    waitpid(up->daemon, NULL, 0);
}

// ---- while it runs ----

static void pass_on(struct up *up)
{
    for (; up->passed_stops < up->watch.stops; up->passed_stops++) {
        kill(up->daemon, SIGTERM);
    }
    for (; up->passed_reloads < up->watch.reloads; up->passed_reloads++) {
        kill(up->daemon, SIGHUP);
    }
}

// Returns when the daemon has ended, or the server cannot be kept alive.
static int watch_over(struct up *up, int *ret_status, struct mr_error *err)
{
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == up->daemon) {
            *ret_status = daemon_exit(up, status);
            return 0;
        }
        if (pid > 0 && pid == private_server_pid(up->server)) {
            int code = private_server_revive(up->server, status, err);
            if (code) {
                return code;
            }
        }
        pass_on(up);
        if (pid <= 0) {
            sigwatch_wait(&up->watch, UPKEEP_MS);
            private_server_upkeep(up->server);
        }
        pass_on(up);
    }
}

static int run(struct up *up, int *ret_status, struct mr_error *err)
{
    int code = check_config(up, err);

    if (code) {
        return code;
    }
    // what the environment says about other servers is not meant for this one
    subprocess_forget_libpq();
    code = private_server_open(&up->server_options, &up->watch, &up->server, err);
    code = code ? code : prepare(up, err);
    code = code ? code : start_daemon(up, err);
    if (code) {
        return code;
    }
    code = watch_over(up, ret_status, err);
    if (code) {
        end_daemon(up);
    }
    // of handlers, when the daemon did not take its time to end
    subprocess_end_orphans(&up->watch, private_server_pid(up->server));
    return code;
}

int cmd_up(int argc, char **argv)
{
    struct up up = {.roles = "work,maintain,http", .serve.version = MILLRACE_VERSION};
    const struct option_row rows[] = {
        {"data", OPTION_STRING, &up.server_options.dir, "DIR",
         "where the server lives (~/.local/share/millrace; root: /var/lib/millrace)"},
        {"c", OPTION_STRING, &up.serve.config_path, "FILE", "the configuration ($MILLRACE_CONFIG)"},
        {"config", OPTION_STRING, &up.serve.config_path, "FILE", "the same"},
        {"port", OPTION_NUMBER, &up.port, "NUMBER", "the server's on 127.0.0.1 (a free one)"},
        {"roles", OPTION_STRING, &up.roles, "LIST", "what the daemon does (work,maintain,http)"},
        {"help", OPTION_FLAG, &up.help, NULL, "show this"},
        {0},
    };
    struct mr_error err;
    int next = options_parse(rows, argc, argv, &err);

    if (next > 0 && up.help) {
        return print_help(rows);
    }
    if (check_usage(&up, argc, argv, next, &err)) {
        return command_fail(&err);
    }
    int status = EXIT_DONE;
    // a reader of our output that has gone is no reason to leave a server behind
    signal(SIGPIPE, SIG_IGN);
    sigwatch_begin(&up.watch);
    // what the daemon leaves behind becomes ours, to be ended with the rest
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (run(&up, &status, &err)) {
        status = command_fail(&err);
    }
    private_server_stop(up.server);
    free(up.dsn);
    return status == EXIT_DONE ? command_finish(status) : status;
}
