-- SPDX-License-Identifier: PostgreSQL
-- Appends dead letters to the log again: same id, attempt 1, history kept. Returns how many there were.
create or replace function millrace.dead_replay(p_now timestamptz, p_ids bigint[])
returns bigint
language plpgsql
as $$
declare
  v_lane int;
  v_n    bigint;
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
    returning d.*)
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
                   order by d.died_at, d.job_id) s) o;
  get diagnostics v_n = row_count;
  return v_n;
end $$;
