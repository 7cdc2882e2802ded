-- SPDX-License-Identifier: PostgreSQL
-- The rows of the log that are the job p_id: one for each time it became available. Where a row is a pack, the one job of it.
-- A plain query, so that it is planned as a part of the statement that calls it. The ids of a pack lie within one
-- block: 1 to 31, 33 to 63 and so on.
-- job_rows_0 to job_rows_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in -1..15 loop
    execute format($sql$
create or replace function millrace.job_rows%1$s(p_id bigint)
returns setof millrace.job
language sql
stable
rows 1
as $$
  select j.xid, case when j.pack_n is null then j.pos else p_id end, p_id, j.created_at, j.seg, j.lane, j.slot, j.attempt, j.lost,
         j.attempts_limit, null::int2, j.job_kind,
         case when j.pack_n is null then j.payload_args else j.pack[p_id - j.pos + j.pack_n] end, null::jsonb[],
         j.ready_at, j.stale_at, j.run_limit, j.payload_meta, j.payload_state, j.payload_blob, j.job_tenant, j.job_ref, j.job_source, j.trail,
         j.order_key, j.unique_name, j.batch_id
    from millrace.job%1$s j
   where j.job_id >= p_id
     and j.job_id <= p_id | 31
     and j.job_id - coalesce(j.pack_n, 1) < p_id
$$
    $sql$, case when slot < 0 then '' else '_' || slot end);
  end loop;
end $do$;
