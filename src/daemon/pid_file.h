// SPDX-License-Identifier: PostgreSQL
//
// A file with the number of this process, locked as long as it lives: what a crashed process
// leaves behind is taken over, what a living one holds is not.

#ifndef MILLRACE_DAEMON_PID_FILE_H
#define MILLRACE_DAEMON_PID_FILE_H

#include "base/err.h"

// *ret_fd is the lock, for pid_file_remove(). Fails with MR_EIO.
int pid_file_write(const char *path, int *ret_fd, struct mr_error *err);
// Removes the file and closes the descriptor; -1 is fine.
void pid_file_remove(const char *path, int fd);

#endif
