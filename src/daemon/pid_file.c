// SPDX-License-Identifier: PostgreSQL
//
// The pid file: see pid_file.h.

#include "daemon/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int held_by_another(const char *path, int fd, struct mr_error *err)
{
    char text[24] = "";
    ssize_t size = read(fd, text, sizeof(text) - 1);

    text[size > 0 ? strcspn(text, "\n") : 0] = '\0';
    mr_error_set(err, MR_EIO, "pid file %s: process %s runs already", path, text);
    mr_error_hint(err, "Stop it first, or choose another --pid-file.");
    return MR_EIO;
}

int pid_file_write(const char *path, int *ret_fd, struct mr_error *err)
{
    char text[24];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int code = held_by_another(path, fd, err);
        close(fd);
        return code;
    }
    int size = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (fd < 0 || ftruncate(fd, 0) != 0 || write(fd, text, (size_t)size) != size) {
        mr_error_set(err, MR_EIO, "cannot write pid file %s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return MR_EIO;
    }
    *ret_fd = fd;
    return 0;
}

void pid_file_remove(const char *path, int fd)
{
    if (fd >= 0) {
        unlink(path);
        close(fd);
    }
}
