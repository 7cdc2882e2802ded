// SPDX-License-Identifier: PostgreSQL
//
// GET /metrics: see metrics.h.

#include "http/metrics.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/api.h"
#include "http/disk.h"
#include "http/exchange.h"
#include "http/process_figures.h"
#include "http/reply.h"

#define TEXT_MAX    (64 * 1024 * 1024)
#define WAITING_MAX 1000
#define LABEL_MAX   200

struct metrics {
    struct http *http;
    struct fact *facts; // of each database
    int64_t asked_at_ms;
    int asking; // databases that have not answered
    struct exchange *waiting[WAITING_MAX];
    int waiting_count;
};

// What a database says.
struct fact {
    struct metrics *metrics;
    struct site *site;
    json_t *value; // NULL: it has not answered
};

// What a writer writes with.
struct page {
    struct http *http;
    const struct site *site; // whose facts these are; NULL for a writer that needs none
    const json_t *facts;     // NULL: the database has not answered
    struct buf *out;
};

struct metric {
    const char *name;
    const char *type;
    const char *help;
    void (*write)(const struct page *page, const struct metric *metric);
    const char *key;   // in the database's facts
    const char *label; // of a figure with one
};

// ---- values ----

// A value of a label, in quotes.
static void add_label(struct buf *out, const char *value)
{
    char text[LABEL_MAX + 1];

    snprintf(text, sizeof(text), "%s", value);
    str_trim_utf8(text); // half a character would spoil the whole page
    buf_puts(out, "\"");
    for (const char *c = text; *c; c++) {
        const char *escaped = *c == '\\' ? "\\\\" : *c == '"' ? "\\\"" : *c == '\n' ? "\\n" : NULL;
        buf_add(out, escaped ? escaped : c, escaped ? 2 : 1);
    }
    buf_puts(out, "\"");
}

static void add_number(struct buf *out, const json_t *value)
{
    if (json_is_integer(value)) {
        buf_printf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
    } else if (json_is_boolean(value)) {
        buf_printf(out, " %d\n", json_is_true(value));
    } else {
        buf_printf(out, " %.12g\n", json_number_value(value));
    }
}

static bool is_figure(const json_t *value)
{
    return json_is_number(value) || json_is_boolean(value);
}

// The name and, of several shards, which one. `labels`: others follow.
static void add_name(const struct page *page, const char *name, bool labels)
{
    bool shard = sites_several(page->http);

    buf_printf(page->out, "%s%s", name, labels || shard ? "{" : "");
    if (shard) {
        buf_puts(page->out, "shard=");
        add_label(page->out, page->site->name);
        buf_puts(page->out, labels ? "," : "}");
    }
}

static void add_labelled(const struct page *page, const char *name, const char *label,
                         const char *label_value, const json_t *value)
{
    add_name(page, name, true);
    buf_printf(page->out, "%s=", label);
    add_label(page->out, label_value);
    buf_puts(page->out, "}");
    add_number(page->out, value);
}

// ---- writers of what the database knows ----

static void write_queues(const struct page *page, const struct metric *metric)
{
    size_t i = 0;
    json_t *queue = NULL;

    json_array_foreach(json_object_get(page->facts, "queues"), i, queue)
    {
        const char *name = json_string_value(json_object_get(queue, "queue"));
        const json_t *value = json_object_get(queue, metric->key);
        if (name && is_figure(value)) {
            add_labelled(page, metric->name, "queue", name, value);
        }
    }
}

static void write_totals(const struct page *page, const struct metric *metric)
{
    static const char *const outcomes[] = {"enqueued", "completed", "failed",   "retried",
                                           "dead",     "rescued",   "cancelled"};
    size_t i = 0;
    json_t *queue = NULL;

    json_array_foreach(json_object_get(page->facts, "queues"), i, queue)
    {
        const char *name = json_string_value(json_object_get(queue, "queue"));
        for (size_t j = 0; name && j < sizeof(outcomes) / sizeof(outcomes[0]); j++) {
            char key[32];
            snprintf(key, sizeof(key), "%s_total", outcomes[j]);
            const json_t *value = json_object_get(queue, key);
            if (is_figure(value)) {
                add_name(page, metric->name, true);
                buf_puts(page->out, "queue=");
                add_label(page->out, name);
                buf_printf(page->out, ",outcome=\"%s\"}", outcomes[j]);
                add_number(page->out, value);
            }
        }
    }
}

static void write_map(const struct page *page, const struct metric *metric)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_t *map = json_object_get(page->facts, metric->key);

    json_object_foreach(map, key, value)
    {
        if (is_figure(value)) {
            add_labelled(page, metric->name, metric->label, key, value);
        }
    }
}

static void write_scalar(const struct page *page, const struct metric *metric)
{
    const json_t *value = json_object_get(page->facts, metric->key);

    if (is_figure(value)) {
        add_name(page, metric->name, false);
        add_number(page->out, value);
    }
}

static void write_disk(const struct page *page, const struct metric *metric)
{
    const char *data = json_string_value(json_object_get(page->facts, metric->key));
    struct disk disk;

    if (disk_look(page->site, data, &disk)) {
        add_name(page, metric->name, false);
        buf_printf(page->out, " %.6g\n", disk.free_ratio);
    }
}

static void write_up(const struct page *page, const struct metric *metric)
{
    add_name(page, metric->name, false);
    buf_printf(page->out, " %d\n", page->facts != NULL);
}

// ---- writers of what this process knows ----

static void write_jobs(const struct page *page, const struct metric *metric)
{
    const struct tally *tally = page->http->tally;

    for (size_t i = 0; i < tally->queue_count; i++) {
        const struct tally_queue *queue = &tally->queues[i];
        for (size_t j = 0; j < queue->kind_count * TALLY_OUTCOMES; j++) {
            const struct tally_kind *kind = &queue->kinds[j / TALLY_OUTCOMES];
            if (kind->counts[j % TALLY_OUTCOMES] == 0) {
                continue;
            }
            buf_printf(page->out, "%s{queue=", metric->name);
            add_label(page->out, queue->queue);
            buf_puts(page->out, ",kind=");
            add_label(page->out, kind->kind);
            buf_printf(page->out, ",outcome=\"%s\"} %lld\n",
                       tally_outcome_names[j % TALLY_OUTCOMES],
                       (long long)kind->counts[j % TALLY_OUTCOMES]);
        }
    }
}

static void write_times(const struct page *page, const char *name, const char *queue,
                        const struct tally_times *times)
{
    int64_t sum = 0;

    if (times->count == 0) {
        return;
    }
    for (size_t i = 0; i < TALLY_BUCKETS; i++) {
        sum += times->buckets[i];
        buf_printf(page->out, "%s_bucket{queue=", name);
        add_label(page->out, queue);
        if (i < TALLY_BUCKETS - 1) {
            buf_printf(page->out, ",le=\"%g\"} %lld\n", tally_bounds[i], (long long)sum);
        } else {
            buf_printf(page->out, ",le=\"+Inf\"} %lld\n", (long long)sum);
        }
    }
    buf_printf(page->out, "%s_sum{queue=", name);
    add_label(page->out, queue);
    buf_printf(page->out, "} %.9g\n%s_count{queue=", times->sum, name);
    add_label(page->out, queue);
    buf_printf(page->out, "} %lld\n", (long long)times->count);
}

static void write_wait(const struct page *page, const struct metric *metric)
{
    for (size_t i = 0; i < page->http->tally->queue_count; i++) {
        const struct tally_queue *queue = &page->http->tally->queues[i];
        write_times(page, metric->name, queue->queue, &queue->wait);
    }
}

static void write_run(const struct page *page, const struct metric *metric)
{
    for (size_t i = 0; i < page->http->tally->queue_count; i++) {
        const struct tally_queue *queue = &page->http->tally->queues[i];
        write_times(page, metric->name, queue->queue, &queue->run);
    }
}

static void on_breaker(void *arg, const char *worker, bool open)
{
    struct buf *out = arg;

    buf_puts(out, "millrace_breaker_open{handler=");
    add_label(out, worker);
    buf_printf(out, "} %d\n", open);
}

static void write_breakers(const struct page *page, const struct metric *metric)
{
    (void)metric;
    page->http->hooks.breakers(page->http->hooks.arg, on_breaker, page->out);
}

// ---- bridges ----

// A figure of a bridge; false: it is not known.
static bool bridge_figure(const struct http_bridge *bridge, const char *key, double *ret)
{
    const struct {
        const char *key;
        bool known;
        double value;
    } figures[] = {
        {"connected", true, bridge->connected},
        {"lag", bridge->known && bridge->lag >= 0, (double)bridge->lag},
        {"pending", bridge->known && bridge->pending >= 0, (double)bridge->pending},
        {"length", bridge->known, (double)bridge->length},
        {"lag_seconds", bridge->known, bridge->lag_seconds},
        {"reclaimed", true, (double)bridge->reclaimed},
        {"holds", true, (double)bridge->holds},
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (str_equal(figures[i].key, key)) {
            *ret = figures[i].value;
            return figures[i].known;
        }
    }
    return false;
}

struct bridge_row {
    struct buf *out;
    const struct metric *metric;
};

static void on_bridge(void *arg, const struct http_bridge *bridge)
{
    const struct bridge_row *row = arg;
    double value = 0;

    if (bridge_figure(bridge, row->metric->key, &value)) {
        buf_printf(row->out, "%s{bridge=", row->metric->name);
        add_label(row->out, bridge->name);
        buf_printf(row->out, "} %.12g\n", value);
    }
}

static void write_bridges(const struct page *page, const struct metric *metric)
{
    struct bridge_row row = {page->out, metric};

    page->http->hooks.bridges(page->http->hooks.arg, on_bridge, &row);
}

static void on_bridge_entries(void *arg, const struct http_bridge *bridge)
{
    const struct bridge_row *row = arg;
    const struct {
        const char *outcome;
        int64_t count;
    } outcomes[] = {
        {"applied", bridge->applied},
        {"repeated", bridge->repeated},
        {"dead", bridge->dead},
    };

    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        buf_printf(row->out, "%s{bridge=", row->metric->name);
        add_label(row->out, bridge->name);
        buf_printf(row->out, ",outcome=\"%s\"} %lld\n", outcomes[i].outcome,
                   (long long)outcomes[i].count);
    }
}

static void write_bridge_entries(const struct page *page, const struct metric *metric)
{
    struct bridge_row row = {page->out, metric};

    page->http->hooks.bridges(page->http->hooks.arg, on_bridge_entries, &row);
}

// ---- relays ----

static double relay_figure(const struct http_relay *relay, const char *key)
{
    const struct {
        const char *key;
        int64_t value;
    } figures[] = {
        {"connected", relay->connected},
        {"in_flight", relay->in_flight},
        {"bytes", relay->bytes},
        {"unsent", relay->unsent},
        {"length", relay->length},
        {"pending", relay->pending},
        {"lag", relay->lag},
        {"holds", relay->holds},
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (str_equal(figures[i].key, key)) {
            return (double)figures[i].value;
        }
    }
    return 0;
}

static void add_relay_labels(const struct bridge_row *row, const struct http_relay *relay)
{
    buf_printf(row->out, "%s{relay=", row->metric->name);
    add_label(row->out, relay->name);
    buf_puts(row->out, ",queue=");
    add_label(row->out, relay->queue);
}

static void on_relay(void *arg, const struct http_relay *relay)
{
    const struct bridge_row *row = arg;

    add_relay_labels(row, relay);
    buf_printf(row->out, "} %.12g\n", relay_figure(relay, row->metric->key));
}

static void write_relays(const struct page *page, const struct metric *metric)
{
    struct bridge_row row = {page->out, metric};

    page->http->hooks.relays(page->http->hooks.arg, on_relay, &row);
}

static void on_relay_entries(void *arg, const struct http_relay *relay)
{
    const struct bridge_row *row = arg;
    const struct {
        const char *what;
        int64_t count;
    } counts[] = {
        {"sent", relay->sent}, {"resent", relay->resent}, {"finished", relay->finished},
        {"lost", relay->lost}, {"late", relay->late},     {"inherited", relay->inherited},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        add_relay_labels(row, relay);
        buf_printf(row->out, ",what=\"%s\"} %lld\n", counts[i].what, (long long)counts[i].count);
    }
}

static void write_relay_entries(const struct page *page, const struct metric *metric)
{
    struct bridge_row row = {page->out, metric};

    page->http->hooks.relays(page->http->hooks.arg, on_relay_entries, &row);
}

static void write_reconnects(const struct page *page, const struct metric *metric)
{
    const struct http *http = page->http;
    int64_t all = sites_reconnects(http) + http->hooks.reconnects(http->hooks.arg);

    buf_printf(page->out, "%s %lld\n", metric->name, (long long)all);
}

static void write_connections(const struct page *page, const struct metric *metric)
{
    int count = 0;

    for (const struct visit *visit = page->http->visits; visit; visit = visit->next) {
        count++;
    }
    buf_printf(page->out, "%s %d\n", metric->name, count);
}

static void write_build(const struct page *page, const struct metric *metric)
{
    buf_printf(page->out, "%s{version=", metric->name);
    add_label(page->out, page->http->options.version);
    buf_puts(page->out, "} 1\n");
}

static void write_process(const struct page *page, const struct metric *metric)
{
    double value = 0;

    if (process_figure(metric->key, &value)) {
        buf_printf(page->out, "%s %.12g\n", metric->name, value);
    }
}

// ---- the table ----

// clang-format off
static const struct metric table[] = {
    {"millrace_database_up", "gauge", "Whether the database answered this time.", write_up, NULL, NULL},
    {"millrace_queue_depth", "gauge", "Jobs that are available.", write_queues, "available", NULL},
    {"millrace_queue_oldest_seconds", "gauge", "Age of the oldest available job.", write_queues, "oldest_seconds", NULL},
    {"millrace_queue_paused", "gauge", "1 when the queue is paused.", write_queues, "paused", NULL},
    {"millrace_running", "gauge", "Jobs that are running.", write_queues, "running", NULL},
    {"millrace_claims_open", "gauge", "Claims that have not ended.", write_queues, "claims_open", NULL},
    {"millrace_delayed", "gauge", "Jobs whose time has not come, those to be retried not counted.", write_queues, "scheduled", NULL},
    {"millrace_retrying", "gauge", "Jobs that wait to be tried again.", write_queues, "retrying", NULL},
    {"millrace_dead", "gauge", "Dead letters.", write_queues, "dead", NULL},
    {"millrace_queue_jobs_total", "counter", "Jobs by what became of them, as the database counts.", write_totals, NULL, NULL},
    {"millrace_segments", "gauge", "Segments of the log.", write_map, "segments", "state"},
    {"millrace_pinned_segments", "gauge", "Segments that a queue keeps from being retired.", write_map, "pinned_segments", "queue"},
    {"millrace_xmin_age_seconds", "gauge", "Age of the oldest transaction that holds back cleanup.", write_scalar, "xmin_age_seconds", NULL},
    {"millrace_database_bytes", "gauge", "Size of the database.", write_scalar, "database_bytes", NULL},
    {"millrace_disk_free_ratio", "gauge", "Free share of the disk, where it is known.", write_disk, "data_directory", NULL},
    {"millrace_maintain_seconds", "gauge", "How long the last round of a duty took.", write_map, "maintain_seconds", "duty"},
    {"millrace_removed_total", "counter", "What upkeep has removed.", write_map, "removed_total", "what"},
    {"millrace_cache_keys", "gauge", "Keys of the cache, estimated where it is large.", write_map, "cache_keys", "state"},
    {"millrace_limiter_keys", "gauge", "Keys that the rate limiter has on record, at most 1000.", write_scalar, "limiter_keys", NULL},
    {"millrace_locks_held", "gauge", "Locks whose lease lasts, at most 1000.", write_scalar, "locks_held", NULL},
    {"millrace_lock_leases_total", "counter", "Times that a lock with a lease got a new holder.", write_scalar, "lock_leases_total", NULL},
    {"millrace_toolbox_bytes", "gauge", "Size of what the toolbox keeps.", write_map, "toolbox_bytes", "part"},
    {"millrace_jobs_total", "counter", "Jobs that this process enqueued or ran.", write_jobs, NULL, NULL},
    {"millrace_job_wait_seconds", "histogram", "From created to started, first attempts that this process ran.", write_wait, NULL, NULL},
    {"millrace_job_run_seconds", "histogram", "From started to ended, of jobs that this process ran.", write_run, NULL, NULL},
    {"millrace_breaker_open", "gauge", "1 while a worker's breaker is not closed.", write_breakers, NULL, NULL},
    {"millrace_bridge_connected", "gauge", "1 while a bridge is connected to Redis.", write_bridges, "connected", NULL},
    {"millrace_bridge_lag", "gauge", "Entries of the stream that the group has not read.", write_bridges, "lag", NULL},
    {"millrace_bridge_lag_seconds", "gauge", "Age of the oldest entry that is not acknowledged.", write_bridges, "lag_seconds", NULL},
    {"millrace_bridge_pending", "gauge", "Entries that were read and are not acknowledged.", write_bridges, "pending", NULL},
    {"millrace_bridge_stream_length", "gauge", "Entries in the stream.", write_bridges, "length", NULL},
    {"millrace_bridge_entries_total", "counter", "Entries by what became of them.", write_bridge_entries, NULL, NULL},
    {"millrace_bridge_reclaimed_total", "counter", "Entries that an earlier or another consumer left.", write_bridges, "reclaimed", NULL},
    {"millrace_bridge_holds_total", "counter", "Times that a bridge had to wait and try again.", write_bridges, "holds", NULL},
    {"millrace_relay_connected", "gauge", "1 while Redis takes the jobs of a relay.", write_relays, "connected", NULL},
    {"millrace_relay_in_flight", "gauge", "Jobs that a relay holds the leases of.", write_relays, "in_flight", NULL},
    {"millrace_relay_in_flight_bytes", "gauge", "Bytes of these, about.", write_relays, "bytes", NULL},
    {"millrace_relay_unsent", "gauge", "Jobs of a relay that are not in Redis.", write_relays, "unsent", NULL},
    {"millrace_relay_stream_length", "gauge", "Entries in the stream.", write_relays, "length", NULL},
    {"millrace_relay_pending", "gauge", "Entries that are with workers.", write_relays, "pending", NULL},
    {"millrace_relay_lag", "gauge", "Entries that no worker has taken.", write_relays, "lag", NULL},
    {"millrace_relay_entries_total", "counter", "Entries by what was done with them.", write_relay_entries, NULL, NULL},
    {"millrace_relay_holds_total", "counter", "Times that a relay had to wait and try again.", write_relays, "holds", NULL},
    {"millrace_reconnects_total", "counter", "Connections to the database that were lost.", write_reconnects, NULL, NULL},
    {"millrace_http_connections", "gauge", "Open connections of HTTP.", write_connections, NULL, NULL},
    {"millrace_build_info", "gauge", "The version, as a label.", write_build, NULL, NULL},
    {"process_cpu_seconds_total", "counter", "Processor time used.", write_process, "cpu", NULL},
    {"process_resident_memory_bytes", "gauge", "Memory in use.", write_process, "rss", NULL},
    {"process_open_fds", "gauge", "Open descriptors.", write_process, "fds", NULL},
    {"process_max_fds", "gauge", "Descriptors that may be open.", write_process, "max_fds", NULL},
    {"process_start_time_seconds", "gauge", "When the process started, as seconds since 1970.", write_process, "start", NULL},
};
// clang-format on

enum { TABLE_COUNT = sizeof(table) / sizeof(table[0]) };

static const struct metric *find_queue_metric(const char *name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (table[i].write == write_queues && str_equal(table[i].name, name)) {
            return &table[i];
        }
    }
    return NULL;
}

bool metrics_has_alias(const char *name)
{
    return find_queue_metric(name);
}

const char *metrics_alias_name(int index)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (table[i].write == write_queues && index-- == 0) {
            return table[i].name;
        }
    }
    return NULL;
}

static void write_head(struct buf *out, const char *name, const char *help, const char *type)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// A queue that the database does not know has no jobs.
static void write_alias(const struct page *page, const struct metric *metric,
                        const struct http_alias *alias)
{
    const json_t *found = NULL;
    json_t *queue = NULL;
    size_t i = 0;

    if (!page->facts) {
        return;
    }
    json_array_foreach(json_object_get(page->facts, "queues"), i, queue)
    {
        const char *name = json_string_value(json_object_get(queue, "queue"));
        found = name && str_equal(name, alias->queue) ? json_object_get(queue, metric->key) : found;
    }
    add_name(page, alias->name, false);
    if (is_figure(found)) {
        add_number(page->out, found);
    } else {
        buf_puts(page->out, " 0\n");
    }
}

static bool has_facts(const struct http *http)
{
    for (int i = 0; i < http->site_count; i++) {
        if (http->metrics->facts[i].value) {
            return true;
        }
    }
    return false;
}

static void write_aliases(struct http *http, const struct http_alias *alias, struct buf *out)
{
    const struct metric *metric = find_queue_metric(alias->metric);

    if (!metric || !has_facts(http)) {
        return;
    }
    write_head(out, alias->name, metric->help, metric->type);
    for (int i = 0; i < http->site_count; i++) {
        const struct page page = {http, &http->sites[i], http->metrics->facts[i].value, out};
        write_alias(&page, metric, alias);
    }
}

// ---- the page ----

// Whether it is written once for each database.
static bool is_of_database(const struct metric *metric)
{
    return metric->write == write_queues || metric->write == write_totals ||
           metric->write == write_map || metric->write == write_scalar ||
           metric->write == write_disk || metric->write == write_up;
}

static void write_metric(struct http *http, const struct metric *metric, struct buf *out)
{
    write_head(out, metric->name, metric->help, metric->type);
    if (!is_of_database(metric)) {
        metric->write(&(struct page){http, NULL, NULL, out}, metric);
        return;
    }
    for (int i = 0; i < http->site_count; i++) {
        const struct page page = {http, &http->sites[i], http->metrics->facts[i].value, out};
        metric->write(&page, metric);
    }
}

static void reply(struct exchange *exchange)
{
    struct http *http = exchange->http;
    struct MHD_Response *response = NULL;
    AUTO_BUF text;

    buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        write_metric(http, &table[i], &text);
    }
    for (size_t i = 0; i < http->options.alias_count; i++) {
        write_aliases(http, &http->options.aliases[i], &text);
    }
    if (buf_status(&text, NULL) == 0) {
        response = MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_COPY);
    }
    exchange->gone = !response;
    if (response) {
        reply_headers(response, "text/plain; version=0.0.4; charset=utf-8", NULL);
    }
    exchange_reply_with(exchange, 200, response);
}

static void reply_all(struct metrics *metrics)
{
    int count = metrics->waiting_count;

    metrics->waiting_count = 0;
    for (int i = 0; i < count; i++) {
        reply(metrics->waiting[i]);
    }
}

static void take(struct fact *fact, const PGresult *result)
{
    json_decref(fact->value);
    fact->value =
        result ? json_loadb(PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0), 0, NULL)
               : NULL;
}

static void count_answer(struct metrics *metrics)
{
    if (--metrics->asking == 0) {
        metrics->asked_at_ms = clock_ms();
        reply_all(metrics);
    }
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct fact *fact = arg;

    take(fact, err ? NULL : result);
    count_answer(fact->metrics);
}

// What each says; made when somebody first asks, because sites are opened after this.
static bool make_facts(struct metrics *metrics)
{
    struct http *http = metrics->http;

    if (!metrics->facts &&
        (metrics->facts = calloc((size_t)http->site_count, sizeof(*metrics->facts)))) {
        for (int i = 0; i < http->site_count; i++) {
            metrics->facts[i] = (struct fact){.metrics = metrics, .site = &http->sites[i]};
        }
    }
    return metrics->facts;
}

static void ask(struct metrics *metrics)
{
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_API_METRICS);
    metrics->asking = 1; // this
    for (int i = 0; i < metrics->http->site_count; i++) {
        struct fact *fact = &metrics->facts[i];
        if (site_check(fact->site, &err) ||
            database_call(fact->site->db, DATABASE_COMMON, &call, answered, fact, &err)) {
            take(fact, NULL);
        } else {
            metrics->asking++;
        }
    }
    count_answer(metrics);
}

void api_metrics(struct exchange *exchange)
{
    struct metrics *metrics = exchange->http->metrics;

    if (!metrics->asking && metrics->asked_at_ms &&
        clock_ms() - metrics->asked_at_ms < METRICS_FRESH_MS) {
        reply(exchange);
        return;
    }
    if (metrics->waiting_count == WAITING_MAX || !make_facts(metrics)) {
        exchange_refuse(exchange, 503, "too many ask for metrics", NULL);
        return;
    }
    metrics->waiting[metrics->waiting_count++] = exchange;
    if (!metrics->asking) {
        ask(metrics);
    }
}

struct metrics *metrics_new(struct http *http)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));

    if (metrics) {
        metrics->http = http;
    }
    return metrics;
}

void metrics_free(struct metrics *metrics)
{
    if (metrics) {
        for (int i = 0; metrics->facts && i < metrics->http->site_count; i++) {
            json_decref(metrics->facts[i].value);
        }
        free(metrics->facts);
        free(metrics);
    }
}
