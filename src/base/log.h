// SPDX-License-Identifier: PostgreSQL
//
// One line an event, for people or for machines. For the program only: the library does not
// print. Safe from several threads; a line is written with one write().

#ifndef MILLRACE_BASE_LOG_H
#define MILLRACE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LEVEL_DEBUG,
    LEVEL_INFO,
    LEVEL_WARNING,
    LEVEL_ERROR,
};

enum log_format {
    LOG_TEXT, // 2026-11-15 09:10:11.123 UTC warning worker.failed: job 12 failed: no route
              // (worker=email job=12)
    LOG_JSON, // {"time":"2026-11-15T09:10:11.123Z","level":"warning","event":"worker.failed","message":"...","worker":"email","job":12}
};

// A name and a value beside the message; a text of NULL is left out.
struct log_field {
    const char *name;
    const char *text; // or, where NULL and is_number is true:
    int64_t number;
    bool is_number;
};

#define LOG_TEXT_FIELD(key, value) ((struct log_field){.name = (key), .text = (value)})
#define LOG_NUMBER_FIELD(key, value) \
    ((struct log_field){.name = (key), .number = (value), .is_number = true})

// A message is cut at this many bytes, between characters.
#define LOG_MESSAGE_MAX 4096

// Where lines go (a descriptor, borrowed), how, and from which level on. Before it is called:
// standard error, text, LEVEL_INFO.
void log_setup(int fd, enum log_format format, enum log_level least);

// Reads `text`/`json`, and `debug`/`info`/`warning`/`error`. Return false and change nothing for
// anything else.
bool log_parse_format(const char *text, enum log_format *ret);
bool log_parse_level(const char *text, enum log_level *ret);

bool log_wants(enum log_level level);

// Writes a line. `event` is dotted and constant (worker.connected): machines look for it.
void log_put(enum log_level level, const char *event, const struct log_field *fields, size_t count,
             const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
