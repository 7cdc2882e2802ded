-- SPDX-License-Identifier: PostgreSQL
-- Enqueues the jobs of a queue that completed in a time range as new jobs, from the log and the archive.
create or replace function millrace.completed_replay(p_now timestamptz, p_queue millrace.queue, p_since timestamptz, p_until timestamptz,
                                                     p_kind text)
returns bigint
language plpgsql
set enable_seqscan = on
as $$
declare
  v_n bigint;
begin
  perform pg_current_xact_id();
  with put as (
  insert into millrace.job (pos, job_id, created_at, lane, attempts_limit, job_kind, payload_args, run_limit, payload_meta, payload_state,
                            payload_blob, job_tenant, job_ref, job_source, order_key)
  select o.pos, o.pos, p_now, (o.lane & ~31) + millrace.part_of(case when p_queue.ordered then o.order_key end, o.pos, p_queue.part_count), o.attempts_limit, o.job_kind, o.payload_args, o.run_limit,
         o.payload_meta, o.payload_state, o.payload_blob, o.job_tenant, o.job_ref, 'replay', o.order_key
    from (select nextval('millrace.pos_seq') as pos, s.*
            from (select j.lane, j.attempts_limit, j.job_kind, j.payload_args, j.run_limit, j.payload_meta, j.payload_state,
                         j.payload_blob, j.job_tenant, j.job_ref, k.finished_at, j.job_id, case when p_queue.ordered or p_queue.key_limit is not null then j.order_key end as order_key
                    from (select k.lane, u.pos, k.finished_at,
                                 coalesce(k.job_ids[u.ord], u.pos) as job_id
                            from millrace.family(p_queue.queue_id) f
                            join millrace.claim k on k.lane >= f << 12 and k.lane < (f + 1) << 12
                           cross join lateral unnest(k.positions) with ordinality u(pos, ord)
                           where k.status in ('d', 'l')
                             and k.finished_at >= p_since
                             and k.finished_at < p_until
                             and coalesce(substr(k.outcome, u.ord::int, 1), 'c') = 'c') k
                   cross join lateral millrace.job_rows(k.job_id) j
                   where j.pos = k.pos
                     and (p_kind is null or j.job_kind = p_kind)
                   union all
                  select a.lane, a.attempts_limit, a.job_kind, a.payload_args, a.run_limit, a.payload_meta, a.payload_state, a.payload_blob,
                         a.job_tenant, a.job_ref, a.finished_at, a.job_id, case when p_queue.ordered or p_queue.key_limit is not null then a.order_key end
                    from millrace.archive a
                   where a.queue_id = p_queue.queue_id
                     and a.outcome = 'c'
                     and a.finished_at >= p_since
                     and a.finished_at < p_until
                     and not exists (select from millrace.job_rows(a.job_id) j where j.slot >= 0)      -- not yet truncated: see above
                     and (p_kind is null or a.job_kind = p_kind)
                   order by finished_at, job_id) s) o
  returning job_id, case when millrace.is_object(payload_state) then payload_state end as state, case when millrace.is_object(payload_blob) then payload_blob end as blob),
  kept as (
    select sum(millrace.parts_keep(p_now, u.job_id, u.state, u.blob)) filter (where num_nonnulls(u.state, u.blob) > 0) as n, count(*) as jobs
      from put u)
  select k.jobs
    into v_n
    from kept k
   where coalesce(k.n, 0) >= 0;      -- an object that two jobs name goes with the second
  perform millrace.wake(p_queue.queue_id, p_now);
  return v_n;
end $$;
