-- SPDX-License-Identifier: PostgreSQL
-- Copies the finished jobs of segments that are about to go to the archive, for queues that keep them longer than the log does.
-- After what is open was parked: a job that ended behind the copier's back would be in neither place.
-- In chunks of blocks, one a call, so that no transaction gets long; a segment is marked when its last block is copied.
create or replace function millrace.archive(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_blocks  constant bigint := 4000;
  v_segment millrace.segment;
  v_keep    interval := millrace.log_retention();
  v_n       bigint := 0;
begin
  select g.*
    into v_segment
    from millrace.segments_live() g
   where g.parked
     and not g.archived
   order by g.seg
   limit 1;
  if not found then
    return 0;
  end if;
  if exists (select from millrace.queue q where q.retention_time > v_keep) then
    v_n := millrace.archive_blocks(p_now, v_segment, v_keep, v_segment.archived_block, v_segment.archived_block + c_blocks);
  else
    v_segment.archived_block := 4294967295;
  end if;
  update millrace.segment g
     set archived_block = v_segment.archived_block + c_blocks,
         archived = (v_segment.archived_block + c_blocks) * current_setting('block_size')::bigint
                    >= pg_relation_size(('millrace.job_' || v_segment.seg % 16)::regclass)
   where g.seg = v_segment.seg;
  return v_n;
end $$;

-- The finished jobs in some blocks of a segment's leaf. Positions are not indexed by themselves: a nested loop would walk a whole lane
-- for each job, and without statistics it looks cheap. Hence none, and the list of a claim is unfolded without one.
create or replace function millrace.archive_blocks(p_now timestamptz, p_segment millrace.segment, p_keep interval, p_from bigint, p_to bigint)
returns bigint
language plpgsql
set enable_seqscan = on
set enable_bitmapscan = on
set enable_nestloop = off
as $$
declare
  v_n bigint;
begin
  execute format($sql$
    insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome,
                                  holder, claimed_at, job_kind, payload_args, run_limit, payload_meta, payload_state, payload_blob,
                                  payload_result, job_tenant, job_ref, job_source, trail, order_key)
    select f.finished_at, f.finished_at + f.retention_time, case when j.pack_n is null then j.job_id else j.at end, j.created_at, f.queue_id, j.lane,
           millrace.archive_slot($1, f.finished_at + f.retention_time), j.attempt, j.attempts_limit, f.letter, f.holder, f.claimed_at,
           j.job_kind, case when j.pack_n is null then j.payload_args else j.pack[j.at - j.pos + j.pack_n] end, j.run_limit, j.payload_meta,
           j.payload_state, j.payload_blob, r.payload_result, j.job_tenant, j.job_ref, j.job_source, j.trail, j.order_key
      from (select j.*, generate_series(j.pos - coalesce(j.pack_n, 1) + 1, j.pos) as at
              from millrace.job_%1$s j
             where j.ctid >= '(%2$s,0)'::tid
               and j.ctid < '(%3$s,0)'::tid) j
      join (select p.lane, p.pos, p.holder, p.claimed_at, p.finished_at, p.queue_id, p.retention_time,
                   case when p.outcome is null then 'c' else substr(p.outcome, p.ord, 1) end::"char" as letter
              from (select k.lane, k.holder, k.claimed_at, k.finished_at, k.outcome, coalesce(q.parent_id, q.queue_id) as queue_id, q.retention_time,
                           unnest(k.positions) as pos, generate_subscripts(k.positions, 1) as ord
                      from millrace.claim k
                      join millrace.queue q on q.queue_id = k.lane >> 12
                     where k.min_seg <= $2
                       and k.last_seg >= $2
                       and k.status in ('d', 'l')
                       and q.retention_time > $3
                       and k.finished_at + q.retention_time > $1) p) f on f.lane = j.lane and f.pos = j.at
      left join millrace.result r on r.job_id = case when j.pack_n is null then j.job_id else j.at end and r.pos = j.at
     where f.letter in ('c', 'x', 'k') $sql$,
    p_segment.seg % 16, p_from, least(p_to, 4294967294))
    using p_now, p_segment.seg, p_keep;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- The finished jobs of a claim among those that are parked, before they go.
create or replace function millrace.archive_parked(p_now timestamptz, p_claim millrace.claim)
returns void
language plpgsql
as $$
begin
  insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome,
                                holder, claimed_at, job_kind, payload_args, run_limit, payload_meta, payload_state, payload_blob,
                                payload_result, job_tenant, job_ref, job_source, trail, order_key)
  select p_claim.finished_at, p_claim.finished_at + q.retention_time, j.job_id, j.created_at, coalesce(q.parent_id, q.queue_id), j.lane,
         millrace.archive_slot(p_now, p_claim.finished_at + q.retention_time), j.attempt, j.attempts_limit,
         coalesce(substr(p_claim.outcome, u.ord::int, 1), 'c')::"char", p_claim.holder, p_claim.claimed_at, j.job_kind, j.payload_args,
         j.run_limit, j.payload_meta, j.payload_state, j.payload_blob, r.payload_result, j.job_tenant, j.job_ref, j.job_source, j.trail, j.order_key
    from unnest(coalesce(p_claim.job_ids, p_claim.positions), p_claim.positions) with ordinality u(job_id, pos, ord)
    join millrace.job j on j.slot = -1 and j.job_id = u.job_id and j.pos = u.pos
    join millrace.queue q on q.queue_id = p_claim.lane >> 12
    left join millrace.result r on r.job_id = j.job_id and r.pos = j.pos
   where q.retention_time > millrace.log_retention()
     and p_claim.finished_at + q.retention_time > p_now
     and coalesce(substr(p_claim.outcome, u.ord::int, 1), 'c') in ('c', 'x', 'k');
end $$;

-- The leaf of `archive` for the time a job may go: 0-31 by the day within 31 days, 32-63 by the month of thirty days after that.
create or replace function millrace.archive_slot(p_now timestamptz, p_until timestamptz)
returns int2
language sql
stable
as $$
  select case
           when p_until < p_now + interval '31 days' then (date_part('epoch', p_until)::bigint / 86400) % 32
           else 32 + (date_part('epoch', p_until)::bigint / 2592000) % 32
         end::int2
$$;
