// SPDX-License-Identifier: PostgreSQL
//
// Many jobs, a chunk at a time: see bulk.h.

#include "cli/bulk.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/call.h"
#include "client/mr_parcel.h"
#include "client/room.h"

enum { TRIES = 3, CHUNK_FIRST = 1024, SAME_MAX = 64 * 1024 };

// Above the limit at which a chunk is sent: the last line may be as long as a line can be, and
// has the defaults added to it.
#define TEXT_MAX (4 * BULK_BYTES_MAX)

const char *const bulk_options[BULK_OPTIONS] = {
    [BULK_KIND] = "kind",
    [BULK_QUEUE] = "queue",
    [BULK_PRIORITY] = "priority",
    [BULK_ARGS] = "args",
    [BULK_RUN_AT] = "run_at",
    [BULK_DELAY] = "delay",
    [BULK_UNIQUE_KEY] = "unique_key",
    [BULK_ON_CONFLICT] = "on_conflict",
    [BULK_UNIQUE_FOR] = "unique_for",
    [BULK_ORDERING_KEY] = "ordering_key",
    [BULK_TENANT] = "tenant",
    [BULK_REF] = "ref",
    [BULK_MAX_ATTEMPTS] = "max_attempts",
    [BULK_TIMEOUT] = "timeout",
    [BULK_EXPIRES_IN] = "expires_in",
    [BULK_META] = "meta",
};

void bulk_init(struct bulk *bulk, struct conn *conn, const char *const *defaults)
{
    *bulk = (struct bulk){.conn = conn, .defaults = defaults};
    buf_init(&bulk->objects, TEXT_MAX);
    buf_init(&bulk->args, TEXT_MAX);
    buf_init(&bulk->same, SAME_MAX);
}

void bulk_done(struct bulk *bulk)
{
    buf_done(&bulk->objects);
    buf_done(&bulk->args);
    buf_done(&bulk->same);
    mr_conn_free(bulk->wrapped);
    bulk->wrapped = NULL;
    free(bulk->jobs);
    bulk->jobs = NULL;
    bulk->count = bulk->capacity = 0;
}

// ---- a line ----

// What a line has: a value of NULL is absent.
struct parts {
    struct json_slice values[BULK_OPTIONS];
    bool empty;   // no member at all
    bool others;  // members that are not in the table: state, blob, or a mistake
    bool escaped; // a key with an escape: which one it is only PostgreSQL could tell
};

static void take_part(void *arg, struct json_slice key, struct json_slice value)
{
    static const struct json_slice absent = {NULL, 0};
    struct parts *parts = arg;

    parts->empty = false;
    parts->escaped |= memchr(key.at, '\\', key.len) != NULL;
    for (int i = 0; i < BULK_OPTIONS; i++) {
        if (json_slice_is(key, bulk_options[i])) {
            // null means the default
            parts->values[i] = json_slice_is(value, "null") ? absent : value;
            return;
        }
    }
    parts->others = true;
}

static int split_line(struct json_slice line, struct parts *ret, struct mr_error *err)
{
    *ret = (struct parts){.empty = true};

    int code = json_each_member(line, take_part, ret, err);
    if (code == 0 && ret->escaped) {
        return mr_error_set(err, MR_EINVALID, "a key is written with an escape");
    }
    return code;
}

// A time of the line's own, of either kind, takes the place of both defaults. What is said about
// keys means nothing to a line without one, which would be refused for it.
static bool wants_default(const struct bulk *bulk, const struct parts *parts, int option)
{
    if (!bulk->defaults[option] || parts->values[option].at) {
        return false;
    }
    if (option == BULK_RUN_AT || option == BULK_DELAY) {
        return !parts->values[BULK_RUN_AT].at && !parts->values[BULK_DELAY].at;
    }
    if (option == BULK_ON_CONFLICT || option == BULK_UNIQUE_FOR) {
        return bulk->defaults[BULK_UNIQUE_KEY] || parts->values[BULK_UNIQUE_KEY].at;
    }
    return true;
}

// Defaults go behind the line's own members: of two with the same key PostgreSQL takes the last,
// and the line's can only be null then.
static void add_object(struct bulk *bulk, struct json_slice line, const struct parts *parts)
{
    bool first = parts->empty;
    size_t len = line.len;

    while (line.at[len - 1] != '}') {
        len--;
    }
    buf_add(&bulk->objects, line.at, len - 1);
    for (int i = 0; i < BULK_OPTIONS; i++) {
        if (wants_default(bulk, parts, i)) {
            buf_printf(&bulk->objects, "%s\"%s\":%s", first ? "" : ",", bulk_options[i],
                       bulk->defaults[i]);
            first = false;
        }
    }
    buf_puts(&bulk->objects, "}");
    buf_add(&bulk->objects, "", 1);
}

// ---- whether all jobs of a chunk are alike ----

static struct json_slice effective(const struct bulk *bulk, const struct parts *parts, int option)
{
    if (wants_default(bulk, parts, option)) {
        return json_slice_of(bulk->defaults[option]);
    }
    return parts->values[option];
}

// A string that needs no decoding.
static bool is_simple_string(struct json_slice value)
{
    return value.at && value.at[0] == '"' && !memchr(value.at, '\\', value.len);
}

static bool is_simple_number(struct json_slice value)
{
    return value.len <= 2 && strspn(value.at, "0123456789") >= value.len;
}

// Whether enqueue_many() can take it, which has kind, queue and priority as texts.
static bool is_plain(const struct bulk *bulk, const struct parts *parts)
{
    struct json_slice queue = effective(bulk, parts, BULK_QUEUE);
    struct json_slice priority = effective(bulk, parts, BULK_PRIORITY);

    if (parts->others || !is_simple_string(effective(bulk, parts, BULK_KIND)) ||
        (queue.at && !is_simple_string(queue)) || (priority.at && !is_simple_number(priority))) {
        return false;
    }
    for (int i = BULK_ARGS + 1; i < BULK_OPTIONS; i++) {
        if (effective(bulk, parts, i).at) {
            return false;
        }
    }
    return true;
}

static void add_slice(struct buf *out, struct json_slice slice)
{
    if (slice.at) {
        buf_add(out, slice.at, slice.len);
    }
    buf_add(out, "", 1);
}

static bool is_equal(const struct buf *a, const struct buf *b)
{
    return a->status == 0 && b->status == 0 && a->len == b->len &&
           memcmp(a->data, b->data, a->len) == 0;
}

static void note_args(struct bulk *bulk, const struct parts *parts)
{
    struct json_slice args = effective(bulk, parts, BULK_ARGS);
    AUTO_BUF same;

    buf_init(&same, SAME_MAX);
    for (int i = BULK_KIND; i <= BULK_PRIORITY; i++) {
        add_slice(&same, effective(bulk, parts, i));
    }
    if (bulk->count == 0) {
        bulk->same.len = 0;
        bulk->alike = true;
    }
    if (bulk->count == 0 && same.status == 0) {
        buf_add(&bulk->same, same.data, same.len);
    }
    bulk->alike = bulk->alike && is_plain(bulk, parts) && is_equal(&same, &bulk->same);
    if (bulk->alike) {
        bulk->jobs[bulk->count].args = bulk->args.len;
        add_slice(&bulk->args, args.at ? args : json_slice_of("{}"));
    }
}

// ---- a chunk ----

static int grow(struct bulk *bulk, struct mr_error *err)
{
    size_t wanted = bulk->capacity ? 2 * bulk->capacity : CHUNK_FIRST;
    struct bulk_job *grown = reallocarray(bulk->jobs, wanted, sizeof(*grown));

    if (!grown) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    bulk->jobs = grown;
    bulk->capacity = wanted;
    return 0;
}

int bulk_add(struct bulk *bulk, struct json_slice line, int64_t number, struct mr_error *err)
{
    struct parts parts;
    int code = split_line(line, &parts, err);

    if (code == 0 && bulk->count == bulk->capacity) {
        code = grow(bulk, err);
    }
    if (code) {
        return code;
    }
    bulk->jobs[bulk->count] = (struct bulk_job){.object = bulk->objects.len, .line = number};
    add_object(bulk, line, &parts);
    note_args(bulk, &parts);
    code = buf_status(&bulk->objects, err);
    bulk->count += code == 0;
    return code;
}

static void clear(struct bulk *bulk)
{
    bulk->count = 0;
    bulk->objects.len = bulk->args.len = 0;
}

// A JSON string without its quotes, in `out`; NULL for "".
static const char *unquoted(struct buf *out, const char *json)
{
    if (!*json) {
        return NULL;
    }
    buf_add(out, json + 1, strlen(json) - 2);
    return buf_peek(out);
}

// Args of one queue, coded as it wants it.
static int code_args(const struct bulk *bulk, const char *queue, const char **texts, size_t count,
                     struct parcel *parcel, struct mr_error *err)
{
    struct policy policy = {0};
    int code = 0;

    for (size_t i = 0; i < count; i++) {
        if (parcel_asks(texts[i], 0, 0)) {
            code = mr__parcel_policy(bulk->wrapped, PARCEL_WAITS, queue, &policy, err);
            break;
        }
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = parcel_pack_args(parcel, &policy, &texts[i], err);
    }
    return code;
}

static int fill_many(const struct bulk *bulk, size_t from, size_t to, struct parcel *parcel,
                     struct call *call, struct mr_error *err)
{
    const char **texts = calloc(to - from, sizeof(*texts));
    const char *kind = bulk->same.data;
    const char *queue = kind + strlen(kind) + 1;
    const char *priority = queue + strlen(queue) + 1;
    AUTO_BUF kind_text;
    AUTO_BUF queue_text;

    buf_init(&kind_text, SAME_MAX);
    buf_init(&queue_text, SAME_MAX);
    if (!texts) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = from; i < to; i++) {
        texts[i - from] = bulk->args.data + bulk->jobs[i].args;
    }
    queue = unquoted(&queue_text, queue);
    int code = code_args(bulk, queue, texts, to - from, parcel, err);
    call_text(call, unquoted(&kind_text, kind));
    call_json_array(call, texts, to - from);
    call_text(call, queue);
    call_text(call, *priority ? priority : "50");
    call_null(call);
    free(texts);
    return code;
}

static int fill_jobs(const struct bulk *bulk, size_t from, size_t to, struct parcel *parcel,
                     struct call *call, struct mr_error *err)
{
    AUTO_BUF array;
    int code = 0;

    buf_init(&array, 2 * (size_t)TEXT_MAX);
    for (size_t i = from; code == 0 && i < to; i++) {
        buf_puts(&array, i == from ? "[" : ",");
        code =
            mr__parcel_text(bulk->wrapped, parcel, PARCEL_WAITS,
                            json_slice_of(bulk->objects.data + bulk->jobs[i].object), &array, err);
    }
    buf_puts(&array, "]");
    call_text(call, buf_peek(&array));
    return code ? code : buf_status(&array, err);
}

// For the library's part of it: each call is a transaction of its own.
static int wrap(struct bulk *bulk, struct mr_error *err)
{
    int code = bulk->wrapped ? 0 : mr_conn_wrap(conn_pg(bulk->conn), &bulk->wrapped, err);

    if (code == 0) {
        mr__conn_let_offload(bulk->wrapped);
    }
    return code;
}

static int send_once(struct bulk *bulk, size_t from, size_t to, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    call_init(&call, bulk->alike ? CALL_ENQUEUE_MANY : CALL_ENQUEUE_JOBS);
    int code = wrap(bulk, err);
    if (code == 0) {
        code = (bulk->alike ? fill_many : fill_jobs)(bulk, from, to, &parcel, &call, err);
    }
    while (code == 0 && mr__parcel_ship_fails(bulk->wrapped, &parcel)) {
        call_done(&call);
        call_init(&call, bulk->alike ? CALL_ENQUEUE_MANY : CALL_ENQUEUE_JOBS);
        code = (bulk->alike ? fill_many : fill_jobs)(bulk, from, to, &parcel, &call, err);
    }
    if (code == 0) {
        code = call_status(&call, err);
    }
    if (code == 0) {
        code = call_exec(&call, conn_pg(bulk->conn), &rows, err);
    }
    if (code) {
        return code;
    }
    bulk->jobs_in += (int64_t)(to - from);
    bulk->line_in = bulk->jobs[to - 1].line;
    bulk->on_ids(bulk->arg, rows);
    return 0;
}

// A deadlock or the like leaves nothing behind.
static int send_stubbornly(struct bulk *bulk, size_t from, size_t to, struct mr_error *err)
{
    int code = 0;

    for (int i = 0; i < TRIES; i++) {
        code = send_once(bulk, from, to, err);
        if (code != MR_ECONFLICT) {
            break;
        }
    }
    return code;
}

static bool is_cancelled(const struct bulk *bulk)
{
    return bulk->cancel && *bulk->cancel;
}

// Jobs from..to as one transaction.
static int send_range(struct bulk *bulk, size_t from, size_t to, struct mr_error *err)
{
    struct room_wait wait;
    int64_t pause_ms = 0;
    int code;

    room_wait_begin(&wait, clock_ms(), bulk->wait_ms);
    while ((code = send_stubbornly(bulk, from, to, err)) &&
           room_wait_again(&wait, clock_ms(), code, &pause_ms, err) && !is_cancelled(bulk)) {
        poll(NULL, 0, (int)pause_ms); // a signal ends it
    }
    return code;
}

// Whether the jobs themselves are to blame: bad values (22), features of a later version (0A),
// limits of the server (54).
static bool is_refusal(const struct mr_error *err)
{
    return err->error_class == MR_CLASS_REJECTED || str_starts(err->sqlstate, "54");
}

static void cut_out(char *text, const char *part)
{
    char *at = strstr(text, part);

    if (at) {
        memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
    }
}

// The server counts jobs in what was sent, which is a single one at the end of the search.
static void trim_place(struct mr_error *err)
{
    if (str_starts(err->message, "job 1: ")) {
        cut_out(err->message, "job 1: ");
        cut_out(err->hint, "job 1: ");
    } else if (str_starts(err->message, "job 1 ")) {
        cut_out(err->message, "job 1 ");
    }
}

static int send_or_halve(struct bulk *bulk, size_t from, size_t to, int64_t *ret_line,
                         struct mr_error *err)
{
    int code = send_range(bulk, from, to, err);

    if (code == 0 || !is_refusal(err)) {
        return code;
    }
    if (to - from == 1) {
        *ret_line = bulk->jobs[from].line;
        mr_error_detail(err, "%s", "");
        trim_place(err);
        return code;
    }
    size_t middle = from + (to - from) / 2;
    code = send_or_halve(bulk, from, middle, ret_line, err);
    return code ? code : send_or_halve(bulk, middle, to, ret_line, err);
}

int bulk_send(struct bulk *bulk, int64_t *ret_line, struct mr_error *err)
{
    *ret_line = 0;
    int code = bulk->count ? send_or_halve(bulk, 0, bulk->count, ret_line, err) : 0;

    clear(bulk);
    return code;
}
