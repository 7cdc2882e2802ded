// SPDX-License-Identifier: PostgreSQL
//
// Requests to S3: see s3_wire.h.

#include "store/s3_wire.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "config.h"
#include "store/s3_receive.h"

// The pause before the second attempt; each later one is twice as long, up to the most.
#define PAUSE_FIRST_MS 100
#define PAUSE_MOST_MS  5000
// How often damage is looked at before it is believed.
#define DAMAGE_ATTEMPTS 2
// The longest time that a Retry-After is believed.
#define RETRY_AFTER_MAX_S (24 * 60 * 60)
// libcurl of before signs only some of the headers.
#define CURL_LEAST      0x075800
#define CURL_LEAST_TEXT "7.88"
#define URL_SIZE        (S3_ORIGIN_SIZE + S3_PATH_SIZE + 4096)
// The longest wait without a look around.
#define LOOK_MS 1000

enum slot_status {
    SLOT_IDLE,
    SLOT_PAUSED,  // until resume_ms
    SLOT_RUNNING, // libcurl has it
};

struct slot {
    struct s3_wire *wire;
    enum slot_status status;
    struct s3_request request;
    struct s3_receive receive;
    CURL *easy; // made at the first use
    struct curl_slist *headers;
    int64_t resume_ms;
    char trouble[CURL_ERROR_SIZE];
};

struct s3_wire {
    CURLM *multi;
    struct blob_options options;
    char origin[S3_ORIGIN_SIZE];
    char ca[S3_TEXT_MAX];
    char *sigv4; // the parameter of libcurl's
    char *access_key, *secret_key, *session_token;
    struct slot *slots; // `parallel` of them
    unsigned seed;      // of pauses
    atomic_bool stopped;
};

// One run of a batch.
struct run {
    struct s3_wire *wire;
    const struct s3_batch *batch;
    int64_t deadline_ms;
    int busy;                // slots
    int bad_in_row;          // requests that ended as BLOB_TRANSIENT
    bool exhausted;          // the batch has no other request
    bool spoiled;            // nothing more is begun:
    struct s3_fault verdict; // this is what it gets
};

// ---- a request, as libcurl wants it ----

__attribute__((format(printf, 2, 3))) static bool add_header(struct slot *slot, const char *format,
                                                             ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    int size = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct curl_slist *list =
        size >= 0 && (size_t)size < sizeof(text) ? curl_slist_append(slot->headers, text) : NULL;
    slot->headers = list ? list : slot->headers;
    return list;
}

static bool add_headers(struct slot *slot)
{
    const struct s3_request *request = &slot->request;
    const struct s3_wire *wire = slot->wire;
    bool put = request->method == S3_PUT;

    return add_header(slot, "x-amz-content-sha256: %s", request->body_sha256) &&
           (!put || add_header(slot, "x-amz-meta-sha256: %s", request->body_sha256)) &&
           (!request->body ||
            add_header(slot, "Content-Type: application/%s", put ? "octet-stream" : "xml")) &&
           (!request->content_md5 || add_header(slot, "Content-MD5: %s", request->content_md5)) &&
           (!wire->session_token ||
            add_header(slot, "x-amz-security-token: %s", wire->session_token));
}

static bool set_url(struct slot *slot)
{
    const struct s3_request *request = &slot->request;
    char url[URL_SIZE];
    int size = snprintf(url, sizeof(url), "%s/%s%s%s", slot->wire->origin, request->path,
                        request->query ? "?" : "", request->query ? request->query : "");

    return size >= 0 && (size_t)size < sizeof(url) &&
           curl_easy_setopt(slot->easy, CURLOPT_URL, url) == CURLE_OK;
}

static void set_method(struct slot *slot)
{
    const struct s3_request *request = &slot->request;

    if (request->method == S3_GET) {
        curl_easy_setopt(slot->easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(slot->easy, CURLOPT_CUSTOMREQUEST, NULL);
        return;
    }
    // a body in memory can be sent again on another connection without being asked for
    curl_easy_setopt(slot->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDS, request->body_size ? request->body : "");
    curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
    curl_easy_setopt(slot->easy, CURLOPT_CUSTOMREQUEST, request->method == S3_PUT ? "PUT" : NULL);
}

static void set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

// What holds for every request.
static void set_constants(struct slot *slot)
{
    const struct s3_wire *wire = slot->wire;
    CURL *easy = slot->easy;

    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    set_protocols(easy);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "millrace/" MILLRACE_VERSION);
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, wire->sigv4);
    curl_easy_setopt(easy, CURLOPT_USERNAME, wire->access_key);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, wire->secret_key);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)wire->options.connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->trouble);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, slot);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, s3_receive_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &slot->receive);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, s3_receive_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &slot->receive);
    if (wire->ca[0]) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, wire->ca);
    }
}

// libcurl counts in seconds.
static void set_patience(struct slot *slot)
{
    int64_t idle_ms =
        slot->wire->options.idle_timeout_ms * (slot->request.laborious ? S3_PATIENCE : 1);

    curl_easy_setopt(slot->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(slot->easy, CURLOPT_LOW_SPEED_TIME, (long)((idle_ms + 999) / 1000));
}

static bool prepare(struct slot *slot)
{
    if (!slot->easy) {
        slot->easy = curl_easy_init();
        if (!slot->easy) {
            return false;
        }
        set_constants(slot);
    }
    s3_receive_begin(&slot->receive, slot->easy, &slot->request);
    slot->trouble[0] = '\0';
    set_method(slot);
    set_patience(slot);
    if (!set_url(slot) || !add_headers(slot)) {
        return false;
    }
    return curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, slot->headers) == CURLE_OK;
}

static void drop_headers(struct slot *slot)
{
    if (slot->easy) {
        curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, NULL);
    }
    curl_slist_free_all(slot->headers);
    slot->headers = NULL;
}

// ---- what comes of an attempt ----

static void request_done(struct s3_request *request)
{
    free(request->answer);
    *request = (struct s3_request){.answer = NULL};
}

// The request leaves its slot, with the fault that it has.
static void end_request(struct run *run, struct slot *slot)
{
    enum blob_result result = slot->request.fault.result;

    run->bad_in_row = result == BLOB_TRANSIENT ? run->bad_in_row + 1 : 0;
    if (result == BLOB_CONFIG || run->bad_in_row >= run->wire->options.parallel) {
        run->spoiled = true;
        run->verdict = slot->request.fault;
    }
    run->batch->done(run->batch->arg, &slot->request);
    request_done(&slot->request);
    slot->status = SLOT_IDLE;
    run->busy--;
}

// Half of it is chance, so that many who failed together do not come back together.
static int64_t pause_ms(struct s3_wire *wire, int attempts)
{
    int64_t most = PAUSE_FIRST_MS;

    for (int i = 1; i < attempts && most < PAUSE_MOST_MS; i++) {
        most *= 2;
    }
    most = most < PAUSE_MOST_MS ? most : PAUSE_MOST_MS;
    return most / 2 + (int64_t)rand_r(&wire->seed) % (most / 2 + 1);
}

static int64_t asked_ms(const struct slot *slot)
{
    curl_off_t seconds = 0;

    curl_easy_getinfo(slot->easy, CURLINFO_RETRY_AFTER, &seconds);
    return 1000 * (int64_t)(seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S);
}

static int attempts_for(const struct s3_wire *wire, enum blob_result result)
{
    int most = wire->options.attempts;

    switch (result) {
    case BLOB_TRANSIENT: return most;
    case BLOB_DAMAGED: return most < DAMAGE_ATTEMPTS ? most : DAMAGE_ATTEMPTS;
    case BLOB_OK:
    case BLOB_STOPPED:
    case BLOB_CONFIG:
    case BLOB_REJECTED:
    case BLOB_MISSING: break;
    }
    return 0;
}

// Ends the request, or has it wait for the next attempt.
static void settle(struct run *run, struct slot *slot, bool answered)
{
    struct s3_request *request = &slot->request;
    int64_t asked = answered ? asked_ms(slot) : 0;
    int64_t pause = pause_ms(run->wire, request->attempts);

    pause = asked > pause ? asked : pause;
    if (request->attempts >= attempts_for(run->wire, request->fault.result)) {
        end_request(run, slot);
    } else if (clock_ms() + pause >= run->deadline_ms) {
        size_t used = strlen(request->fault.text);
        if (asked == pause) {
            snprintf(request->fault.text + used, sizeof(request->fault.text) - used,
                     ", and asks to come back in %d s", (int)(asked / 1000));
        }
        end_request(run, slot);
    } else {
        slot->status = SLOT_PAUSED;
        slot->resume_ms = clock_ms() + pause;
    }
}

static void judge(struct run *run, struct slot *slot, CURLcode code)
{
    struct s3_request *request = &slot->request;

    request->status = 0;
    curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &request->status);
    request->fault = (struct s3_fault){.result = BLOB_OK};
    if (slot->receive.too_large) {
        request->fault.result = BLOB_DAMAGED;
        snprintf(request->fault.text, sizeof(request->fault.text),
                 "it is larger than the %zu bytes that it may have", request->answer_max);
    } else if (slot->receive.no_memory) {
        request->fault.result = BLOB_TRANSIENT;
        snprintf(request->fault.text, sizeof(request->fault.text), "out of memory");
    } else if (code != CURLE_OK) {
        s3_fault_of_curl(code, slot->trouble, &request->fault);
    } else if (request->status < 200 || request->status > 299) {
        s3_fault_of_answer(request->status, request->answer, request->answer_size, &request->head,
                           &request->fault);
    } else if (run->batch->judge) {
        run->batch->judge(run->batch->arg, request);
    }
}

static void on_ended(struct run *run, struct slot *slot, CURLcode code)
{
    judge(run, slot, code);
    drop_headers(slot);
    settle(run, slot, code == CURLE_OK);
}

// ---- the run ----

static void fail(struct run *run, struct slot *slot, const char *why)
{
    slot->request.fault = (struct s3_fault){.result = BLOB_TRANSIENT};
    snprintf(slot->request.fault.text, BLOB_TEXT_SIZE, "%s", why);
    drop_headers(slot);
    end_request(run, slot);
}

static void attempt(struct run *run, struct slot *slot)
{
    slot->request.attempts++;
    slot->status = SLOT_RUNNING;
    if (!prepare(slot)) {
        fail(run, slot, "out of memory");
    } else if (curl_multi_add_handle(run->wire->multi, slot->easy) != CURLM_OK) {
        fail(run, slot, "libcurl does not take a request");
    }
}

// Fills slots, and goes on with those that have waited.
static void advance(struct run *run)
{
    int64_t now = clock_ms();

    for (int i = 0; i < run->wire->options.parallel; i++) {
        struct slot *slot = &run->wire->slots[i];
        if (slot->status == SLOT_PAUSED && slot->resume_ms <= now) {
            attempt(run, slot);
        } else if (slot->status == SLOT_IDLE && !run->exhausted && !run->spoiled) {
            run->exhausted = !run->batch->next(run->batch->arg, &slot->request);
            if (!run->exhausted) {
                run->busy++;
                attempt(run, slot);
            }
        }
    }
}

static void collect(struct run *run)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(run->wire->multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            CURL *easy = message->easy_handle;
            CURLcode code = message->data.result;
            struct slot *slot = NULL;

            curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&slot);
            // the message is gone with this
            curl_multi_remove_handle(run->wire->multi, easy);
            on_ended(run, slot, code);
        }
    }
}

static int wait_ms(const struct run *run)
{
    int64_t now = clock_ms();
    int64_t until = now + LOOK_MS;

    until = run->deadline_ms < until ? run->deadline_ms : until;
    for (int i = 0; i < run->wire->options.parallel; i++) {
        const struct slot *slot = &run->wire->slots[i];
        if (slot->status == SLOT_PAUSED && slot->resume_ms < until) {
            until = slot->resume_ms;
        }
    }
    return until > now ? (int)(until - now) : 0;
}

// Why the run has to end at once, if it has to.
static bool is_cut(struct run *run)
{
    struct s3_fault *verdict = &run->verdict;

    if (s3_wire_is_stopped(run->wire)) {
        *verdict = (struct s3_fault){.result = BLOB_STOPPED, .text = "it was told to stop"};
    } else if (clock_ms() >= run->deadline_ms) {
        *verdict = (struct s3_fault){.result = BLOB_TRANSIENT};
        snprintf(verdict->text, sizeof(verdict->text),
                 "it was not done when the time of the call, %lld ms, was up",
                 (long long)run->wire->options.call_timeout_ms);
    } else {
        return false;
    }
    return true;
}

// Ends what is under way in the middle.
static void cut(struct run *run)
{
    run->spoiled = true;
    for (int i = 0; i < run->wire->options.parallel; i++) {
        struct slot *slot = &run->wire->slots[i];
        if (slot->status == SLOT_RUNNING) {
            curl_multi_remove_handle(run->wire->multi, slot->easy);
            drop_headers(slot);
        }
        if (slot->status != SLOT_IDLE) {
            struct s3_fault verdict = run->verdict;
            slot->request.fault = verdict;
            end_request(run, slot);
            run->verdict = verdict;
        }
    }
}

// What was not begun gets the verdict.
static void skip_rest(struct run *run)
{
    struct s3_request request = {.answer = NULL};

    while (!run->exhausted && run->batch->next(run->batch->arg, &request)) {
        request.fault = run->verdict;
        run->batch->done(run->batch->arg, &request);
        request_done(&request);
    }
}

void s3_wire_run(struct s3_wire *wire, const struct s3_batch *batch, int64_t deadline_ms)
{
    struct run run = {.wire = wire, .batch = batch, .deadline_ms = deadline_ms};
    int running;

    for (;;) {
        if (is_cut(&run)) {
            cut(&run);
            break;
        }
        advance(&run);
        if (run.busy == 0) {
            if (run.exhausted || run.spoiled) {
                break;
            }
            continue; // all that were begun have failed at once
        }
        curl_multi_perform(wire->multi, &running);
        collect(&run);
        if (run.busy > 0) {
            curl_multi_poll(wire->multi, NULL, 0, wait_ms(&run), NULL);
        }
    }
    skip_rest(&run);
}

void s3_wire_pause(struct s3_wire *wire, int attempts, int64_t deadline_ms)
{
    int64_t until = clock_ms() + pause_ms(wire, attempts);

    until = until < deadline_ms ? until : deadline_ms;
    while (!s3_wire_is_stopped(wire) && clock_ms() < until) {
        int64_t left = until - clock_ms();
        // wakes up when it is told to stop
        curl_multi_poll(wire->multi, NULL, 0, left > 0 ? (int)left : 0, NULL);
    }
}

// ---- life ----

bool s3_wire_is_stopped(const struct s3_wire *wire)
{
    return atomic_load(&wire->stopped);
}

void s3_wire_stop(struct s3_wire *wire)
{
    atomic_store(&wire->stopped, true);
    curl_multi_wakeup(wire->multi);
}

int s3_wire_attempts(const struct s3_wire *wire)
{
    return wire->options.attempts;
}

int64_t s3_wire_deadline(const struct s3_wire *wire)
{
    return clock_ms() + wire->options.call_timeout_ms;
}

static void forget(char *secret)
{
    if (secret) {
        explicit_bzero(secret, strlen(secret));
        free(secret);
    }
}

static bool fill(struct s3_wire *wire, const struct s3_address *address,
                 const struct blob_credentials *credentials)
{
    const char *token = credentials->session_token;

    s3_address_origin(address, wire->origin);
    memcpy(wire->ca, address->ca, sizeof(wire->ca));
    wire->seed = (unsigned)clock_us();
    wire->access_key = strdup(credentials->access_key);
    wire->secret_key = strdup(credentials->secret_key);
    wire->session_token = token ? strdup(token) : NULL;
    wire->slots = calloc((size_t)wire->options.parallel, sizeof(*wire->slots));
    wire->multi = curl_multi_init();
    if (asprintf(&wire->sigv4, "aws:amz:%s:s3", address->region) < 0) {
        wire->sigv4 = NULL;
    }
    for (int i = 0; wire->slots && i < wire->options.parallel; i++) {
        wire->slots[i].wire = wire;
    }
    return wire->access_key && wire->secret_key && (!token || wire->session_token) && wire->slots &&
           wire->multi && wire->sigv4;
}

int s3_wire_new(const struct s3_address *address, const struct blob_credentials *credentials,
                const struct blob_options *options, struct s3_wire **ret, struct mr_error *err)
{
    if (curl_version_info(CURLVERSION_NOW)->version_num < CURL_LEAST) {
        mr_error_set(err, MR_ECONFIG, "libcurl %s cannot sign requests to S3",
                     curl_version_info(CURLVERSION_NOW)->version);
        mr_error_hint(err, "Install libcurl " CURL_LEAST_TEXT " or later.");
        return MR_ECONFIG;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        return mr_error_set(err, MR_EIO, "libcurl cannot be started");
    }
    struct s3_wire *wire = calloc(1, sizeof(*wire));
    if (!wire) {
        curl_global_cleanup();
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    wire->options = *options;
    if (!fill(wire, address, credentials)) {
        s3_wire_free(wire);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    curl_multi_setopt(wire->multi, CURLMOPT_MAXCONNECTS, (long)options->parallel);
    *ret = wire;
    return 0;
}

void s3_wire_free(struct s3_wire *wire)
{
    if (!wire) {
        return;
    }
    for (int i = 0; wire->slots && i < wire->options.parallel; i++) {
        curl_easy_cleanup(wire->slots[i].easy);
    }
    if (wire->multi) {
        curl_multi_cleanup(wire->multi);
    }
    free(wire->slots);
    free(wire->sigv4);
    forget(wire->access_key);
    forget(wire->secret_key);
    forget(wire->session_token);
    free(wire);
    curl_global_cleanup();
}
