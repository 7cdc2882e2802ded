-- SPDX-License-Identifier: PostgreSQL
-- claim_batch for programs that can read an array: jobs that lie in one row of the log come as one row, too. Such a row has in pack the args of each of
-- its jobs, and in id the first one's; the others' follow one by one, and all else is the same for all of them. In any other row pack is null.
-- The first row is the lease's, as in claim_batch.
-- Where most of a claim are small jobs that were enqueued together, a row for each of them costs twice what it takes to print their args.
-- Errors: as claim.
do $do$
begin
  execute format($sql$
create or replace function millrace.claim_packs(
  queue text = 'default',
  worker text = null,
  max_jobs int = 1,
  lease_for interval = null,
  with_state boolean = true)
returns setof millrace.claimed_pack
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_taken millrace.taken := millrace.claim_take(v_now, queue, worker, max_jobs, lease_for, with_state is not false);
  v_job   millrace.claimed_job;
  v_seg   int;
begin
  if v_taken.lease is null and v_taken.limited is null then
    return;
  end if;
  return next row(v_taken.lease, null, null, null, v_taken.limited, null, null, null, null, null, null, v_taken.lane >> 5 & 127, null, v_now,
                  v_taken.until, null, null)::millrace.claimed_pack;
  if v_taken.jobs is not null then
    foreach v_job in array v_taken.jobs loop
      return next row(v_job.lease, v_job.id, v_job.attempt, v_job.max_attempts, v_job.kind, v_job.args, v_job.meta, v_job.state, v_job.blob,
                      v_job.tenant, v_job.ref, v_job.priority, v_job.source, v_job.created_at, v_job.lease_until, v_job.timeout,
                      null)::millrace.claimed_pack;
    end loop;
    return;
  end if;
  for i in 1 .. coalesce(cardinality(v_taken.seg), 0) loop
    v_seg := v_taken.seg[i];
    %s
  end loop;
end $$
  -- A row's position is its last job's, and no two rows share a block of 32 but the jobs of a pack that was opened: hence the end of the block,
  -- which the index knows, and what begins behind the last job.
  $sql$, millrace.by_leaf('v_seg', $one$
    return query
      select null::text, coalesce(p.first_pos, j.job_id), j.attempt::int, j.attempts_limit::int, j.job_kind, j.payload_args, j.payload_meta,
             case when with_state is not false then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, null::int, j.job_source,
             j.created_at, null::timestamptz, j.run_limit,
             case
               when j.pack_n is null or p.last_pos - p.first_pos + 1 = j.pack_n then j.pack
               else j.pack[p.first_pos - j.pos + j.pack_n : p.last_pos - j.pos + j.pack_n]
             end
        from millrace.job_%1$s j
        left join lateral (select case when j.xid = v_taken.from_xid[i] then greatest(j.pos - j.pack_n, v_taken.from_pos[i]) else j.pos - j.pack_n end + 1
                                    as first_pos,
                                  case when j.xid = v_taken.till_xid[i] then least(j.pos, v_taken.till_pos[i]) else j.pos end as last_pos
                            where j.pack_n is not null) p on true
       where j.lane = v_taken.lane
         and (j.xid, j.pos) > (v_taken.from_xid[i], v_taken.from_pos[i])
         and (j.xid, j.pos) <= (v_taken.till_xid[i], v_taken.till_pos[i] | 31)
         and (j.xid <> v_taken.till_xid[i] or j.pos - coalesce(j.pack_n, 1) < v_taken.till_pos[i])
         and pg_visible_in_snapshot(j.xid, v_taken.hi)
       order by j.xid, j.pos;$one$));
end $do$;
comment on function millrace.claim_packs(text, text, int, interval, boolean) is
  'takes jobs under a lease, which comes once, and those of a row of the log together';
