// SPDX-License-Identifier: PostgreSQL
//
// The configuration of a private server: see server_conf.h.

#include "daemon/server_conf.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define CONF_MAX (64 * 1024)

// Names and values that are the same everywhere, and why they are not PostgreSQL's defaults.
static const struct {
    const char *name;
    const char *value;
} settings[] = {
    // 127.0.0.1 with a password, and a socket in a directory of the owner's
    {"listen_addresses", "127.0.0.1"},
    {"unix_socket_permissions", "0700"},
    {"password_encryption", "scram-sha-256"},
    {"max_connections", "100"},
    // a claim locks some hundred partitions and indexes
    {"max_locks_per_transaction", "256"},
    // a transaction that has written and stays open holds segments of the log
    {"idle_in_transaction_session_timeout", "10min"},
    // a job that was accepted is not lost: both are the defaults, and are said so
    {"fsync", "on"},
    {"synchronous_commit", "on"},
    // fewer checkpoints: a page's first change after one goes to the WAL whole
    {"checkpoint_timeout", "15min"},
    {"checkpoint_completion_target", "0.9"},
    {"max_wal_size", "2GB"},
    {"min_wal_size", "160MB"},
    {"wal_compression", "on"},
    // much is written and truncated in a short time
    {"autovacuum", "on"},
    {"autovacuum_naptime", "15s"},
    {"random_page_cost", "1.1"},
    // short statements
    {"jit", "off"},
    {"timezone", "UTC"},
    {"log_timezone", "UTC"},
    {"lc_messages", "C"},
    {"log_line_prefix", "%m [%p] "},
    // one file, which the program that started the server keeps short
    {"logging_collector", "off"},
    {"log_destination", "stderr"},
    {"cluster_name", "millrace"},
};

#define BUFFERS_LEAST_MIB 32
#define BUFFERS_MOST_MIB  1024

int64_t server_conf_buffers_mib(int64_t memory_mib)
{
    int64_t share = memory_mib / 8;

    return share < BUFFERS_LEAST_MIB  ? BUFFERS_LEAST_MIB
           : share > BUFFERS_MOST_MIB ? BUFFERS_MOST_MIB
                                      : share;
}

// In quotes, with what is special inside of them doubled.
static void add_setting(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s = '", name);
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\') {
            buf_add(out, c, 1);
        }
        buf_add(out, c, 1);
    }
    buf_puts(out, "'\n");
}

static void add_path(struct buf *out, const char *name, const char *dir, const char *file)
{
    AUTO_BUF path;

    buf_init(&path, CONF_MAX);
    buf_printf(&path, "%s/%s", dir, file);
    add_setting(out, name, buf_peek(&path));
}

static int write_settings(const struct server_dir *dir, int port, struct mr_error *err)
{
    int64_t memory_mib = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1024 * 1024);
    AUTO_BUF text;

    buf_init(&text, CONF_MAX);
    buf_puts(&text, "# Written by `millrace up` at each start. Settings of your own go to "
                    "local.conf beside this file.\n");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        add_setting(&text, settings[i].name, settings[i].value);
    }
    buf_printf(&text, "shared_buffers = '%lldMB'\n",
               (long long)server_conf_buffers_mib(memory_mib));
    buf_printf(&text, "port = %d\n", port);
    add_setting(&text, "unix_socket_directories", dir->socket);
    add_path(&text, "hba_file", dir->path, "pg_hba.conf");
    add_path(&text, "ident_file", dir->path, "pg_ident.conf");
    add_path(&text, "include_if_exists", dir->path, "local.conf");
    int code = buf_status(&text, err);
    return code ? code : server_dir_write(dir, "postgresql.conf", 0644, buf_peek(&text), err);
}

static int make_local(const struct server_dir *dir, struct mr_error *err)
{
    if (faccessat(dir->fd, "local.conf", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return 0;
    }
    return server_dir_write(
        dir, "local.conf", 0644,
        "# Settings of your own for this PostgreSQL server. They win over those of `millrace\n"
        "# up` and are read when it starts.\n",
        err);
}

// Over the socket the system says who asks; over loopback only the password counts.
static int write_hba(const struct server_dir *dir, struct mr_error *err)
{
    return server_dir_write(dir, "pg_hba.conf", 0644,
                            "# Written by `millrace up` at each start.\n"
                            "local all         all              peer map=millrace\n"
                            "local replication all              peer map=millrace\n"
                            "host  all         all 127.0.0.1/32 scram-sha-256\n",
                            err);
}

static void add_ident(struct buf *out, const char *system_user, const char *database_user)
{
    // a quote cannot be written, and no user is called so
    if (*system_user && !strchr(system_user, '"')) {
        buf_printf(out, "millrace \"%s\" %s\n", system_user, database_user);
    }
}

static int write_ident(const struct server_dir *dir, const char *database_user,
                       struct mr_error *err)
{
    const struct passwd *self = getpwuid(geteuid());
    AUTO_BUF text;

    buf_init(&text, CONF_MAX);
    buf_puts(&text, "# Written by `millrace up` at each start.\n");
    add_ident(&text, dir->user_name, database_user);
    if (self && self->pw_uid != dir->user.uid) {
        add_ident(&text, self->pw_name, database_user);
    }
    int code = buf_status(&text, err);
    return code ? code : server_dir_write(dir, "pg_ident.conf", 0644, buf_peek(&text), err);
}

int server_conf_write(const struct server_dir *dir, int port, const char *database_user,
                      struct mr_error *err)
{
    int code = write_settings(dir, port, err);

    if (code == 0) {
        code = make_local(dir, err);
    }
    if (code == 0) {
        code = write_hba(dir, err);
    }
    return code ? code : write_ident(dir, database_user, err);
}
