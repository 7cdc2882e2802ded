// SPDX-License-Identifier: PostgreSQL
//
// What the system says about a process: see proc.h.

#include "daemon/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

// Reads /proc/PID/NAME whole, or its first `size` - 1 bytes; -1 when that cannot be.
static ssize_t read_entry(pid_t pid, const char *name, char *target, size_t size)
{
    char path[64];
    ssize_t len = 0;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    while ((size_t)len < size - 1) {
        ssize_t got = read(fd, target + len, size - 1 - (size_t)len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        len += got;
    }
    close(fd);
    target[len] = '\0';
    return len;
}

// A field of `stat`, as proc(5) counts them, behind the command: that is in parentheses and may
// hold anything. False when the process is gone.
static bool read_field(pid_t pid, int number, int64_t *ret)
{
    enum { STATE = 3 };
    char stat[1024];
    char *save = NULL;

    if (pid <= 0 || read_entry(pid, "stat", stat, sizeof(stat)) <= 0 || !strrchr(stat, ')')) {
        return false;
    }
    char *word = strtok_r(strrchr(stat, ')') + 1, " ", &save);
    for (int field = STATE; word && field < number; field++) {
        if (field == STATE && strchr("ZXx", word[0])) {
            return false;
        }
        word = strtok_r(NULL, " ", &save);
    }
    return word && str_parse_int(word, 0, INT64_MAX, ret);
}

bool proc_started(pid_t pid, int64_t *ret_ticks)
{
    enum { STARTED = 22 };

    return read_field(pid, STARTED, ret_ticks);
}

size_t proc_children(pid_t parent, pid_t *ret, size_t max)
{
    enum { PARENT = 4 };
    DIR *entries = opendir("/proc");
    size_t count = 0;
    int64_t pid = 0;
    int64_t its_parent = 0;

    for (struct dirent *entry; entries && count < max && (entry = readdir(entries));) {
        if (str_parse_int(entry->d_name, 1, INT_MAX, &pid) &&
            read_field((pid_t)pid, PARENT, &its_parent) && its_parent == parent) {
            ret[count++] = (pid_t)pid;
        }
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

bool proc_has_argument(pid_t pid, const char *argument)
{
    char *words = malloc(PROC_CMDLINE_MAX);
    bool found = false;

    if (pid <= 0 || !words) {
        free(words);
        return false;
    }
    ssize_t len = read_entry(pid, "cmdline", words, PROC_CMDLINE_MAX);
    for (ssize_t at = 0; at < len && !found; at += (ssize_t)strlen(words + at) + 1) {
        found = str_equal(words + at, argument);
    }
    free(words);
    return found;
}
