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
    [CALL_CLAIM] =
        {"mr_claim",
         "select c.lease, c.id, c.attempt, c.max_attempts, c.kind, c.args, c.meta, c.state,"
         " c.blob, c.tenant, c.ref, c.priority, c.source, c.created_at, c.lease_until, c.timeout,"
         " c.pack"
         " from millrace.claim_packs(coalesce($1, 'default'), $2, $3::int, $4::interval,"
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
                           true},
    [CALL_LISTEN] = {"mr_listen", "listen ", 0, false, false},
    [CALL_UNLISTEN] = {"mr_unlisten", "unlisten ", 0, false, false},
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
    [CALL_BRIDGE_APPLY] = {"mr_bridge_apply",
                           "select a.applied, a.repeated, a.dead from millrace.bridge_apply($1, $2,"
                           " $3, $4::text[], $5::jsonb[], $6::boolean, $7::jsonb) a",
                           7, false, false},
    [CALL_BRIDGE_BEGIN] = {"mr_bridge_begin",
                           "select b.begin_after, b.restarted from millrace.bridge_begin($1, $2,"
                           " $3, $4) b",
                           4, false, false},
    [CALL_BRIDGE_FLOOR] = {"mr_bridge_floor", "select millrace.bridge_floor($1, $2, $3, $4)", 4,
                           false, false},
    [CALL_OFFLOAD_TURN] = {"mr_offload_turn", "select millrace.offload_turn($1, $2::boolean)", 2,
                           false, false},
    [CALL_OFFLOAD_TAKE] = {"mr_offload_take",
                           "select t.no, t.place, t.id, t.part, t.object_name, t.body"
                           " from millrace.offload_take($1::bigint, $2::int, $3::bigint) t",
                           3, true, false},
    [CALL_OFFLOAD_DONE] = {"mr_offload_done", "select millrace.offload_done($1::jsonb)", 1, false,
                           false},
    [CALL_OFFLOAD_DUE] = {"mr_offload_due",
                          "select d.id, d.part, d.object_name, d.size, d.sha256"
                          " from millrace.offload_due(max_jobs => $1::int,"
                          " max_bytes => $2::bigint) d",
                          2, false, false},
    [CALL_OFFLOAD_RESTORE] = {"mr_offload_restore",
                              "select r.restored, r.buried from millrace.offload_restore("
                              "$1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::text[]) r",
                              5, false, false},
    [CALL_OFFLOAD_DOOMED] = {"mr_offload_doomed",
                             "select d.no, d.object_name from millrace.offload_doomed($1::bigint)"
                             " d",
                             1, false, false},
    [CALL_OFFLOAD_REMOVED] = {"mr_offload_removed",
                              "select millrace.offload_removed($1::bigint[], $2::bigint)", 2, false,
                              false},
    [CALL_OFFLOAD_SPAN] = {"mr_offload_span", "select millrace.offload_span()", 0, false, false},
    [CALL_OFFLOAD_UNKNOWN] = {"mr_offload_unknown", "select millrace.offload_unknown($1::text[])",
                              1, false, false},
    [CALL_PAYLOAD_POLICY] = {"mr_payload_policy", "select millrace.payload_policy($1, $2)", 2,
                             false, false},
    [CALL_TRANSPORT] = {"mr_transport", "select millrace.transport($1)", 1, false, false},
    [CALL_SHARD] = {"mr_shard",
                    "select s.set_id, s.number, s.status, s.numbers, s.read_only"
                    " from millrace.shard() s",
                    0, false, false},
    [CALL_SHARD_HOLDS] = {"mr_shard_holds",
                          "select millrace.shard_holds(coalesce($1, 'default'), $2, $3)", 3, false,
                          false},
    [CALL_DEPTH] = {"mr_depth", "select millrace.depth($1)", 1, false, false},
    [CALL_JOB] = {"mr_job", "select millrace.job($1::bigint)::text", 1, false, false},
    [CALL_OUTCOME] = {"mr_outcome",
                      "select o.status, o.result, o.failure from millrace.outcome($1::bigint) o", 1,
                      false, false},
    [CALL_REPLAY] = {"mr_replay", "select millrace.replay($1::bigint)", 1, false, false},
    [CALL_REPLAY_ALL] = {"mr_replay_all", "select millrace.replay_all($1, $2, null, $3::int)", 3,
                         false, false},
    [CALL_PURGE_DEAD] = {"mr_purge_dead", "select millrace.purge_dead($1, $2::interval)", 2, false,
                         false},
    [CALL_MOVE_TARGET] = {"mr_move_target",
                          "select t ->> 'place', t ->> 'depth' from millrace.move_target($1) t", 1,
                          false, false},
    [CALL_MOVE_BEGIN] = {"mr_move_begin",
                         "select b ->> 'move', b ->> 'available', b ->> 'scheduled',"
                         " b ->> 'retrying', b ->> 'running', b ->> 'dead', b ->> 'moving',"
                         " b ->> 'moved', b ->> 'merged' from millrace.move_begin($1, $2, $3) b",
                         3, false, false},
    [CALL_SHADOW_BEGIN] =
        {"mr_shadow_begin",
         "select b ->> 'move', b ->> 'origin', b ->> 'mirrored', b ->> 'moving',"
         " b ->> 'cut' from millrace.shadow_begin($1, $2, $3, $4::double precision::real, $5) b",
         5, false, false},
    [CALL_SHADOW_CHECK] = {"mr_shadow_check",
                           "select c ->> 'checked', c ->> 'arrived', c ->> 'equal',"
                           " c ->> 'different', c ->> 'out_of_order', c ->> 'extra',"
                           " c ->> 'waiting', c ->> 'missing'"
                           " from millrace.shadow_check($1, $2::int) c",
                           2, false, false},
    [CALL_MOVE_TAKE] =
        {"mr_move_take",
         "select cardinality(t.jobs), t.origin, t.batch, t.jobs, t.args, t.meta, t.state,"
         " t.blob, coalesce(nullif(current_setting('millrace.move_stored', true), ''), '0')::int"
         " from millrace.move_take($1::int, $2::int, $3::boolean, $4::boolean) t",
         4, true, false},
    [CALL_MOVE_ARRIVE] = {"mr_move_arrive",
                          "select a ->> 'again', a ->> 'merged', a from millrace.move_arrive($2,"
                          " $3::bigint, $1, $4::jsonb[], $5::jsonb[], $6::jsonb[], $7::bytea[],"
                          " $8::bytea[]) a",
                          8, false, false},
    [CALL_MOVE_DONE] = {"mr_move_done", "select millrace.move_done($1::int, $2::bigint, $3::jsonb)",
                        3, false, false},
    [CALL_MOVE_GIVE_BACK] = {"mr_move_give_back", "select millrace.move_give_back($1)", 1, false,
                             false},
    [CALL_CACHE_SET] = {"mr_cache_set", "select millrace.cache_set($1, $2::jsonb, $3::interval)", 3,
                        false, false},
    [CALL_CACHE_GET] = {"mr_cache_get", "select millrace.cache_get($1)", 1, false, false},
    [CALL_CACHE_GET_MANY] = {"mr_cache_get_many",
                             "select e.key, e.value from millrace.cache_get_many($1::text[]) e", 1,
                             false, false},
    [CALL_CACHE_DELETE] = {"mr_cache_delete", "select millrace.cache_delete($1)", 1, false, false},
    [CALL_CACHE_DELETE_LIKE] = {"mr_cache_delete_like", "select millrace.cache_delete_like($1)", 1,
                                false, false},
    [CALL_CACHE_STATS] = {"mr_cache_stats",
                          "select s.total, s.valid, s.expired, s.bytes from millrace.cache_stats()"
                          " s",
                          0, false, false},
    [CALL_RATE_LIMIT] = {"mr_rate_limit",
                         "select r.allowed, r.remaining,"
                         " (date_part('epoch', r.resets_at) * 1000000)::bigint"
                         " from millrace.rate_limit($1, $2::int, $3::interval, $4::int) r",
                         4, false, false},
    [CALL_TRY_LOCK] = {"mr_try_lock", "select millrace.try_lock($1)", 1, false, false},
    [CALL_UNLOCK] = {"mr_unlock", "select millrace.unlock($1)", 1, false, false},
    [CALL_LOCK_GUARD] = {"mr_lock_guard", "select millrace.lock_guard($1::interval)", 1, false,
                         false},
    [CALL_LOCK_LEASE] = {"mr_lock_lease", "select millrace.lock_lease($1, $2, $3::interval)", 3,
                         false, false},
    [CALL_UNLOCK_LEASE] = {"mr_unlock_lease", "select millrace.unlock_lease($1, $2)", 2, false,
                           false},
    [CALL_API_ENQUEUE_JOBS] = {"mr_api_enqueue_jobs",
                               "select millrace.enqueue_jobs($1::jsonb, 'http')", 1, true, false},
    [CALL_API_ENQUEUE_ONCE] =
        {"mr_api_enqueue_once",
         "select case when $3::boolean then jsonb_build_object('id', e -> 'ids' -> 0)"
         " else '{}' end || e from millrace.enqueue_once($1, $2::jsonb, 'http') e",
         3, false, false},
    [CALL_API_JOB] = {"mr_api_job", "select millrace.job($1::bigint)", 1, false, false},
    [CALL_API_JOB_BY_REF] = {"mr_api_job_by_ref", "select millrace.job_by_ref($1, $2)", 2, false,
                             false},
    [CALL_API_LIST_JOBS] = {"mr_api_list_jobs", "select millrace.list_jobs($1::jsonb)", 1, false,
                            false},
    [CALL_API_CANCEL] = {"mr_api_cancel",
                         "select jsonb_build_object('status', millrace.cancel($1::bigint, $2))", 2,
                         false, false},
    [CALL_API_PAUSE_JOB] = {"mr_api_pause_job",
                            "select jsonb_build_object('id', $1::bigint) from"
                            " millrace.pause_job($1::bigint)",
                            1, false, false},
    [CALL_API_RESUME_JOB] = {"mr_api_resume_job",
                             "select jsonb_build_object('id', $1::bigint) from"
                             " millrace.resume_job($1::bigint)",
                             1, false, false},
    [CALL_API_RUN_NOW] = {"mr_api_run_now",
                          "select jsonb_build_object('id', $1::bigint) from"
                          " millrace.run_now($1::bigint)",
                          1, false, false},
    [CALL_API_CHANGE_JOB] = {"mr_api_change_job",
                             "select jsonb_build_object('id', $1::bigint) from"
                             " millrace.change_job($1::bigint, $2::jsonb)",
                             2, false, false},
    [CALL_API_OUTCOME] = {"mr_api_outcome",
                          "select to_jsonb(o), o.status from millrace.outcome($1::bigint) o", 1,
                          false, false},
    [CALL_API_OVERVIEW] = {"mr_api_overview", "select millrace.overview()", 0, false, false},
    [CALL_API_HISTORY] = {"mr_api_history", "select millrace.history($1, coalesce($2::int, 60))", 2,
                          false, false},
    [CALL_API_QUEUES] = {"mr_api_queues",
                         "select jsonb_build_object('queues', millrace.overview() -> 'queues')", 0,
                         false, false},
    [CALL_API_QUEUE_STORY] = {"mr_api_queue_story", "select millrace.queue_story($1)", 1, false,
                              false},
    [CALL_API_CHANGE_QUEUE] =
        {"mr_api_change_queue",
         "select jsonb_build_object('queue', $1::text), case when $2::jsonb is"
         " not null then millrace.set_queue($1, $2::jsonb) end, case $3::boolean"
         " when true then millrace.pause($1) when false then millrace.resume($1)"
         " end",
         3, false, false},
    [CALL_API_DROP_QUEUE] = {"mr_api_drop_queue",
                             "select jsonb_build_object('queue', $1::text) from"
                             " millrace.drop_queue($1)",
                             1, false, false},
    [CALL_API_PURGE] = {"mr_api_purge", "select jsonb_build_object('purged', millrace.purge($1))",
                        1, false, false},
    [CALL_API_CLAIM] = {"mr_api_claim",
                        "select c, c ->> 'lease' from millrace.claim_json($1, $2,"
                        " coalesce($3::int, 1), $4::interval, coalesce($5::boolean, true)) c",
                        5, false, true},
    [CALL_API_COMPLETE] = {"mr_api_complete",
                           "select jsonb_build_object('completed', millrace.complete($1,"
                           " $2::bigint[], $3::jsonb))",
                           3, false, false},
    [CALL_API_FAIL] = {"mr_api_fail",
                       "select jsonb_build_object('status', millrace.fail($1, $2::bigint, $3,"
                       " $4::interval, coalesce($5::boolean, true), decode($6, 'base64')))",
                       6, false, false},
    [CALL_API_REQUEUE] =
        {"mr_api_requeue",
         "select jsonb_build_object('id', millrace.requeue($1, $2::bigint,"
         " coalesce($3::jsonb, '{}'), decode($4, 'base64'), decode($5, 'base64'), coalesce($6::text[],"
         " '{}')))",
         6, false, false},
    [CALL_API_RELEASE] = {"mr_api_release",
                          "select jsonb_build_object('released', millrace.release($1,"
                          " $2::bigint[]))",
                          2, false, false},
    [CALL_API_HEARTBEAT] =
        {"mr_api_heartbeat",
         "select jsonb_build_object('lease_until', h.lease_until, 'cancelled',"
         " coalesce(h.cancelled, '{}')) from millrace.heartbeat($1, $2::interval)"
         " h",
         2, false, false},
    [CALL_API_FINISH] = {"mr_api_finish",
                         "select jsonb_build_object('finished', millrace.finish($1, $2::jsonb))", 2,
                         false, false},
    [CALL_API_PROGRESS] = {"mr_api_progress",
                           "select jsonb_build_object('id', $2::bigint) from millrace.progress($1,"
                           " $2::bigint, $3::double precision, $4)",
                           4, false, true},
    [CALL_API_LIST_DEAD] = {"mr_api_list_dead", "select millrace.list_dead($1::jsonb)", 1, false,
                            false},
    [CALL_API_DEAD_GROUPS] = {"mr_api_dead_groups", "select millrace.dead_groups($1)", 1, false,
                              false},
    [CALL_API_REPLAY] = {"mr_api_replay",
                         "select jsonb_build_object('replayed', 1, 'id',"
                         " millrace.replay($1::bigint))",
                         1, false, false},
    [CALL_API_REPLAY_ALL] = {"mr_api_replay_all",
                             "select jsonb_build_object('replayed', millrace.replay_all($1, $2, $3,"
                             " $4::int))",
                             4, false, false},
    [CALL_API_PURGE_DEAD] = {"mr_api_purge_dead",
                             "select jsonb_build_object('purged', millrace.purge_dead($1,"
                             " $2::interval))",
                             2, false, false},
    [CALL_API_LIST_SCHEDULES] = {"mr_api_list_schedules", "select millrace.list_schedules()", 0,
                                 false, false},
    [CALL_API_SCHEDULE_STORY] = {"mr_api_schedule_story", "select millrace.schedule_story($1)", 1,
                                 false, false},
    [CALL_API_CRON_TIMES] = {"mr_api_cron_times",
                             "select millrace.cron_times($1, coalesce($2::timestamptz, now()),"
                             " coalesce($3, 'UTC'), coalesce($4::int, 5))",
                             4, false, false},
    [CALL_API_SCHEDULE] = {"mr_api_schedule",
                           "select jsonb_build_object('name', $1::text) from millrace.schedule($1,"
                           " $2, $3, coalesce($4::jsonb, '{}'), coalesce($5, 'default'),"
                           " coalesce($6, 'UTC'), coalesce($7, 'last'), coalesce($8::boolean,"
                           " true), coalesce($9::int, 50))",
                           9, false, false},
    [CALL_API_UNSCHEDULE] = {"mr_api_unschedule",
                             "select jsonb_build_object('name', $1::text) from"
                             " millrace.unschedule($1)",
                             1, false, false},
    [CALL_API_SCHEDULE_RUN] = {"mr_api_schedule_run",
                               "select jsonb_build_object('id', millrace.schedule_run($1))", 1,
                               false, false},
    [CALL_API_SCHEDULE_ENABLE] = {"mr_api_schedule_enable",
                                  "select jsonb_build_object('name', $1::text) from"
                                  " millrace.schedule_enable($1)",
                                  1, false, false},
    [CALL_API_SCHEDULE_DISABLE] = {"mr_api_schedule_disable",
                                   "select jsonb_build_object('name', $1::text) from"
                                   " millrace.schedule_disable($1)",
                                   1, false, false},
    [CALL_API_LIST_BATCHES] = {"mr_api_list_batches", "select millrace.list_batches($1::jsonb)", 1,
                               false, false},
    [CALL_API_BATCH] = {"mr_api_batch", "select millrace.batch($1::bigint)", 1, false, false},
    [CALL_API_BATCH_BEGIN] = {"mr_api_batch_begin",
                              "select jsonb_build_object('id', millrace.batch_begin($1::jsonb,"
                              " $2::jsonb, $3, $4::jsonb))",
                              4, false, false},
    [CALL_API_BATCH_ADD] = {"mr_api_batch_add",
                            "select jsonb_build_object('ids', coalesce(jsonb_agg(i), '[]')) from"
                            " millrace.batch_add($1::bigint, $2::jsonb, 'http') i",
                            2, false, false},
    [CALL_API_BATCH_SEAL] = {"mr_api_batch_seal",
                             "select jsonb_build_object('id', $1::bigint) from"
                             " millrace.batch_seal($1::bigint)",
                             1, false, false},
    [CALL_API_LIST_WORKERS] = {"mr_api_list_workers", "select millrace.list_workers()", 0, false,
                               false},
    [CALL_API_SYSTEM] = {"mr_api_system", "select millrace.system()", 0, false, false},
    [CALL_API_DOCTOR] = {"mr_api_doctor",
                         "select jsonb_build_object('checks', coalesce(jsonb_agg(to_jsonb(d)),"
                         " '[]')) from millrace.doctor() d",
                         0, false, false},
    [CALL_API_METRICS] = {"mr_api_metrics", "select millrace.metrics()", 0, false, false},
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

void call_text_sized(struct call *call, const char *text, size_t size)
{
    int at = begin(call, 0);

    buf_add(&call->store, text, size);
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

static void hint_less(struct mr_error *err)
{
    mr_error_hint(err, "Send less in one call: fewer jobs in a chunk, or smaller ones.");
}

int call_status(const struct call *call, struct mr_error *err)
{
    int code = buf_status(&call->store, err);

    if (code == MR_ELIMIT) {
        hint_less(err);
    }
    return code;
}

int call_too_large(struct mr_error *err)
{
    mr_error_set(err, MR_ELIMIT, "what belongs together is longer than its limit of %d bytes",
                 CALL_SIZE_MAX);
    hint_less(err);
    return MR_ELIMIT;
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

// A condition and not a statement of its own: nothing to prepare, send and answer besides.
void call_statement(enum call_kind kind, struct buf *ret)
{
    buf_puts(ret, call_infos[kind].statement);
    if (call_infos[kind].async) {
        buf_puts(ret, " where (select set_config('synchronous_commit', 'off', true)) is not null");
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
