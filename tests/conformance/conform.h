// SPDX-License-Identifier: PostgreSQL
//
// What the parts of the conformance program share.
//
//     conform <SCRIPT        with the backend in MILLRACE_DSN
//
// Each line of the script is a call: a word of a table and its arguments. The line is printed as it
// stands, then what came of it, indented. Nothing that differs from run to run is printed: fencing
// numbers, ids and leases have names in the order in which they came (F1, F2...), times are
// compared with the clock.
//
// A new word is a row in a table and a function. An argument is a bare word, 'as it stands',
// "with \" \\ \n \xHH", @rep:TEXT:COUNT, the same as a JSON string with @quoted:, or @null. Lines
// that begin with # are comments.

#ifndef MILLRACE_TESTS_CONFORM_H
#define MILLRACE_TESTS_CONFORM_H

#include <millrace/millrace.h>
#include <stdbool.h>

enum { ARGS_MAX = 64, CONNS_MAX = 9 };

struct word {
    const char *name;
    int least, most; // arguments
    void (*run)(char **args, int count);
};

// Each ends with a row without a name.
extern const struct word queue_words[];
extern const struct word toolbox_words[];
extern const struct word trouble_words[];

// The connection that calls are made on; `on N` chooses another.
mr_conn *conform_conn(void);

// The error of the last call.
extern mr_error conform_err;

// Prints a line of an answer.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints a failure by its code, class and message. True: it was one.
bool say_failure(int code);
// JSON in one form, whatever the backend made of it; "none" for NULL. Frees it.
void say_json(char *json);
// Ends the program: the script is wrong.
__attribute__((noreturn, format(printf, 1, 2))) void script_is_wrong(const char *format, ...);

// The name of a number: F1 for the first one that is given with the prefix F, and so on. Borrowed
// until the next call.
const char *name_of(char prefix, int64_t number);

// Milliseconds of 5, 50ms, 5s, 5min, 5h, 5d; also of 0 and of negative ones.
int64_t ms_of(const char *text);
int64_t number_of(const char *text);

// Of the same clock as the servers'.
int64_t now_us(void);
void pause_ms(int ms);

// Takes a line apart, in place and into memory that words_done() frees. Returns the number of
// words;
// @null is NULL.
int words_split(char *line, char **ret, int max);
void words_done(void);

#endif
