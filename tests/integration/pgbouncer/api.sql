-- SPDX-License-Identifier: PostgreSQL
-- Every public function once, in the queue :q of this client alone, each statement a transaction of its own. Prints the pid of the
-- server process that served it from time to time: behind a pooler in transaction mode it changes.
\set ON_ERROR_STOP on
\set note 'insert into hops values (:''q'', pg_backend_pid());'
:note
select millrace.set_queue(:'q', '{"lease": "10 minutes", "max_attempts": 2}');
select millrace.set_retry(:'q', 3, '1 second', 2, '1 minute', 0);
select millrace.enqueue(:'q', '{"n": 1}', :'q', ref => 'one') as one \gset
select count(*) = 3 as passed_enqueue_many from millrace.enqueue_many(:'q', array['{"n": 2}', '{"n": 3}', '{"n": 4}']::jsonb[], :'q');
:note
select count(*) = 4 as passed_enqueue_jobs
  from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', :'q', 'args', jsonb_build_object('n', g))) from generate_series(5, 8) g));
select millrace.depth(:'q') = 8 as passed_depth;
select millrace.wait_channel(:'q', 'w') like 'millrace\_%' as passed_wait_channel;
select lease, id from millrace.claim(:'q', 'w', 1) \gset
:note
select millrace.job(:id) ->> 'status' = 'running' as passed_job;
select (millrace.heartbeat(:'lease', '20 minutes')).lease_until > now() + interval '15 minutes' as passed_heartbeat;
select millrace.progress(:'lease', :id, 40, 'going');
select (millrace.job(:id) ->> 'progress')::real = 40 as passed_progress;
select millrace.complete(:'lease', array[:id]::bigint[], '{"ok": true}') = 1 as passed_complete;
select status = 'completed' and result = '{"ok": true}' as passed_outcome from millrace.outcome(:id);
:note
select millrace.job_by_ref(:'q', 'one') ->> 'status' = 'completed' as passed_job_by_ref;
-- Jobs that end in every way there is.
begin;
select lease, id from millrace.claim(:'q', 'w', 1) \gset
commit;
:note
select millrace.fail(:'lease', :id, 'broken', '1 hour') = 'scheduled' as passed_fail;
select lease, id from millrace.claim(:'q', 'w', 1) \gset
select millrace.fail(:'lease', :id, 'broken', retry => false) = 'dead' as passed_fail_dead;
select millrace.replay(:id) = :id as passed_replay;
:note
select lease, id from millrace.claim(:'q', 'w', 1) \gset
select millrace.requeue(:'lease', :id, '{"args": {"n": 99}}') = :id as passed_requeue;
select lease, id from millrace.claim(:'q', 'w', 1) \gset
select millrace.release(:'lease') = 1 as passed_release;
:note
select lease, id from millrace.claim(:'q', 'w', 1) \gset
select millrace.finish(:'lease', jsonb_build_array(jsonb_build_object('id', :id, 'outcome', 'failed', 'error', 'e', 'retry', false))) = 1 as passed_finish;
select millrace.replay_all(:'q') = 1 as passed_replay_all;
select lease, id from millrace.claim(:'q', 'w', 1) \gset
select lease as other from millrace.claim(:'q', 'w', 1) \gset
:note
select millrace.complete_many(array[:'lease', :'other']) = 2 as passed_complete_many;
select millrace.replay_completed(:'q', now() - interval '1 hour', now() + interval '1 hour') = 3 as passed_replay_completed;
select millrace.pause(:'q');
select count(*) = 0 as passed_pause from millrace.claim(:'q');
select millrace.resume(:'q');
:note
select count(*) = 17 as passed_maintain from millrace.maintain();
select available + running + scheduled + retrying + dead = millrace.depth(:'q') + 1 as passed_stats from millrace.stats(:'q');
select count(*) >= 1 as passed_health from millrace.health() where queue = :'q';
select count(*) > 30 as passed_doctor from millrace.doctor();
select millrace.overview() -> 'queues' @> jsonb_build_array(jsonb_build_object('queue', :'q')) as passed_overview;
select jsonb_array_length(millrace.history(:'q', 1) -> 'points') = 6 as passed_history;
:note
select jsonb_array_length(millrace.list_jobs(jsonb_build_object('queue', :'q', 'limit', 5)) -> 'jobs') = 5 as passed_list_jobs;
select jsonb_array_length(millrace.list_dead(jsonb_build_object('queue', :'q')) -> 'jobs') = 0 as passed_list_dead;
select millrace.dead_groups(:'q') ->> 'complete' = 'true' as passed_dead_groups;
select millrace.queue_story(:'q') ->> 'queue' = :'q' as passed_queue_story;
:note
select millrace.system() ? 'segments' as passed_system;
select millrace.metrics() ? 'queues' as passed_metrics;
select millrace.list_schedules() ? 'schedules' as passed_list_schedules;
select millrace.list_batches() ? 'batches' as passed_list_batches;
select millrace.list_workers() ? 'workers' as passed_list_workers;
:note
select millrace.schedule(:'q', '0 2 * * *', 'k', '{"n": 1}', :'q', 'Europe/Berlin', active => false);
select count(*) = 1 as passed_schedule from millrace.schedules where name = :'q' and not active;
select millrace.schedule_story(:'q') ->> 'cron' = '0 2 * * *' as passed_schedule_story;
select jsonb_array_length(millrace.cron_times('@daily') -> 'next') = 5 as passed_cron_times;
:note
select millrace.schedule_run(:'q') > 0 as passed_schedule_run;
select millrace.schedule_enable(:'q');
select next_at > now() as passed_schedule_enable from millrace.schedules where name = :'q';
select millrace.schedule_disable(:'q');
select next_at is null as passed_schedule_disable from millrace.schedules where name = :'q';
:note
select millrace.unschedule(:'q');
select count(*) = 0 as passed_unschedule from millrace.schedules where name = :'q';
select millrace.cron_next('@daily', '2030-01-01 12:00+00') = '2030-01-02 00:00+00' as passed_cron_next;
select begin_after is null and not restarted as passed_bridge_begin from millrace.bridge_begin(:'q', 's', 'g', '5-0');
select applied = 2 and repeated = 0 as passed_bridge_apply
  from millrace.bridge_apply(:'q', 's', 'g', array['5-1', '5-2'], array['{"n": "1"}', '{"n": "2"}']::jsonb[], true, jsonb_build_object('queue', :'q'));
:note
select millrace.bridge_admit(:'q', 's', 'g', array['5-2', '5-3']) = array[2] as passed_bridge_admit;
select millrace.bridge_bury(:'q', 's', 'g', '5-3', :'q', 'k', '{}', 'e') > 0 as passed_bridge_bury;
select millrace.bridge_floor(:'q', 's', 'g', '5-9') = 2 as passed_bridge_floor;
select millrace.bridge_forget(:'q') = 1 as passed_bridge_forget;
select millrace.purge_dead(:'q') = 1 as passed_bridge_purge;
:note
select millrace.purge(:'q') > 0 as passed_purge;
select count(*) = 0 as passed_empty from millrace.claim(:'q', 'w', 1);
select millrace.enqueue('k', queue => :'q') as id \gset
:note
select lease from millrace.claim_batch(:'q', 'w', 1) limit 1 \gset
select millrace.release(:'lease') = 1 as passed_release_batch;
:note
select lease from millrace.claim_packs(:'q', 'w', 1) limit 1 \gset
select millrace.fail(:'lease', :id, 'e', retry => false) = 'dead' as passed_bury;
select millrace.purge_dead(:'q') = 1 as passed_purge_dead;
-- A job that waits, and one that runs, steered from outside.
select millrace.enqueue('k', queue => :'q') as id \gset
select millrace.pause_job(:id);
select millrace.job(:id) ->> 'status' = 'paused' as passed_pause_job;
:note
select millrace.resume_job(:id);
select millrace.job(:id) ->> 'status' = 'available' as passed_resume_job;
select millrace.change_job(:id, '{"delay": "1 hour"}');
select millrace.job(:id) ->> 'status' = 'scheduled' as passed_change_job;
select millrace.run_now(:id);
:note
select millrace.job(:id) ->> 'status' = 'available' as passed_run_now;
select millrace.cancel(:id, 'enough') = 'cancelled' as passed_cancel;
select millrace.job(:id) ->> 'reason' = 'enough' as passed_cancel_reason;
select millrace.enqueue('k', queue => :'q') as id \gset
select lease from millrace.claim(:'q', 'w', 1) \gset
select millrace.cancel(:id) = 'running' as passed_cancel_running;
:note
select (millrace.heartbeat(:'lease')).cancelled = array[:id]::bigint[] as passed_cancel_told;
select millrace.fail(:'lease', :id, 'stopped') = 'cancelled' as passed_cancel_ended;
-- A key: held, replaced, given back.
select millrace.enqueue('k', queue => :'q', unique_key => 'u') as id \gset
:note
select millrace.enqueue('k', '{"n": 2}', :'q', unique_key => 'u', on_conflict => 'replace') = :id as passed_unique;
select millrace.job(:id) -> 'args' = '{"n": 2}' as passed_unique_replaced;
select lease from millrace.claim(:'q', 'w', 1) \gset
:note
select millrace.complete(:'lease') = 1 as passed_unique_completed;
select millrace.enqueue('k', queue => :'q', unique_key => 'u', unique_for => '1 hour') <> :id as passed_unique_again;
-- The toolbox: what belongs to a session, inside one transaction; a lease from one transaction to the next.
select millrace.cache_set(:'q' || ':a%', '{"n": 1}', '1 minute');
:note
select millrace.cache_get(:'q' || ':a%') = '{"n": 1}' as passed_cache_get;
select count(*) = 1 as passed_cache_get_many from millrace.cache_get_many(array[:'q' || ':a%', :'q' || ':b']);
select total > 0 as passed_cache_stats from millrace.cache_stats();
select millrace.cache_delete(:'q' || ':b') = false as passed_cache_delete;
:note
select millrace.cache_delete_like(:'q' || ':a\%') = 1 as passed_cache_delete_like;
select millrace.cache_get(:'q' || ':a%') is null as passed_cache_deleted;
select millrace.set_cache('{}');
select allowed and remaining = 1 as passed_rate_limit from millrace.rate_limit(:'q', 2, '1 hour');
:note
select not allowed and remaining = 1 as passed_rate_limited from millrace.rate_limit(:'q', 2, '1 hour', 2);
begin;
select millrace.lock_guard('1 minute');
select millrace.lock(:'q');
select millrace.try_lock(:'q') as passed_try_lock;
select millrace.unlock(:'q') and millrace.unlock(:'q') and not millrace.unlock(:'q') as passed_unlock;
rollback;
:note
select millrace.lock_lease(:'q', 'me', '1 minute') as fence \gset
:note
select millrace.lock_lease(:'q', 'you', '1 minute') is null as passed_lock_lease;
select millrace.lock_lease(:'q', 'me', '1 minute') = :fence as passed_lock_renewed;
:note
select millrace.unlock_lease(:'q', 'me') as passed_unlock_lease;
select millrace.lock_lease(:'q', 'you', '1 minute') > :fence as passed_fence;
:note
-- A captured table.
select format('create table %I (id int)', 'rows of ' || :'q') \gexec
select millrace.capture(quote_ident('rows of ' || :'q')::regclass, :'q', 'captured', unique_on => '{id}');
:note
select format('insert into %I values (1), (1)', 'rows of ' || :'q') \gexec
select count(*) = 1 as passed_capture from millrace.jobs where queue = :'q' and kind = 'captured';
select millrace.capture_disable(quote_ident('rows of ' || :'q')::regclass, :'q');
:note
select format('insert into %I values (2)', 'rows of ' || :'q') \gexec
select millrace.capture_enable(quote_ident('rows of ' || :'q')::regclass, :'q');
select count(*) = 1 as passed_capture_disable from millrace.jobs where queue = :'q' and kind = 'captured';
select enabled as passed_capture_enable from millrace.captures where queue = :'q';
select millrace.uncapture(quote_ident('rows of ' || :'q')::regclass, :'q');
:note
select count(*) = 0 as passed_uncapture from millrace.captures where queue = :'q';
select lease from millrace.claim(:'q', 'w', 1) \gset
select millrace.complete(:'lease') = 1 as passed_captured;
-- A request that is repeated, and a claim as one object.
select millrace.enqueue_once('key ' || :'q', jsonb_build_object('kind', 'k', 'queue', :'q', 'priority', 1)) as once \gset
:note
select millrace.enqueue_once('key ' || :'q', jsonb_build_object('kind', 'k', 'queue', :'q', 'priority', 1)) -> 'ids' = :'once'::jsonb -> 'ids' as passed_enqueue_once;
select millrace.claim_json(:'q', 'w', 1) as claimed \gset
:note
select :'claimed'::jsonb -> 'jobs' -> 0 -> 'id' = :'once'::jsonb -> 'ids' -> 0 as passed_claim_json;
select millrace.complete(:'claimed'::jsonb ->> 'lease') = 1 as passed_claim_json_completed;
-- A batch, and a job behind another.
select millrace.batch_begin(on_complete => jsonb_build_object('kind', 'done', 'queue', :'q'), label => :'q') as batch \gset
:note
select count(*) = 1 as passed_batch_add from millrace.batch_add(:batch, jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', :'q')));
select millrace.batch_seal(:batch);
:note
select millrace.batch(:batch) ->> 'status' = 'running' as passed_batch;
select id from millrace.jobs where queue = :'q' and status = 'available' order by id desc limit 1 \gset
select millrace.enqueue('k', queue => :'q') as child \gset
select millrace.depend(:child, array[:id]::bigint[]);
:note
select millrace.job(:child) ->> 'status' = 'waiting' as passed_depend;
select millrace.drop_queue(:'q');
-- An ordering key: one at a time, and the next when it has ended.
select millrace.set_queue(:'q', '{"ordered": true}');
select millrace.enqueue('k', queue => :'q', ordering_key => 'o') as id \gset
select millrace.enqueue('k', queue => :'q', ordering_key => 'o') as next \gset
:note
select lease, id = :id as first from millrace.claim(:'q', 'w', 10) \gset
select :'first'::boolean as passed_ordered_first;
select count(*) = 0 as passed_ordered_held from millrace.claim(:'q', 'w', 10);
:note
select millrace.complete(:'lease') = 1 as passed_ordered_completed;
select id = :next as passed_ordered_next from millrace.claim(:'q', 'w', 10);
-- Tenants in turn.
select millrace.set_queue(:'q' || '_fair', '{"fair": true}');
select count(millrace.enqueue('k', queue => :'q' || '_fair', tenant => t)) = 4 as passed_tenants from unnest(array['a', 'a', 'a', 'b']) t;
:note
-- Upkeep of another client may have looked at the tenants just before they came: then they are seen with the next look.
\set claim_fair 'millrace.claim(:''q'' || ''_fair'', ''w'', 1)'
select count(*) = 1 as passed_fair_one from (select c.id from generate_series(1, 1000), pg_sleep(0.01), :claim_fair c limit 1) c;
select count(*) = 1 as passed_fair_two from (select c.id from generate_series(1, 1000), pg_sleep(0.01), :claim_fair c limit 1) c;
:note
select count(*) = 2 and sum(running) = 2 as passed_tenant_stats from millrace.tenant_stats(:'q' || '_fair');
select millrace.pause(:'q' || '_fair', 'a'), millrace.resume(:'q' || '_fair', 'a');
-- A tenant whose lane upkeep is at is passed over: two claims may be of the same one.
select available as waiting from millrace.tenant_stats(:'q' || '_fair') where tenant = 'a' \gset
select millrace.purge(:'q' || '_fair', 'a') = :waiting and :waiting > 0 as passed_tenant_purge;
:note
-- Payloads, the blob store's side, shards.
select millrace.enqueue('k', queue => :'q' || '_state', state => 'later') as id \gset
select lease, state is null as light from millrace.claim(:'q' || '_state', 'w', 1, with_state => false) \gset
:note
select :'light'::boolean and millrace.fetch_state(:'lease', :id) = 'later' as passed_fetch_state;
select millrace.complete(:'lease') = 1 as passed_fetched;
select millrace.transport(:'q') = 'direct' and millrace.payload_policy(:'q') ? 'compress' as passed_policies;
select millrace.part_coding('x') = 'plain' and millrace.part_size('x') = 1 as passed_parts;
:note
select count(*) = 1 as passed_offload_turn from millrace.offload_turn(:'q');
select count(*) = 0 as passed_offload_take from millrace.offload_take();
select count(*) = 0 as passed_offload_done from millrace.offload_done('[]');
select count(*) = 0 as passed_offload_due from millrace.offload_due();
select restored = 0 as passed_offload_restore from millrace.offload_restore('{}', '{}', '{}', '{}');
select count(*) = 0 as passed_offload_doomed from millrace.offload_doomed();
select millrace.offload_removed('{}') = 0 as passed_offload_removed;
select count(*) = 1 as passed_offload_unknown from millrace.offload_unknown(array[:'q']);
select count(*) = 1 as passed_offload_span from millrace.offload_span();
:note
select count(*) = 1 as passed_shard from millrace.shard();
select millrace.shard_open() >= 0 and not millrace.shard_holds(:'q', 'no such key') as passed_shard_holds;
-- What is refused, is refused here too.
\set ON_ERROR_STOP off
\set VERBOSITY sqlstate
select millrace.set_queue(:'q', '{"fair": true, "ordered": true}');
:note
\echo the end
