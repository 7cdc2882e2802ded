// SPDX-License-Identifier: PostgreSQL
//
// The directory of a private server: whose it is, what lies in it, and that one program at a
// time uses it.
//
//   data/             the cluster; belongs to the user that the server runs as
//   data.new/         one that is being made; becomes data/ when it is complete
//   socket/           0700: who can reach it is the server's user, or root
//   pid               of the program that uses the directory, and when that was started; locked
//   port              of the last start, so that the next one has the same address
//   socket-dir        where the socket is, when the path of socket/ is too long for one
//   dsn               how to connect; there while the server is ready
//   token             for the HTTP API
//   url               of the dashboard, with the token; as of the last start
//   pgpass            the password for connections over the network, in libpq's form
//   log, log.1        of the server
//   postgresql.conf, pg_hba.conf, pg_ident.conf   written at each start
//   local.conf        settings of the owner's; made empty, read last, never changed
//
// Run by root, the directory is root's and only data/ and the socket belong to the server's
// user: PostgreSQL refuses to run as root.

#ifndef MILLRACE_DAEMON_SERVER_DIR_H
#define MILLRACE_DAEMON_SERVER_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/subprocess.h"

// PostgreSQL cuts paths at 1024 bytes, and its own names come behind ours.
#define SERVER_DIR_MAX 900
// A unix socket's path is 108 bytes with its zero, and the file is called .s.PGSQL.NNNNN.lock.
#define SERVER_DIR_SOCKET_MAX 90
// The files of ours that are read back, at most.
#define SERVER_DIR_FILE_MAX 4096

struct server_dir {
    char path[SERVER_DIR_MAX + 1]; // absolute, without symbolic links
    char data[SERVER_DIR_MAX + 8];
    char socket[SERVER_DIR_MAX + 8]; // the directory of the socket, wherever it is
    int fd;
    int lock_fd;
    char user_name[64];
    struct subprocess_user user; // of the server
};

// The directory that is meant when none is given: as root /var/lib/millrace, otherwise
// $XDG_DATA_HOME/millrace, ~/.local/share/millrace, or without a home ./.millrace. `ret` has room
// for SERVER_DIR_MAX + 1 bytes. Fails with MR_EUSAGE when it would be longer.
int server_dir_default(char *ret, struct mr_error *err);

// Makes the directory where it is missing, and locks it. Fails with MR_ECONFLICT when another
// program has it (the message has its pid), MR_EUSAGE when it holds something else, belongs to
// somebody else or has a name that will not do, MR_EPRIVILEGE, MR_EFULLDISK, MR_EIO. On success
// the caller closes it with server_dir_close().
int server_dir_open(struct server_dir *dir, const char *path, struct sigwatch *watch,
                    struct mr_error *err);

// Unlocks, and removes the pid. What else is there stays.
void server_dir_close(struct server_dir *dir);

// The major version of the cluster in data/; 0 when there is none yet.
int server_dir_version(const struct server_dir *dir, int *ret, struct mr_error *err);

// Sees to it that the socket has a directory that belongs to the server's user and nobody else
// can reach, empties it, and sets dir->socket.
int server_dir_make_socket(struct server_dir *dir, struct mr_error *err);
// Removes it, where it is not below the directory itself.
void server_dir_remove_socket(struct server_dir *dir);

// Makes an empty data.new/ for the server's user, in place of any that a crash has left. Its path
// is data with ".new" behind it.
int server_dir_begin_data(const struct server_dir *dir, struct sigwatch *watch,
                          struct mr_error *err);
// data.new/ becomes data/.
int server_dir_finish_data(const struct server_dir *dir, struct mr_error *err);
void server_dir_drop_data(const struct server_dir *dir, struct sigwatch *watch);

// Writes a file whole or not at all. `mode`: 0600, or 0644 for what the server has to read.
int server_dir_write(const struct server_dir *dir, const char *name, mode_t mode, const char *text,
                     struct mr_error *err);
// Reads a file; *ret is false when there is none. Fails when it is longer than `out` can grow.
int server_dir_read(const struct server_dir *dir, const char *name, struct buf *out, bool *ret,
                    struct mr_error *err);
void server_dir_remove(const struct server_dir *dir, const char *name);

// MR_EFULLDISK, MR_EPRIVILEGE or MR_EIO for an errno, with `what: why` and a hint.
int server_dir_error(int reason, struct mr_error *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#endif
