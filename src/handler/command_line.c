// SPDX-License-Identifier: PostgreSQL
//
// A command as a person writes it: see command_line.h.

#include "handler/command_line.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json_scan.h"
#include "base/str.h"

struct command_line {
    int count;
    char *words[COMMAND_WORDS_MAX + 1];
    char store[]; // of the words
};

// ---- splitting ----

struct splitter {
    const char *at;
    char *out;
};

// Between double quotes a backslash means something before these only.
#define ESCAPED_IN_QUOTES "\"\\$`"
// What a shell would act on.
#define SHELL_SIGNS "|&;<>`$"

static int refuse(struct mr_error *err, const char *why)
{
    mr_error_set(err, MR_ECONFIG, "cannot read the command: %s", why);
    return MR_ECONFIG;
}

static int refuse_shell(char sign, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG, "cannot read the command: %c outside of quotes", sign);
    mr_error_hint(err, "Commands run without a shell. Put the character in quotes if it belongs to "
                       "an argument, or let a shell run a script: sh -c '...'.");
    return MR_ECONFIG;
}

static int split_single(struct splitter *splitter, struct mr_error *err)
{
    const char *end = strchr(++splitter->at, '\'');

    if (!end) {
        return refuse(err, "a single quote is not closed");
    }
    splitter->out = mempcpy(splitter->out, splitter->at, (size_t)(end - splitter->at));
    splitter->at = end + 1;
    return 0;
}

static int split_double(struct splitter *splitter, struct mr_error *err)
{
    for (splitter->at++; *splitter->at != '"'; splitter->at++) {
        if (splitter->at[0] == '\\' && splitter->at[1] &&
            strchr(ESCAPED_IN_QUOTES, splitter->at[1])) {
            splitter->at++;
        }
        if (!*splitter->at) {
            return refuse(err, "a double quote is not closed");
        }
        *splitter->out++ = *splitter->at;
    }
    splitter->at++;
    return 0;
}

static int split_bare(struct splitter *splitter, struct mr_error *err)
{
    bool escaped = *splitter->at == '\\';

    splitter->at += escaped;
    if (!*splitter->at) {
        return refuse(err, "it ends with a backslash");
    }
    if (!escaped && strchr(SHELL_SIGNS, *splitter->at)) {
        return refuse_shell(*splitter->at, err);
    }
    *splitter->out++ = *splitter->at++;
    return 0;
}

static int split_word(struct splitter *splitter, struct mr_error *err)
{
    int rc = 0;

    while (rc == 0 && *splitter->at && !strchr(" \t\r\n", *splitter->at)) {
        switch (*splitter->at) {
        case '\'': rc = split_single(splitter, err); break;
        case '"': rc = split_double(splitter, err); break;
        default: rc = split_bare(splitter, err); break;
        }
    }
    *splitter->out++ = '\0';
    return rc;
}

static int split(struct command_line *line, const char *text, struct mr_error *err)
{
    struct splitter splitter = {.at = text, .out = line->store};

    for (;;) {
        splitter.at += strspn(splitter.at, " \t\r\n");
        if (!*splitter.at) {
            return line->count ? 0 : refuse(err, "it is empty");
        }
        if (line->count == COMMAND_WORDS_MAX) {
            return refuse(err, "it has too many words");
        }
        line->words[line->count++] = splitter.out;
        int rc = split_word(&splitter, err);
        if (rc) {
            return rc;
        }
    }
}

// ---- placeholders ----

enum source {
    SOURCE_ID,
    SOURCE_ATTEMPT,
    SOURCE_KIND,
    SOURCE_QUEUE,
    SOURCE_REF,
    SOURCE_TENANT,
    SOURCE_ARGS,
    SOURCE_META,
};

static const struct {
    const char *name;
    enum source source;
    bool has_fields;
} sources[] = {
    {"id", SOURCE_ID, false},     {"attempt", SOURCE_ATTEMPT, false},
    {"kind", SOURCE_KIND, false}, {"queue", SOURCE_QUEUE, false},
    {"ref", SOURCE_REF, false},   {"tenant", SOURCE_TENANT, false},
    {"args", SOURCE_ARGS, true},  {"meta", SOURCE_META, true},
};

#define SOURCE_NAMES "{id} {kind} {queue} {attempt} {ref} {tenant} {args.field} {meta.field}"

// {name} or {name.path}
struct placeholder {
    struct json_slice name;  // the part before the first dot
    struct json_slice path;  // behind it; at NULL: none
    struct json_slice whole; // what stands between the braces
    size_t len;              // with the braces
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

// Whether something in the form of a placeholder begins at `text`.
static bool placeholder_read(const char *text, struct placeholder *ret)
{
    const char *at = text + 1;

    if (*text != '{') {
        return false;
    }
    while (is_name_char(*at)) {
        at++;
    }
    ret->name = (struct json_slice){text + 1, (size_t)(at - text) - 1};
    ret->path = (struct json_slice){NULL, 0};
    if (ret->name.len && *at == '.') {
        size_t len = strcspn(at + 1, "{}\" \t\r\n");
        ret->path = (struct json_slice){at + 1, len};
        at += 1 + len;
    }
    ret->len = (size_t)(at - text) + 1;
    ret->whole = (struct json_slice){text + 1, ret->len - 2};
    return ret->name.len && *at == '}';
}

// The row of a placeholder, or -1 when there is none of that name.
static int placeholder_source(const struct placeholder *placeholder)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (json_slice_is(placeholder->name, sources[i].name)) {
            return sources[i].has_fields || !placeholder->path.at ? (int)i : -1;
        }
    }
    return -1;
}

// {{name}}: returns how many bytes it takes, 0 when it is none.
static size_t literal_read(const char *text)
{
    struct placeholder inner;

    if (text[0] != '{' || !placeholder_read(text + 1, &inner) || text[1 + inner.len] != '}') {
        return 0;
    }
    return inner.len + 2;
}

// The first placeholder from `text` on; NULL when there is none.
static const char *placeholder_next(const char *text, struct placeholder *ret)
{
    while (*text) {
        size_t literal = literal_read(text);
        if (!literal && placeholder_read(text, ret)) {
            return text;
        }
        text += literal ? literal : 1;
    }
    return NULL;
}

// ---- what is wrong can be seen before the first job comes ----

static int refuse_unknown(const struct placeholder *placeholder, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG, "cannot read the command: unknown placeholder {%.*s}",
                 (int)placeholder->whole.len, placeholder->whole.at);
    mr_error_hint(err, "There are " SOURCE_NAMES "; write {{%.*s}} for the text itself.",
                  (int)placeholder->whole.len, placeholder->whole.at);
    return MR_ECONFIG;
}

static bool is_shell(const char *command)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ash", "ksh", "zsh"};
    const char *slash = strrchr(command, '/');

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (str_equal(slash ? slash + 1 : command, shells[i])) {
            return true;
        }
    }
    return false;
}

// -c, also among other letters: -ec
static bool is_script_option(const char *word)
{
    size_t len = strlen(word);

    return len >= 2 && word[0] == '-' && word[1] != '-' && word[len - 1] == 'c';
}

static int refuse_script(const struct placeholder *placeholder, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG,
                 "cannot read the command: placeholder {%.*s} inside of a shell script",
                 (int)placeholder->whole.len, placeholder->whole.at);
    mr_error_hint(err,
                  "The value could bring commands of its own. Pass it as an argument: "
                  "sh -c 'echo \"$1\"' sh {%.*s}",
                  (int)placeholder->whole.len, placeholder->whole.at);
    return MR_ECONFIG;
}

static int check_placeholder(const struct command_line *line, int word,
                             const struct placeholder *placeholder, struct mr_error *err)
{
    if (placeholder_source(placeholder) < 0) {
        return refuse_unknown(placeholder, err);
    }
    if (word == 0) {
        return refuse(err, "the command itself must not contain a placeholder");
    }
    if (is_shell(line->words[0]) && is_script_option(line->words[word - 1])) {
        return refuse_script(placeholder, err);
    }
    return 0;
}

static int check_placeholders(const struct command_line *line, struct mr_error *err)
{
    struct placeholder placeholder;
    int rc = 0;

    for (int i = 0; i < line->count && rc == 0; i++) {
        const char *at = placeholder_next(line->words[i], &placeholder);
        while (at && rc == 0) {
            rc = check_placeholder(line, i, &placeholder, err);
            at = placeholder_next(at + placeholder.len, &placeholder);
        }
    }
    return rc;
}

static int refuse_placeholders(const struct command_line *line, struct mr_error *err)
{
    struct placeholder placeholder;

    for (int i = 0; i < line->count; i++) {
        const char *at = placeholder_next(line->words[i], &placeholder);
        for (; at; at = placeholder_next(at + placeholder.len, &placeholder)) {
            if (placeholder_source(&placeholder) < 0) {
                continue;
            }
            mr_error_set(err, MR_ECONFIG, "cannot read the command: placeholder {%.*s}",
                         (int)placeholder.whole.len, placeholder.whole.at);
            mr_error_hint(err, "exec starts a command once for many jobs, which it reads from its "
                               "standard input. Use run for a process per job with placeholders.");
            return MR_ECONFIG;
        }
    }
    return 0;
}

int command_line_new(const char *text, bool placeholders, struct command_line **ret,
                     struct mr_error *err)
{
    size_t len = text ? strlen(text) : 0;

    if (len > COMMAND_LINE_MAX) {
        return refuse(err, "it is too long");
    }
    struct command_line *line = calloc(1, sizeof(*line) + len + 2);
    if (!line) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int rc = split(line, text ? text : "", err);
    if (rc == 0) {
        rc = placeholders ? check_placeholders(line, err) : refuse_placeholders(line, err);
    }
    if (rc) {
        command_line_free(line);
        return rc;
    }
    *ret = line;
    return 0;
}

void command_line_free(struct command_line *line)
{
    free(line);
}

char **command_line_words(const struct command_line *line)
{
    return (char **)line->words;
}

// ---- finding the command ----

static bool is_executable(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static int refuse_path(const char *path, struct mr_error *err)
{
    struct stat info;

    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        mr_error_set(err, MR_ECONFIG, "cannot run %s: not executable", path);
        mr_error_hint(err, "chmod +x %s, or name its interpreter: python3 %s", path, path);
        return MR_ECONFIG;
    }
    mr_error_set(err, MR_ECONFIG, "cannot run %s: %s", path,
                 access(path, F_OK) ? strerror(errno) : "not a file");
    mr_error_hint(err, "A path is relative to the folder in which millrace was started.");
    return MR_ECONFIG;
}

static bool is_on_path(const char *name)
{
    const char *path = getenv("PATH");
    AUTO_BUF candidate;

    buf_init(&candidate, COMMAND_LINE_MAX * 2);
    for (const char *at = path ? path : "/bin:/usr/bin"; at;) {
        size_t len = strcspn(at, ":");
        buf_done(&candidate);
        buf_add(&candidate, at, len);
        buf_printf(&candidate, "%s%s", len ? "/" : "", name);
        if (is_executable(buf_peek(&candidate))) {
            return true;
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    return false;
}

int command_line_find(const struct command_line *line, struct mr_error *err)
{
    const char *command = line->words[0];

    if (strchr(command, '/')) {
        return is_executable(command) ? 0 : refuse_path(command, err);
    }
    if (*command && is_on_path(command)) {
        return 0;
    }
    mr_error_set(err, MR_ECONFIG, "cannot run %s: no such command", command);
    mr_error_hint(err, "Give a name that is found in PATH, or a path such as ./%s.", command);
    return MR_ECONFIG;
}

// ---- values ----

static int missing(const struct placeholder *placeholder, const char *why, struct mr_error *err)
{
    return mr_error_set(err, MR_EINVALID, "the command needs %.*s, %s", (int)placeholder->whole.len,
                        placeholder->whole.at, why);
}

struct search {
    struct json_slice key;
    struct json_slice value; // at NULL: not found
};

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct search *search = arg;

    if (key.len == search->key.len && memcmp(key.at, search->key.at, key.len) == 0) {
        search->value = value;
    }
}

// Follows `path`, whose steps are separated by dots, into `json`. at NULL: there is nothing.
static struct json_slice walk(struct json_slice json, struct json_slice path)
{
    const char *end = path.at + path.len;

    for (const char *at = path.at; json.at && at <= end;) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        struct search search = {.key = {at, (size_t)((dot ? dot : end) - at)}};

        if (json_each_member(json, on_member, &search, NULL)) {
            search.value.at = NULL;
        }
        json = search.value;
        at = (dot ? dot : end) + 1;
    }
    return json;
}

static int add_string(struct json_slice string, struct buf *out, struct mr_error *err)
{
    json_t *decoded = json_loadb(string.at, string.len, JSON_DECODE_ANY, NULL);

    if (!decoded) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    buf_add(out, json_string_value(decoded), json_string_length(decoded));
    json_decref(decoded);
    return 0;
}

static int add_field(const char *json, const struct placeholder *placeholder, struct buf *out,
                     struct mr_error *err)
{
    if (!json) {
        return missing(placeholder, "which the job does not have", err);
    }
    struct json_slice value = json_slice_of(json);
    if (placeholder->path.at) {
        value = walk(value, placeholder->path);
    }
    if (!value.at) {
        return missing(placeholder, "which the job does not have", err);
    }
    if (json_slice_is(value, "null")) {
        return missing(placeholder, "which is null", err);
    }
    if (value.at[0] == '"') {
        return add_string(value, out, err);
    }
    buf_add(out, value.at, value.len);
    return 0;
}

static int add_text(const char *text, const struct placeholder *placeholder, struct buf *out,
                    struct mr_error *err)
{
    if (!text) {
        return missing(placeholder, "which the job does not have", err);
    }
    buf_puts(out, text);
    return 0;
}

static int add_value(const mr_claimed_job *job, const struct placeholder *placeholder,
                     struct buf *out, struct mr_error *err)
{
    int row = placeholder_source(placeholder);

    switch (sources[row].source) {
    case SOURCE_ID: buf_printf(out, "%lld", (long long)job->id); return 0;
    case SOURCE_ATTEMPT: buf_printf(out, "%d", job->attempt); return 0;
    case SOURCE_KIND: return add_text(job->kind, placeholder, out, err);
    case SOURCE_QUEUE: return add_text(job->queue, placeholder, out, err);
    case SOURCE_REF: return add_text(job->ref, placeholder, out, err);
    case SOURCE_TENANT: return add_text(job->tenant, placeholder, out, err);
    case SOURCE_ARGS: return add_field(job->args, placeholder, out, err);
    case SOURCE_META: return add_field(job->meta, placeholder, out, err);
    }
    return 0;
}

// ---- words for a job ----

// Copies text in which there is no placeholder.
static void add_plain(const char *text, size_t len, struct buf *out)
{
    const char *end = text + len;

    while (text < end) {
        size_t literal = literal_read(text);
        if (literal) {
            buf_add(out, text + 1, literal - 2);
        } else {
            buf_add(out, text, 1);
        }
        text += literal ? literal : 1;
    }
}

static bool looks_like_option(const char *word)
{
    char *end = NULL;

    if (word[0] != '-' || !word[1]) {
        return false;
    }
    strtod(word, &end);
    return *end || !strchr("0123456789.", word[1]);
}

// `placeholder` is the one with which the word begins.
static int check_option(const struct placeholder *placeholder, const char *word,
                        struct mr_error *err)
{
    if (!looks_like_option(word)) {
        return 0;
    }
    return mr_error_set(err, MR_EINVALID,
                        "%.*s begins with a dash and would be taken for an option",
                        (int)placeholder->whole.len, placeholder->whole.at);
}

static int check_length(const struct placeholder *placeholder, const struct buf *word,
                        struct mr_error *err)
{
    if (buf_status(word, NULL) != MR_ELIMIT) {
        return 0;
    }
    return mr_error_set(err, MR_EINVALID,
                        "%.*s is too long for an argument (the job is on standard input, too)",
                        (int)placeholder->whole.len, placeholder->whole.at);
}

static int expand(const char *word, const mr_claimed_job *job, bool options_ended, struct buf *out,
                  struct mr_error *err)
{
    struct placeholder placeholder;
    const char *done = word;
    int rc = 0;

    for (const char *at; rc == 0 && (at = placeholder_next(done, &placeholder)) != NULL;) {
        add_plain(done, (size_t)(at - done), out);
        rc = add_value(job, &placeholder, out, err);
        if (rc == 0) {
            rc = check_length(&placeholder, out, err);
        }
        done = at + placeholder.len;
    }
    add_plain(done, strlen(done), out);
    if (rc == 0 && !options_ended && !literal_read(word) && placeholder_read(word, &placeholder)) {
        rc = check_option(&placeholder, buf_peek(out), err);
    }
    return rc ? rc : buf_status(out, err);
}

// One piece of memory: the table, then the words one behind the other.
static char **table_of(const struct buf *text, int count)
{
    size_t table_size = (size_t)(count + 1) * sizeof(char *);
    char **table = malloc(table_size + text->len);

    if (!table) {
        return NULL;
    }
    char *at = (char *)table + table_size;
    memcpy(at, text->data, text->len);
    for (int i = 0; i < count; i++) {
        table[i] = at;
        at += strlen(at) + 1;
    }
    table[count] = NULL;
    return table;
}

static int add_words(const struct command_line *line, const mr_claimed_job *job, struct buf *text,
                     struct mr_error *err)
{
    AUTO_BUF word;
    bool options_ended = false;

    buf_init(&word, COMMAND_WORD_MAX);
    for (int i = 0; i < line->count; i++) {
        buf_done(&word);
        int rc = expand(line->words[i], job, options_ended, &word, err);
        if (rc) {
            return rc;
        }
        buf_add(text, buf_peek(&word), word.len + 1);
        options_ended = options_ended || str_equal(line->words[i], "--");
    }
    if (buf_status(text, NULL) == MR_ELIMIT) {
        return mr_error_set(err, MR_EINVALID, "the arguments of the command are too long");
    }
    return buf_status(text, err);
}

int command_line_argv(const struct command_line *line, const mr_claimed_job *job, char ***ret,
                      struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, COMMAND_ARGV_MAX);
    int rc = add_words(line, job, &text, err);
    if (rc) {
        return rc;
    }
    char **table = table_of(&text, line->count);
    if (!table) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *ret = table;
    return 0;
}
