-- SPDX-License-Identifier: PostgreSQL
-- Compaction: appends the waiting jobs at p_positions to their lane once more, in order, so that the leaves they came from
-- can be truncated. Nothing else about them changes.
-- One that cannot be read goes to the dead letters alone.
create or replace function millrace.job_append_again(p_now timestamptz, p_lane int, p_positions bigint[], p_ids bigint[],
                                                     p_min_seg int, p_max_seg int)
returns void
language plpgsql
as $$
begin
  perform millrace.job_append_these(p_now, p_lane, p_positions, p_ids, p_min_seg, p_max_seg);
exception
  when data_corrupted or internal_error or data_exception then
    for i in 1 .. cardinality(p_ids) loop
      begin
        perform millrace.job_append_these(p_now, p_lane, p_positions[i:i], p_ids[i:i], p_min_seg, p_max_seg);
      exception
        when data_corrupted or internal_error or data_exception then
          perform millrace.job_bury_damaged(p_now, (select j.slot from millrace.job j where j.job_id = p_ids[i] and j.pos = p_positions[i]),
                                            p_ids[i], p_positions[i]);
      end;
    end loop;
end $$;

create or replace function millrace.job_append_these(p_now timestamptz, p_lane int, p_positions bigint[], p_ids bigint[],
                                                     p_min_seg int, p_max_seg int)
returns void
language sql
as $$
  insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at,
                            run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail,
                            order_key, unique_name)
  select nextval('millrace.pos_seq'), o.job_id, o.created_at, o.lane, o.attempt, o.lost, o.attempts_limit, o.job_kind, o.payload_args,
         o.ready_at, o.stale_at, o.run_limit, o.payload_meta, o.payload_state, o.payload_blob, o.job_tenant, o.job_ref,
         o.job_source, o.trail, o.order_key, o.unique_name
    from (select j.*
            from unnest(p_positions, p_ids) with ordinality u(pos, id, ord)
            join millrace.job j on j.job_id = u.id and j.pos = u.pos
           where j.slot = any (array(select (g % 16)::int2
                                       from generate_series(p_min_seg, p_max_seg) g))
             and j.lane = p_lane
           order by u.ord) o
$$;
