// SPDX-License-Identifier: PostgreSQL
//
// Commands on several shards: see across.h.

#include "cli/across.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/shard_conns.h"

// ---- the command line ----

static bool is_flag(const char *word)
{
    static const char *const flags[] = {"--json", "--help", "--yes", "--check", "--print"};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (str_equal(word, flags[i])) {
            return true;
        }
    }
    return false;
}

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc && !str_equal(argv[i], "--"); i++) {
        if (str_equal(argv[i], word)) {
            return true;
        }
    }
    return false;
}

// The argument that is an id; 0: there is none. An option's value is not looked at.
static int64_t find_id(int argc, char **argv)
{
    int64_t id = 0;

    for (int i = 1; i < argc && !str_equal(argv[i], "--"); i++) {
        if (str_starts(argv[i], "--")) {
            i += !strchr(argv[i], '=') && !is_flag(argv[i]);
        } else if (str_parse_int(argv[i], 1, INT64_MAX, &id)) {
            return id;
        }
    }
    return 0;
}

// The same words with one address instead of the list; in `ret`, which has room for two more.
static int copy_words(int argc, char **argv, char *option, char **ret)
{
    int count = 0, i = 0;

    for (; i < argc && !str_equal(argv[i], "--"); i++) {
        if (str_equal(argv[i], "--dsn")) {
            i++;
        } else if (!str_starts(argv[i], "--dsn=")) {
            ret[count++] = argv[i];
        }
    }
    ret[count++] = option;
    for (; i < argc; i++) {
        ret[count++] = argv[i];
    }
    ret[count] = NULL;
    return count;
}

static int run_at(command_fn *run, const char *dsn, int argc, char **argv)
{
    struct mr_error err;
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    char *option = NULL;
    int status = EXIT_FAILED;

    if (words && asprintf(&option, "--dsn=%s", dsn) >= 0) {
        status = run(copy_words(argc, argv, option, words), words);
        free(option);
    } else {
        mr_error_set(&err, MR_ENOMEM, "out of memory");
        status = command_fail(&err);
    }
    free(words);
    return status;
}

// ---- on all ----

static void print_number(const struct shard_conns *conns, int at)
{
    if (conns->set.entries[at].known) {
        printf("%d", conns->set.entries[at].info.number);
    } else {
        printf("null");
    }
}

// A database whose schema is not there yet is for the command to see to: `migrate` does.
static bool is_reachable(const struct shard_conns *conns, int at)
{
    return conns->conns[at] != NULL;
}

// Standard output goes to a file meanwhile: whether a command printed anything is known afterwards.
struct caught {
    FILE *file; // NULL: it cannot be caught
    int saved;
};

static struct caught catch_output(void)
{
    struct caught caught = {.file = tmpfile(), .saved = -1};

    fflush(stdout);
    if (caught.file) {
        caught.saved = dup(STDOUT_FILENO);
        dup2(fileno(caught.file), STDOUT_FILENO);
    }
    return caught;
}

// Writes what was caught as a member of an object, null where it was nothing.
static void release_output(struct caught *caught)
{
    int c, held = 0, count = 0;

    fflush(stdout);
    if (caught->file) {
        dup2(caught->saved, STDOUT_FILENO);
        close(caught->saved);
        rewind(caught->file);
        for (; (c = getc(caught->file)) != EOF; count++) {
            if (held) {
                putchar(held);
            }
            held = c;
        }
        fclose(caught->file);
    }
    if (held && held != '\n') {
        putchar(held);
    }
    printf(count ? "" : "null");
}

static int run_json(const struct shard_conns *conns, int at, command_fn *run, int argc, char **argv)
{
    struct mr_error why = conns->errs[at];
    int status = EXIT_UNREACHABLE;

    printf("%s{\"shard\":", at ? ",\n " : "[");
    print_number(conns, at);
    printf(",\"result\":");
    struct caught caught = catch_output();
    if (is_reachable(conns, at)) {
        status = run_at(run, conns->list.items[at], argc, argv);
    } else {
        mr_error_prefix(&why, "address %d", at + 1);
        command_fail(&why);
    }
    release_output(&caught);
    printf(",\"status\":%d}%s", status, at + 1 == conns->list.count ? "]\n" : "");
    return status;
}

static int run_text(const struct shard_conns *conns, int at, command_fn *run, int argc, char **argv)
{
    char label[SHARD_LABEL_SIZE];
    struct mr_error why = conns->errs[at];

    printf("%s%s:\n", at ? "\n" : "", shard_conns_label(conns, at, label));
    if (is_reachable(conns, at)) {
        return run_at(run, conns->list.items[at], argc, argv);
    }
    mr_error_prefix(&why, "%s", label);
    return command_fail(&why);
}

static int run_each(const struct shard_conns *conns, command_fn *run, int argc, char **argv)
{
    bool json = has_word(argc, argv, "--json");
    int worst = EXIT_DONE;

    for (int i = 0; i < conns->list.count; i++) {
        int status = (json ? run_json : run_text)(conns, i, run, argc, argv);
        worst = status > worst ? status : worst;
    }
    return command_finish(worst);
}

// ---- on one ----

static int find_one(enum across across, const struct shard_conns *conns, int64_t id, int *ret,
                    struct mr_error *err)
{
    if (across == ACROSS_FIRST) {
        return shard_conns_first(conns, ret, err);
    }
    int number = shard_of_id(id);
    if (number < 0) {
        mr_error_set(err, MR_EUSAGE, "no id of a job is given, or it is of no shard");
        mr_error_hint(err, "An id is a whole number, as `millrace enqueue` prints it.");
        return MR_EUSAGE;
    }
    return shard_conns_find(conns, number, ret, err);
}

int across_run(enum across across, command_fn *run, const char *dsn, int argc, char **argv)
{
    int64_t id = find_id(argc, argv);
    struct mr_error err;
    int at = 0;

    AUTO_SHARD_CONNS conns;
    if (shard_conns_open(dsn, &conns, &err)) {
        return command_fail(&err);
    }
    if (across == ACROSS_EACH || (across == ACROSS_DEAD && id == 0)) {
        return run_each(&conns, run, argc, argv);
    }
    if (find_one(across, &conns, id, &at, &err)) {
        return command_fail(&err);
    }
    return run_at(run, conns.list.items[at], argc, argv);
}
