// SPDX-License-Identifier: PostgreSQL
//
// The handler that calls a URL: one POST for each job, many at once.
//
// 1. What decides is the status: 2xx completes (or the answer in the body does), 408, 425, 429
//    and 5xx are tried again, everything else is failed for good.
// 2. Nothing is sent before the address has passed the guard (http_guard.h), and redirects are
//    not followed: what is called is what was configured.
// 3. Memory is bounded: `concurrency` transfers, which are used again, each with one job's JSON
//    and an answer of at most HANDLER_ANSWER_MAX; of a body that nobody will read only the
//    beginning is kept, for the error.
// 4. No error names more of the URL than scheme, host and port: the rest may be secret.

#include <arpa/inet.h>
#include <curl/curl.h>
#include <jansson.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/str.h"
#include "handler/answer.h"
#include "handler/handler.h"
#include "handler/http_guard.h"
#include "handler/http_multi.h"
#include "handler/job_text.h"
#include "handler/trace.h"

// Of a job for which nobody has said how long it may take.
#define TIMEOUT_DEFAULT_MS 30000
// What an error repeats of a body.
#define EXCERPT_MAX 300
// The longest error.
#define MESSAGE_MAX 2000
// The longest time that a Retry-After is believed.
#define RETRY_AFTER_MAX_S (24 * 60 * 60)
#define HEADER_MAX        1024
#define ORIGIN_SIZE       300
#define RECEIVE_SIZE      (4 * 1024)

struct http {
    struct handler handler;
    struct handler_options options;
    struct handler_env env;
    struct http_multi *multi;
    char origin[ORIGIN_SIZE]; // scheme://host:port
    bool any_address;
    struct transfer *transfers; // `concurrency` of them
    struct transfer *idle;      // those without a job
    int running;
    void (*closed)(void *arg);
    void *closed_arg;
};

struct transfer {
    struct http *http;
    struct held_job *held; // NULL: idle
    CURL *easy;            // made at the first use
    struct curl_slist *headers;
    struct buf body;
    struct buf answer; // what was kept of it
    size_t received;
    int64_t timeout_ms;
    const char *refused; // an address of this kind was not called
    char address[INET6_ADDRSTRLEN];
    char trouble[CURL_ERROR_SIZE];
    struct transfer *next; // idle
};

// ---- what came back ----

enum verdict {
    VERDICT_GOOD,
    VERDICT_RETRY,
    VERDICT_MOVED,
    VERDICT_FINAL,
};

// The first row that fits counts.
static const struct {
    long first, last;
    enum verdict verdict;
} statuses[] = {
    {200, 299, VERDICT_GOOD},  {300, 399, VERDICT_MOVED},
    {408, 408, VERDICT_RETRY}, // request timeout
    {425, 425, VERDICT_RETRY}, // too early
    {429, 429, VERDICT_RETRY}, // too many requests
    {400, 499, VERDICT_FINAL},
};

static enum verdict verdict_of(long status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (status >= statuses[i].first && status <= statuses[i].last) {
            return statuses[i].verdict;
        }
    }
    return VERDICT_RETRY;
}

// Fails a job with a text that may hold anything a server has sent: made one line of UTF-8.
static void fail_with(struct outcome *ret, const struct buf *message, int64_t retry_in_ms,
                      bool no_retry)
{
    char text[MESSAGE_MAX + 1];
    size_t size = message->len < MESSAGE_MAX ? message->len : MESSAGE_MAX;

    memcpy(text, buf_peek(message), size);
    text[size] = '\0';
    for (size_t i = 0; i < size; i++) {
        text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    }
    str_trim_utf8(text);
    json_t *string = json_string(text); // refuses what is not UTF-8
    for (size_t i = 0; !string && text[i]; i++) {
        text[i] = (unsigned char)text[i] > 0x7f ? '?' : text[i];
    }
    json_decref(string);
    outcome_fail(ret, text, retry_in_ms, no_retry);
}

// The beginning of the body.
static void add_excerpt(const struct transfer *transfer, struct buf *out)
{
    size_t size = transfer->answer.len < EXCERPT_MAX ? transfer->answer.len : EXCERPT_MAX;

    if (size) {
        buf_puts(out, ": ");
        buf_add(out, transfer->answer.data, size);
        buf_puts(out, transfer->received > size ? "..." : "");
    }
}

static int64_t retry_after_ms(CURL *easy)
{
    curl_off_t seconds = 0;

    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    return 1000 * (int64_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S);
}

static void fail_by_status(struct transfer *transfer, long status, enum verdict verdict,
                           struct outcome *ret)
{
    const char *location = NULL;
    AUTO_BUF text;

    buf_init(&text, HANDLER_LINE_MAX);
    buf_printf(&text, "%s answered %ld", transfer->http->origin, status);
    if (verdict == VERDICT_MOVED) {
        curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_URL, &location);
        buf_printf(&text,
                   ", a redirect to %.1000s: redirects are not followed, configure the "
                   "final URL",
                   location ? location : "nowhere");
    } else {
        add_excerpt(transfer, &text);
    }
    fail_with(ret, &text, verdict == VERDICT_RETRY ? retry_after_ms(transfer->easy) : 0,
              verdict != VERDICT_RETRY);
}

static bool is_json(CURL *easy)
{
    static const char wanted[] = "application/json";
    const char *type = NULL;

    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    return type && strncasecmp(type, wanted, strlen(wanted)) == 0 &&
           strchr("; \t", type[strlen(wanted)]);
}

static bool is_good(CURL *easy)
{
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return verdict_of(status) == VERDICT_GOOD;
}

// A body that is no answer was not meant for us.
static void read_answer(const struct transfer *transfer, struct outcome *ret)
{
    const struct buf *answer = &transfer->answer;
    struct mr_error err;
    AUTO_BUF text;
    int64_t id;

    buf_init(&text, HANDLER_LINE_MAX);
    if (answer->len == 0 || !is_json(transfer->easy) ||
        answer_parse(answer->data, answer->len, &id, ret, &err) == 0 ||
        !answer_is_meant(answer->data, answer->len)) {
        return;
    }
    buf_printf(&text, "%s gave an answer that cannot be used: %s", transfer->http->origin,
               err.message);
    fail_with(ret, &text, 0, false);
}

static void fail_by_trouble(const struct transfer *transfer, CURLcode code, struct outcome *ret)
{
    const struct http *http = transfer->http;
    AUTO_BUF text;

    buf_init(&text, HANDLER_LINE_MAX);
    if (transfer->received > HANDLER_ANSWER_MAX) {
        buf_printf(&text, "the answer of %s is longer than %d bytes and was cut", http->origin,
                   HANDLER_ANSWER_MAX);
    } else if (transfer->answer.status) {
        buf_printf(&text, "out of memory for the answer of %s", http->origin);
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        buf_printf(&text, "timed out after %lld ms: %s: %s", (long long)transfer->timeout_ms,
                   http->origin, transfer->trouble);
    } else if (transfer->refused) {
        buf_printf(&text,
                   "cannot call %s: the address %s is %s; set private_networks to call such "
                   "addresses",
                   http->origin, transfer->address, transfer->refused);
    } else {
        buf_printf(&text, "cannot call %s: %s", http->origin,
                   transfer->trouble[0] ? transfer->trouble : curl_easy_strerror(code));
    }
    fail_with(ret, &text, 0, false);
}

// A status that is there counts even when the body was never read to its end, unless it is good.
static void judge(struct transfer *transfer, CURLcode code, struct outcome *ret)
{
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    enum verdict verdict = verdict_of(status);
    if (verdict != VERDICT_GOOD && (status >= 200 || code == 0)) {
        fail_by_status(transfer, status, verdict, ret);
    } else if (code) {
        fail_by_trouble(transfer, code, ret);
    } else {
        read_answer(transfer, ret);
    }
}

// ---- a transfer ----

// The job is gone; the transfer can take the next one.
static struct held_job *transfer_reset(struct transfer *transfer)
{
    struct http *http = transfer->http;
    struct held_job *held = transfer->held;

    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
    buf_done(&transfer->body);
    buf_done(&transfer->answer);
    transfer->received = 0;
    transfer->refused = NULL;
    transfer->held = NULL;
    transfer->next = http->idle;
    http->idle = transfer;
    http->running--;
    held->user = NULL;
    return held;
}

static void on_ended(void *arg, CURL *easy, CURLcode code)
{
    struct http *http = arg;
    struct transfer *transfer = NULL;
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    judge(transfer, code, &outcome);
    http->env.settle(http->env.arg, transfer_reset(transfer), &outcome);
}

static size_t on_body(char *data, size_t one, size_t size, void *arg)
{
    struct transfer *transfer = arg;
    bool whole = is_json(transfer->easy) && is_good(transfer->easy);
    size_t max = whole ? HANDLER_ANSWER_MAX : EXCERPT_MAX;
    size_t room = transfer->answer.len < max ? max - transfer->answer.len : 0;

    (void)one;
    transfer->received += size;
    if (transfer->received > HANDLER_ANSWER_MAX) {
        return 0;
    }
    buf_add(&transfer->answer, data, size < room ? size : room);
    return transfer->answer.status ? 0 : size;
}

static curl_socket_t on_connect(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = arg;
    const char *reason = transfer->http->any_address ? NULL : http_guard_reason(&address->addr);

    (void)purpose;
    if (reason) {
        transfer->refused = reason;
        getnameinfo(&address->addr, address->addrlen, transfer->address, sizeof(transfer->address),
                    NULL, 0, NI_NUMERICHOST);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// What is the same for every job.
static void set_options(struct transfer *transfer)
{
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_URL, transfer->http->options.target);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); // the guard has to see the address itself
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "millrace/" MR_VERSION);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_SIZE);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->trouble);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_connect);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    // a transfer that ends does not wait for its name to be resolved
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}

// ---- the request ----

// Anybody may enqueue, and names are free: what could end a header is percent-encoded.
static bool add_header(struct transfer *transfer, const char *name, const char *value)
{
    AUTO_BUF line;

    buf_init(&line, HEADER_MAX);
    buf_printf(&line, "%s: ", name);
    for (const char *c = value; *c; c++) {
        bool plain = *c > ' ' && *c < 0x7f && *c != '%';
        buf_printf(&line, plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
    struct curl_slist *longer =
        line.status ? NULL : curl_slist_append(transfer->headers, buf_peek(&line));
    if (longer) {
        transfer->headers = longer;
    }
    return longer != NULL;
}

static bool add_number(struct transfer *transfer, const char *name, int64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)number);
    return add_header(transfer, name, text);
}

// HMAC-SHA256 of `TIME.BODY`: whoever knows the secret can tell who sent the body, and when.
static bool add_signature(struct transfer *transfer)
{
    const char *secret = transfer->http->options.secret;
    struct sha256_hmac hmac;
    char hex[SHA256_HEX_SIZE];
    char time[24];
    AUTO_BUF value;

    buf_init(&value, HEADER_MAX);
    if (str_empty(secret)) {
        return true;
    }
    snprintf(time, sizeof(time), "%lld", (long long)(clock_wall_us() / 1000000));
    sha256_hmac_init(&hmac, secret, strlen(secret));
    sha256_hmac_add(&hmac, time, strlen(time));
    sha256_hmac_add(&hmac, ".", 1);
    sha256_hmac_add(&hmac, transfer->body.data, transfer->body.len);
    sha256_hmac_hex(&hmac, hex);
    buf_printf(&value, "t=%s,v1=%s", time, hex);
    return value.status == 0 && add_header(transfer, "Millrace-Signature", buf_peek(&value));
}

static bool add_trace(struct transfer *transfer)
{
    char trace[TRACE_SIZE];

    return !trace_of_job(transfer->held->job, trace) || add_header(transfer, "traceparent", trace);
}

static bool add_headers(struct transfer *transfer)
{
    const mr_claimed_job *job = transfer->held->job;

    transfer->headers = curl_slist_append(NULL, "Expect:"); // no round trip before the body
    return transfer->headers && add_header(transfer, "Content-Type", "application/json") &&
           add_header(transfer, "Accept", "application/json") &&
           add_number(transfer, "Millrace-Job-Id", job->id) &&
           add_header(transfer, "Millrace-Queue", job->queue) &&
           add_header(transfer, "Millrace-Kind", job->kind) &&
           add_number(transfer, "Millrace-Attempt", job->attempt) &&
           add_number(transfer, "Idempotency-Key", job->id) && add_trace(transfer) &&
           add_signature(transfer);
}

// libcurl counts in 32 bits: 24 days.
static long curl_timeout(int64_t timeout_ms)
{
    return (long)(timeout_ms < INT32_MAX ? timeout_ms : INT32_MAX);
}

static int prepare(struct transfer *transfer, struct mr_error *err)
{
    const mr_claimed_job *job = transfer->held->job;
    int64_t worker_ms = transfer->http->options.timeout_ms;

    if (!transfer->easy) {
        transfer->easy = curl_easy_init();
        if (!transfer->easy) {
            return mr_error_set(err, MR_ENOMEM, "out of memory");
        }
        set_options(transfer);
    }
    job_text_json(job, &transfer->body);
    int code = buf_status(&transfer->body, err);
    if (code == 0 && !add_headers(transfer)) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    transfer->timeout_ms = job->timeout_ms > 0 ? job->timeout_ms
                           : worker_ms > 0     ? worker_ms
                                               : TIMEOUT_DEFAULT_MS;
    transfer->trouble[0] = '\0';
    curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, curl_timeout(transfer->timeout_ms));
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, transfer->body.data);
    curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.len);
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    return code;
}

static void start_one(struct http *http, struct held_job *held)
{
    struct transfer *transfer = http->idle;
    struct mr_error err;
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    http->idle = transfer->next;
    http->running++;
    transfer->held = held;
    held->user = transfer;
    int code = prepare(transfer, &err);
    if (code == 0) {
        code = http_multi_add(http->multi, transfer->easy, &err);
    }
    if (code) {
        outcome_fail(&outcome, err.message, 0, false);
        http->env.settle(http->env.arg, transfer_reset(transfer), &outcome);
    }
}

// ---- operations ----

static int http_room(struct handler *handler)
{
    struct http *http = (struct http *)handler;

    return http->options.concurrency - http->running;
}

static void http_start(struct handler *handler, struct held_job *const *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        start_one((struct http *)handler, jobs[i]);
    }
}

// Ends the request of a job in the middle, wherever that finds the server.
static void cut(struct http *http, struct held_job *held, struct outcome *outcome)
{
    struct transfer *transfer = held->user;

    if (transfer) {
        http_multi_remove(http->multi, transfer->easy);
        http->env.settle(http->env.arg, transfer_reset(transfer), outcome);
    }
}

static void http_drop(struct handler *handler, struct held_job *held)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_release(&outcome);
    cut((struct http *)handler, held, &outcome);
}

static void http_cancel(struct handler *handler, struct held_job *held)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_cancel(&outcome);
    cut((struct http *)handler, held, &outcome);
}

static void on_closed(void *arg)
{
    struct http *http = arg;
    void (*closed)(void *) = http->closed;
    void *closed_arg = http->closed_arg;

    free(http->transfers);
    free(http);
    closed(closed_arg);
}

static void http_close(struct handler *handler, void (*closed)(void *arg), void *arg)
{
    struct http *http = (struct http *)handler;

    http->closed = closed;
    http->closed_arg = arg;
    for (int i = 0; i < http->options.concurrency; i++) {
        curl_easy_cleanup(http->transfers[i].easy);
    }
    http_multi_close(http->multi, on_closed, http);
}

// ---- the URL ----

static int bad_url(struct mr_error *err, const char *why)
{
    mr_error_set(err, MR_ECONFIG, "cannot use the URL of the http handler: %s", why);
    mr_error_hint(err, "Write the whole address, such as https://example.org/hook.");
    return MR_ECONFIG;
}

// Fills in what is derived from the URL.
static int read_parts(struct http *http, CURLU *url, struct mr_error *err)
{
    char *scheme = NULL, *host = NULL, *port = NULL;
    int code = 0;

    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
    curl_url_get(url, CURLUPART_HOST, &host, 0);
    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (!scheme || (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)) {
        code = bad_url(err, "only http and https can be called");
    } else if (!host || !port) {
        code = bad_url(err, "it names no host");
    } else {
        snprintf(http->origin, sizeof(http->origin), "%s://%s:%s", scheme, host, port);
        http->any_address = http->options.private_networks || http_guard_names_private(host);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return code;
}

static int read_url(struct http *http, struct mr_error *err)
{
    CURLU *url = curl_url();

    if (!url) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    CURLUcode failure =
        curl_url_set(url, CURLUPART_URL, http->options.target, CURLU_NON_SUPPORT_SCHEME);
    int code = failure ? bad_url(err, curl_url_strerror(failure)) : read_parts(http, url, err);
    curl_url_cleanup(url);
    return code;
}

static void link_transfers(struct http *http)
{
    for (int i = 0; i < http->options.concurrency; i++) {
        struct transfer *transfer = &http->transfers[i];
        transfer->http = http;
        buf_init(&transfer->body, JOB_TEXT_MAX);
        buf_init(&transfer->answer, HANDLER_ANSWER_MAX);
        transfer->next = http->idle;
        http->idle = transfer;
    }
}

static int http_open(const struct handler_options *options, const struct handler_env *env,
                     struct handler **ret, struct mr_error *err)
{
    struct http *http = calloc(1, sizeof(*http));
    int code;

    if (!http) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    http->handler.ops = &handler_http;
    http->options = *options;
    http->env = *env;
    http->transfers = calloc((size_t)options->concurrency, sizeof(*http->transfers));
    code = http->transfers ? read_url(http, err) : mr_error_set(err, MR_ENOMEM, "out of memory");
    if (code == 0) {
        code = http_multi_new(env->loop, options->concurrency, on_ended, http, &http->multi, err);
    }
    if (code) {
        free(http->transfers);
        free(http);
        return code;
    }
    link_transfers(http);
    *ret = &http->handler;
    return 0;
}

const struct handler_ops handler_http = {
    .name = "http",
    .open = http_open,
    .room = http_room,
    .start = http_start,
    .drop = http_drop,
    .cancel = http_cancel,
    .close = http_close,
};
