-- SPDX-License-Identifier: PostgreSQL
-- The rows of a range in which some have expired or are large, read for lane_take: the jobs as claim returns them, and of those that
-- are not delivered the ordinals (after p_base) and their letters, x expired, d damaged and buried.
-- Large jobs are read here, not with the result: a damaged value would raise when it is sent, and stop its lane for ever. And no more
-- of them at a time than fit into memory: then n is less than what was seen, and the rest is for the next claim.
create or replace function millrace.take_odd(p_now timestamptz, p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                             p_hi pg_snapshot, p_limit int, p_base int, p_lease text, p_until timestamptz,
                                             p_state boolean,
                                             out n int, out seen int, out positions bigint[], out ids bigint[], out xid xid8, out wait interval,
                                             out jobs millrace.claimed_job[], out ordinals int[], out marks text)
language plpgsql
as $$
declare
  v_stale boolean;
begin
  begin
    select count(*) filter (where j.fits), count(*), array_agg(j.pos) filter (where j.fits), array_agg(j.job_id) filter (where j.fits),
           millrace.newest_xid(j.xid) filter (where j.fits), sum(p_now - coalesce(j.ready_at, j.created_at)) filter (where j.fits),
           array_agg(row(p_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.payload_meta,
                         case when p_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, p_lane >> 5 & 127,
                         j.job_source, j.created_at, p_until, j.run_limit)::millrace.claimed_job)
             filter (where j.fits
                       -- a JSON value that lies out of line is decoded here, not when it is sent
                       and (pg_column_size(j.payload_args) >= 1500 and length(j.payload_args::text) = 0) is not true
                       and (pg_column_size(j.payload_meta) >= 1500 and length(j.payload_meta::text) = 0) is not true),
           bool_or(j.stale_at is not null)
      into n, seen, positions, ids, xid, wait, jobs, v_stale
      from (select j.*, row_number() over r = 1 or sum(coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0) + coalesce(octet_length(j.payload_blob), 0)
                                                        + case when p_state then coalesce(octet_length(j.payload_state), 0) else 0 end) over r < 16777216 as fits
              from millrace.job j
             where j.slot = p_slot
               and j.lane = p_lane
               and (j.xid, j.pos) > (p_from_xid, p_from_pos)
               and j.xid < p_to_xid
               and pg_visible_in_snapshot(j.xid, p_hi)
            window r as (order by j.lane, j.xid, j.pos rows unbounded preceding)
             order by j.lane, j.xid, j.pos
             limit p_limit) j;
    if not v_stale then
      return;
    end if;
  exception
    when data_corrupted or internal_error or data_exception or program_limit_exceeded then
      null;      -- some part of some job cannot be read
  end;
  select t.*
    into n, seen, positions, ids, xid, wait, jobs, ordinals, marks
    from millrace.take_singly(p_now, p_slot, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit, p_base, p_lease, p_until, p_state) t;
end $$;

-- The same, one job at a time: where some have expired or cannot be read.
create or replace function millrace.take_singly(p_now timestamptz, p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                p_hi pg_snapshot, p_limit int, p_base int, p_lease text, p_until timestamptz,
                                                p_state boolean,
                                                out n int, out seen int, out positions bigint[], out ids bigint[], out xid xid8, out wait interval,
                                                out jobs millrace.claimed_job[], out ordinals int[], out marks text)
language plpgsql
as $$
declare
  c_bytes constant bigint := 16777216;
  v_row   record;
  v_bytes bigint := 0;
begin
  n := 0;
  seen := 0;
  jobs := '{}';
  wait := '0';
  for v_row in
    select case
             when coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0)
                  + coalesce(pg_column_size(j.payload_state), 0) + coalesce(pg_column_size(j.payload_blob), 0)
                  + coalesce(pg_column_size(j.job_tenant), 0) + coalesce(pg_column_size(j.job_ref), 0)
                  + coalesce(pg_column_size(j.trail), 0) < 1500
             then row(p_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.payload_meta,
                      case when p_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, p_lane >> 5 & 127,
                      j.job_source, j.created_at, p_until, j.run_limit)::millrace.claimed_job
           end as job,
           j.xid, j.pos, j.job_id, j.stale_at, coalesce(j.ready_at, j.created_at) as ready_at,
           coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0) + coalesce(octet_length(j.payload_blob), 0)
           + case when p_state then coalesce(octet_length(j.payload_state), 0) else 0 end as bytes
      from millrace.job j
     where j.slot = p_slot
       and j.lane = p_lane
       and (j.xid, j.pos) > (p_from_xid, p_from_pos)
       and j.xid < p_to_xid
       and pg_visible_in_snapshot(j.xid, p_hi)
     order by j.lane, j.xid, j.pos
     limit p_limit
  loop
    seen := seen + 1;
    v_bytes := v_bytes + v_row.bytes;
    exit when v_bytes > c_bytes and n > 0;
    n := n + 1;
    positions := positions || v_row.pos;
    ids := ids || v_row.job_id;
    xid := v_row.xid;
    if v_row.stale_at <= p_now then
      ordinals := ordinals || p_base + n;
      marks := concat(marks, case when v_row.stale_at = '-infinity' then 'd' else 'x' end);
      continue;
    end if;
    if v_row.job is null then
      v_row.job := millrace.job_read(p_slot, v_row.job_id, v_row.pos, p_lease, p_lane >> 5 & 127, p_until, p_state);
    end if;
    if v_row.job is null then
      ordinals := ordinals || p_base + n;
      marks := concat(marks, 'd');
      perform millrace.job_bury_damaged(p_now, p_slot, v_row.job_id, v_row.pos);
      continue;
    end if;
    wait := wait + (p_now - v_row.ready_at);
    jobs := jobs || v_row.job;
  end loop;
end $$;

-- Whether a range holds rows for take_odd: expired ones, or ones that are large enough to lie out of line.
create or replace function millrace.range_odd(p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8, p_hi pg_snapshot, p_limit int)
returns boolean
language plpgsql
as $$
begin
  return (select bool_or(j.stale_at is not null
                         or coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0)
                            + coalesce(pg_column_size(j.payload_state), 0) + coalesce(pg_column_size(j.payload_blob), 0)
                            + coalesce(pg_column_size(j.job_tenant), 0) + coalesce(pg_column_size(j.job_ref), 0)
                            + coalesce(pg_column_size(j.trail), 0) >= 1500)
            from (select *
                    from millrace.job j
                   where j.slot = p_slot
                     and j.lane = p_lane
                     and (j.xid, j.pos) > (p_from_xid, p_from_pos)
                     and j.xid < p_to_xid
                     and pg_visible_in_snapshot(j.xid, p_hi)
                   order by j.lane, j.xid, j.pos
                   limit p_limit) j);
end $$;
