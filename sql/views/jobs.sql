-- SPDX-License-Identifier: PostgreSQL
-- Every job with its status, derived from the logs. Look up by queue with a limit; one by id with job(), numbers with stats().
-- row_id finds a job that is in a pack: its row has the last id of the pack, in the same block.
drop view if exists millrace.jobs;
drop view if exists millrace.job_list;
create view millrace.job_list as
select j.id, j.job_id as row_id, q.queue_name as queue, j.job_kind as kind,
       case when s.status = 'available' and j.stale_at <= now() then 'expired' else s.status end as status, (j.lane >> 5) & 127 as priority, j.attempt::int as attempt,
       j.attempts_limit::int as max_attempts, j.args, j.payload_meta as meta, j.job_tenant as tenant, j.job_ref as ref,
       coalesce(j.job_source, 'sql') as source, j.created_at, coalesce(j.ready_at, j.created_at) as run_at, s.worker, s.claimed_at, s.finished_at,
       j.trail -> -1 ->> 'error' as error, j.order_key as ordering_key
  from (select j.*, j.job_id as id, j.pos as at, j.payload_args as args
          from millrace.job j
         where j.pack_n is null
         union all
        select j.*, j.pos - j.pack_n + p.ord, j.pos - j.pack_n + p.ord, p.args
          from millrace.job j
         cross join lateral unnest(j.pack) with ordinality p(args, ord)
         where j.pack_n is not null) j
  join millrace.queue q on q.queue_id = j.lane >> 12
 cross join lateral millrace.job_standing(j.slot, j.lane, j.seg, j.xid, j.at) s
 where s.status is not null
   and j.stale_at is distinct from '-infinity'
 union all
select d.job_id, d.job_id, q.queue_name, d.job_kind, case when d.why = 'p' then 'paused' when d.why = 'w' then 'waiting' when d.why in ('o', 'k', 't') then case when d.stale_at <= now() then 'expired' else 'available' end else 'scheduled' end, (d.lane >> 5) & 127, d.attempt, d.attempts_limit, d.payload_args, d.payload_meta,
       d.job_tenant, d.job_ref, coalesce(d.job_source, 'sql'), d.created_at, case when d.why in ('p', 'w') then d.resume_at when d.why in ('o', 'k', 't') then d.created_at else d.due_at end, null, null, null, d.trail -> -1 ->> 'error',
       d.order_key
  from millrace.delayed d
  join millrace.queue q on q.queue_id = d.lane >> 12
 union all
select d.job_id, d.job_id, q.queue_name, d.job_kind, 'dead', (d.lane >> 5) & 127, d.attempt, d.attempts_limit, d.payload_args, d.payload_meta,
       d.job_tenant, d.job_ref, coalesce(d.job_source, 'sql'), d.created_at, null, null, null, d.died_at, d.failure, d.order_key
  from millrace.dead d
  join millrace.queue q on q.queue_id = d.queue_id
 union all
select a.job_id, a.job_id, q.queue_name, a.job_kind, case a.outcome when 'x' then 'expired' when 'k' then 'cancelled' else 'completed' end, (a.lane >> 5) & 127, a.attempt,
       a.attempts_limit, a.payload_args, a.payload_meta, a.job_tenant, a.job_ref, coalesce(a.job_source, 'sql'), a.created_at, null, a.holder,
       a.claimed_at, a.finished_at, a.trail -> -1 ->> 'error', a.order_key
  from millrace.archive a
  join millrace.queue q on q.queue_id = a.queue_id
 where a.keep_until > now()
   -- between the copy and the end of its leaf a job is in both
   and not (exists (select from millrace.segment g where g.parked and not g.truncated) and millrace.job_logged(a.job_id))
 union all
select m.job_id, m.job_id, q.queue_name, m.facts ->> 'kind', 'moved', (m.lane >> 5) & 127, (m.facts ->> 'attempt')::int, (m.facts ->> 'max_attempts')::int,
       m.payload_args, m.payload_meta, m.facts ->> 'tenant', m.facts ->> 'ref', coalesce(m.facts ->> 'source', 'sql'), (m.facts ->> 'created_at')::timestamptz, null, null, null, null, null,
       m.facts ->> 'ordering_key'
  from millrace.moving m
  join millrace.queue q on q.queue_id = m.lane >> 12
 where not m.copy
 union all
select m.job_id, m.job_id, q.queue_name, m.job_kind, 'moved', (m.lane >> 5) & 127, m.attempt, m.attempts_limit, null, null, m.job_tenant, m.job_ref, coalesce(m.job_source, 'sql'),
       m.created_at, null, null, null, m.moved_at, null, null
  from millrace.moved m
  join millrace.queue q on q.queue_id = m.lane >> 12;
comment on view millrace.job_list is 'every job and its status, and where its row is found';
create view millrace.jobs as
select l.id, l.queue, l.kind, l.status, l.priority, l.attempt, l.max_attempts, l.args, l.meta, l.tenant, l.ref, l.source, l.created_at, l.run_at,
       l.worker, l.claimed_at, l.finished_at, l.error, l.ordering_key
  from millrace.job_list l;
comment on view millrace.jobs is 'every job and its status: scheduled, available, running, completed, dead, cancelled, expired, paused, waiting, moved';
