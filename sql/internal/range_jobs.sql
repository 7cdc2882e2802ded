-- SPDX-License-Identifier: PostgreSQL
-- The first p_limit jobs of a lane in a range of the log, in order: after (p_from_xid, p_from_pos), before p_to_xid, visible in p_hi; those
-- of a pack one by one, as if each had its own row. A row's position is its last job's, so the row in whose midst a cursor stands still
-- comes after the cursor. A plain query, so that it is planned as a part of the statement that calls it. last_pos is what it is sorted by.
-- range_jobs_0 to range_jobs_15 for the leaves, see by_leaf; range_jobs itself for those whom it does not matter to wait for upkeep.
do $do$
begin
  for slot in -1..15 loop
    execute format($sql$
create or replace function millrace.range_jobs%1$s(%2$sp_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8, p_hi pg_snapshot,
                                               p_limit int)
returns table (xid xid8, last_pos bigint, pos bigint, job_id bigint, created_at timestamptz, attempt int2, attempts_limit int2, job_kind text,
               payload_args jsonb, ready_at timestamptz, stale_at timestamptz, run_limit interval, payload_meta jsonb, payload_state bytea,
               payload_blob bytea, job_tenant text, job_ref text, job_source text, trail jsonb, order_key text, unique_name text,
               batch_id bigint)
language sql
stable
rows 100
as $$
  select j.xid, j.pos, coalesce(p.at, j.pos), coalesce(p.at, j.job_id), j.created_at, j.attempt, j.attempts_limit, j.job_kind,
         case when j.pack_n is null then j.payload_args else j.pack[p.at - j.pos + j.pack_n] end, j.ready_at, j.stale_at, j.run_limit,
         j.payload_meta, j.payload_state, j.payload_blob, j.job_tenant, j.job_ref, j.job_source, j.trail, j.order_key, j.unique_name,
         j.batch_id
    from millrace.job%1$s j
    left join lateral (select a.at
                         from generate_series(case when j.xid = p_from_xid then greatest(j.pos - j.pack_n, p_from_pos) else j.pos - j.pack_n end + 1,
                                              j.pos) a(at)
                        where j.pack_n is not null
                       offset 0) p on true      -- kept apart, so that for a row that is no pack not even the function is called
   where %3$sj.lane = p_lane
     and (j.xid, j.pos) > (p_from_xid, p_from_pos)
     and j.xid < p_to_xid
     and pg_visible_in_snapshot(j.xid, p_hi)
   order by j.xid, j.pos
   limit p_limit
$$
    $sql$, case when slot < 0 then '' else '_' || slot end, case when slot < 0 then 'p_slot int, ' else '' end,
           case when slot < 0 then 'j.slot = p_slot and ' else '' end);
  end loop;
end $do$;
