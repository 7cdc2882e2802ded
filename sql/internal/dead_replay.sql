-- SPDX-License-Identifier: PostgreSQL
-- Appends dead letters to the log again: same id, attempt 1, history kept. Those whose payload is away go to delayed, due at once, until it is back. Returns how many there were.
create or replace function millrace.dead_replay(p_now timestamptz, p_ids bigint[])
returns bigint
language plpgsql
as $$
declare
  v_lane int;
  v_n    bigint;
  v_far  bigint;
begin
  perform pg_current_xact_id();
  for v_lane in
    select distinct d.lane & ~31
      from millrace.dead d
     where d.job_id = any (p_ids)
  loop
    perform millrace.lane_register(v_lane);
    perform millrace.wake(v_lane >> 12, p_now);
  end loop;
  with gone as (
    delete from millrace.dead d
     where d.job_id = any (p_ids)
    returning d.*),
  far as (
    insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args, run_limit, payload_meta,
                                  payload_state, payload_blob, job_tenant, job_ref, job_source, trail, order_key, unique_name, away_due)
    select p_now, d.job_id, d.created_at, d.lane, millrace.delayed_slot(p_now, p_now), 1, 0, d.attempts_limit, 's', d.job_kind, d.payload_args, d.run_limit, d.payload_meta,
           d.payload_state, d.payload_blob, d.job_tenant, d.job_ref, d.job_source, d.trail, d.order_key, d.unique_name, p_now
      from gone d
     where millrace.is_away(d.payload_state)
        or millrace.is_away(d.payload_blob)
    returning job_id),
  near as (
    insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at,
                              run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail,
                              order_key, unique_name)
    select o.pos, o.job_id, o.created_at, (o.lane & ~31) + millrace.part_of(case when o.ordered then o.order_key end, o.pos, o.part_count), 1, 0, o.attempts_limit, o.job_kind, o.payload_args, p_now,
           o.run_limit, o.payload_meta, o.payload_state, o.payload_blob, o.job_tenant, o.job_ref, o.job_source, o.trail,
           o.order_key, o.unique_name
      from (select nextval('millrace.pos_seq') as pos, s.*
              from (select d.*, q.part_count, q.ordered
                      from gone d
                      join millrace.queue q on q.queue_id = d.lane >> 12
                     where not (millrace.is_away(d.payload_state) or millrace.is_away(d.payload_blob))
                     order by d.died_at, d.job_id) s) o
    returning job_id)
  select (select count(*) from near), (select count(*) from far)
    into v_n, v_far;
  return v_n + v_far;
end $$;
