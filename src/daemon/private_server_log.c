// SPDX-License-Identifier: PostgreSQL
//
// The log of a private server: see private_server_parts.h.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "daemon/private_server_parts.h"

// How much of the log is searched for a reason.
#define REASON_MAX (64 * 1024)

void private_server_mark_log(struct private_server *server)
{
    server->log_mark = lseek(server->log_fd, 0, SEEK_END);
}

// ---- reasons ----

struct known_reason {
    const char *words;
    int code;
    const char *hint;
};

static const struct known_reason known[] = {
    {"No space left on device", MR_EFULLDISK,
     "Free space on that disk, or choose another directory with --data."},
    {"Disk quota exceeded", MR_EFULLDISK,
     "Free space on that disk, or choose another directory with --data."},
    {"could not create any TCP/IP sockets", MR_ECONFLICT,
     "The port is in use, or may not be used: choose another one with --port."},
    {"pre-existing shared memory", MR_ECONFLICT,
     "Processes of the last server have not ended yet; try again in a moment."},
    {"shared memory", MR_ENOMEM,
     "Too little memory for the server: set shared_buffers in local.conf of its directory."},
    {"configuration file", MR_ECONFIG, "Look at what local.conf in its directory says."},
    {"incompatible with server", MR_ECONFIG,
     "Set MILLRACE_PGBIN to the programs of the PostgreSQL that has made the data."},
};

// The part of a line that says why; NULL when it is no complaint. A panic is worse than others.
static const char *complaint_of(const char *line, bool *ret_panic)
{
    static const char *const marks[] = {"PANIC:  ", "FATAL:  ", "error: "};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        const char *mark = strstr(line, marks[i]);
        if (mark) {
            *ret_panic = i == 0;
            return mark + strlen(marks[i]);
        }
    }
    return NULL;
}

static const struct known_reason *find_known(const char *complaint)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strstr(complaint, known[i].words)) {
            return &known[i];
        }
    }
    return NULL;
}

// The first complaint that we know: others may be its consequences. Else the last panic, else
// the last of all. `text` is cut into lines.
static const char *find_reason(char *text, const struct known_reason **ret_known)
{
    const char *last = NULL;
    bool panicked = false;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool panic = false;
        const char *complaint = complaint_of(line, &panic);
        // that the system is starting up is said to whoever connects too early
        if (!complaint || strstr(complaint, "the database system is")) {
            continue;
        }
        if ((*ret_known = find_known(complaint))) {
            return complaint;
        }
        if (panic || !panicked) {
            last = complaint;
            panicked = panic;
        }
    }
    return last;
}

int private_server_log_reason(const struct private_server *server, struct mr_error *err,
                              const char *what)
{
    char *text = malloc(REASON_MAX + 1);
    off_t end = lseek(server->log_fd, 0, SEEK_END);
    off_t from = end - server->log_mark > REASON_MAX ? end - REASON_MAX : server->log_mark;
    const struct known_reason *row = NULL;

    if (!text) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    ssize_t len = pread(server->log_fd, text, REASON_MAX, from);
    text[len > 0 ? len : 0] = '\0';
    const char *reason = find_reason(text, &row);
    int code = row ? row->code : MR_EIO;
    mr_error_set(err, code, "%s: %s", what, reason ? reason : "it gave no reason");
    mr_error_hint(err, "%s%sSee %s/log.", row ? row->hint : "", row ? " " : "", server->dir.path);
    free(text);
    return code;
}

// ---- its length ----

// Copies the end of the log, at most the maximum; false when that was not possible.
static bool keep_end(const struct private_server *server, off_t size)
{
    off_t from = size > PRIVATE_SERVER_LOG_MAX ? size - PRIVATE_SERVER_LOG_MAX : 0;
    int fd = openat(server->dir.fd, "log.1", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);

    if (fd < 0) {
        return false;
    }
    while (from < size) {
        if (sendfile(fd, server->log_fd, &from, (size_t)(size - from)) <= 0) {
            break;
        }
    }
    close(fd);
    return from == size;
}

// The server holds the file open and appends: it is emptied and not replaced. A line that comes
// between the copy and that is lost.
void private_server_upkeep(struct private_server *server)
{
    struct stat facts;

    if (fstat(server->log_fd, &facts) || facts.st_size <= PRIVATE_SERVER_LOG_MAX) {
        return;
    }
    if (!keep_end(server, facts.st_size)) {
        log_put(LEVEL_WARNING, "server.log", NULL, 0, "cannot keep the end of %s/log: %s",
                server->dir.path, strerror(errno));
    }
    if (ftruncate(server->log_fd, 0)) {
        log_put(LEVEL_WARNING, "server.log", NULL, 0, "cannot empty %s/log: %s", server->dir.path,
                strerror(errno));
    }
    server->log_mark = 0;
}
