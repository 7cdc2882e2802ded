// SPDX-License-Identifier: PostgreSQL
//
// The directory of a private server: see server_dir.h. Who may use it, and how.

#include "daemon/server_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "daemon/proc.h"

// What may be there before there is a cluster: left by a start that failed, or put there for it.
static const char *const own_names[] = {
    ".",
    "..",
    "data.new",
    "socket",
    "pid",
    "port",
    "log",
    "log.1",
    "dsn",
    "pgpass",
    "token",
    "url",
    "socket-dir",
    "local.conf",
    "pg_hba.conf",
    "pg_ident.conf",
    "postgresql.conf",
};

int server_dir_error(int reason, struct mr_error *err, const char *what, ...)
{
    static const struct {
        int reason;
        int code;
        const char *hint;
    } rows[] = {
        {ENOSPC, MR_EFULLDISK, "Free space on that disk, or choose another directory with --data."},
        {EDQUOT, MR_EFULLDISK, "Free space on that disk, or choose another directory with --data."},
        {EROFS, MR_EPRIVILEGE, "Choose a directory that can be written with --data."},
        {EACCES, MR_EPRIVILEGE, "Choose a directory that you can write to with --data."},
        {EPERM, MR_EPRIVILEGE, "Choose a directory that you can write to with --data."},
        {ENOTDIR, MR_EUSAGE, "Choose another directory with --data."},
        {ENAMETOOLONG, MR_EUSAGE, "Choose a shorter name with --data."},
    };
    char text[MR_ERROR_MESSAGE_SIZE];
    va_list args;
    size_t row = 0;

    va_start(args, what);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, one line above
    vsnprintf(text, sizeof(text), what, args);
    va_end(args);
    while (row < sizeof(rows) / sizeof(rows[0]) && rows[row].reason != reason) {
        row++;
    }
    bool known = row < sizeof(rows) / sizeof(rows[0]);
    mr_error_set(err, known ? rows[row].code : MR_EIO, "%s: %s", text, strerror(reason));
    mr_error_hint(err, "%s", known ? rows[row].hint : "");
    return known ? rows[row].code : MR_EIO;
}

// ---- its name ----

int server_dir_default(char *ret, struct mr_error *err)
{
    const char *home = getenv("HOME");
    const char *xdg = getenv("XDG_DATA_HOME");
    size_t size = SERVER_DIR_MAX + 1;
    int len = 0;

    if (geteuid() == 0) {
        len = snprintf(ret, size, "/var/lib/millrace");
    } else if (xdg && xdg[0] == '/') {
        len = snprintf(ret, size, "%s/millrace", xdg);
    } else if (!str_empty(home)) {
        len = snprintf(ret, size, "%s/.local/share/millrace", home);
    } else {
        len = snprintf(ret, size, ".millrace");
    }
    if (len > SERVER_DIR_MAX) {
        return server_dir_error(ENAMETOOLONG, err, "cannot use the data directory");
    }
    return 0;
}

// It goes into configuration files, one line each.
static int check_name(const char *path, struct mr_error *err)
{
    for (const char *c = path; *c; c++) {
        if (iscntrl((unsigned char)*c)) {
            mr_error_set(err, MR_EUSAGE,
                         "cannot use the data directory: control character in its "
                         "name");
            mr_error_hint(err, "Choose another directory with --data.");
            return MR_EUSAGE;
        }
    }
    if (!*path) {
        mr_error_set(err, MR_EUSAGE, "cannot use the data directory: its name is empty");
        return MR_EUSAGE;
    }
    return strlen(path) > SERVER_DIR_MAX
               ? server_dir_error(ENAMETOOLONG, err, "cannot use %.60s...", path)
               : 0;
}

// ---- making it ----

// Parents that are missing come with the usual rights. As root all of them have to let the
// server's user through to data/.
static int make_parts(const char *path, struct mr_error *err)
{
    char part[SERVER_DIR_MAX + 1];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0755) && errno != EEXIST) {
            return server_dir_error(errno, err, "cannot make the directory %s", part);
        }
    }
    if (mkdir(path, geteuid() == 0 ? 0711 : 0700) && errno != EEXIST) {
        return server_dir_error(errno, err, "cannot make the directory %s", path);
    }
    return 0;
}

static int make_path(const char *path, struct mr_error *err)
{
    mode_t mask = umask(022);
    int code = make_parts(path, err);

    umask(mask);
    return code;
}

static int resolve(struct server_dir *dir, const char *path, struct mr_error *err)
{
    char real[PATH_MAX];

    if (!realpath(path, real)) {
        return server_dir_error(errno, err, "cannot use %s", path);
    }
    int code = check_name(real, err);
    if (code) {
        return code;
    }
    memcpy(dir->path, real, strlen(real) + 1);
    snprintf(dir->data, sizeof(dir->data), "%.*s/data", SERVER_DIR_MAX, real);
    dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir->fd < 0 ? server_dir_error(errno, err, "cannot use %s", dir->path) : 0;
}

// Others must not be able to put another data/ or pid in the place of ours.
static int check_owner(const struct server_dir *dir, struct mr_error *err)
{
    struct stat facts;

    if (fstat(dir->fd, &facts)) {
        return server_dir_error(errno, err, "cannot use %s", dir->path);
    }
    if (facts.st_uid != geteuid()) {
        mr_error_set(err, MR_EPRIVILEGE, "cannot use %s: it belongs to another user", dir->path);
        mr_error_hint(err, "Run this as its owner, or choose another directory with --data.");
        return MR_EPRIVILEGE;
    }
    if ((facts.st_mode & 022) && fchmod(dir->fd, facts.st_mode & 07755)) {
        return server_dir_error(errno, err, "cannot use %s", dir->path);
    }
    return 0;
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++) {
        if (str_equal(name, own_names[i])) {
            return true;
        }
    }
    return false;
}

static int holds_something_else(const struct server_dir *dir, const char *name,
                                struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "cannot use %s: it holds \"%s\" and no server of Millrace",
                 dir->path, name);
    mr_error_hint(err, "Name a new or an empty directory with --data.");
    return MR_EUSAGE;
}

static int check_content(const struct server_dir *dir, struct mr_error *err)
{
    int code = 0;

    if (faccessat(dir->fd, "data", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return 0;
    }
    int copy = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        return server_dir_error(errno, err, "cannot read %s", dir->path);
    }
    for (struct dirent *entry; code == 0 && (entry = readdir(entries));) {
        if (!is_own(entry->d_name)) {
            code = holds_something_else(dir, entry->d_name, err);
        }
    }
    closedir(entries);
    return code;
}

// ---- the lock ----

static int in_use(const struct server_dir *dir, struct mr_error *err)
{
    char text[64] = "";
    int64_t started = 0;

    ssize_t len = pread(dir->lock_fd, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    int pid = atoi(text);
    if (pid > 0 && proc_started(pid, &started)) {
        mr_error_set(err, MR_ECONFLICT, "cannot use %s: `millrace up` with pid %d has it",
                     dir->path, pid);
        mr_error_hint(err, "Stop that one with `kill %d`, or choose another directory with --data.",
                      pid);
    } else {
        mr_error_set(err, MR_ECONFLICT, "cannot use %s: another program has it locked", dir->path);
        mr_error_hint(err, "Wait until that one has ended, or choose another directory with "
                           "--data.");
    }
    return MR_ECONFLICT;
}

// The lock is the file system's and ends with its holder, whatever is written in the file; the
// number is for people and for scripts, which compare the time of the start before they use it.
static int lock(struct server_dir *dir, struct mr_error *err)
{
    char text[64];
    int64_t started = 0;

    dir->lock_fd = openat(dir->fd, "pid", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (dir->lock_fd < 0) {
        return server_dir_error(errno, err, "cannot write %s/pid", dir->path);
    }
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB)) {
        return errno == EWOULDBLOCK ? in_use(dir, err)
                                    : server_dir_error(errno, err, "cannot lock %s/pid", dir->path);
    }
    proc_started(getpid(), &started);
    int len = snprintf(text, sizeof(text), "%d\n%lld\n", (int)getpid(), (long long)started);
    if (ftruncate(dir->lock_fd, 0) || pwrite(dir->lock_fd, text, (size_t)len, 0) != len) {
        return server_dir_error(errno ? errno : ENOSPC, err, "cannot write %s/pid", dir->path);
    }
    return 0;
}

// ---- the server's user ----

// Whoever owns the cluster runs it; a new one belongs to us, or as root to somebody else.
static int choose_user(struct server_dir *dir, struct mr_error *err)
{
    struct stat facts;
    const struct passwd *entry = NULL;
    bool there = fstatat(dir->fd, "data", &facts, AT_SYMLINK_NOFOLLOW) == 0;

    if (there) {
        entry = getpwuid(facts.st_uid);
    } else if (geteuid() == 0) {
        entry = getpwnam("postgres");
        entry = entry ? entry : getpwnam("nobody");
    } else {
        entry = getpwuid(geteuid());
    }
    uid_t uid = entry ? entry->pw_uid : there ? facts.st_uid : geteuid();
    if (uid == 0 || (geteuid() != 0 && uid != geteuid())) {
        mr_error_set(err, MR_EPRIVILEGE,
                     "cannot use %s: its data belongs to user %s, who cannot "
                     "run the server here",
                     dir->path,
                     entry      ? entry->pw_name
                     : uid == 0 ? "root"
                                : "unknown");
        mr_error_hint(err, "%s",
                      uid == 0 ? "PostgreSQL does not run as root: add a user "
                                 "\"postgres\" or \"nobody\"."
                               : "Run this as that user.");
        return MR_EPRIVILEGE;
    }
    snprintf(dir->user_name, sizeof(dir->user_name), "%s", entry ? entry->pw_name : "");
    dir->user = (struct subprocess_user){.uid = uid,
                                         .gid = entry ? entry->pw_gid : getegid(),
                                         .name = dir->user_name,
                                         .home = dir->path};
    return 0;
}

// As root: a directory below somebody's private one is out of the server's reach.
static int check_reach(struct server_dir *dir, struct sigwatch *watch, struct mr_error *err)
{
    const char *argv[] = {"/bin/sh", "-c", "cd \"$1\"", "sh", dir->path, NULL};
    struct subprocess_user user = dir->user;
    struct subprocess_plan plan = {.argv = argv,
                                   .watch = watch,
                                   .user = &user,
                                   .input = -1,
                                   .output = -1,
                                   .death_signal = SIGKILL};
    pid_t pid = 0;
    int status = 0;

    if (geteuid() != 0) {
        return 0;
    }
    int code = subprocess_start(&plan, &pid, err);
    code = code ? code : subprocess_wait(watch, pid, SUBPROCESS_END_MS, &status, err);
    if (code || status == 0) {
        return code;
    }
    mr_error_set(err, MR_EPRIVILEGE, "cannot use %s: user %s, who runs the server, cannot reach it",
                 dir->path, dir->user_name);
    mr_error_hint(err, "PostgreSQL does not run as root. Choose a directory that other users can "
                       "reach with --data; the default is /var/lib/millrace.");
    return MR_EPRIVILEGE;
}

int server_dir_open(struct server_dir *dir, const char *path, struct sigwatch *watch,
                    struct mr_error *err)
{
    int code = check_name(path, err);

    *dir = (struct server_dir){.fd = -1, .lock_fd = -1};
    if (code || (code = make_path(path, err)) || (code = resolve(dir, path, err)) ||
        (code = check_owner(dir, err)) || (code = check_content(dir, err)) ||
        (code = choose_user(dir, err)) || (code = check_reach(dir, watch, err)) ||
        (code = lock(dir, err))) {
        if (dir->lock_fd >= 0) {
            close(dir->lock_fd);
        }
        if (dir->fd >= 0) {
            close(dir->fd);
        }
    }
    return code;
}

void server_dir_close(struct server_dir *dir)
{
    // emptied and not removed: who has it open already would lock a file that nobody else sees
    if (ftruncate(dir->lock_fd, 0)) {
        log_put(LEVEL_WARNING, "server.pid", NULL, 0, "cannot empty %s/pid: %s", dir->path,
                strerror(errno));
    }
    close(dir->lock_fd);
    close(dir->fd);
    dir->fd = dir->lock_fd = -1;
}
