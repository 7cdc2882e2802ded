// SPDX-License-Identifier: PostgreSQL
//
// The main program of the conformance suite: see conform.h.

#include "conform.h"

#include <jansson.h>
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 1000
#define SHOWN_MAX 200

mr_error conform_err;

static const struct word *const tables[] = {queue_words, toolbox_words, trouble_words};
static mr_conn *conns[CONNS_MAX + 1]; // from 1
static int chosen = 1;
static int line_no = 1;

// ---- saying ----

void say(const char *format, ...)
{
    va_list args;

    fputs("    ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fputs("\n", stdout);
}

void script_is_wrong(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "line %d: ", line_no);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("\n", stderr);
    exit(2);
}

static const char *code_name(int code)
{
    static const char *const names[] = {
        [-MR_OK] = "MR_OK",
        [-MR_ENOMEM] = "MR_ENOMEM",
        [-MR_ELIMIT] = "MR_ELIMIT",
        [-MR_EUSAGE] = "MR_EUSAGE",
        [-MR_ECONNECT] = "MR_ECONNECT",
        [-MR_EDATABASE] = "MR_EDATABASE",
        [-MR_ELOCK] = "MR_ELOCK",
        [-MR_ECONFLICT] = "MR_ECONFLICT",
        [-MR_EPRIVILEGE] = "MR_EPRIVILEGE",
        [-MR_EROLES] = "MR_EROLES",
        [-MR_EREADONLY] = "MR_EREADONLY",
        [-MR_ESERVER] = "MR_ESERVER",
        [-MR_EFOREIGN] = "MR_EFOREIGN",
        [-MR_ENEWER] = "MR_ENEWER",
        [-MR_EALTERED] = "MR_EALTERED",
        [-MR_EIO] = "MR_EIO",
        [-MR_EINTERNAL] = "MR_EINTERNAL",
        [-MR_ELEASE] = "MR_ELEASE",
        [-MR_EFULL] = "MR_EFULL",
        [-MR_EUNKNOWN] = "MR_EUNKNOWN",
        [-MR_ERESTORED] = "MR_ERESTORED",
        [-MR_EINVALID] = "MR_EINVALID",
        [-MR_ETIMEOUT] = "MR_ETIMEOUT",
        [-MR_ESCHEMA] = "MR_ESCHEMA",
        [-MR_ECONFIG] = "MR_ECONFIG",
        [-MR_EFULLDISK] = "MR_EFULLDISK",
    };
    size_t at = (size_t)-code;

    return at < sizeof(names) / sizeof(names[0]) && names[at] ? names[at] : "an unknown code";
}

static const char *class_name(enum mr_class error_class)
{
    static const char *const names[] = {
        [MR_CLASS_NONE] = "none",         [MR_CLASS_TRANSIENT] = "transient",
        [MR_CLASS_CONFLICT] = "conflict", [MR_CLASS_REJECTED] = "rejected",
        [MR_CLASS_CONFIG] = "config",     [MR_CLASS_INTERNAL] = "internal",
    };

    return names[error_class];
}

bool say_failure(int code)
{
    const mr_error *err = &conform_err;

    if (code == 0) {
        return false;
    }
    if (err->code != code) {
        say("the call returned %s, its error says %s", code_name(code), code_name(err->code));
        return true;
    }
    say("%s (%s%s%s): %s", code_name(code), class_name(err->error_class),
        *err->sqlstate ? ", " : "", err->sqlstate, err->message);
    return true;
}

void say_json(char *json)
{
    if (!json) {
        say("none");
        return;
    }
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_COMPACT);
    if (!text) {
        say("not JSON: %s", json);
    } else if (strlen(text) > SHOWN_MAX) {
        say("%zu bytes: %.20s...", strlen(text), text);
    } else {
        say("%s", text);
    }
    free(text);
    json_decref(value);
    mr_free(json);
}

const char *name_of(char prefix, int64_t number)
{
    static struct {
        char prefix;
        int64_t number;
    } known[NAMES_MAX];
    static int count;
    static char name[32];
    int same = 0;
    int at = 0;

    for (; at < count; at++) {
        same += known[at].prefix == prefix;
        if (known[at].prefix == prefix && known[at].number == number) {
            break;
        }
    }
    if (at == count) {
        if (count == NAMES_MAX) {
            script_is_wrong("too many names");
        }
        known[count].prefix = prefix;
        known[count++].number = number;
        same++;
    }
    snprintf(name, sizeof(name), "%c%d", prefix, same);
    return name;
}

// ---- reading ----

int64_t number_of(const char *text)
{
    char *end = NULL;
    long long number = strtoll(text, &end, 10);

    if (!*text || *end) {
        script_is_wrong("%s is no number", text);
    }
    return number;
}

int64_t ms_of(const char *text)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *end = NULL;
    long long number = strtoll(text, &end, 10);

    for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            return number * units[i].ms;
        }
    }
    script_is_wrong("%s is no time", text);
}

int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

// ---- running ----

// Parts of 64 MiB are sent, which takes a sanitized build on a busy machine more than the usual
// half minute.
mr_conn *conform_conn(void)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;

    options.timeout_ms = 120000;
    if (!conns[chosen] && mr_conn_open(&options, &conns[chosen], &conform_err)) {
        fflush(stdout);
        fprintf(stderr, "%s\n%s\n", conform_err.message, conform_err.hint);
        exit(1);
    }
    return conns[chosen];
}

static const struct word *find(const char *name)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct word *word = tables[i]; word->name; word++) {
            if (strcmp(word->name, name) == 0) {
                return word;
            }
        }
    }
    script_is_wrong("unknown word: %s", name);
}

static void run_line(char *line)
{
    char *words[ARGS_MAX + 1];
    int count = words_split(line, words, ARGS_MAX + 1);

    if (!words[0]) {
        script_is_wrong("a line must begin with a word");
    }
    if (strcmp(words[0], "on") == 0 && count == 2) {
        chosen = (int)number_of(words[1]);
        if (chosen < 1 || chosen > CONNS_MAX) {
            script_is_wrong("connections are 1 to %d", CONNS_MAX);
        }
        return;
    }
    const struct word *word = find(words[0]);
    if (count - 1 < word->least || count - 1 > word->most) {
        script_is_wrong("%s takes %d to %d arguments", word->name, word->least, word->most);
    }
    word->run(words + 1, count - 1);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    setlocale(LC_ALL, ""); // as an application may: some languages write fractions with a comma
    setlinebuf(stdout);    // who is killed leaves whole lines
    for (; getline(&line, &size, stdin) > 0; line_no++) {
        line[strcspn(line, "\n")] = '\0';
        puts(line);
        if (*line && *line != '#' && strncmp(line, "case ", 5) != 0) {
            run_line(line);
            words_done();
        }
    }
    for (int i = 1; i <= CONNS_MAX; i++) {
        mr_conn_free(conns[i]);
    }
    free(line);
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
