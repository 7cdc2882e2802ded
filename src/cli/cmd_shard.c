// SPDX-License-Identifier: PostgreSQL
//
// `millrace shard add|list|drain|resume|remove`: the databases of a set.
//
// What belongs to the set (its id, the numbers in it) is in every database of it, so a change is
// made in all of them: `add` again finishes one that was interrupted.

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/shard_conns.h"
#include "cli/table.h"

enum { NUMBERS_SIZE = 128, WAIT_POLL_MS = 500, LIST_MAX = 256 * 1024 };

static const struct command_form add_form = {
    "shard add",
    "",
    0,
    0,
    "Makes the databases of all addresses one set of shards: those that are in none yet join, each\n"
    "with the lowest number that is free. Give the addresses of the whole set.",
    "millrace-shard(1)",
};
static const struct command_form list_form = {
    "shard list",
    "",
    0,
    0,
    "Lists the shards, how they do, and how many jobs are left in each.",
    "millrace-shard(1)",
};
static const struct command_form drain_form = {
    "shard drain",
    "NUMBER",
    1,
    1,
    "The shard gets no new jobs; workers go on until it is empty. With --wait it says when it is.",
    "millrace-shard(1)",
};
static const struct command_form resume_form = {
    "shard resume",      "NUMBER", 1, 1, "The shard gets new jobs again, or has joined for good.",
    "millrace-shard(1)",
};
static const struct command_form remove_form = {
    "shard remove",
    "NUMBER",
    1,
    1,
    "Takes a shard that was drained and is empty out of the set.",
    "millrace-shard(1)",
};

// ---- shared ----

// The numbers of a set as PostgreSQL writes an array.
static const char *numbers_text(uint32_t members, char ret[NUMBERS_SIZE])
{
    size_t used = 0;

    for (int i = 0; i < SHARD_NUMBERS; i++) {
        if (members >> i & 1) {
            used += (size_t)snprintf(ret + used, NUMBERS_SIZE - used, "%s%d", used ? "," : "{", i);
        }
    }
    snprintf(ret + used, NUMBERS_SIZE - used, "}");
    return ret;
}

static int change(struct conn *conn, const char *status, uint32_t members, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    char numbers[NUMBERS_SIZE];
    const char *values[] = {status, members ? numbers_text(members, numbers) : NULL};

    return command_query(conn, "select millrace.shard_change($1, $2::int[])", 2, values, &rows,
                         err);
}

// Every database has to know.
static int tell_all(const struct shard_conns *conns, uint32_t members, struct mr_error *err)
{
    for (int i = 0; i < conns->list.count; i++) {
        const struct shard_info *info = &conns->set.entries[i].info;
        if (!conns->set.entries[i].known || !(members >> info->number & 1) ||
            info->members == members) {
            continue;
        }
        int code = change(conns->conns[i], NULL, members, err);
        if (code) {
            mr_error_prefix(err, "shard %d", info->number);
            return code;
        }
    }
    return 0;
}

// A change of the set needs all of it.
static int check_whole(const struct shard_conns *conns, struct mr_error *err)
{
    uint32_t members = shard_set_members(&conns->set);

    for (int i = 0; i < SHARD_NUMBERS; i++) {
        if ((members >> i & 1) && shard_set_find(&conns->set, i) < 0) {
            mr_error_set(err, MR_ECONNECT,
                         "shard %d of the set is not among the addresses, or down", i);
            mr_error_hint(err,
                          "Give the addresses of all shards, and have them running: a change of "
                          "the set is written to each.");
            return MR_ECONNECT;
        }
    }
    return 0;
}

static int64_t open_jobs(struct conn *conn, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int64_t jobs = 0;
    int code = command_query(conn, "select millrace.shard_open()", 0, NULL, &rows, err);

    if (code) {
        return code;
    }
    str_parse_int(PQgetvalue(rows, 0, 0), 0, INT64_MAX, &jobs);
    return jobs;
}

// ---- add ----

static const char *set_id_of(const struct shard_conns *conns)
{
    for (int i = 0; i < conns->list.count; i++) {
        if (conns->set.entries[i].known) {
            return conns->set.entries[i].info.set_id;
        }
    }
    return NULL;
}

static int make_set_id(struct conn *conn, char *ret, size_t size, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code =
        command_query(conn, "select gen_random_uuid() from millrace.shard()", 0, NULL, &rows, err);

    if (code == 0) {
        snprintf(ret, size, "%s", PQgetvalue(rows, 0, 0));
    }
    return code;
}

// Only one may change the set at a time; the session's end gives it back.
static int take_lock(struct conn *conn, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code =
        command_query(conn, "select millrace.try_lock('millrace shard add')", 0, NULL, &rows, err);

    if (code == 0 && PQgetvalue(rows, 0, 0)[0] != 't') {
        mr_error_set(err, MR_ELOCK, "another `millrace shard add` is under way");
        mr_error_hint(err, "Wait for its end and look with `millrace shard list`.");
        return MR_ELOCK;
    }
    return code;
}

static int join(struct conn *conn, const char *set_id, int number, uint32_t members, bool joining,
                struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    char numbers[NUMBERS_SIZE], text[12];
    const char *values[] = {set_id, text, numbers_text(members, numbers), joining ? "t" : "f"};

    snprintf(text, sizeof(text), "%d", number);
    return command_query(conn,
                         "select millrace.shard_join($1::uuid, $2::int, $3::int[], $4::boolean)", 4,
                         values, &rows, err);
}

static int lowest_free(uint32_t members, int *ret, struct mr_error *err)
{
    if (members == UINT32_MAX) {
        mr_error_set(err, MR_ELIMIT, "the set has %d shards already", SHARD_NUMBERS);
        mr_error_hint(err, "Larger numbers would not leave ids exact in a double.");
        return MR_ELIMIT;
    }
    *ret = __builtin_ctz(~members);
    return 0;
}

// Everything but "no shard yet" is in the way.
static int check_new(const struct shard_conns *conns, int at, struct mr_error *err)
{
    if (conns->errs[at].code != MR_ECONFIG) {
        *err = conns->errs[at];
        mr_error_prefix(err, "address %d", at + 1);
        return err->code;
    }
    return 0;
}

struct addition {
    int at, number;
};

static int add_one(struct shard_conns *conns, int at, const char *set_id, uint32_t *members,
                   bool joining, int *ret_number, struct mr_error *err)
{
    int code = lowest_free(*members, ret_number, err);

    if (code) {
        return code;
    }
    uint32_t all = *members | UINT32_C(1) << *ret_number;
    if ((code = join(conns->conns[at], set_id, *ret_number, all, joining, err))) {
        mr_error_prefix(err, "address %d", at + 1);
        return code;
    }
    *members = all;
    struct shard_info *info = &conns->set.entries[at].info;
    *info = (struct shard_info){.enrolled = true, .number = *ret_number, .members = all};
    snprintf(info->set_id, sizeof(info->set_id), "%s", set_id);
    conns->set.entries[at].known = true;
    return 0;
}

static int prepare_add(const struct shard_conns *conns, char *set_id, size_t size,
                       struct mr_error *err)
{
    const char *known = set_id_of(conns);
    int code = check_whole(conns, err), first = 0;

    for (int i = 0; code == 0 && i < conns->list.count; i++) {
        code = conns->set.entries[i].known ? 0 : check_new(conns, i, err);
    }
    if (code == 0 && known) {
        snprintf(set_id, size, "%s", known);
        code = shard_conns_first(conns, &first, err);
    } else if (code == 0) {
        code = make_set_id(conns->conns[0], set_id, size, err);
    }
    return code ? code : take_lock(conns->conns[first], err);
}

static int add(struct shard_conns *conns, struct addition *added, int *count, struct mr_error *err)
{
    char set_id[sizeof(conns->set.entries[0].info.set_id)];
    uint32_t members = shard_set_members(&conns->set);
    bool joining = members != 0;
    int code = prepare_add(conns, set_id, sizeof(set_id), err);

    for (int i = 0; code == 0 && i < conns->list.count; i++) {
        if (!conns->set.entries[i].known) {
            added[*count].at = i;
            code = add_one(conns, i, set_id, &members, joining, &added[*count].number, err);
            *count += code == 0;
        }
    }
    return code ? code : tell_all(conns, members, err);
}

static void print_added(const struct addition *added, int count, bool json)
{
    for (int i = 0; i < count && json; i++) {
        printf("%s{\"address\":%d,\"shard\":%d}", i ? "," : "[", added[i].at + 1, added[i].number);
    }
    if (json) {
        puts(count ? "]" : "[]");
        return;
    }
    for (int i = 0; i < count; i++) {
        printf("address %d is shard %d\n", added[i].at + 1, added[i].number);
    }
    if (count == 0) {
        puts("all addresses are shards already");
    }
}

static int shard_add(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct addition added[DSN_LIST_MAX];
    struct mr_error err;
    int count = 0;
    int first = command_read(&add_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&add_form, rows);
    }
    AUTO_SHARD_CONNS conns = {0};
    if (first < 0 || shard_conns_open(shared.dsn, &conns, &err) ||
        add(&conns, added, &count, &err)) {
        return command_fail(&err);
    }
    print_added(added, count, shared.json);
    return command_finish(EXIT_DONE);
}

// ---- list ----

struct line {
    char number[12];
    const char *status; // or why it has none
    int64_t jobs;       // -1: not known
    bool read_only;
    char place[300];
};

static void place_of(const struct shard_conns *conns, int at, char *ret, size_t size)
{
    const PGconn *pg = conns->conns[at] ? conn_pg(conns->conns[at]) : NULL;

    snprintf(ret, size, "%s", "-");
    if (pg) {
        snprintf(ret, size, "%s:%s/%s", PQhost(pg), PQport(pg), PQdb(pg));
    }
}

static struct line line_of(const struct shard_conns *conns, int at)
{
    const struct shard_info *info = &conns->set.entries[at].info;
    struct line line = {.status = conns->conns[at] ? "no shard" : "unreachable", .jobs = -1};
    struct mr_error err;

    snprintf(line.number, sizeof(line.number), "-");
    place_of(conns, at, line.place, sizeof(line.place));
    if (conns->set.entries[at].known) {
        snprintf(line.number, sizeof(line.number), "%d", info->number);
        line.status = shard_status_name(info->status);
        line.read_only = info->read_only;
        line.jobs = info->read_only ? -1 : open_jobs(conns->conns[at], &err);
    }
    return line;
}

static int print_lines(const struct line *lines, int count, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"SHARD", true, 0},   {"STATUS", false, 0},    {"JOBS", true, 0},
        {"WRITES", false, 0}, {"DATABASE", false, 80}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < count; i++) {
        table_add(&table, lines[i].number);
        table_add(&table, lines[i].status);
        if (lines[i].jobs < 0) {
            table_add(&table, NULL);
        } else {
            table_add_number(&table, lines[i].jobs);
        }
        table_add(&table, lines[i].number[0] == '-' ? NULL : lines[i].read_only ? "no" : "yes");
        table_add(&table, lines[i].place);
    }
    return table_print(&table, stdout, err);
}

static int print_json_lines(const struct line *lines, int count, struct mr_error *err)
{
    AUTO_BUF out;

    buf_init(&out, LIST_MAX);
    for (int i = 0; i < count; i++) {
        bool known = lines[i].number[0] != '-';
        buf_printf(&out, "%s{\"address\":%d,\"shard\":%s,\"status\":", i ? "," : "{\"shards\":[",
                   i + 1, known ? lines[i].number : "null");
        json_add_string(&out, lines[i].status);
        buf_puts(&out, ",\"jobs\":");
        buf_printf(&out, lines[i].jobs < 0 ? "null" : "%lld", (long long)lines[i].jobs);
        buf_printf(&out, ",\"read_only\":%s,\"database\":",
                   known ? (lines[i].read_only ? "true" : "false") : "null");
        json_add_string(&out, lines[i].place);
        buf_puts(&out, "}");
    }
    buf_puts(&out, "]}");
    int code = buf_status(&out, err);
    if (code == 0) {
        puts(buf_peek(&out));
    }
    return code;
}

// What is wrong with each goes to stderr, behind the table.
static int tell_wrong(const struct shard_conns *conns)
{
    int worst = EXIT_DONE;

    for (int i = 0; i < conns->list.count; i++) {
        if (!conns->set.entries[i].known) {
            struct mr_error why = conns->errs[i];
            mr_error_prefix(&why, "address %d", i + 1);
            int status = command_fail(&why);
            worst = status > worst ? status : worst;
        }
    }
    return worst;
}

static int shard_list(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct line lines[DSN_LIST_MAX];
    struct mr_error err;
    int first = command_read(&list_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&list_form, rows);
    }
    AUTO_SHARD_CONNS conns = {0};
    if (first < 0 || shard_conns_open(shared.dsn, &conns, &err)) {
        return command_fail(&err);
    }
    for (int i = 0; i < conns.list.count; i++) {
        lines[i] = line_of(&conns, i);
    }
    if ((shared.json ? print_json_lines : print_lines)(lines, conns.list.count, &err)) {
        return command_fail(&err);
    }
    return command_finish(tell_wrong(&conns));
}

// ---- drain, resume, remove ----

struct act {
    struct command_shared shared;
    bool wait;
    int64_t timeout_ms;
    int number, at;
    struct shard_conns conns;
};

typedef int act_fn(struct act *act, struct mr_error *err);

static int find_shard(struct act *act, const char *text, struct mr_error *err)
{
    int64_t number = 0;

    if (!str_parse_int(text, 0, SHARD_NUMBERS - 1, &number)) {
        mr_error_set(err, MR_EUSAGE, "\"%s\" is not the number of a shard", text);
        mr_error_hint(err, "It is from 0 to %d; see `millrace shard list`.", SHARD_NUMBERS - 1);
        return MR_EUSAGE;
    }
    act->number = (int)number;
    int code = shard_conns_open(act->shared.dsn, &act->conns, err);
    return code ? code : shard_conns_find(&act->conns, act->number, &act->at, err);
}

// Somebody has to take the jobs.
static int check_last(const struct act *act, struct mr_error *err)
{
    const struct shard_set *set = &act->conns.set;

    for (int i = 0; i < set->count; i++) {
        if (i != act->at && set->entries[i].known &&
            set->entries[i].info.status != SHARD_DRAINING && !set->entries[i].info.read_only) {
            return 0;
        }
    }
    mr_error_set(err, MR_EUSAGE, "no other shard takes jobs: shard %d cannot be drained",
                 act->number);
    mr_error_hint(err, "Give the addresses of the whole set; add a shard, or resume one, before.");
    return MR_EUSAGE;
}

static int count_schedules(struct conn *conn, int64_t *ret, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn, "select count(*) from millrace.schedules s where s.active", 0,
                             NULL, &rows, err);

    if (code == 0) {
        str_parse_int(PQgetvalue(rows, 0, 0), 0, INT64_MAX, ret);
    }
    return code;
}

static int wait_for_empty(const struct act *act, struct conn *conn, int64_t *jobs,
                          struct mr_error *err)
{
    int64_t end_ms = act->timeout_ms ? clock_ms() + act->timeout_ms : INT64_MAX;

    while (*jobs > 0 && clock_ms() < end_ms) {
        poll(NULL, 0, WAIT_POLL_MS);
        *jobs = open_jobs(conn, err);
    }
    return *jobs < 0 ? (int)*jobs : 0;
}

static int drain(struct act *act, struct mr_error *err)
{
    struct conn *conn = act->conns.conns[act->at];
    int64_t schedules = 0, jobs = 0;
    int code = check_last(act, err);

    if (code || (code = change(conn, "draining", 0, err)) ||
        (code = count_schedules(conn, &schedules, err))) {
        return code;
    }
    jobs = open_jobs(conn, err);
    if (jobs < 0 || (act->wait && (code = wait_for_empty(act, conn, &jobs, err)))) {
        return jobs < 0 ? (int)jobs : code;
    }
    if (act->shared.json) {
        printf("{\"shard\":%d,\"status\":\"draining\",\"jobs\":%lld,\"schedules\":%lld}\n",
               act->number, (long long)jobs, (long long)schedules);
    } else if (jobs == 0) {
        printf("shard %d is empty\n", act->number);
    } else {
        printf("shard %d is draining: %lld jobs left\n", act->number, (long long)jobs);
    }
    if (schedules > 0) {
        fprintf(
            stderr,
            "warning: shard %d has %lld schedules, which go on making jobs there: remove them, and "
            "set them on another\n",
            act->number, (long long)schedules);
    }
    if (act->wait && jobs > 0) {
        mr_error_set(err, MR_ETIMEOUT, "shard %d is not empty yet", act->number);
        mr_error_hint(err, "Do workers run? `millrace status` tells what is left.");
        return MR_ETIMEOUT;
    }
    return 0;
}

static int print_status(const struct act *act, const char *word)
{
    if (act->shared.json) {
        printf("{\"shard\":%d,\"status\":\"%s\"}\n", act->number, word);
    } else {
        printf("shard %d is %s\n", act->number, word);
    }
    return 0;
}

static int resume(struct act *act, struct mr_error *err)
{
    int code = change(act->conns.conns[act->at], "active", 0, err);

    return code ? code : print_status(act, "active");
}

static int check_empty(const struct act *act, struct mr_error *err)
{
    int64_t jobs = open_jobs(act->conns.conns[act->at], err);

    if (jobs < 0) {
        return (int)jobs;
    }
    if (act->conns.set.entries[act->at].info.status != SHARD_DRAINING || jobs > 0) {
        mr_error_set(err, MR_EUSAGE, "shard %d is not drained: %lld jobs have not ended",
                     act->number, (long long)jobs);
        mr_error_hint(err, "`millrace shard drain %d --wait` empties it.", act->number);
        return MR_EUSAGE;
    }
    return 0;
}

static int take_out(struct act *act, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    uint32_t members = shard_set_members(&act->conns.set) & ~(UINT32_C(1) << act->number);
    int code = check_whole(&act->conns, err);

    if (code || (code = check_empty(act, err)) || (code = tell_all(&act->conns, members, err)) ||
        (code = command_query(act->conns.conns[act->at], "select millrace.shard_leave()", 0, NULL,
                              &rows, err))) {
        return code;
    }
    return print_status(act, "out of the set");
}

static int run_act(const struct command_form *form, act_fn *run, bool waits, int argc, char **argv)
{
    struct act act = {0};
    const struct option_row rows[] = {
        COMMAND_SHARED_ROWS(&act.shared),
        {waits ? "wait" : NULL, OPTION_FLAG, &act.wait, NULL, "until it is empty"},
        {"timeout", OPTION_SPAN, &act.timeout_ms, "TIME",
         "with --wait: at most this long (for ever)"},
        {0},
    };
    struct mr_error err;
    int first = command_read(form, rows, &act.shared, argc, argv, &err);

    if (first >= 0 && act.shared.help) {
        return command_help(form, rows);
    }
    int code = first < 0 ? first : find_shard(&act, argv[first], &err);
    code = code < 0 ? code : run(&act, &err);
    shard_conns_done(&act.conns);
    return code ? command_fail(&err) : command_finish(EXIT_DONE);
}

static int shard_drain(int argc, char **argv)
{
    return run_act(&drain_form, drain, true, argc, argv);
}

static int shard_resume(int argc, char **argv)
{
    return run_act(&resume_form, resume, false, argc, argv);
}

static int shard_remove(int argc, char **argv)
{
    return run_act(&remove_form, take_out, false, argc, argv);
}

int cmd_shard(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"add", shard_add},       {"list", shard_list},     {"drain", shard_drain},
        {"resume", shard_resume}, {"remove", shard_remove}, {NULL, NULL},
    };

    return command_group("shard", verbs, argc, argv);
}
