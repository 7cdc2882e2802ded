-- SPDX-License-Identifier: PostgreSQL
-- range_look where only a few jobs are wanted: they are read with the cursor's move, not after it, which saves a statement. jobs: as claim returns
-- them, null for those that are for take_odd, which gets the whole range where one is odd (sort).
-- range_few_0 to range_few_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.range_few_%1$s(p_now timestamptz, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                 p_hi pg_snapshot, p_limit int, p_lease text, p_until timestamptz,
                                                 out n int, out more boolean, out cut boolean, out positions bigint[], out ids bigint[],
                                                 out xid xid8, out wait interval, out sort int, out tenanted boolean,
                                                 out jobs millrace.claimed_job[])
language plpgsql
as $$
begin
  -- 1500: c_large of lane_take.
  select count(*), count(*) = p_limit, false, array_agg(j.pos), array_agg(j.job_id), millrace.newest_xid(j.xid),
         sum(p_now - coalesce(j.ready_at, j.created_at)),
         case
           when max(coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.job_tenant), 0)
                    + coalesce(pg_column_size(j.job_ref), 0)) >= 1500
             or max(num_nonnulls(j.stale_at, j.payload_meta, j.payload_state, j.payload_blob, j.trail, j.order_key, j.unique_name,
                                 j.batch_id)) > 0 then 2
           else 0
         end,
         bool_or(j.job_tenant is not null),
         array_agg(case
                     when coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.job_tenant), 0)
                          + coalesce(pg_column_size(j.job_ref), 0) < 1500
                          and num_nonnulls(j.payload_meta, j.payload_state, j.payload_blob, j.trail) = 0
                     then row(p_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, null, null, null,
                              j.job_tenant, j.job_ref, p_lane >> 5 & 127, j.job_source, j.created_at, p_until, j.run_limit)::millrace.claimed_job
                   end)
    into n, more, cut, positions, ids, xid, wait, sort, tenanted, jobs
    from millrace.range_jobs_%1$s(p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit) j;
end $$
    $sql$, slot);
  end loop;
end $do$;
