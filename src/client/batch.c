// SPDX-License-Identifier: PostgreSQL
//
// What a claim brought: see batch.h.
//
// Nothing is copied but the queue's name: libpq puts a zero byte behind every field, so texts
// and bytes are used where they lie in the result, which lives as long as the batch. What was coded
// is decoded beside it. In an array it is the length of the next element that ends a text: its
// first byte is zero.

#include "client/batch.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "client/parcel.h"
#include "client/shard.h"

// The columns of CALL_CLAIM.
enum {
    COLUMN_LEASE,
    COLUMN_ID,
    COLUMN_ATTEMPT,
    COLUMN_MAX_ATTEMPTS,
    COLUMN_KIND,
    COLUMN_ARGS,
    COLUMN_META,
    COLUMN_STATE,
    COLUMN_BLOB,
    COLUMN_TENANT,
    COLUMN_REF,
    COLUMN_PRIORITY,
    COLUMN_SOURCE,
    COLUMN_CREATED_AT,
    COLUMN_LEASE_UNTIL,
    COLUMN_TIMEOUT,
    COLUMN_PACK,
    COLUMNS,
};

// The first row is the lease's; the jobs follow, several of them in a row with a pack.
enum { LEASE_ROW, JOB_ROWS };

// An array in binary: the number of its dimensions, flags, the type of its elements; then of its
// only dimension how many there are and the first one's number; then each element behind its
// length.
enum {
    ARRAY_COUNT_AT = 12,
    ARRAY_HEAD = 20,
    ARRAY_ELEMENT_MAX = (1 << 24) - 1, // its length begins with a zero byte
};

// Types, as PostgreSQL numbers them.
enum {
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_TIMESTAMPTZ = 1184,
    OID_INTERVAL = 1186,
    OID_JSONB = 3802,
    OID_JSONB_ARRAY = 3807,
};

static const Oid column_types[COLUMNS] = {
    [COLUMN_LEASE] = OID_TEXT,
    [COLUMN_ID] = OID_INT8,
    [COLUMN_ATTEMPT] = OID_INT4,
    [COLUMN_MAX_ATTEMPTS] = OID_INT4,
    [COLUMN_KIND] = OID_TEXT,
    [COLUMN_ARGS] = OID_JSONB,
    [COLUMN_META] = OID_JSONB,
    [COLUMN_STATE] = OID_BYTEA,
    [COLUMN_BLOB] = OID_BYTEA,
    [COLUMN_TENANT] = OID_TEXT,
    [COLUMN_REF] = OID_TEXT,
    [COLUMN_PRIORITY] = OID_INT4,
    [COLUMN_SOURCE] = OID_TEXT,
    [COLUMN_CREATED_AT] = OID_TIMESTAMPTZ,
    [COLUMN_LEASE_UNTIL] = OID_TIMESTAMPTZ,
    [COLUMN_TIMEOUT] = OID_INTERVAL,
    [COLUMN_PACK] = OID_JSONB_ARRAY,
};

// The version of jsonb's binary form; the rest of the field is text.
enum { JSONB_VERSION = 1 };

#define US_PER_MS     INT64_C(1000)
#define MS_PER_DAY    (INT64_C(24) * 60 * 60 * 1000)
#define DAYS_IN_MONTH 30 // as PostgreSQL counts when it has to
// From 1970-01-01 to 2000-01-01, where PostgreSQL's time begins.
#define EPOCH_SHIFT_US INT64_C(946684800000000)

struct mr_batch {
    PGresult *result; // or
    void *memory;     // of another backend, with
    void (*free_memory)(void *memory);
    char *queue;
    char *shard_lease; // what callers see instead of the lease; NULL: that
    const char *lease; // then, borrowed from the result
    int64_t lease_ms;
    size_t count;
    struct parcel parcel; // what the originals of coded parts lie in
    struct parcel remote; // the objects of jobs that are away
    bool *aways;          // which are; NULL: none
    size_t away;          // so many
    struct flaw *flaws;   // one for each job; NULL: none has one
    mr_claimed_job jobs[];
};

struct flaw {
    bool there;
    bool object; // of the blob store
    struct mr_error err;
};

// ---- fields ----

static uint32_t read_uint32(const char *data)
{
    uint32_t network;

    memcpy(&network, data, sizeof(network));
    return ntohl(network);
}

static int64_t read_int64(const char *data)
{
    uint64_t network;

    memcpy(&network, data, sizeof(network));
    return (int64_t)be64toh(network);
}

static int field_int(const PGresult *result, int row, int column)
{
    return PQgetlength(result, row, column) == sizeof(uint32_t)
               ? (int)read_uint32(PQgetvalue(result, row, column))
               : 0;
}

static int64_t field_int64(const PGresult *result, int row, int column)
{
    return PQgetlength(result, row, column) == sizeof(uint64_t)
               ? read_int64(PQgetvalue(result, row, column))
               : 0;
}

int64_t batch_time_us(const PGresult *result, int row, int column)
{
    int64_t us = field_int64(result, row, column);

    // the ends of the range stand for infinity
    return us > INT64_MAX - EPOCH_SHIFT_US ? INT64_MAX : us + EPOCH_SHIFT_US;
}

static int64_t field_interval_ms(const PGresult *result, int row, int column)
{
    enum { INTERVAL_SIZE = 16 };

    if (PQgetlength(result, row, column) != INTERVAL_SIZE) {
        return 0;
    }
    const char *data = PQgetvalue(result, row, column);
    int64_t days = (int32_t)read_uint32(data + 8);
    int64_t months = (int32_t)read_uint32(data + 12);
    return read_int64(data) / US_PER_MS + (days + months * DAYS_IN_MONTH) * MS_PER_DAY;
}

static const char *field_text(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}

static const char *field_json(const PGresult *result, int row, int column)
{
    const char *data = field_text(result, row, column);

    return data && data[0] == JSONB_VERSION ? data + 1 : NULL;
}

static const void *field_bytes(const PGresult *result, int row, int column, size_t *ret_size)
{
    *ret_size = (size_t)PQgetlength(result, row, column);
    return field_text(result, row, column);
}

// ---- the batch ----

static int other_version(const char *what, mr_error *err)
{
    mr_error_set(err, MR_ESCHEMA, "cannot read jobs: %s", what);
    mr_error_hint(err, "The schema and the library are of different versions; upgrade the "
                       "older one (`millrace migrate` for the schema).");
    return MR_ESCHEMA;
}

static int check_columns(const PGresult *result, mr_error *err)
{
    bool fits = PQnfields(result) == COLUMNS;

    for (int i = 0; fits && i < COLUMNS; i++) {
        fits = PQftype(result, i) == column_types[i] && PQfformat(result, i) == 1;
    }
    return fits ? 0 : other_version("claim_packs() returns other columns", err);
}

// `shared` has what is the lease's.
static void read_job(const PGresult *result, int row, const mr_claimed_job *shared,
                     mr_claimed_job *job)
{
    *job = (mr_claimed_job){
        .id = field_int64(result, row, COLUMN_ID),
        .attempt = field_int(result, row, COLUMN_ATTEMPT),
        .max_attempts = field_int(result, row, COLUMN_MAX_ATTEMPTS),
        .priority = shared->priority,
        .lease = shared->lease,
        .queue = shared->queue,
        .kind = field_text(result, row, COLUMN_KIND),
        .args = field_json(result, row, COLUMN_ARGS),
        .meta = field_json(result, row, COLUMN_META),
        .tenant = field_text(result, row, COLUMN_TENANT),
        .ref = field_text(result, row, COLUMN_REF),
        .source = field_text(result, row, COLUMN_SOURCE),
        .created_at_us = batch_time_us(result, row, COLUMN_CREATED_AT),
        .lease_until_us = shared->lease_until_us,
        .timeout_ms = field_interval_ms(result, row, COLUMN_TIMEOUT),
    };
    job->state = field_bytes(result, row, COLUMN_STATE, &job->state_size);
    job->blob = field_bytes(result, row, COLUMN_BLOB, &job->blob_size);
    if (!job->args) {
        job->args = "{}";
    }
}

// Of the array's head what matters; false: it is not an array of one dimension.
static bool pack_count(const PGresult *result, int row, size_t *ret)
{
    const char *pack = PQgetvalue(result, row, COLUMN_PACK);

    if (PQgetlength(result, row, COLUMN_PACK) < ARRAY_HEAD || read_uint32(pack) != 1) {
        return false;
    }
    *ret = read_uint32(pack + ARRAY_COUNT_AT);
    // each has a length at least
    size_t room = (size_t)PQgetlength(result, row, COLUMN_PACK) - ARRAY_HEAD;
    return *ret > 0 && *ret <= room / sizeof(uint32_t);
}

// How many jobs a row has. One whose pack cannot be read counts as one.
static size_t row_jobs(const PGresult *result, int row)
{
    size_t count = 0;

    return !PQgetisnull(result, row, COLUMN_PACK) && pack_count(result, row, &count) ? count : 1;
}

size_t batch_jobs_in(const PGresult *result)
{
    size_t count = 0;

    for (int row = JOB_ROWS; row < PQntuples(result) && PQnfields(result) == COLUMNS; row++) {
        count += row_jobs(result, row);
    }
    return count;
}

struct batch_limit batch_limit(const PGresult *result)
{
    struct batch_limit limit = {0};

    if (PQntuples(result) <= LEASE_ROW || PQnfields(result) != COLUMNS) {
        return limit;
    }
    limit.name = field_text(result, LEASE_ROW, COLUMN_KIND);
    if (batch_jobs_in(result) == 0 && !PQgetisnull(result, LEASE_ROW, COLUMN_LEASE_UNTIL)) {
        int64_t wait_us = batch_time_us(result, LEASE_ROW, COLUMN_LEASE_UNTIL) -
                          batch_time_us(result, LEASE_ROW, COLUMN_CREATED_AT);
        limit.wait_ms = wait_us > 0 ? wait_us / US_PER_MS + 1 : 1;
    }
    return limit;
}

// The jobs of a pack: as the first one, which is in its place, but for id and args.
static int read_pack(const PGresult *result, int row, mr_claimed_job *jobs, mr_error *err)
{
    size_t count = 0;
    bool good = pack_count(result, row, &count);
    const char *at = PQgetvalue(result, row, COLUMN_PACK) + (good ? ARRAY_HEAD : 0);
    size_t left = good ? (size_t)PQgetlength(result, row, COLUMN_PACK) - ARRAY_HEAD : 0;

    for (size_t i = 0; good && i < count; i++) {
        size_t length = left < sizeof(uint32_t) ? 0 : read_uint32(at);
        good = length > 0 && length <= ARRAY_ELEMENT_MAX && length <= left - sizeof(uint32_t) &&
               at[sizeof(uint32_t)] == JSONB_VERSION;
        if (good) {
            jobs[i] = jobs[0];
            jobs[i].id += (int64_t)i;
            jobs[i].args = at + sizeof(uint32_t) + 1;
            at += sizeof(uint32_t) + length;
            left -= sizeof(uint32_t) + length;
        }
    }
    return good ? 0 : other_version("a pack is not an array of jsonb", err);
}

static int read_jobs(struct mr_batch *batch, mr_error *err)
{
    const PGresult *result = batch->result;
    int64_t since_us = batch_time_us(result, LEASE_ROW, COLUMN_CREATED_AT);
    mr_claimed_job shared = {
        .priority = field_int(result, LEASE_ROW, COLUMN_PRIORITY),
        .lease = field_text(result, LEASE_ROW, COLUMN_LEASE),
        .queue = batch->queue,
        .lease_until_us = batch_time_us(result, LEASE_ROW, COLUMN_LEASE_UNTIL),
    };
    mr_claimed_job *job = batch->jobs;
    int code = 0;

    batch->lease_ms = (shared.lease_until_us - since_us) / US_PER_MS;
    for (int row = JOB_ROWS; code == 0 && row < PQntuples(result); row++) {
        read_job(result, row, &shared, job);
        if (!PQgetisnull(result, row, COLUMN_PACK)) {
            code = read_pack(result, row, job, err);
        }
        job += row_jobs(result, row);
    }
    return code;
}

static int flaw_at(struct mr_batch *batch, size_t at, const struct mr_error *why, mr_error *err)
{
    if (!batch->flaws && !(batch->flaws = calloc(batch->count, sizeof(*batch->flaws)))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->flaws[at] = (struct flaw){true, batch_is_away(batch, at), *why};
    return 0;
}

static int note_away(struct mr_batch *batch, size_t at, mr_error *err)
{
    if (!batch->aways && !(batch->aways = calloc(batch->count, sizeof(*batch->aways)))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->aways[at] = true;
    batch->away++;
    return parcel_want_job(&batch->remote, &batch->jobs[at], err);
}

static int open_jobs(struct mr_batch *batch, mr_error *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < batch->count; i++) {
        struct mr_error why;
        if (!parcel_is_coded(&batch->jobs[i])) {
            continue;
        }
        if (parcel_has_object(&batch->jobs[i])) {
            code = note_away(batch, i, err);
        } else if (parcel_open_job(&batch->parcel, &batch->jobs[i], &why)) {
            code = flaw_at(batch, i, &why, err);
        }
    }
    return code;
}

size_t batch_away(const mr_batch *batch)
{
    return batch ? batch->away : 0;
}

bool batch_is_away(const mr_batch *batch, size_t index)
{
    return batch->aways && batch->aways[index];
}

void batch_fetch(mr_batch *batch, struct depot *depot)
{
    parcel_fetch(&batch->remote, depot);
}

int batch_open_away(mr_batch *batch, mr_error *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < batch->count; i++) {
        struct mr_error why;
        if (batch_is_away(batch, i) && parcel_open_job(&batch->remote, &batch->jobs[i], &why)) {
            code = flaw_at(batch, i, &why, err);
        }
    }
    free(batch->aways);
    batch->aways = NULL;
    batch->away = 0;
    return code;
}

const struct mr_error *batch_flaw(const mr_batch *batch, size_t index)
{
    return batch->flaws && batch->flaws[index].there ? &batch->flaws[index].err : NULL;
}

bool batch_flaw_is_object(const mr_batch *batch, size_t index)
{
    return batch->flaws && batch->flaws[index].object;
}

bool batch_has_flaws(const mr_batch *batch)
{
    return batch->flaws != NULL;
}

void batch_drop_flaws(mr_batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (!batch_flaw(batch, i)) {
            batch->jobs[kept++] = batch->jobs[i];
        }
    }
    batch->count = kept;
    free(batch->flaws);
    batch->flaws = NULL;
}

int batch_take(PGresult *result, const char *queue, mr_batch **ret, mr_error *err)
{
    size_t count;
    struct mr_batch *batch;
    int code = check_columns(result, err);

    if (code) {
        PQclear(result);
        return code;
    }
    count = batch_jobs_in(result);
    batch = calloc(1, sizeof(*batch) + count * sizeof(batch->jobs[0]));
    if (!batch || !(batch->queue = strdup(queue ? queue : "default"))) {
        free(batch);
        PQclear(result);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->result = result;
    batch->count = count;
    if ((count > 0 && (code = read_jobs(batch, err))) || (code = open_jobs(batch, err))) {
        mr_batch_free(batch);
        return code;
    }
    *ret = batch;
    return 0;
}

int batch_of(size_t count, int64_t lease_ms, void *memory, void (*free_memory)(void *memory),
             mr_batch **ret, mr_claimed_job **ret_jobs, mr_error *err)
{
    mr_batch *batch = calloc(1, sizeof(*batch) + count * sizeof(batch->jobs[0]));

    if (!batch) {
        free_memory(memory);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->memory = memory;
    batch->free_memory = free_memory;
    batch->lease_ms = lease_ms;
    batch->count = count;
    *ret = batch;
    *ret_jobs = batch->jobs;
    return 0;
}

int batch_of_shard(mr_batch *batch, int number, mr_error *err)
{
    if (batch->count == 0) {
        return 0;
    }
    batch->shard_lease = malloc(SHARD_LEASE_SIZE);
    if (!batch->shard_lease) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->lease = batch->jobs[0].lease;
    shard_lease(number, batch->lease, batch->shard_lease);
    for (size_t i = 0; i < batch->count; i++) {
        batch->jobs[i].lease = batch->shard_lease;
    }
    return 0;
}

const char *batch_lease(const mr_batch *batch)
{
    return batch->lease ? batch->lease : mr_batch_lease(batch);
}

int64_t batch_lease_ms(const mr_batch *batch)
{
    return batch->lease_ms;
}

size_t mr_batch_count(const mr_batch *batch)
{
    return batch ? batch->count : 0;
}

const mr_claimed_job *mr_batch_job(const mr_batch *batch, size_t index)
{
    return index < mr_batch_count(batch) ? &batch->jobs[index] : NULL;
}

const char *mr_batch_lease(const mr_batch *batch)
{
    return mr_batch_count(batch) ? batch->jobs[0].lease : NULL;
}

void mr_batch_free(mr_batch *batch)
{
    if (batch) {
        PQclear(batch->result);
        if (batch->free_memory) {
            batch->free_memory(batch->memory);
        }
        parcel_done(&batch->parcel);
        parcel_done(&batch->remote);
        free(batch->aways);
        free(batch->flaws);
        free(batch->queue);
        free(batch->shard_lease);
        free(batch);
    }
}
