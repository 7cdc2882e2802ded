// SPDX-License-Identifier: PostgreSQL
//
// The directory of a private server: see server_dir.h. What lies in it.

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/server_dir.h"

#define REMOVE_MS (5 * 60 * 1000)

// ---- small files ----

static int write_all(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t done = write(fd, text, len);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done > 0) {
            text += done;
            len -= (size_t)done;
        }
    }
    return fsync(fd) ? errno : 0;
}

int server_dir_write(const struct server_dir *dir, const char *name, mode_t mode, const char *text,
                     struct mr_error *err)
{
    char fresh[64];

    snprintf(fresh, sizeof(fresh), "%s.new", name);
    unlinkat(dir->fd, fresh, 0);
    int fd = openat(dir->fd, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return server_dir_error(errno, err, "cannot write %s/%s", dir->path, name);
    }
    int reason = write_all(fd, text);
    if (!reason && fchmod(fd, mode)) {
        reason = errno;
    }
    close(fd);
    if (!reason && renameat(dir->fd, fresh, dir->fd, name)) {
        reason = errno;
    }
    if (reason) {
        unlinkat(dir->fd, fresh, 0);
        return server_dir_error(reason, err, "cannot write %s/%s", dir->path, name);
    }
    return 0;
}

// What the server's user owns is read too: no link of theirs leads us elsewhere.
int server_dir_read(const struct server_dir *dir, const char *name, struct buf *out, bool *ret,
                    struct mr_error *err)
{
    char piece[1024];
    ssize_t got = 0;

    int fd = openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        *ret = false;
        return 0;
    }
    if (fd < 0) {
        return server_dir_error(errno, err, "cannot read %s/%s", dir->path, name);
    }
    while ((got = read(fd, piece, sizeof(piece))) > 0) {
        buf_add(out, piece, (size_t)got);
    }
    int reason = got < 0 ? errno : 0;
    close(fd);
    if (reason) {
        return server_dir_error(reason, err, "cannot read %s/%s", dir->path, name);
    }
    int code = buf_status(out, err);
    if (code == 0) {
        *ret = true;
    }
    return code;
}

void server_dir_remove(const struct server_dir *dir, const char *name)
{
    unlinkat(dir->fd, name, 0);
}

int server_dir_version(const struct server_dir *dir, int *ret, struct mr_error *err)
{
    AUTO_BUF text;
    bool there = false;

    buf_init(&text, SERVER_DIR_FILE_MAX);
    if (faccessat(dir->fd, "data", F_OK, AT_SYMLINK_NOFOLLOW)) {
        *ret = 0;
        return 0;
    }
    int code = server_dir_read(dir, "data/PG_VERSION", &text, &there, err);
    if (code) {
        return code;
    }
    int major = atoi(buf_peek(&text));
    if (!there || major <= 0) {
        mr_error_set(err, MR_EUSAGE, "cannot use %s: it holds no PostgreSQL cluster", dir->data);
        mr_error_hint(err, "Choose another directory with --data.");
        return MR_EUSAGE;
    }
    *ret = major;
    return 0;
}

// ---- the cluster ----

static int remove_new(const struct server_dir *dir, struct sigwatch *watch, struct mr_error *err)
{
    char path[SERVER_DIR_MAX + 16];
    const char *argv[] = {"/bin/rm", "-rf", "--", path, NULL};
    struct subprocess_plan plan = {.argv = argv,
                                   .watch = watch,
                                   .user = &dir->user,
                                   .input = -1,
                                   .output = -1,
                                   .death_signal = SIGKILL};
    pid_t pid = 0;
    int status = 0;

    snprintf(path, sizeof(path), "%s.new", dir->data);
    int code = subprocess_start(&plan, &pid, err);
    code = code ? code : subprocess_wait(watch, pid, REMOVE_MS, &status, err);
    // as root the directory itself is ours to remove, not the server's user's
    if (code == 0 && unlinkat(dir->fd, "data.new", AT_REMOVEDIR) && errno != ENOENT) {
        code = server_dir_error(errno, err, "cannot remove %s", path);
    }
    return code;
}

int server_dir_begin_data(const struct server_dir *dir, struct sigwatch *watch,
                          struct mr_error *err)
{
    if (faccessat(dir->fd, "data.new", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        int code = remove_new(dir, watch, err);
        if (code) {
            return code;
        }
    }
    if (mkdirat(dir->fd, "data.new", 0700) ||
        fchownat(dir->fd, "data.new", dir->user.uid, dir->user.gid, AT_SYMLINK_NOFOLLOW)) {
        return server_dir_error(errno, err, "cannot make %s.new", dir->data);
    }
    return 0;
}

int server_dir_finish_data(const struct server_dir *dir, struct mr_error *err)
{
    if (renameat(dir->fd, "data.new", dir->fd, "data") || fsync(dir->fd)) {
        return server_dir_error(errno, err, "cannot make %s", dir->data);
    }
    return 0;
}

void server_dir_drop_data(const struct server_dir *dir, struct sigwatch *watch)
{
    remove_new(dir, watch, NULL);
}

// ---- the socket ----

// A directory with a comma is two to libpq, and with quotes another one to PostgreSQL: only
// plain characters are taken.
static bool fits_socket(const char *path)
{
    for (const char *c = path; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("/._+-~@", *c)) {
            return false;
        }
    }
    return strlen(path) <= SERVER_DIR_SOCKET_MAX;
}

// Whether a directory is the server user's, closed to others, and no link.
static bool is_private(const struct server_dir *dir, const char *path)
{
    struct stat facts;

    return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == dir->user.uid &&
           (facts.st_mode & 077) == 0;
}

// Nobody is alive in there: the lock on the whole directory is ours, and no server runs.
static void empty(const char *path)
{
    DIR *entries = opendir(path);

    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (str_starts(entry->d_name, ".s.PGSQL.")) {
            unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

static int make_near(struct server_dir *dir, struct mr_error *err)
{
    if (!is_private(dir, dir->socket) &&
        (mkdirat(dir->fd, "socket", 0700) ||
         fchownat(dir->fd, "socket", dir->user.uid, dir->user.gid, AT_SYMLINK_NOFOLLOW))) {
        return server_dir_error(errno, err, "cannot make %s", dir->socket);
    }
    return 0;
}

// In /tmp, whatever TMPDIR says: that may be long, too, or root's own.
static int make_far(struct server_dir *dir, struct mr_error *err)
{
    char path[] = "/tmp/millrace.XXXXXX";

    if (!mkdtemp(path)) {
        return server_dir_error(errno, err, "cannot make a directory in /tmp");
    }
    if (chown(path, dir->user.uid, dir->user.gid)) {
        int reason = errno;
        rmdir(path);
        return server_dir_error(reason, err, "cannot make a directory in /tmp");
    }
    snprintf(dir->socket, sizeof(dir->socket), "%s", path);
    return server_dir_write(dir, "socket-dir", 0600, path, err);
}

// The one that was made before, if it is still there.
static int find_far(struct server_dir *dir, bool *ret, struct mr_error *err)
{
    AUTO_BUF path;
    bool there = false;

    buf_init(&path, SERVER_DIR_SOCKET_MAX);
    int code = server_dir_read(dir, "socket-dir", &path, &there, err);
    if (code == 0) {
        *ret = there && str_starts(buf_peek(&path), "/tmp/millrace.") &&
               !strchr(buf_peek(&path) + strlen("/tmp/"), '/') && is_private(dir, buf_peek(&path));
        snprintf(dir->socket, sizeof(dir->socket), "%s", buf_peek(&path));
    }
    return code;
}

int server_dir_make_socket(struct server_dir *dir, struct mr_error *err)
{
    bool found = false;
    int code = 0;

    snprintf(dir->socket, sizeof(dir->socket), "%s/socket", dir->path);
    if (fits_socket(dir->socket)) {
        code = make_near(dir, err);
    } else if ((code = find_far(dir, &found, err)) == 0 && !found) {
        code = make_far(dir, err);
    }
    if (code == 0) {
        empty(dir->socket);
    }
    return code;
}

void server_dir_remove_socket(struct server_dir *dir)
{
    if (str_starts(dir->socket, "/tmp/millrace.")) {
        empty(dir->socket);
        rmdir(dir->socket);
        server_dir_remove(dir, "socket-dir");
    }
}
