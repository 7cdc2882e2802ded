// SPDX-License-Identifier: PostgreSQL
//
// How a command becomes words, what a job's values can do to them, and what is refused.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "handler/command_line.h"

static const mr_claimed_job job = {
    .id = 7,
    .attempt = 2,
    .queue = "etl",
    .kind = "note",
    .ref = "r 1",
    .args = "{\"note_id\": 12, \"title\": \"a \\\"b\\\" c\\n$(reboot)\", \"flag\": \"--force\", "
            "\"minus\": -5, \"low\": \"-1.5\", \"none\": null, \"yes\": true, \"empty\": \"\", "
            "\"deep\": {\"er\": {\"est\": \"\\u00e9\"}}, \"list\": [1, 2], \"dash\": \"-\"}",
    .meta = "{\"trace\": \"t-1\"}",
};

static void join(char *const *words, struct buf *out)
{
    for (; *words; words++) {
        buf_printf(out, "[%s]", *words);
    }
}

static const struct {
    const char *text;
    const char *words;
} splits[] = {
    {"a", "[a]"},
    {"  a\tb \n c ", "[a][b][c]"},
    {"a 'b  c' \"d  e\"", "[a][b  c][d  e]"},
    {"a b'c'\"d\"e", "[a][bcde]"},
    {"a '' \"\"", "[a][][]"},
    {"a 'it\\s' \"a\\\"b\\\\c\\d\"", "[a][it\\s][a\"b\\c\\d]"},
    {"a b\\ c \\'d \\$HOME \\|", "[a][b c]['d][$HOME][|]"},
    {"sh -c 'a | b > $c; d'", "[sh][-c][a | b > $c; d]"},
    {"awk '{print $1}' {} {\"a\":1} *.txt ~", "[awk][{print $1}][{}][{a:1}][*.txt][~]"},
    {"./send.py --größe 5", "[./send.py][--größe][5]"},
};

static void words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        struct command_line *line = NULL;
        struct mr_error err = {0};
        AUTO_BUF out;

        buf_init(&out, 10000);
        if (command_line_new(splits[i].text, true, &line, &err)) {
            fail_msg("%s: %s", splits[i].text, err.message);
        }
        join(command_line_words(line), &out);
        assert_string_equal(buf_peek(&out), splits[i].words);
        command_line_free(line);
    }
}

static const struct {
    const char *text;
    const char *words;
} values[] = {
    {"./etl --note-id {args.note_id}", "[./etl][--note-id][12]"},
    {"a {id} {kind} {queue} {attempt} {ref} {meta.trace}", "[a][7][note][etl][2][r 1][t-1]"},
    {"a --t={args.title}!", "[a][--t=a \"b\" c\n$(reboot)!]"},
    {"a '{args.title}'", "[a][a \"b\" c\n$(reboot)]"},
    {"a x{args.flag} --f={args.flag}", "[a][x--force][--f=--force]"},
    {"a -- {args.flag}", "[a][--][--force]"},
    {"a {args.minus} {args.low} {args.dash}", "[a][-5][-1.5][-]"},
    {"a {args.yes} [{args.empty}]", "[a][true][[]]"},
    {"a {args.deep.er.est} {args.deep} {args.list}",
     "[a][é][{\"er\": {\"est\": \"\\u00e9\"}}][[1, 2]]"},
    {"a {{id}} {{args.x}} {{{id}}} {{ {id}", "[a][{id}][{args.x}][{{id}}][{{][7]"},
    {"sh -c 'echo \"$1\"' sh {args.title}", "[sh][-c][echo \"$1\"][sh][a \"b\" c\n$(reboot)]"},
    {"a {meta}", "[a][{\"trace\": \"t-1\"}]"},
};

static void values_stay_inside_their_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct command_line *line = NULL;
        struct mr_error err = {0};
        char **argv = NULL;
        AUTO_BUF out;

        buf_init(&out, 10000);
        assert_int_equal(command_line_new(values[i].text, true, &line, &err), 0);
        if (command_line_argv(line, &job, &argv, &err)) {
            fail_msg("%s: %s", values[i].text, err.message);
        }
        join(argv, &out);
        assert_string_equal(buf_peek(&out), values[i].words);
        free(argv);
        command_line_free(line);
    }
}

static const struct {
    const char *text;
    const char *message;
} lacking[] = {
    {"a {args.nothing}", "the command needs args.nothing, which the job does not have"},
    {"a {args.deep.nothing}", "the command needs args.deep.nothing, which the job does not have"},
    {"a {args.note_id.x}", "the command needs args.note_id.x, which the job does not have"},
    {"a {args.list.0}", "the command needs args.list.0, which the job does not have"},
    {"a {args.}", "the command needs args., which the job does not have"},
    {"a {args.none}", "the command needs args.none, which is null"},
    {"a {tenant}", "the command needs tenant, which the job does not have"},
    {"a {args.flag}", "args.flag begins with a dash and would be taken for an option"},
    {"a {args.dash}{args.note_id}x",
     "args.dash begins with a dash and would be taken for an option"},
};

static void jobs_that_lack_a_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
        struct command_line *line = NULL;
        struct mr_error err = {0};
        char **argv = NULL;

        assert_int_equal(command_line_new(lacking[i].text, true, &line, &err), 0);
        assert_int_equal(command_line_argv(line, &job, &argv, &err), MR_EINVALID);
        assert_string_equal(err.message, lacking[i].message);
        command_line_free(line);
    }
}

static void too_long_a_value(void **state)
{
    struct command_line *line = NULL;
    struct mr_error err = {0};
    char **argv = NULL;
    mr_claimed_job big = job;
    enum { SIZE = COMMAND_WORD_MAX + 100 };
    char *args = malloc(SIZE);

    (void)state;
    snprintf(args, SIZE, "{\"x\":\"%0*d\"}", COMMAND_WORD_MAX + 1, 0);
    big.args = args;
    assert_int_equal(command_line_new("a {args.x}", true, &line, &err), 0);
    assert_int_equal(command_line_argv(line, &big, &argv, &err), MR_EINVALID);
    assert_string_equal(err.message,
                        "args.x is too long for an argument (the job is on standard input, too)");
    snprintf(args, SIZE, "{\"x\":\"%0*d\"}", COMMAND_WORD_MAX, 0);
    assert_int_equal(command_line_argv(line, &big, &argv, &err), 0);
    assert_int_equal(strlen(argv[1]), COMMAND_WORD_MAX);
    free(argv);
    free(args);
    command_line_free(line);
}

static const struct {
    const char *text;
    const char *message;
    const char *hint; // a part of it
} refusals[] = {
    {"", "cannot read the command: it is empty", ""},
    {" \t", "cannot read the command: it is empty", ""},
    {"a 'b", "cannot read the command: a single quote is not closed", ""},
    {"a \"b\\\"", "cannot read the command: a double quote is not closed", ""},
    {"a \"b\\", "cannot read the command: a double quote is not closed", ""},
    {"a \\", "cannot read the command: it ends with a backslash", ""},
    {"|", "cannot read the command: | outside of quotes", "without a shell"},
    {"a | b", "cannot read the command: | outside of quotes", "sh -c"},
    {"a $HOME", "cannot read the command: $ outside of quotes", "sh -c"},
    {"a {arg.x}", "cannot read the command: unknown placeholder {arg.x}", "{{arg.x}}"},
    {"a {kinds}", "cannot read the command: unknown placeholder {kinds}", "{kind}"},
    {"a {id.x}", "cannot read the command: unknown placeholder {id.x}", "{id}"},
    {"{args.command} x",
     "cannot read the command: the command itself must not contain a placeholder", ""},
    {"sh -c 'echo {args.title}'",
     "cannot read the command: placeholder {args.title} inside of a shell script", "\"$1\""},
    {"/bin/bash -ec \"echo {id}\"",
     "cannot read the command: placeholder {id} inside of a shell script", "\"$1\""},
};

static void commands_that_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct command_line *line = NULL;
        struct mr_error err = {0};

        assert_int_equal(command_line_new(refusals[i].text, true, &line, &err), MR_ECONFIG);
        assert_null(line);
        assert_string_equal(err.message, refusals[i].message);
        assert_non_null(strstr(err.hint, refusals[i].hint));
    }
}

// A child that stays has no one job to take values from.
static void no_placeholders_for_exec(void **state)
{
    struct command_line *line = NULL;
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(command_line_new("a {args.x}", false, &line, &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot read the command: placeholder {args.x}");
    assert_non_null(strstr(err.hint, "run"));
    assert_int_equal(command_line_new("a '{print}'", false, &line, &err), 0);
    assert_string_equal(command_line_words(line)[1], "{print}");
    command_line_free(line);
}

static void too_many_words(void **state)
{
    struct command_line *line = NULL;
    struct mr_error err = {0};
    char text[2 * COMMAND_WORDS_MAX + 3];

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        text[i] = i % 2 ? ' ' : 'a';
    }
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(command_line_new(text, true, &line, &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot read the command: it has too many words");
}

static int find(const char *text, struct mr_error *err)
{
    struct command_line *line = NULL;

    assert_int_equal(command_line_new(text, true, &line, err), 0);
    int rc = command_line_find(line, err);
    command_line_free(line);
    return rc;
}

static void commands_that_cannot_run(void **state)
{
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(find("sh -c true", &err), 0);
    assert_int_equal(find("/bin/sh -c true", &err), 0);
    assert_int_equal(find("no-such-command-here x", &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot run no-such-command-here: no such command");
    assert_int_equal(find("/no/such/file", &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot run /no/such/file: No such file or directory");
    assert_int_equal(find("/etc/passwd", &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot run /etc/passwd: not executable");
    assert_non_null(strstr(err.hint, "chmod +x /etc/passwd"));
    assert_int_equal(find("/tmp/", &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot run /tmp/: not a file");
    assert_int_equal(find("''", &err), MR_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(values_stay_inside_their_words),
        cmocka_unit_test(jobs_that_lack_a_value),
        cmocka_unit_test(too_long_a_value),
        cmocka_unit_test(commands_that_are_refused),
        cmocka_unit_test(no_placeholders_for_exec),
        cmocka_unit_test(too_many_words),
        cmocka_unit_test(commands_that_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
