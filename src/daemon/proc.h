// SPDX-License-Identifier: PostgreSQL
//
// What the system says about a process. A number in a file may be that of somebody else's
// process by now: whoever is to be ended is asked first. A zombie counts as gone.

#ifndef MILLRACE_DAEMON_PROC_H
#define MILLRACE_DAEMON_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A command line is read up to this.
#define PROC_CMDLINE_MAX (64 * 1024)

// When the process was started, in the system's ticks since boot: with the pid the name of a
// process that nobody else gets. False when it is gone.
bool proc_started(pid_t pid, int64_t *ret_ticks);

// Whether `argument` is one of the words of its command line.
bool proc_has_argument(pid_t pid, const char *argument);

// Finds the processes whose parent is `parent`, `max` of them at most. Returns how many.
size_t proc_children(pid_t parent, pid_t *ret, size_t max);

#endif
