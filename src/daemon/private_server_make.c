// SPDX-License-Identifier: PostgreSQL
//
// A new cluster for a private server: see private_server_parts.h.

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "client/embedded.h"
#include "daemon/private_server_parts.h"

#define MAKE_MS (10 * 60 * 1000)
// Random bytes of a password, which is twice as long in hex.
enum { PASSWORD_BYTES = 24, PASSWORD_SIZE = 2 * PASSWORD_BYTES + 1 };

static int make_password(char *ret, struct mr_error *err)
{
    unsigned char bytes[PASSWORD_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return mr_error_set(err, MR_EIO, "no random numbers: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

// A file in memory: what is in it never lies on a disk.
static int open_text(const char *text, int *ret, struct mr_error *err)
{
    int fd = memfd_create("millrace", MFD_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
        lseek(fd, 0, SEEK_SET) != 0) {
        mr_error_set(err, MR_EIO, "cannot make a file in memory: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return MR_EIO;
    }
    *ret = fd;
    return 0;
}

// Runs a program of the server's with `text` as its input; what it says goes to the log.
static int run(struct private_server *server, const char *const *argv, const char *text,
               struct mr_error *err)
{
    struct subprocess_plan plan = {.argv = argv,
                                   .watch = server->watch,
                                   .user = &server->dir.user,
                                   .output = server->log_fd,
                                   .death_signal = SIGKILL};
    pid_t pid = 0;
    int status = 0;
    int code = open_text(text, &plan.input, err);

    if (code) {
        return code;
    }
    private_server_mark_log(server);
    code = subprocess_start(&plan, &pid, err);
    code = code ? code : subprocess_wait(server->watch, pid, MAKE_MS, &status, err);
    close(plan.input);
    if (code == 0 && status != 0) {
        return private_server_log_reason(server, err, "cannot make a PostgreSQL cluster");
    }
    return code;
}

// Sorting by bytes, so that no update of the C library can disorder an index; letters as in
// Unicode where the system knows them.
static int run_initdb(struct private_server *server, const char *data, const char *password,
                      struct mr_error *err)
{
    char program[PG_BINARIES_DIR_SIZE + 16];
    locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    const char *argv[] = {
        program,
        "-D",
        data,
        "-U",
        PRIVATE_SERVER_USER,
        "--encoding=UTF8",
        "--locale=C",
        unicode ? "--lc-ctype=C.UTF-8" : "--lc-ctype=C",
        "--data-checksums",
        "--auth-local=peer",
        "--auth-host=scram-sha-256",
        "--pwfile=/dev/stdin",
        NULL,
    };

    if (unicode) {
        freelocale(unicode);
    }
    snprintf(program, sizeof(program), "%s/initdb", server->binaries.dir);
    return run(server, argv, password, err);
}

static const char *find_script(const char *name)
{
    for (size_t i = 0; i < embedded.count; i++) {
        if (embedded.files[i].kind == EMBEDDED_SCHEMA && str_equal(embedded.files[i].name, name)) {
            return embedded.files[i].sql;
        }
    }
    return NULL;
}

static int make_database(struct private_server *server, const char *data, struct mr_error *err)
{
    char program[PG_BINARIES_DIR_SIZE + 16];
    const char *argv[] = {program, "--single",           "-D",        data,
                          "-c",    "exit_on_error=true", "template1", NULL};
    const char *script = find_script("private_database");

    if (!script) {
        return mr_error_set(err, MR_EINTERNAL, "the script private_database is missing");
    }
    snprintf(program, sizeof(program), "%s/postgres", server->binaries.dir);
    return run(server, argv, script, err);
}

static int write_pgpass(const struct private_server *server, const char *password,
                        struct mr_error *err)
{
    char line[256];

    snprintf(line, sizeof(line), "127.0.0.1:*:*:%s:%s\nlocalhost:*:*:%s:%s\n", PRIVATE_SERVER_USER,
             password, PRIVATE_SERVER_USER, password);
    return server_dir_write(&server->dir, "pgpass", 0600, line, err);
}

int private_server_make(struct private_server *server, struct mr_error *err)
{
    char password[PASSWORD_SIZE];
    char data[SERVER_DIR_MAX + 16];

    log_put(LEVEL_INFO, "server.make", NULL, 0, "making a PostgreSQL %d cluster in %s (user %s)",
            server->binaries.major, server->dir.path, server->dir.user_name);
    snprintf(data, sizeof(data), "%s.new", server->dir.data);
    int code = server_dir_begin_data(&server->dir, server->watch, err);
    if (code) {
        return code;
    }
    if ((code = make_password(password, err)) || (code = run_initdb(server, data, password, err)) ||
        (code = make_database(server, data, err)) || (code = write_pgpass(server, password, err)) ||
        (code = server_dir_finish_data(&server->dir, err))) {
        server_dir_drop_data(&server->dir, server->watch);
    }
    explicit_bzero(password, sizeof(password));
    return code;
}
