// SPDX-License-Identifier: PostgreSQL
//
// Calls of the SQL core: see call.h.

#include "client/call.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

#include "client/conn.h"

// Types of array elements, as PostgreSQL numbers them.
enum { OID_BYTEA = 17, OID_JSONB = 3802 };

const struct call_info call_infos[CALL_KINDS] = {
    [CALL_ENQUEUE] =
        {"mr_enqueue",
         "select millrace.enqueue($1, coalesce($2::jsonb, '{}'), coalesce($3, 'default'),"
         " $4::int, $5::timestamptz, $6::interval, $7, $8, $9, $10, $11::int,"
         " $12::interval, $13::interval, $14::jsonb, $15::bytea, $16::bytea,"
         " coalesce($17, 'ignore'), $18::interval)",
         18, false, false},
    [CALL_ENQUEUE_MANY] = {"mr_enqueue_many",
                           "select millrace.enqueue_many($1, $2::jsonb[], coalesce($3, 'default'),"
                           " $4::int, $5::timestamptz)",
                           5, true, false},
    [CALL_ENQUEUE_HEAVY] = {"mr_enqueue_heavy",
                            "select millrace.enqueue_many($1, $2::jsonb[],"
                            " coalesce($3, 'default'), $4::int, $5::timestamptz, $6::bytea[],"
                            " $7::bytea[])",
                            7, true, false},
    [CALL_ENQUEUE_JOBS] = {"mr_enqueue_jobs", "select millrace.enqueue_jobs($1::jsonb)", 1, true,
                           false},
    [CALL_ASYNC_COMMIT] = {"mr_async_commit",
                           "select set_config('synchronous_commit', 'off', true)", 0, false, false},
    [CALL_CLAIM] =
        {"mr_claim",
         "select c.lease, c.id, c.attempt, c.max_attempts, c.kind, c.args, c.meta, c.state,"
         " c.blob, c.tenant, c.ref, c.priority, c.source, c.created_at, c.lease_until, c.timeout"
         " from millrace.claim_batch(coalesce($1, 'default'), $2, $3::int, $4::interval,"
         " $5::boolean) c",
         5, true, true},
    [CALL_COMPLETE] = {"mr_complete", "select millrace.complete($1, $2::bigint[], $3::jsonb)", 3,
                       false, false},
    [CALL_COMPLETE_MANY] = {"mr_complete_many", "select millrace.complete_many($1::text[])", 1,
                            false, false},
    [CALL_FAIL] = {"mr_fail",
                   "select millrace.fail($1, $2::bigint, $3, $4::interval, $5::boolean, $6::bytea)",
                   6, false, false},
    [CALL_FINISH] = {"mr_finish", "select millrace.finish($1, $2::jsonb)", 2, false, false},
    [CALL_REQUEUE] =
        {"mr_requeue",
         "select millrace.requeue($1, $2::bigint, coalesce($3::jsonb, '{}'), $4::bytea,"
         " $5::bytea)",
         5, false, false},
    [CALL_RELEASE] = {"mr_release", "select millrace.release($1, $2::bigint[])", 2, false, false},
    [CALL_HEARTBEAT] = {"mr_heartbeat",
                        "select h.lease_until, h.cancelled"
                        " from millrace.heartbeat($1, $2::interval) h",
                        2, true, false},
    [CALL_PROGRESS] = {"mr_progress",
                       "select millrace.progress($1, $2::bigint, $3::double precision, $4)", 4,
                       false, true},
    [CALL_WAIT_CHANNEL] = {"mr_wait_channel", "select millrace.wait_channel($1, $2)", 2, false,
                           false},
    [CALL_LISTEN] = {"mr_listen", "listen ", 0, false, false},
    [CALL_MAINTAIN] = {"mr_maintain", "select m.duty, m.done from millrace.maintain() m", 0, false,
                       false},
    [CALL_SET_QUEUE] = {"mr_set_queue", "select millrace.set_queue($1, $2::jsonb)", 2, false,
                        false},
    [CALL_SET_RETRY] = {"mr_set_retry",
                        "select millrace.set_retry($1, $2::int, $3::interval, $4::real,"
                        " $5::interval, $6::real)",
                        6, false, false},
    [CALL_SCHEDULE] = {"mr_schedule",
                       "select millrace.schedule($1, $2, $3, coalesce($4::jsonb, '{}'),"
                       " coalesce($5, 'default'), coalesce($6, 'UTC'), coalesce($7, 'last'),"
                       " $8::boolean, $9::int)",
                       9, false, false},
    [CALL_DEPTH] = {"mr_depth", "select millrace.depth($1)", 1, false, false},
    [CALL_JOB] = {"mr_job", "select millrace.job($1::bigint)::text", 1, false, false},
    [CALL_OUTCOME] = {"mr_outcome",
                      "select o.status, o.result, o.failure from millrace.outcome($1::bigint) o", 1,
                      false, false},
};

void call_init(struct call *call, enum call_kind kind)
{
    memset(call, 0, sizeof(*call));
    call->kind = kind;
    buf_init(&call->store, CALL_SIZE_MAX);
}

void call_done(struct call *call)
{
    buf_done(&call->store);
}

// Begins a parameter whose value is what is appended to the store before end().
static int begin(struct call *call, int format)
{
    int at = call->count++;

    call->offset[at] = call->store.len;
    call->format[at] = format;
    return at;
}

// A zero byte behind each value: a text parameter is a C string to libpq.
static void end(struct call *call, int at)
{
    call->length[at] = (int)(call->store.len - call->offset[at]);
    buf_add(&call->store, "", 1);
}

void call_null(struct call *call)
{
    int at = begin(call, 0);

    call->offset[at] = CALL_NULL;
}

void call_text(struct call *call, const char *text)
{
    if (!text) {
        call_null(call);
        return;
    }
    int at = begin(call, 0);
    buf_puts(&call->store, text);
    end(call, at);
}

void call_number(struct call *call, int64_t number)
{
    int at = begin(call, 0);

    buf_printf(&call->store, "%lld", (long long)number);
    end(call, at);
}

// In its binary form: as text it would depend on the locale.
void call_real(struct call *call, double number)
{
    int at = begin(call, 1);
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    bits = htobe64(bits);
    buf_add(&call->store, (const char *)&bits, sizeof(bits));
    end(call, at);
}

void call_bool(struct call *call, bool value)
{
    call_text(call, value ? "true" : "false");
}

void call_ms(struct call *call, int64_t ms)
{
    if (ms <= 0) {
        call_null(call);
        return;
    }
    int at = begin(call, 0);
    buf_printf(&call->store, "%lld ms", (long long)ms);
    end(call, at);
}

void call_bytes(struct call *call, const void *data, size_t size)
{
    if (!data) {
        call_null(call);
        return;
    }
    int at = begin(call, 1);
    buf_add(&call->store, data, size);
    end(call, at);
}

void call_numbers(struct call *call, const int64_t *numbers, size_t count)
{
    if (count == 0) {
        call_null(call);
        return;
    }
    int at = begin(call, 0);
    for (size_t i = 0; i < count; i++) {
        buf_printf(&call->store, "%c%lld", i ? ',' : '{', (long long)numbers[i]);
    }
    buf_puts(&call->store, "}");
    end(call, at);
}

void call_texts(struct call *call, const char *const *texts, size_t count)
{
    int at = begin(call, 0);

    buf_puts(&call->store, "{");
    for (size_t i = 0; i < count; i++) {
        buf_puts(&call->store, i ? ",\"" : "\"");
        for (const char *c = texts[i]; *c; c++) {
            if (*c == '"' || *c == '\\') {
                buf_add(&call->store, "\\", 1);
            }
            buf_add(&call->store, c, 1);
        }
        buf_puts(&call->store, "\"");
    }
    buf_puts(&call->store, "}");
    end(call, at);
}

static void add_int32(struct buf *out, uint32_t number)
{
    uint32_t network = htonl(number);

    buf_add(out, (const char *)&network, sizeof(network));
}

static void add_array_head(struct buf *out, uint32_t type, size_t count, bool nulls)
{
    add_int32(out, count ? 1 : 0); // dimensions
    add_int32(out, nulls);
    add_int32(out, type);
    if (count) {
        add_int32(out, (uint32_t)count);
        add_int32(out, 1); // the first index
    }
}

void call_json_array(struct call *call, const char *const *texts, size_t count)
{
    int at = begin(call, 1);
    struct buf *out = &call->store;

    add_array_head(out, OID_JSONB, count, false);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(texts[i]);
        add_int32(out, (uint32_t)size + 1);
        buf_add(out, "\1", 1); // the version of jsonb's binary form, which is text
        buf_add(out, texts[i], size);
    }
    end(call, at);
}

void call_bytes_array(struct call *call, const struct call_part *parts, size_t count)
{
    struct buf *out = &call->store;
    size_t nulls = 0;

    for (size_t i = 0; i < count; i++) {
        nulls += !parts[i].data;
    }
    if (nulls == count) {
        call_null(call);
        return;
    }
    int at = begin(call, 1);
    add_array_head(out, OID_BYTEA, count, nulls > 0);
    for (size_t i = 0; i < count; i++) {
        add_int32(out, parts[i].data ? (uint32_t)parts[i].size : UINT32_MAX);
        if (parts[i].data) {
            buf_add(out, parts[i].data, parts[i].size);
        }
    }
    end(call, at);
}

int call_status(const struct call *call, struct mr_error *err)
{
    int code = buf_status(&call->store, err);

    if (code == MR_ELIMIT) {
        mr_error_hint(err, "Send less in one call: fewer jobs in a chunk, or smaller ones.");
    }
    return code;
}

void call_values(const struct call *call, const char **ret_values, int *ret_lengths,
                 int *ret_formats)
{
    for (int i = 0; i < call->count; i++) {
        ret_values[i] = call->offset[i] == CALL_NULL ? NULL : call->store.data + call->offset[i];
        ret_lengths[i] = call->length[i];
        ret_formats[i] = call->format[i];
    }
}

int call_exec(const struct call *call, PGconn *pg, PGresult **ret, struct mr_error *err)
{
    const struct call_info *info = &call_infos[call->kind];
    const char *values[CALL_PARAMS_MAX];
    int lengths[CALL_PARAMS_MAX], formats[CALL_PARAMS_MAX];

    call_values(call, values, lengths, formats);
    PGresult *result = PQexecParams(pg, info->statement, call->count, NULL, values, lengths,
                                    formats, info->binary);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        int code = conn_error_of(pg, result, err);
        PQclear(result);
        return code;
    }
    *ret = result;
    return 0;
}
