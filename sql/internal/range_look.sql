-- SPDX-License-Identifier: PostgreSQL
-- What a claim has to know of the jobs that range_jobs gives for the same arguments, to move its cursor past them: no payload, which costs
-- more to find in a pack than all the rest. sort: 2 some may have expired or have a hook, and are for take_odd; 1 none of these, but large ones, which
-- may lie out of line; 0 neither. A pack holds jobs with small args and nothing else, so it is looked at for having expired only. tenanted: some are a
-- tenant's, who may have a rate. more: the range may hold more.
-- range_look_0 to range_look_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.range_look_%1$s(p_now timestamptz, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                  p_hi pg_snapshot, p_limit int,
                                                  out n int, out more boolean, out cut boolean, out positions bigint[], out ids bigint[],
                                                  out xid xid8, out wait interval, out sort int, out tenanted boolean)
language plpgsql
as $$
begin
  select count(*), count(*) = p_limit, false, array_agg(r.pos), array_agg(r.id), millrace.newest_xid(r.xid), sum(p_now - r.since),
         max(r.sort), bool_or(r.tenanted)
    into n, more, cut, positions, ids, xid, wait, sort, tenanted
    from (select j.xid, coalesce(p.at, j.pos) as pos, coalesce(p.at, j.job_id) as id, coalesce(j.ready_at, j.created_at) as since,
                 case
                   when j.stale_at is not null then 2
                   when j.pack_n is not null then 0
                   when num_nonnulls(j.order_key, j.unique_name, j.batch_id) > 0 then 2
                   when coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0)
                        + coalesce(pg_column_size(j.payload_state), 0) + coalesce(pg_column_size(j.payload_blob), 0)
                        + coalesce(pg_column_size(j.job_tenant), 0) + coalesce(pg_column_size(j.job_ref), 0)
                        + coalesce(pg_column_size(j.trail), 0) >= 1500 then 1
                   else 0
                 end as sort,
                 j.job_tenant is not null as tenanted
            from millrace.job_%1$s j
            left join lateral (select a.at
                                 from generate_series(case when j.xid = p_from_xid then greatest(j.pos - j.pack_n, p_from_pos) else j.pos - j.pack_n end + 1,
                                                      j.pos) a(at)
                                where j.pack_n is not null
                               offset 0) p on true      -- kept apart, as in range_jobs
           where j.lane = p_lane
             and (j.xid, j.pos) > (p_from_xid, p_from_pos)
             and j.xid < p_to_xid
             and pg_visible_in_snapshot(j.xid, p_hi)
           order by j.xid, j.pos
           limit p_limit) r;
end $$
    $sql$, slot);
  end loop;
end $do$;
