// SPDX-License-Identifier: PostgreSQL
//
// Jobs on Redis, producing and working: see redis_queue.h.
//
// A lease is NUMBER.TOKEN.QUEUE: whoever has it needs nothing else to find its keys.

#include "store/redis_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/str.h"
#include "store/redis_queue_parts.h"

enum {
    TOKEN_BYTES = 16,
    TOKEN_SIZE = 2 * TOKEN_BYTES + 1,
    LEASE_NUMBER_MAX = 18, // digits
    LEASE_SIZE = LEASE_NUMBER_MAX + 1 + TOKEN_SIZE,
    ERROR_CHARACTERS = 8192, // of a failure that are kept
    LEASE_SHOWN = 80,
};

// What claim.lua answers, and the columns of its jobs.
enum { CLAIM_LEASE, CLAIM_UNTIL, CLAIM_NOW, CLAIM_PRIORITY, CLAIM_JOBS, CLAIM_FIELDS };
enum {
    JOB_ID,
    JOB_ATTEMPT,
    JOB_MAX_ATTEMPTS,
    JOB_KIND,
    JOB_ARGS,
    JOB_META,
    JOB_STATE,
    JOB_BLOB,
    JOB_TENANT,
    JOB_REF,
    JOB_CREATED,
    JOB_TIMEOUT,
    JOB_FIELDS,
};

// ---- keys, numbers, chance ----

void queue_key(const char *queue, char ret[QUEUE_KEY_SIZE])
{
    char *to = ret + sprintf(ret, QUEUE_PREFIX "{");

    // braces would end the part of the key that its slot is made of, or leave it empty
    for (const char *c = queue; *c && to < ret + QUEUE_KEY_SIZE - 5; c++) {
        to += strchr("{}%", *c) ? sprintf(to, "%%%02X", (unsigned char)*c) : sprintf(to, "%c", *c);
    }
    memcpy(to, "}", sizeof("}"));
}

int queue_number_of(const redisReply *reply, int64_t *ret)
{
    if (reply->type == REDIS_REPLY_INTEGER) {
        *ret = reply->integer;
        return 0;
    }
    return reply->type == REDIS_REPLY_STRING && str_parse_int(reply->str, INT64_MIN, INT64_MAX, ret)
               ? 0
               : -1;
}

bool queue_is_refusal(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STATUS && str_starts(reply->str, word);
}

static int draw(void *ret, size_t size, mr_error *err)
{
    return getrandom(ret, size, 0) == (ssize_t)size
               ? 0
               : mr_error_set(err, MR_EIO, "no random numbers: %s", strerror(errno));
}

static int draw_token(char ret[TOKEN_SIZE], mr_error *err)
{
    unsigned char bytes[TOKEN_BYTES];
    int code = draw(bytes, sizeof(bytes), err);

    for (int i = 0; code == 0 && i < TOKEN_BYTES; i++) {
        sprintf(ret + (ptrdiff_t)2 * i, "%02x", bytes[i]);
    }
    return code;
}

// A whole number of 32 bits: Lua inside of Redis draws the same ones each time, and a fraction has
// a comma in some languages.
static int add_chance(struct redis_args *args, mr_error *err)
{
    uint32_t number = 0;
    int code = draw(&number, sizeof(number), err);

    redis_args_number(args, number);
    return code;
}

// ---- producing ----

static int add_field(struct redis_args *args, const char *name, const char *text)
{
    if (!text) {
        return 0;
    }
    redis_args_text(args, name);
    redis_args_text(args, text);
    return 1;
}

static int add_bytes(struct redis_args *args, const char *name, const void *data, size_t size)
{
    if (!data) {
        return 0;
    }
    redis_args_text(args, name);
    redis_args_bytes(args, data, size);
    return 1;
}

static int add_number(struct redis_args *args, const char *name, int64_t number)
{
    redis_args_text(args, name);
    redis_args_number(args, number);
    return 1;
}

static int count_fields(const mr_job_spec *job)
{
    return 2 + !!job->args + !!job->meta + !!job->tenant + !!job->ref + !!job->state + !!job->blob +
           !!job->max_attempts + !!job->timeout_ms + !!job->expires_in_ms + !!job->run_at +
           !!job->delay_ms;
}

static void add_job(struct redis_args *args, const mr_job_spec *job)
{
    redis_args_number(args, count_fields(job));
    add_field(args, "kind", job->kind);
    add_number(args, "priority", job->priority);
    add_field(args, "args", job->args);
    add_field(args, "meta", job->meta);
    add_field(args, "tenant", job->tenant);
    add_field(args, "ref", job->ref);
    add_bytes(args, "state", job->state, job->state_size);
    add_bytes(args, "blob", job->blob, job->blob_size);
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = {
        {"max_attempts", job->max_attempts},
        {"timeout_ms", job->timeout_ms},
        {"expires_ms", job->expires_in_ms},
        {"delay_ms", job->delay_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].number) {
            add_number(args, numbers[i].name, numbers[i].number);
        }
    }
    if (job->run_at) {
        add_number(args, "run_at_ms", queue_run_at_ms(job->run_at));
    }
}

// The number of a queue that has none yet.
static int register_queue(struct redis_link *link, const char *queue, char *ret, size_t size,
                          mr_error *err)
{
    AUTO_REDIS_ARGS args;
    redisReply *reply = NULL;

    redis_args_init(&args);
    redis_args_key(&args, QUEUE_REGISTRY);
    redis_args_text(&args, queue);
    int code = redis_args_eval(&args, link, "queue/register.lua", &reply, err);
    if (code) {
        return code;
    }
    if (reply->type == REDIS_REPLY_STRING) {
        snprintf(ret, size, "%s", reply->str);
    } else if (queue_is_refusal(reply, "MRQUEUES")) {
        code = mr_error_set(err, MR_ELIMIT, "there are too many queues in this Redis");
    } else {
        code = redis_link_strange(link, err);
    }
    freeReplyObject(reply);
    return code;
}

static int send_jobs(struct redis_link *link, const char *number, const mr_job_spec *jobs,
                     size_t count, redisReply **ret, mr_error *err)
{
    AUTO_REDIS_ARGS args;
    char key[QUEUE_KEY_SIZE];

    queue_key(jobs->queue ? jobs->queue : "default", key);
    redis_args_init(&args);
    redis_args_key(&args, key);
    redis_args_text(&args, number);
    redis_args_number(&args, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        add_job(&args, &jobs[i]);
    }
    return redis_args_eval(&args, link, "queue/enqueue.lua", ret, err);
}

static int read_ids(struct redis_link *link, const redisReply *reply, size_t count,
                    int64_t *ret_ids, mr_error *err)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count) {
        return redis_link_strange(link, err);
    }
    for (size_t i = 0; ret_ids && i < count; i++) {
        if (queue_number_of(reply->element[i], &ret_ids[i])) {
            return redis_link_strange(link, err);
        }
    }
    return 0;
}

int redis_queue_enqueue(struct redis_link *link, const mr_job_spec *jobs, size_t count,
                        int64_t *ret_ids, mr_error *err)
{
    char number[24] = "";
    redisReply *reply = NULL;
    int code = send_jobs(link, number, jobs, count, &reply, err);

    if (code == 0 && queue_is_refusal(reply, "MRNEW")) {
        freeReplyObject(reply);
        code = register_queue(link, jobs->queue ? jobs->queue : "default", number, sizeof(number),
                              err);
        code = code ? code : send_jobs(link, number, jobs, count, &reply, err);
    }
    if (code == 0) {
        code = read_ids(link, reply, count, ret_ids, err);
        freeReplyObject(reply);
    }
    return code;
}

// ---- claiming ----

void redis_claim_done(struct redis_claim *claim)
{
    freeReplyObject(claim->reply);
    free(claim->lease);
    *claim = (struct redis_claim){0};
}

static int read_claim(struct redis_link *link, const char *queue, redisReply *reply,
                      struct redis_claim *ret, mr_error *err)
{
    int64_t priority = 0;

    *ret = (struct redis_claim){.reply = reply};
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0) {
        redis_claim_done(ret);
        return 0;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != CLAIM_FIELDS ||
        reply->element[CLAIM_LEASE]->type != REDIS_REPLY_STRING ||
        reply->element[CLAIM_JOBS]->type != REDIS_REPLY_ARRAY ||
        queue_number_of(reply->element[CLAIM_UNTIL], &ret->until_us) ||
        queue_number_of(reply->element[CLAIM_NOW], &ret->now_us) ||
        queue_number_of(reply->element[CLAIM_PRIORITY], &priority)) {
        redis_claim_done(ret);
        return redis_link_strange(link, err);
    }
    ret->priority = (int)priority;
    ret->count = reply->element[CLAIM_JOBS]->elements;
    if (asprintf(&ret->lease, "%s.%s", reply->element[CLAIM_LEASE]->str, queue) < 0) {
        ret->lease = NULL;
        redis_claim_done(ret);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

static const char *text_at(const redisReply *job, int at)
{
    return job->element[at]->type == REDIS_REPLY_STRING ? job->element[at]->str : NULL;
}

static const void *bytes_at(const redisReply *job, int at, size_t *ret_size)
{
    const char *data = text_at(job, at);

    *ret_size = data ? (size_t)job->element[at]->len : 0;
    return data;
}

int redis_claim_job(const struct redis_claim *claim, size_t at, mr_claimed_job *ret,
                    struct redis_link *link, mr_error *err)
{
    const redisReply *job = claim->reply->element[CLAIM_JOBS]->element[at];
    int64_t attempt = 0, max_attempts = 0;

    if (job->type != REDIS_REPLY_ARRAY || job->elements != JOB_FIELDS) {
        return redis_link_strange(link, err);
    }
    *ret = (mr_claimed_job){
        .priority = claim->priority,
        .lease = claim->lease,
        .kind = text_at(job, JOB_KIND),
        .args = text_at(job, JOB_ARGS),
        .meta = text_at(job, JOB_META),
        .tenant = text_at(job, JOB_TENANT),
        .ref = text_at(job, JOB_REF),
        .lease_until_us = claim->until_us,
    };
    ret->args = ret->args ? ret->args : "{}";
    ret->state = bytes_at(job, JOB_STATE, &ret->state_size);
    ret->blob = bytes_at(job, JOB_BLOB, &ret->blob_size);
    if (queue_number_of(job->element[JOB_ID], &ret->id) ||
        queue_number_of(job->element[JOB_ATTEMPT], &attempt) ||
        queue_number_of(job->element[JOB_MAX_ATTEMPTS], &max_attempts) ||
        queue_number_of(job->element[JOB_CREATED], &ret->created_at_us)) {
        return redis_link_strange(link, err);
    }
    queue_number_of(job->element[JOB_TIMEOUT], &ret->timeout_ms);
    ret->attempt = (int)attempt;
    ret->max_attempts = (int)max_attempts;
    return 0;
}

static void name_worker(const char *worker, char ret[QUEUE_NAME_MAX + 1])
{
    char host[64] = "";

    if (worker) {
        snprintf(ret, QUEUE_NAME_MAX + 1, "%s", worker);
        return;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(ret, QUEUE_NAME_MAX + 1, "%s pid %d", host, (int)getpid());
}

static int check_claim(const mr_claim_options *options, mr_error *err)
{
    int code = queue_check_ms("lease_for", options->lease_ms, err);

    if (code == 0 && options->worker && options->worker[0]) {
        code = queue_check_name("worker", options->worker, err);
    }
    return code ? code : queue_check_utf8(options->queue, err);
}

int redis_queue_claim(struct redis_link *link, const mr_claim_options *options,
                      struct redis_claim *ret, mr_error *err)
{
    AUTO_REDIS_ARGS args;
    const char *queue = options->queue ? options->queue : "default";
    char key[QUEUE_KEY_SIZE], worker[QUEUE_NAME_MAX + 1], token[TOKEN_SIZE];
    redisReply *reply = NULL;
    int code;

    redis_args_init(&args);
    *ret = (struct redis_claim){0};
    if ((code = check_claim(options, err)) || (code = draw_token(token, err))) {
        return code;
    }
    if (!queue[0] || strlen(queue) > QUEUE_NAME_MAX) {
        return 0; // there is no such queue
    }
    queue_key(queue, key);
    name_worker(options->worker, worker);
    redis_args_key(&args, key);
    redis_args_text(&args, worker);
    redis_args_number(&args, options->max_jobs ? options->max_jobs : 1);
    redis_args_number(&args, options->lease_ms);
    redis_args_text(&args, options->without_state ? "0" : "1");
    redis_args_text(&args, token);
    if ((code = add_chance(&args, err)) ||
        (code = redis_args_eval(&args, link, "queue/claim.lua", &reply, err))) {
        return code;
    }
    return read_claim(link, queue, reply, ret, err);
}

// ---- under a lease ----

struct lease_parts {
    char name[LEASE_SIZE]; // NUMBER.TOKEN
    const char *queue;     // borrowed
};

// Anything that is not of its form is a lost lease.
static int parse_lease(const char *lease, struct lease_parts *ret, mr_error *err)
{
    size_t digits = strspn(lease, "0123456789");
    size_t token = lease[digits] == '.' ? strspn(lease + digits + 1, "0123456789abcdef") : 0;
    size_t size = digits + 1 + token;
    int code = queue_check_utf8(lease, err);

    *ret = (struct lease_parts){.queue = ""};
    if (code) {
        return code;
    }
    if (digits < 1 || digits > LEASE_NUMBER_MAX || token != TOKEN_SIZE - 1 || lease[size] != '.' ||
        lease[size + 1] == '\0' || strlen(lease + size + 1) > QUEUE_NAME_MAX) {
        return queue_refuse_lease(lease, err);
    }
    memcpy(ret->name, lease, size);
    ret->name[size] = '\0';
    ret->queue = lease + size + 1;
    return 0;
}

static void begin_args(struct redis_args *args, const struct lease_parts *parts)
{
    char key[QUEUE_KEY_SIZE];

    queue_key(parts->queue, key);
    redis_args_init(args);
    redis_args_key(args, key);
}

static void add_ids(struct redis_args *args, const int64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        redis_args_number(args, ids[i]);
    }
}

static int refuse_unheld(const char *refusal, const char *lease, mr_error *err)
{
    char shown[4 * LEASE_SHOWN + 1];

    snprintf(shown, sizeof(shown), "%s", lease);
    int seen = 0;
    for (char *c = shown; *c; c++) {
        seen += ((unsigned char)*c & 0xc0) != 0x80;
        if (seen > LEASE_SHOWN) {
            *c = '\0';
            break;
        }
    }
    mr_error_set(err, MR_EUNKNOWN, "job %s is not in lease %s", refusal + strlen("MRUNHELD "),
                 shown);
    mr_error_sqlstate(err, "MR003");
    mr_error_hint(err, "Pass ids that the claim returned with this lease. Nothing was changed.");
    return MR_EUNKNOWN;
}

// The lease that a refusal is about: the first one, where it does not say.
static const char *refused_lease(const redisReply *reply, const char *const *leases, size_t count)
{
    static const char word[] = "MRLOST ";
    int64_t at = 1;

    if (queue_is_refusal(reply, word) &&
        !str_parse_int(reply->str + strlen(word), 1, (int64_t)count, &at)) {
        at = 1;
    }
    return leases[at - 1];
}

// Runs a script that works on leases and frees its arguments; *ret is not a refusal.
static int ask_leases(struct redis_link *link, const char *script, struct redis_args *args,
                      const char *const *leases, size_t count, redisReply **ret, mr_error *err)
{
    redisReply *reply = NULL;
    int code = redis_args_eval(args, link, script, &reply, err);

    redis_args_done(args);
    if (code) {
        return code;
    }
    if (queue_is_refusal(reply, "MRUNHELD ")) {
        code = refuse_unheld(reply->str, leases[0], err);
    } else if (reply->type == REDIS_REPLY_STATUS) {
        code = queue_refuse_lease(refused_lease(reply, leases, count), err);
    }
    if (code) {
        freeReplyObject(reply);
        return code;
    }
    *ret = reply;
    return 0;
}

static int ask_leases_number(struct redis_link *link, const char *script, struct redis_args *args,
                             const char *const *leases, size_t count, int64_t *ret, mr_error *err)
{
    redisReply *reply = NULL;
    int code = ask_leases(link, script, args, leases, count, &reply, err);

    if (code) {
        return code;
    }
    if (queue_number_of(reply, ret)) {
        code = redis_link_strange(link, err);
    }
    freeReplyObject(reply);
    return code;
}

static int refuse_other_queue(mr_error *err)
{
    mr_error_set(err, MR_EUSAGE,
                 "leases of several queues in one call need PostgreSQL; this "
                 "connection is to Redis");
    mr_error_hint(err, "On Redis a call works on one queue: complete the leases of each queue with "
                       "a call of its own.");
    return MR_EUSAGE;
}

// One lease may come with ids; of several all open jobs are completed.
int redis_queue_complete(struct redis_link *link, const char *const *leases, size_t lease_count,
                         const int64_t *ids, size_t count, int64_t *ret_done, mr_error *err)
{
    struct redis_args args;
    struct lease_parts first, parts;
    int code = parse_lease(leases[0], &first, err);

    if (code) {
        return code;
    }
    begin_args(&args, &first);
    redis_args_number(&args, (int64_t)lease_count);
    for (size_t i = 0; code == 0 && i < lease_count; i++) {
        code = parse_lease(leases[i], &parts, err);
        if (code == 0 && !str_equal(parts.queue, first.queue)) {
            code = refuse_other_queue(err);
        }
        redis_args_copy(&args, code ? "" : parts.name);
    }
    add_ids(&args, ids, count);
    if (code) {
        redis_args_done(&args);
        return code;
    }
    return ask_leases_number(link, "queue/complete.lua", &args, leases, lease_count, ret_done, err);
}

// The bytes of the first ERROR_CHARACTERS characters.
static size_t cut(const char *text)
{
    size_t seen = 0, at = 0;

    for (; text[at]; at++) {
        seen += ((unsigned char)text[at] & 0xc0) != 0x80;
        if (seen > ERROR_CHARACTERS) {
            break;
        }
    }
    return at;
}

int redis_queue_fail(struct redis_link *link, const char *lease, int64_t id, const char *error,
                     int64_t retry_in_ms, bool retry, const void *state, size_t state_size,
                     bool *ret_dead, mr_error *err)
{
    struct redis_args args;
    struct lease_parts parts;
    redisReply *reply = NULL;
    int code;

    if ((code = queue_check_utf8(error, err)) ||
        (code = queue_check_ms("retry_in", retry_in_ms, err)) ||
        (code = parse_lease(lease, &parts, err))) {
        return code;
    }
    begin_args(&args, &parts);
    redis_args_text(&args, parts.name);
    redis_args_number(&args, id);
    redis_args_bytes(&args, error, cut(error));
    redis_args_number(&args, retry_in_ms);
    redis_args_text(&args, retry ? "1" : "0");
    code = add_chance(&args, err);
    if (state) {
        redis_args_bytes(&args, state, state_size);
    }
    if (code) {
        redis_args_done(&args);
        return code;
    }
    if ((code = ask_leases(link, "queue/fail.lua", &args, &lease, 1, &reply, err))) {
        return code;
    }
    *ret_dead = reply->type == REDIS_REPLY_STRING && str_equal(reply->str, "dead");
    freeReplyObject(reply);
    return 0;
}

int redis_queue_release(struct redis_link *link, const char *lease, const int64_t *ids,
                        size_t count, int64_t *ret_done, mr_error *err)
{
    struct redis_args args;
    struct lease_parts parts;
    int code = parse_lease(lease, &parts, err);

    if (code) {
        return code;
    }
    begin_args(&args, &parts);
    redis_args_text(&args, parts.name);
    add_ids(&args, ids, count);
    return ask_leases_number(link, "queue/release.lua", &args, &lease, 1, ret_done, err);
}

int redis_queue_heartbeat(struct redis_link *link, const char *lease, int64_t extend_ms,
                          int64_t *ret_until_us, mr_error *err)
{
    struct redis_args args;
    struct lease_parts parts;
    int code;

    if ((code = queue_check_ms("extend", extend_ms, err)) ||
        (code = parse_lease(lease, &parts, err))) {
        return code;
    }
    begin_args(&args, &parts);
    redis_args_text(&args, parts.name);
    redis_args_number(&args, extend_ms);
    return ask_leases_number(link, "queue/heartbeat.lua", &args, &lease, 1, ret_until_us, err);
}
