// SPDX-License-Identifier: PostgreSQL
//
// The sections and keys of the configuration file, and what their values must be.
//
// Every key has a callback that reads its value: that is where libconfuse knows the line, and
// where a key that is given twice shows.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "daemon/config.h"
#include "daemon/config_parts.h"
#include "handler/sql_name.h"
#include "http/http.h"
#include "http/listen.h"
#include "http/metrics.h"
#include "store/blob.h"
#include "store/redis_url.h"

#define HINT_DISTANCE 3

// What libconfuse's callbacks have no argument for: one file is read at a time and thread.
static _Thread_local struct {
    const char *path;
    struct mr_error *err; // of the first complaint
    int code;
    bool http; // the section was read
} reading;

// ---- complaints ----

// Puts the place before what was said.
static int at_line(int line)
{
    mr_error_prefix(reading.err, "%s:%d", reading.path, line);
    reading.code = MR_ECONFIG;
    return -1;
}

// Says what is wrong here, the first time only, with a format as for printf. Is -1, which is a
// failure to libconfuse.
#define REFUSE(cfg, ...) \
    (reading.code ? -1 : (mr_error_set(reading.err, MR_ECONFIG, __VA_ARGS__), at_line((cfg)->line)))

static void hint(const char *text)
{
    mr_error_hint(reading.err, "%s", text);
}

// ---- unknown keys ----

static void hint_nearest(const cfg_t *cfg, const char *key)
{
    const char *nearest = NULL;
    int nearest_distance = HINT_DISTANCE;
    char known[MR_ERROR_HINT_SIZE] = "";
    size_t used = 0;

    for (const cfg_opt_t *opt = cfg->opts; opt->name; opt++) {
        int distance = str_distance(key, opt->name);
        if (distance < nearest_distance) {
            nearest = opt->name;
            nearest_distance = distance;
        }
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
                                 opt->name);
    }
    if (nearest) {
        mr_error_hint(reading.err, "Did you mean %s?", nearest);
    } else {
        mr_error_hint(reading.err, "Known here: %s.", known);
    }
}

static void unknown_key(cfg_t *cfg, const char *key)
{
    bool top = !cfg->title && str_equal(cfg->name, "root");

    REFUSE(cfg, "unknown key \"%s\"%s%s%s%s", key, top ? "" : " in ", top ? "" : cfg->name,
           cfg->title ? " " : "", cfg->title ? cfg->title : "");
    hint_nearest(cfg, key);
}

// What libconfuse itself has to complain about.
static void on_error(cfg_t *cfg, const char *format, va_list args)
{
    char what[MR_ERROR_MESSAGE_SIZE];

    if (reading.code) {
        return;
    }
    if (str_equal(format, "no such option '%s'")) {
        unknown_key(cfg, va_arg(args, const char *));
        return;
    }
    vsnprintf(what, sizeof(what), format, args);
    REFUSE(cfg, "%s", what);
}

// ---- values ----

// The mark is a field of the option's that libconfuse has for a default: none of ours has one
// there.
static int check_once(const cfg_t *cfg, cfg_opt_t *opt)
{
    if (opt->def.boolean) {
        return REFUSE(cfg, "\"%s\" is given twice", opt->name);
    }
    opt->def.boolean = cfg_true;
    return 0;
}

static int read_text(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!value[0]) {
        REFUSE(cfg, "\"%s\" is empty", opt->name);
        hint("Leave the key out, or give it a value.");
        return -1;
    }
    *(const char **)result = value;
    return 0;
}

// One value of a list, or the only one. A key that is given again begins with the first.
static int read_texts(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    if (opt->nvalues > 1) {
        opt->def.boolean = cfg_false;
    }
    return read_text(cfg, opt, value, result);
}

static int bad_time(const cfg_t *cfg, const cfg_opt_t *opt, const char *value, const char *units)
{
    REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
    mr_error_hint(reading.err, "Write a time with its unit: %s.", units);
    return -1;
}

// A wait, as milliseconds.
static int read_duration(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    int64_t ms = 0;

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!str_parse_duration_ms(value, &ms)) {
        return bad_time(cfg, opt, value, "\"500ms\", \"5s\", \"2min\", \"1h\", at most \"24h\"");
    }
    *(long *)result = (long)ms;
    return 0;
}

// A span of time that the database reads: as it is.
static int read_span(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    int64_t ms = 0;

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!str_parse_span_ms(value, &ms)) {
        return bad_time(cfg, opt, value, "\"500ms\", \"5s\", \"2min\", \"1h\", \"30d\"");
    }
    *(const char **)result = value;
    return 0;
}

// Numbers with a range of their own; others go from 1 to what the database takes.
static const struct {
    const char *name;
    const char *section; // NULL: any
    int64_t min, max;
} ranges[] = {
    {"concurrency", "worker", 1, CONFIG_CONCURRENCY_MAX},
    {"concurrency", "queue", 1, 1000000},
    {"concurrency_per_key", NULL, 1, 1000000},
    {"compress", NULL, 128, 67108864},
    {"batch", NULL, 1, CONFIG_BATCH_MAX},
    {"in_flight", "relay", 1, CONFIG_IN_FLIGHT_MAX},
    {"warn", "relay", 0, CONFIG_IN_FLIGHT_MAX},
    {"failures", NULL, 0, INT32_MAX},
    {"max_attempts", NULL, 1, 32000},
    {"priority", NULL, 0, 99},
    {"route_share", NULL, 0, 100},
    {"max_connections", NULL, 10, 1000000},
    {"max_body", NULL, 1024, INT64_C(1) << 30},
    {NULL, NULL, 1, INT64_C(1000000000000)},
};

static bool is_range_of(size_t row, const cfg_t *cfg, const cfg_opt_t *opt)
{
    return str_equal(ranges[row].name, opt->name) &&
           (!ranges[row].section || str_equal(ranges[row].section, cfg->name));
}

static int read_number(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    size_t row = 0;
    int64_t number = 0;

    while (ranges[row].name && !is_range_of(row, cfg, opt)) {
        row++;
    }
    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!str_parse_int(value, ranges[row].min, ranges[row].max, &number)) {
        REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
        mr_error_hint(reading.err, "Write a whole number from %" PRId64 " to %" PRId64 ".",
                      ranges[row].min, ranges[row].max);
        return -1;
    }
    *(long *)result = (long)number;
    return 0;
}

static int read_real(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    char *end = NULL;
    double number = strtod(value, &end);

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!value[0] || *end || !(number >= 0 && number <= 1e6)) {
        REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
        hint("Write a number, 0 or more.");
        return -1;
    }
    *(double *)result = number;
    return 0;
}

static int read_bool(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    int truth = cfg_parse_boolean(value);

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (truth < 0) {
        REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
        hint("Write true or false.");
        return -1;
    }
    *(cfg_bool_t *)result = truth ? cfg_true : cfg_false;
    return 0;
}

static int read_format(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    enum log_format format = LOG_TEXT;

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!log_parse_format(value, &format)) {
        REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
        hint("Write \"text\" or \"json\".");
        return -1;
    }
    *(long *)result = (long)format;
    return 0;
}

static int read_level(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    enum log_level level = LEVEL_INFO;

    if (check_once(cfg, opt)) {
        return -1;
    }
    if (!log_parse_level(value, &level)) {
        REFUSE(cfg, "wrong value for \"%s\": \"%s\"", opt->name, value);
        hint("Write \"debug\", \"info\", \"warning\" or \"error\".");
        return -1;
    }
    *(long *)result = (long)level;
    return 0;
}

// The address of a blob store.
static int read_blobs(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
    if (read_text(cfg, opt, value, result)) {
        return -1;
    }
    return blob_check_address(value, reading.err) ? at_line(cfg->line) : 0;
}

// ---- keys ----

const char *const config_handler_keys[CONFIG_HANDLERS] = {
    [HANDLER_EXEC] = "exec", [HANDLER_RUN] = "run",       [HANDLER_HTTP] = "http",
    [HANDLER_SQL] = "sql",   [HANDLER_PLUGIN] = "plugin",
};

#define TEXT(name)          CFG_STR_CB(name, NULL, CFGF_NODEFAULT, read_text)
#define TEXTS(name)         CFG_STR_LIST_CB(name, NULL, CFGF_NODEFAULT, read_texts)
#define WORD(name)          CFG_STR_CB(name, NULL, CFGF_NODEFAULT, read_text)
#define DURATION(name)      CFG_INT_CB(name, 0, CFGF_NODEFAULT, read_duration)
#define SPAN(name)          CFG_STR_CB(name, NULL, CFGF_NODEFAULT, read_span)
#define NUMBER(name)        CFG_INT_CB(name, 0, CFGF_NODEFAULT, read_number)
#define REAL(name)          CFG_FLOAT_CB(name, 0, CFGF_NODEFAULT, read_real)
#define FLAG(name)          CFG_BOOL_CB(name, cfg_false, CFGF_NODEFAULT, read_bool)
#define SECTION(name, keys) CFG_SEC(name, keys, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES)

static cfg_opt_t breaker_keys[] = {NUMBER("failures"), DURATION("open_for"), CFG_END()};

static cfg_opt_t worker_keys[] = {
    TEXT("queue"),
    TEXT("exec"),
    TEXT("run"),
    TEXT("http"),
    TEXT("sql"),
    TEXT("plugin"),
    TEXTS("dsn"),
    TEXT("redis"),
    FLAG("pooler"),
    NUMBER("concurrency"),
    NUMBER("batch"),
    DURATION("batch_wait"),
    DURATION("lease"),
    DURATION("poll"),
    DURATION("timeout"),
    DURATION("grace"),
    FLAG("per_batch"),
    FLAG("procedure"),
    FLAG("private_networks"),
    TEXT("secret"),
    CFG_SEC("breaker", breaker_keys, CFGF_NODEFAULT),
    CFG_END(),
};

const struct config_setting config_settings[] = {
    {"compress", SETTING_NUMBER},
    {"concurrency", SETTING_NUMBER},
    {"concurrency_per_key", SETTING_NUMBER},
    {"critical_depth", SETTING_NUMBER},
    {"dead_max", SETTING_NUMBER},
    {"dead_max_bytes", SETTING_NUMBER},
    {"dead_retention", SETTING_TIME},
    {"depth_limit", SETTING_NUMBER},
    {"durability", SETTING_WORD},
    {"fair", SETTING_WORD},
    {"lease", SETTING_TIME},
    {"max_args", SETTING_NUMBER},
    {"max_attempts", SETTING_NUMBER},
    {"max_blob", SETTING_NUMBER},
    {"max_state", SETTING_NUMBER},
    {"offload", SETTING_NUMBER},
    {"offload_dead", SETTING_WORD},
    {"offload_delay", SETTING_TIME},
    {"on_failure", SETTING_WORD},
    {"ordered", SETTING_WORD},
    {"overflow", SETTING_WORD},
    {"parts", SETTING_NUMBER},
    {"poison_limit", SETTING_NUMBER},
    {"rate", SETTING_WORD},
    {"rate_per_tenant", SETTING_WORD},
    {"retention", SETTING_TIME},
    {"route", SETTING_WORD},
    {"route_share", SETTING_NUMBER},
    {"route_tenants", SETTING_WORD},
    {"transport", SETTING_WORD},
    {"warn_depth", SETTING_NUMBER},
    {NULL, SETTING_WORD},
};

enum { SETTING_COUNT = sizeof(config_settings) / sizeof(config_settings[0]) - 1 };

static cfg_opt_t queue_keys[SETTING_COUNT + 1];

static cfg_opt_t retry_keys[] = {
    NUMBER("max_attempts"), DURATION("base"), REAL("factor"),
    DURATION("cap"),        REAL("jitter"),   CFG_END(),
};

static cfg_opt_t schedule_keys[] = {
    TEXT("cron"),     TEXT("timezone"),   TEXT("kind"),   TEXT("queue"), TEXT("args"),
    WORD("catch_up"), NUMBER("priority"), FLAG("active"), CFG_END(),
};

const struct config_setting config_bridge_settings[] = {
    {"sql", SETTING_WORD},
    {"queue", SETTING_WORD},
    {"kind", SETTING_WORD},
    {"kind_from", SETTING_WORD},
    {"priority", SETTING_NUMBER},
    {"tenant_from", SETTING_WORD},
    {"json", SETTING_WORD},
    {"ordering_key_from", SETTING_WORD},
    {"unique_key_from", SETTING_WORD},
    {NULL, SETTING_WORD},
};

static cfg_opt_t bridge_keys[] = {
    TEXT("redis"),           TEXT("stream"),      TEXT("group"),
    TEXT("consumer"),        WORD("from"),        NUMBER("batch"),
    DURATION("block"),       DURATION("reclaim"), TEXT("sql"),
    TEXT("queue"),           TEXT("kind"),        TEXT("kind_from"),
    NUMBER("priority"),      TEXT("tenant_from"), TEXT("ordering_key_from"),
    TEXT("unique_key_from"), TEXT("json"),        TEXT("dsn"),
    FLAG("pooler"),          CFG_END(),
};

static cfg_opt_t relay_keys[] = {
    TEXT("queue"),       TEXT("redis"),       NUMBER("batch"),   NUMBER("in_flight"),
    NUMBER("max_bytes"), DURATION("reclaim"), DURATION("lease"), DURATION("poll"),
    DURATION("grace"),   NUMBER("warn"),      TEXT("dsn"),       FLAG("pooler"),
    CFG_END(),
};

static cfg_opt_t token_keys[] = {WORD("role"), TEXT("hash"), CFG_END()};

static cfg_opt_t alias_keys[] = {WORD("metric"), TEXT("queue"), CFG_END()};

static cfg_opt_t http_keys[] = {
    TEXT("listen"),
    CFG_STR_LIST("hosts", NULL, CFGF_NODEFAULT),
    TEXT("tls_cert"),
    TEXT("tls_key"),
    NUMBER("max_connections"),
    NUMBER("max_body"),
    DURATION("idle"),
    TEXT("disk_path"),
    SECTION("token", token_keys),
    SECTION("alias", alias_keys),
    CFG_END(),
};

static cfg_opt_t file_keys[] = {
    TEXTS("dsn"),
    FLAG("pooler"),
    CFG_INT_CB("log", LOG_TEXT, CFGF_NONE, read_format),
    CFG_INT_CB("log_level", LEVEL_INFO, CFGF_NONE, read_level),
    DURATION("maintain"),
    CFG_STR_CB("blobs", NULL, CFGF_NODEFAULT, read_blobs),
    TEXT("blobs_access_key"),
    TEXT("blobs_secret_key"),
    DURATION("blobs_sweep"),
    DURATION("blobs_orphans"),
    SECTION("worker", worker_keys),
    SECTION("queue", queue_keys),
    SECTION("retry", retry_keys),
    SECTION("schedule", schedule_keys),
    SECTION("bridge", bridge_keys),
    SECTION("relay", relay_keys),
    CFG_SEC("http", http_keys, CFGF_NODEFAULT),
    CFG_END(),
};

// The keys of a queue section are the settings.
static void fill_queue_keys(void)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *name = config_settings[i].name;
        switch (config_settings[i].type) {
        case SETTING_NUMBER: queue_keys[i] = (cfg_opt_t)NUMBER(name); break;
        case SETTING_TIME: queue_keys[i] = (cfg_opt_t)SPAN(name); break;
        case SETTING_WORD: queue_keys[i] = (cfg_opt_t)WORD(name); break;
        }
    }
    queue_keys[SETTING_COUNT] = (cfg_opt_t)CFG_END();
}

// ---- sections ----

static int check_title(const cfg_t *section)
{
    if (str_empty(section->title) || strlen(section->title) > CONFIG_NAME_MAX) {
        REFUSE(section, "a %s needs a name of 1 to %d bytes", section->name, CONFIG_NAME_MAX);
        return -1;
    }
    return 0;
}

// Of a section whose jobs come or go by way of Redis, perhaps.
static int check_address(cfg_t *section)
{
    struct redis_url url;

    if (cfg_size(section, "redis") &&
        redis_url_parse(cfg_getstr(section, "redis"), &url, reading.err)) {
        mr_error_prefix(reading.err, "%s %s", section->name, section->title);
        return at_line(section->line);
    }
    return 0;
}

// Of a worker section that is complete: a queue and exactly one handler.
static int check_worker(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *section = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    const char *first = NULL;

    (void)cfg;
    if (check_title(section)) {
        return -1;
    }
    if (cfg_size(section, "queue") == 0) {
        REFUSE(section, "worker %s has no queue", section->title);
        hint("Add queue = \"NAME\".");
        return -1;
    }
    for (int kind = 0; kind < CONFIG_HANDLERS; kind++) {
        const char *key = config_handler_keys[kind];
        if (cfg_size(section, key) > 0 && first) {
            REFUSE(section, "worker %s has two handlers: %s and %s", section->title, first, key);
            hint("A worker has one handler; write a second worker for the other.");
            return -1;
        }
        first = cfg_size(section, key) > 0 ? key : first;
    }
    if (!first) {
        REFUSE(section, "worker %s has no handler", section->title);
        hint("Add one of exec, run, http, sql, plugin.");
        return -1;
    }
    return check_address(section);
}

// Of a schedule section that is complete: when, and what.
static int check_schedule(cfg_t *cfg, cfg_opt_t *opt)
{
    static const struct {
        const char *key;
        const char *hint;
    } required[] = {
        {"cron", "Add cron = \"0 2 * * *\", for example."},
        {"kind", "Add kind = \"NAME\", the kind of its jobs."},
    };
    cfg_t *section = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);

    (void)cfg;
    if (check_title(section)) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        if (cfg_size(section, required[i].key) == 0) {
            REFUSE(section, "schedule %s has no %s", section->title, required[i].key);
            hint(required[i].hint);
            return -1;
        }
    }
    return 0;
}

// ---- a bridge ----

static int check_bridge_names(cfg_t *section)
{
    static const char *const keys[] = {"stream", "group", "consumer"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (cfg_size(section, keys[i]) && strlen(cfg_getstr(section, keys[i])) > CONFIG_NAME_MAX) {
            REFUSE(section, "bridge %s: %s is longer than %d bytes", section->title, keys[i],
                   CONFIG_NAME_MAX);
            return -1;
        }
    }
    return 0;
}

// Where its entries go: a function, or jobs.
static int check_bridge_target(cfg_t *section)
{
    static const char *const of_jobs[] = {"kind_from", "priority", "tenant_from",
                                          "ordering_key_from", "unique_key_from"};
    AUTO_BUF quoted;

    buf_init(&quoted, MR_ERROR_MESSAGE_SIZE);
    if (!cfg_size(section, "sql") && !cfg_size(section, "queue")) {
        REFUSE(section, "bridge %s has neither sql nor queue", section->title);
        hint("Add sql = \"FUNCTION\" to call it with each batch, or queue = \"NAME\" to make "
             "jobs.");
        return -1;
    }
    if (cfg_size(section, "sql") &&
        sql_name_quote(cfg_getstr(section, "sql"), &quoted, reading.err)) {
        mr_error_prefix(reading.err, "bridge %s", section->title);
        return at_line(section->line);
    }
    for (size_t i = 0; cfg_size(section, "sql") && i < sizeof(of_jobs) / sizeof(of_jobs[0]); i++) {
        if (cfg_size(section, of_jobs[i])) {
            REFUSE(section, "bridge %s has sql and %s", section->title, of_jobs[i]);
            hint("That key is for jobs: leave it out, or leave sql out.");
            return -1;
        }
    }
    if (cfg_size(section, "kind") && cfg_size(section, "kind_from")) {
        REFUSE(section, "bridge %s has kind and kind_from", section->title);
        hint("Give one of them.");
        return -1;
    }
    return 0;
}

static int check_bridge_values(cfg_t *section)
{
    const char *from = cfg_size(section, "from") ? cfg_getstr(section, "from") : "first";

    if (!str_equal(from, "first") && !str_equal(from, "new")) {
        REFUSE(section, "wrong value for \"from\": \"%s\"", from);
        hint("Write \"first\", all that is in the stream, or \"new\", what comes later.");
        return -1;
    }
    if (cfg_size(section, "block") && cfg_getint(section, "block") > CONFIG_BLOCK_MAX_MS) {
        REFUSE(section, "bridge %s: block is at most 5s", section->title);
        hint("It is how long a read waits for new entries, and how long a stop may take.");
        return -1;
    }
    if (cfg_size(section, "reclaim") && cfg_getint(section, "reclaim") < CONFIG_RECLAIM_MIN_MS) {
        REFUSE(section, "bridge %s: reclaim is at least 1s", section->title);
        hint("It is how long an entry must lie before it is taken from another consumer.");
        return -1;
    }
    return 0;
}

static int check_bridge(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *section = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    struct redis_url url;

    (void)cfg;
    if (check_title(section)) {
        return -1;
    }
    if (!cfg_size(section, "redis") || !cfg_size(section, "stream")) {
        REFUSE(section, "bridge %s has no %s", section->title,
               cfg_size(section, "redis") ? "stream" : "redis");
        hint("Add redis = \"redis://HOST:PORT\" and stream = \"KEY\".");
        return -1;
    }
    if (redis_url_parse(cfg_getstr(section, "redis"), &url, reading.err)) {
        mr_error_prefix(reading.err, "bridge %s", section->title);
        return at_line(section->line);
    }
    int bad = check_bridge_names(section);
    bad = bad ? bad : check_bridge_target(section);
    return bad ? bad : check_bridge_values(section);
}

// ---- a relay ----

static int check_relay(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *section = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);

    (void)cfg;
    if (check_title(section)) {
        return -1;
    }
    if (!cfg_size(section, "redis") || !cfg_size(section, "queue")) {
        REFUSE(section, "relay %s has no %s", section->title,
               cfg_size(section, "redis") ? "queue" : "redis");
        hint("Add queue = \"NAME\" and redis = \"redis://HOST:PORT\".");
        return -1;
    }
    if (cfg_size(section, "reclaim") && cfg_getint(section, "reclaim") < CONFIG_RECLAIM_MIN_MS) {
        REFUSE(section, "relay %s: reclaim is at least 1s", section->title);
        hint("It is how long a worker may be silent before its jobs are taken from it.");
        return -1;
    }
    return check_address(section);
}

static int check_token(cfg_t *token)
{
    unsigned char hash[SHA256_SIZE];
    unsigned rights = 0;
    const char *role = cfg_size(token, "role") ? cfg_getstr(token, "role") : NULL;
    const char *text = cfg_size(token, "hash") ? cfg_getstr(token, "hash") : NULL;

    if (check_title(token)) {
        return -1;
    }
    if (!role || !auth_parse_role(role, &rights)) {
        REFUSE(token, "token %s has no role that is known", token->title);
        hint("Write role = \"reader\", \"producer\", \"worker\" or \"admin\".");
        return -1;
    }
    if (!text || !auth_parse_hash(text, hash)) {
        REFUSE(token, "token %s has no hash", token->title);
        hint("`millrace token` makes a token and prints hash = \"sha256:...\" for it.");
        return -1;
    }
    return 0;
}

// As Prometheus has it.
static bool is_metric_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";

    return strspn(name, letters) > 0 && strspn(name, rest) == strlen(name);
}

static int check_alias(cfg_t *alias)
{
    if (check_title(alias)) {
        return -1;
    }
    if (!is_metric_name(alias->title)) {
        REFUSE(alias, "alias %s is no name for a metric", alias->title);
        hint("Use letters, digits and underscores.");
        return -1;
    }
    if (!cfg_size(alias, "metric") || !metrics_has_alias(cfg_getstr(alias, "metric"))) {
        REFUSE(alias, "alias %s has no metric of a queue", alias->title);
        hint("Write metric = \"millrace_queue_depth\", for example; see docs/metrics.md.");
        return -1;
    }
    if (!cfg_size(alias, "queue")) {
        REFUSE(alias, "alias %s has no queue", alias->title);
        hint("Add queue = \"NAME\".");
        return -1;
    }
    return 0;
}

static int check_http_keys(cfg_t *section)
{
    if (cfg_size(section, "listen") && !listen_is_address(cfg_getstr(section, "listen"))) {
        REFUSE(section, "wrong value for \"listen\": \"%s\"", cfg_getstr(section, "listen"));
        hint("Write ADDRESS:PORT, \"127.0.0.1:7070\" or \"[::1]:7070\".");
        return -1;
    }
    if (cfg_size(section, "tls_cert") != cfg_size(section, "tls_key")) {
        REFUSE(section, "tls_cert and tls_key go together");
        hint("Give both files, or none.");
        return -1;
    }
    return 0;
}

static int check_http(cfg_t *cfg, cfg_opt_t *opt)
{
    cfg_t *section = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    int bad =
        reading.http ? REFUSE(section, "there are two http sections") : check_http_keys(section);

    (void)cfg;
    reading.http = true;
    for (unsigned i = 0; !bad && i < cfg_size(section, "token"); i++) {
        bad = check_token(cfg_getnsec(section, "token", i));
    }
    for (unsigned i = 0; !bad && i < cfg_size(section, "alias"); i++) {
        bad = check_alias(cfg_getnsec(section, "alias", i));
    }
    return bad;
}

// Keys of the blob store: one without the other would be taken for those of the environment.
static int check_blobs(cfg_t *cfg)
{
    if (cfg_size(cfg, "blobs_access_key") != cfg_size(cfg, "blobs_secret_key")) {
        REFUSE(cfg, "blobs_access_key and blobs_secret_key go together");
        hint("Give both, or none: then AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY count.");
        return -1;
    }
    return 0;
}

static int check_named(cfg_t *cfg, cfg_opt_t *opt)
{
    (void)cfg;
    return check_title(cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));
}

int config_parse(const char *path, const char *text, cfg_t **ret, struct mr_error *err)
{
    struct mr_error ignored = {0};

    reading.path = path;
    reading.err = err ? err : &ignored;
    reading.code = 0;
    reading.http = false;
    fill_queue_keys();
    cfg_t *cfg = cfg_init(file_keys, CFGF_NONE);
    if (!cfg) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    cfg_set_error_function(cfg, on_error);
    cfg_set_validate_func(cfg, "worker", check_worker);
    cfg_set_validate_func(cfg, "queue", check_named);
    cfg_set_validate_func(cfg, "retry", check_named);
    cfg_set_validate_func(cfg, "schedule", check_schedule);
    cfg_set_validate_func(cfg, "bridge", check_bridge);
    cfg_set_validate_func(cfg, "relay", check_relay);
    cfg_set_validate_func(cfg, "http", check_http);
    if (cfg_parse_buf(cfg, text) != CFG_SUCCESS || reading.code || check_blobs(cfg)) {
        if (!reading.code) {
            reading.code = mr_error_set(err, MR_ECONFIG, "%s: cannot be read", path);
        }
        cfg_free(cfg);
        return reading.code;
    }
    *ret = cfg;
    return 0;
}
