-- SPDX-License-Identifier: PostgreSQL
-- What a claim has to know of the jobs that range_jobs gives for the same arguments, to move its cursor past them: no payload, which costs
-- more to find in a pack than all the rest. odd: may be one for take_odd; tenanted: is one where tenants have a rate. A pack holds jobs with small args and nothing else, so it is
-- looked at for having expired only.
create or replace function millrace.range_look(p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8, p_hi pg_snapshot,
                                               p_limit int)
returns table (xid xid8, last_pos bigint, pos bigint, job_id bigint, since timestamptz, odd boolean, tenanted boolean)
language sql
stable
rows 100
as $$
  select j.xid, j.pos, coalesce(p.at, j.pos), coalesce(p.at, j.job_id), coalesce(j.ready_at, j.created_at),
         j.stale_at is not null
         or (j.pack_n is null
             and (num_nonnulls(j.payload_meta, j.payload_state, j.payload_blob, j.trail, j.order_key, j.unique_name, j.batch_id) > 0
                  or coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.job_tenant), 0)
                     + coalesce(pg_column_size(j.job_ref), 0) >= 1500)),
         j.job_tenant is not null
    from millrace.job j
    left join lateral (select a.at
                         from generate_series(case when j.xid = p_from_xid then greatest(j.pos - j.pack_n, p_from_pos) else j.pos - j.pack_n end + 1,
                                              j.pos) a(at)
                        where j.pack_n is not null
                       offset 0) p on true      -- kept apart, as in range_jobs
   where j.slot = p_slot
     and j.lane = p_lane
     and (j.xid, j.pos) > (p_from_xid, p_from_pos)
     and j.xid < p_to_xid
     and pg_visible_in_snapshot(j.xid, p_hi)
   order by j.xid, j.pos
   limit p_limit
$$;
