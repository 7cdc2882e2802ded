// SPDX-License-Identifier: PostgreSQL
//
// A command as a person writes it, and the words that a process gets. No shell is involved:
// quotes and backslashes group words as in a shell, and what else means something to a shell is
// refused outside of quotes rather than passed on as it stands.
//
// Placeholders are replaced inside words after splitting: {id} {kind} {queue} {attempt} {ref}
// {tenant} {args} {meta} {args.field} {meta.field.inner}. {{id}} stands for {id} itself.
//
// 1. A value never becomes more than one word, nor part of the command's own name.
// 2. A value that stands at the beginning of a word is refused when it looks like an option,
//    unless a word -- stands before it. A negative number is none.
// 3. A value never becomes part of a shell's script: sh -c '...{args.x}...' is refused.

#ifndef MILLRACE_HANDLER_COMMAND_LINE_H
#define MILLRACE_HANDLER_COMMAND_LINE_H

#include <millrace/millrace.h>
#include <stdbool.h>

#include "base/err.h"

#define COMMAND_LINE_MAX  (64 * 1024) // bytes of the text
#define COMMAND_WORDS_MAX 256
// Linux accepts no longer argument.
#define COMMAND_WORD_MAX (128 * 1024 - 1)
#define COMMAND_ARGV_MAX (1024 * 1024) // bytes of all words of one process

struct command_line;

// Splits a command; with `placeholders` false those known are refused, since there is no one job
// to take values from. *ret is the caller's. Fails with MR_ECONFIG, MR_ENOMEM.
int command_line_new(const char *text, bool placeholders, struct command_line **ret,
                     struct mr_error *err);
// NULL is fine.
void command_line_free(struct command_line *line);

// Whether the command can be found and executed: MR_ECONFIG.
int command_line_find(const struct command_line *line, struct mr_error *err);

// The words as they were written, ended by NULL; borrowed.
char **command_line_words(const struct command_line *line);

// The words for a job, ended by NULL; one piece of memory, which the caller frees with free().
// Fails with MR_EINVALID, in words for the job's error, and MR_ENOMEM.
int command_line_argv(const struct command_line *line, const mr_claimed_job *job, char ***ret,
                      struct mr_error *err);

#endif
