-- SPDX-License-Identifier: PostgreSQL
-- What a claim has to know of the jobs that range_jobs gives for the same arguments, to move its cursor past them: no payload, which costs
-- more to find in a pack than all the rest. sort: 2 some may have expired or have a hook, and are for take_odd; 1 none of these, but large ones, which
-- may lie out of line; 0 neither. A pack holds jobs with small args and nothing else, so it is looked at for having expired only. tenanted: some are a
-- tenant's, who may have a rate. more: the range may hold more.
-- Rows are looked at, not jobs: a step for each job costs more than all that is to be known of it. How many rows that takes the session knows
-- from its last look (pack_rate, jobs in a row). One too many does no harm: sort and tenanted speak of it, too, and whoever acts on them
-- looks closer. One too few is a second look.
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
declare
  -- 31: the most a row can have, so that the first look is not too long.
  v_rate  int := coalesce(nullif(current_setting('millrace.pack_rate', true), ''), '31');
  v_rows  int := least(p_limit, p_limit / v_rate + 2);
  v_found int;
  v_jobs  int;
  v_over  int;
  v_sizes int[];
  v_xids  xid8[];
begin
  select least(a.jobs, p_limit), a.found, a.jobs, a.sizes, a.xids, a.wait, a.sort, a.tenanted,
         case
           when a.jobs = a.found then a.ends
           else array(select generate_series(u.till - u.size + 1, u.till) from unnest(a.ends, a.sizes) u(till, size) limit p_limit)
         end,
         case
           when a.jobs = a.found then a.ids
           when a.ids <> a.ends then array(select generate_series(u.id - u.size + 1, u.id) from unnest(a.ids, a.sizes) u(id, size) limit p_limit)
         end
    into n, v_found, v_jobs, v_sizes, v_xids, wait, sort, tenanted, positions, ids
    from (select count(*) as found, coalesce(sum(r.size), 0) as jobs, array_agg(r.pos) as ends, array_agg(r.id) as ids, array_agg(r.size) as sizes,
                 array_agg(r.xid) as xids, sum(r.wait) as wait, max(r.sort) as sort, bool_or(r.tenanted) as tenanted
            from (select j.xid, j.pos, j.job_id as id, p.size, (p_now - coalesce(j.ready_at, j.created_at)) * p.size as wait,
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
                   -- Of the pack in which the cursor stands, what comes after it.
                   cross join lateral (select case
                                                when j.pack_n is null then 1
                                                when j.xid = p_from_xid then least(j.pack_n, j.pos - p_from_pos)
                                                else j.pack_n
                                              end::int as size) p
                   where j.lane = p_lane
                     and (j.xid, j.pos) > (p_from_xid, p_from_pos)
                     and j.xid < p_to_xid
                     and pg_visible_in_snapshot(j.xid, p_hi)
                   order by j.xid, j.pos
                   limit v_rows) r) a;
  cut := false;
  more := v_found = v_rows or v_jobs > p_limit;
  if v_found = 0 then
    return;
  end if;
  v_over := v_jobs - n;
  if v_over > 0 then
    wait := wait * (n / v_jobs::float8);
    while v_over >= v_sizes[v_found] loop
      v_over := v_over - v_sizes[v_found];
      v_found := v_found - 1;
    end loop;
  end if;
  xid := v_xids[v_found];
  ids := coalesce(ids, positions);
  if abs(v_jobs / cardinality(v_sizes) - v_rate) > v_rate / 4 then
    perform set_config('millrace.pack_rate', greatest(1, v_jobs / cardinality(v_sizes))::text, false);
  end if;
end $$
    $sql$, slot);
  end loop;
end $do$;
