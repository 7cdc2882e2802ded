-- SPDX-License-Identifier: PostgreSQL
-- Every job with its status, derived from the logs. Look up by id, or by queue with a limit; for numbers use stats().
drop view if exists millrace.jobs;
create view millrace.jobs as
select j.job_id as id, q.queue_name as queue, j.job_kind as kind, s.status, (j.lane >> 5) & 127 as priority, j.attempt::int as attempt,
       j.attempts_limit::int as max_attempts, j.payload_args as args, j.payload_meta as meta, j.job_tenant as tenant, j.job_ref as ref,
       j.job_source as source, j.created_at, coalesce(j.ready_at, j.created_at) as run_at, s.worker, s.claimed_at, s.finished_at,
       j.trail -> -1 ->> 'error' as error
  from millrace.job j
  join millrace.queue q on q.queue_id = j.lane >> 12
 cross join lateral millrace.job_standing(j.slot, j.lane, j.seg, j.xid, j.pos) s
 where s.status is not null
   and j.stale_at is distinct from '-infinity'
 union all
select d.job_id, q.queue_name, d.job_kind, 'scheduled', (d.lane >> 5) & 127, d.attempt, d.attempts_limit, d.payload_args, d.payload_meta,
       d.job_tenant, d.job_ref, d.job_source, d.created_at, d.due_at, null, null, null, d.trail -> -1 ->> 'error'
  from millrace.delayed d
  join millrace.queue q on q.queue_id = d.lane >> 12
 union all
select d.job_id, q.queue_name, d.job_kind, 'dead', (d.lane >> 5) & 127, d.attempt, d.attempts_limit, d.payload_args, d.payload_meta,
       d.job_tenant, d.job_ref, d.job_source, d.created_at, null, null, null, d.died_at, d.failure
  from millrace.dead d
  join millrace.queue q on q.queue_id = d.queue_id
 union all
select a.job_id, q.queue_name, a.job_kind, case a.outcome when 'x' then 'expired' else 'completed' end, (a.lane >> 5) & 127, a.attempt,
       a.attempts_limit, a.payload_args, a.payload_meta, a.job_tenant, a.job_ref, a.job_source, a.created_at, null, a.holder,
       a.claimed_at, a.finished_at, a.trail -> -1 ->> 'error'
  from millrace.archive a
  join millrace.queue q on q.queue_id = a.queue_id
 where a.keep_until > now()
   -- between the copy and the end of its leaf a job is in both
   and not exists (select from millrace.job j where j.slot >= 0 and j.job_id = a.job_id);
comment on view millrace.jobs is 'every job and its status: scheduled, available, running, completed, dead, cancelled, expired';
