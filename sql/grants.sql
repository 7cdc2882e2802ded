-- SPDX-License-Identifier: PostgreSQL
-- Who may call what, as one list. Nobody but the owner touches the tables; views are for readers.
-- Roles: millrace_reader < millrace_producer, millrace_worker < millrace_admin.
do $$
declare
  v_grant record;
begin
  revoke all on schema millrace from public;
  revoke all on all tables in schema millrace from public, millrace_reader, millrace_producer, millrace_worker, millrace_admin;
  revoke all on all sequences in schema millrace from public, millrace_reader, millrace_producer, millrace_worker, millrace_admin;
  revoke all on all functions in schema millrace from public, millrace_reader, millrace_producer, millrace_worker, millrace_admin;
  grant usage on schema millrace to millrace_reader, millrace_producer, millrace_worker, millrace_admin;
  for v_grant in
    select g.role_name, f.oid::regprocedure as signature
      from (values
        ('millrace_reader',   'depth'), ('millrace_reader', 'transport'), ('millrace_reader', 'stats'), ('millrace_reader', 'tenant_stats'), ('millrace_reader', 'health'), ('millrace_reader', 'doctor'),
        ('millrace_reader',   'job'), ('millrace_reader', 'outcome'), ('millrace_reader', 'job_by_ref'), ('millrace_reader', 'cron_next'),
        ('millrace_reader',   'cron_times'), ('millrace_reader', 'schedule_story'),
        ('millrace_reader',   'batch'),
        ('millrace_reader',   'overview'), ('millrace_reader', 'history'), ('millrace_reader', 'list_jobs'), ('millrace_reader', 'list_dead'),
        ('millrace_reader',   'dead_groups'), ('millrace_reader', 'queue_story'), ('millrace_reader', 'system'), ('millrace_reader', 'metrics'),
        ('millrace_reader',   'list_schedules'), ('millrace_reader', 'list_batches'), ('millrace_reader', 'list_workers'),
        ('millrace_reader',   'cache_stats'), ('millrace_reader', 'shard'), ('millrace_reader', 'shard_open'), ('millrace_reader', 'offload_span'),
        ('millrace_reader',   'part_coding'), ('millrace_reader', 'part_size'), ('millrace_reader', 'payload_policy'),
        ('millrace_reader',   'job_standing'), ('millrace_reader', 'job_logged'), ('millrace_reader', 'worker_list'), ('millrace_reader', 'capture_list'),      -- called by the views
        ('millrace_producer', 'enqueue'), ('millrace_producer', 'enqueue_many'), ('millrace_producer', 'enqueue_jobs'),
        ('millrace_producer', 'enqueue_once'), ('millrace_producer', 'shard_holds'),
        ('millrace_producer', 'capture'), ('millrace_producer', 'uncapture'), ('millrace_producer', 'capture_enable'), ('millrace_producer', 'capture_disable'),
        ('millrace_producer', 'capture_plan'), ('millrace_producer', 'capture_change'), ('millrace_producer', 'capture_run'), ('millrace_producer', 'capture_put'),      -- called by these, and by triggers
        ('millrace_producer', 'batch_begin'), ('millrace_producer', 'batch_add'), ('millrace_producer', 'batch_seal'), ('millrace_producer', 'depend'),
        -- the toolbox is for whoever writes an application, on either side of a queue
        ('millrace_producer', 'cache_set'), ('millrace_producer', 'cache_get'), ('millrace_producer', 'cache_get_many'), ('millrace_producer', 'cache_delete'),
        ('millrace_producer', 'cache_delete_like'), ('millrace_producer', 'rate_limit'), ('millrace_producer', 'lock'), ('millrace_producer', 'try_lock'),
        ('millrace_producer', 'unlock'), ('millrace_producer', 'lock_guard'), ('millrace_producer', 'lock_lease'), ('millrace_producer', 'unlock_lease'),
        ('millrace_worker',   'cache_set'), ('millrace_worker', 'cache_get'), ('millrace_worker', 'cache_get_many'), ('millrace_worker', 'cache_delete'),
        ('millrace_worker',   'cache_delete_like'), ('millrace_worker', 'rate_limit'), ('millrace_worker', 'lock'), ('millrace_worker', 'try_lock'),
        ('millrace_worker',   'unlock'), ('millrace_worker', 'lock_guard'), ('millrace_worker', 'lock_lease'), ('millrace_worker', 'unlock_lease'),
        ('millrace_worker',   'claim'), ('millrace_worker', 'claim_batch'), ('millrace_worker', 'claim_packs'),
        ('millrace_worker',   'claim_json'), ('millrace_worker', 'complete'),
        ('millrace_worker',   'complete_many'),
        ('millrace_worker',   'fail'), ('millrace_worker', 'finish'), ('millrace_worker', 'requeue'), ('millrace_worker', 'release'),
        ('millrace_worker',   'bridge_admit'), ('millrace_worker', 'bridge_apply'), ('millrace_worker', 'bridge_begin'), ('millrace_worker', 'bridge_bury'),
        ('millrace_worker',   'bridge_floor'),
        ('millrace_worker',   'offload_turn'), ('millrace_worker', 'offload_take'), ('millrace_worker', 'offload_done'), ('millrace_worker', 'offload_due'),
        ('millrace_worker',   'offload_restore'), ('millrace_worker', 'offload_doomed'), ('millrace_worker', 'offload_removed'), ('millrace_worker', 'offload_unknown'),
        ('millrace_worker',   'heartbeat'), ('millrace_worker', 'fetch_state'), ('millrace_worker', 'progress'), ('millrace_worker', 'wait_channel'), ('millrace_worker', 'maintain'),
        ('millrace_admin',    'set_queue'), ('millrace_admin', 'drop_queue'), ('millrace_admin', 'purge'), ('millrace_admin', 'set_retry'),
        ('millrace_admin',    'pause'), ('millrace_admin', 'resume'), ('millrace_admin', 'cancel'), ('millrace_admin', 'pause_job'),
        ('millrace_admin',    'resume_job'), ('millrace_admin', 'run_now'), ('millrace_admin', 'change_job'),
        ('millrace_admin',    'set_cache'),
        ('millrace_admin',    'replay'), ('millrace_admin', 'schedule'), ('millrace_admin', 'unschedule'), ('millrace_admin', 'schedule_enable'),
        ('millrace_admin',    'schedule_disable'), ('millrace_admin', 'schedule_run'),
        ('millrace_admin',    'bridge_forget'), ('millrace_admin', 'shard_join'), ('millrace_admin', 'shard_change'), ('millrace_admin', 'shard_leave'),
        ('millrace_admin',    'move_target'), ('millrace_admin', 'move_begin'), ('millrace_admin', 'move_take'), ('millrace_admin', 'move_done'),
        ('millrace_admin',    'move_arrive'), ('millrace_admin', 'move_give_back'),
        ('millrace_admin',    'shadow_begin'), ('millrace_admin', 'shadow_check'), ('millrace_admin', 'shadow_story'),
        ('millrace_admin',    'replay_all'), ('millrace_admin', 'replay_completed'), ('millrace_admin', 'purge_dead')
      ) g(role_name, function_name)
      join pg_proc f on f.proname = g.function_name
       and f.pronamespace = 'millrace'::regnamespace
  loop
    execute format('grant execute on function %s to %I', v_grant.signature, v_grant.role_name);
  end loop;
  grant select on millrace.jobs, millrace.queues, millrace.dead_letters, millrace.workers, millrace.retries, millrace.schedules, millrace.batches, millrace.bridges, millrace.captures, millrace.schema_migration,
                  millrace.schema_functions to millrace_reader;
end $$;
