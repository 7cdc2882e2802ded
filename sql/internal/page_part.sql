-- SPDX-License-Identifier: PostgreSQL
-- Sources of list_jobs beside the log: delayed jobs, dead letters, the archive, and what runs. The first three go by ids, from the largest down. Where a
-- filter names what there is an index for (a queue, a ref) and the rows are few enough to be looked at in one call, they are sorted; where they are more,
-- they are frequent, and the walk by id meets them soon.

create or replace function millrace.part_delayed(p_now timestamptz, p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_rows   constant int := 20000;
  c_least  constant int := 500;      -- whatever the time
  v_part   millrace.page_part;
  v_id     bigint := coalesce(millrace.place_number(p_place, 'id'), 9223372036854775807);
  v_status text := p_f ->> 'status';
  v_job    millrace.delayed;
  v_walk   refcursor := millrace.delayed_walk(p_f, v_id, c_rows);
  v_seen   int := 0;
begin
  v_part.keys := '{}';
  loop
    fetch v_walk into v_job;
    exit when not found;
    v_seen := v_seen + 1;
    v_part.seen := v_seen;
    v_part.place := jsonb_build_object('id', v_job.job_id);
    if (p_f ->> 'queue_id' is null or millrace.queue_of_lane(v_job.lane) = (p_f ->> 'queue_id')::int)
       and (v_status is null or millrace.delayed_status(p_now, v_job.why, v_job.stale_at) = v_status)
       and millrace.page_fits(p_f, v_job.job_kind, v_job.job_tenant, v_job.job_ref, v_job.job_source, case when p_f ? 'error' then v_job.trail -> -1 ->> 'error' end) then
      v_part.keys := v_part.keys || v_job.job_id;
      v_part.places := v_part.places || v_part.place;
      v_part.faces := v_part.faces || millrace.delayed_face(p_now, v_job);
    end if;
    if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen = c_rows or v_seen >= c_least and clock_timestamp() > p_until then
      close v_walk;
      return v_part;
    end if;
  end loop;
  close v_walk;
  v_part.place := null;
  return v_part;
end $$;

create or replace function millrace.delayed_walk(p_f jsonb, p_id bigint, p_most int)
returns refcursor
language plpgsql
as $$
declare
  v_first int := (p_f ->> 'queue_id')::int << 12;
  v_ref   text := p_f ->> 'ref';
  v_walk  refcursor;
begin
  if v_ref is not null and (select count(*) from (select from millrace.delayed d where d.job_ref = v_ref limit p_most) d) < p_most then
    open v_walk for
      select d.*
        from (select d.* from millrace.delayed d where d.job_ref = v_ref offset 0) d
       where d.job_id < p_id
       order by d.job_id desc;
  elsif v_first is not null
        and not (select q.has_tenants from millrace.queue q where q.queue_id = (p_f ->> 'queue_id')::int)
        and (select count(*) from (select from millrace.delayed d where d.lane >= v_first and d.lane < v_first + 4096 limit p_most) d) < p_most then
    open v_walk for
      select d.*
        from (select d.* from millrace.delayed d where d.lane >= v_first and d.lane < v_first + 4096 offset 0) d
       where d.job_id < p_id
       order by d.job_id desc;
  elsif p_f ->> 'status' in ('paused', 'waiting', 'available', 'expired')
        and (select count(*) from (select from millrace.delayed d where d.due_at = 'infinity' limit p_most) d) < p_most then
    open v_walk for
      select d.*
        from (select d.* from millrace.delayed d where d.due_at = 'infinity' offset 0) d
       where d.job_id < p_id
       order by d.job_id desc;
  else
    open v_walk for
      select d.*
        from millrace.delayed d
       where d.job_id < p_id
       order by d.job_id desc;
  end if;
  return v_walk;
end $$;

create or replace function millrace.part_dead(p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_rows  constant int := 20000;
  c_least constant int := 500;
  v_part millrace.page_part;
  v_id   bigint := coalesce(millrace.place_number(p_place, 'id'), 9223372036854775807);
  v_job  millrace.dead;
  v_walk refcursor := millrace.dead_walk_by_id(p_f, v_id, c_rows);
  v_seen int := 0;
begin
  v_part.keys := '{}';
  loop
    fetch v_walk into v_job;
    exit when not found;
    v_seen := v_seen + 1;
    v_part.seen := v_seen;
    v_part.place := jsonb_build_object('id', v_job.job_id);
    if (p_f ->> 'queue_id' is null or v_job.queue_id = (p_f ->> 'queue_id')::int)
       and millrace.page_fits(p_f, v_job.job_kind, v_job.job_tenant, v_job.job_ref, v_job.job_source, v_job.failure) then
      v_part.keys := v_part.keys || v_job.job_id;
      v_part.places := v_part.places || v_part.place;
      v_part.faces := v_part.faces || millrace.dead_face(v_job);
    end if;
    if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen = c_rows or v_seen >= c_least and clock_timestamp() > p_until then
      close v_walk;
      return v_part;
    end if;
  end loop;
  close v_walk;
  v_part.place := null;
  return v_part;
end $$;

create or replace function millrace.dead_walk_by_id(p_f jsonb, p_id bigint, p_most int)
returns refcursor
language plpgsql
as $$
declare
  v_queue int := (p_f ->> 'queue_id')::int;
  v_ref   text := p_f ->> 'ref';
  v_walk  refcursor;
begin
  if v_ref is not null and (select count(*) from (select from millrace.dead d where d.job_ref = v_ref limit p_most) d) < p_most then
    open v_walk for
      select d.*
        from (select d.* from millrace.dead d where d.job_ref = v_ref offset 0) d
       where d.job_id < p_id
       order by d.job_id desc;
  elsif v_queue is not null and (select count(*) from (select from millrace.dead d where d.queue_id = v_queue limit p_most) d) < p_most then
    open v_walk for
      select d.*
        from (select d.* from millrace.dead d where d.queue_id = v_queue offset 0) d
       where d.job_id < p_id
       order by d.job_id desc;
  else
    open v_walk for
      select d.*
        from millrace.dead d
       where d.job_id < p_id
       order by d.job_id desc;
  end if;
  return v_walk;
end $$;

create or replace function millrace.part_archive(p_now timestamptz, p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_rows    constant int := 20000;
  c_least   constant int := 500;
  v_part    millrace.page_part;
  v_id      bigint := coalesce(millrace.place_number(p_place, 'id'), 9223372036854775807);
  v_leaving boolean := exists (select from millrace.segments_live() g where g.parked);      -- between the copy and the end of its leaf a job is in both
  v_job     millrace.archive;
  v_walk    refcursor := millrace.archive_walk(p_f, v_id, c_rows);
  v_seen    int := 0;
begin
  v_part.keys := '{}';
  loop
    fetch v_walk into v_job;
    exit when not found;
    v_seen := v_seen + 1;
    v_part.seen := v_seen;
    v_part.place := jsonb_build_object('id', v_job.job_id);
    if (p_f ->> 'queue_id' is null or v_job.queue_id = (p_f ->> 'queue_id')::int)
       and v_job.keep_until > p_now
       and (p_f ->> 'status' is null or millrace.archive_status(v_job.outcome) = p_f ->> 'status')
       and millrace.page_fits(p_f, v_job.job_kind, v_job.job_tenant, v_job.job_ref, v_job.job_source, case when p_f ? 'error' then v_job.trail -> -1 ->> 'error' end)
       and not (v_leaving and millrace.job_logged(v_job.job_id)) then
      v_part.keys := v_part.keys || v_job.job_id;
      v_part.places := v_part.places || v_part.place;
      v_part.faces := v_part.faces || millrace.archive_face(v_job);
    end if;
    if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen = c_rows or v_seen >= c_least and clock_timestamp() > p_until then
      close v_walk;
      return v_part;
    end if;
  end loop;
  close v_walk;
  v_part.place := null;
  return v_part;
end $$;

create or replace function millrace.archive_walk(p_f jsonb, p_id bigint, p_most int)
returns refcursor
language plpgsql
as $$
declare
  v_queue int := (p_f ->> 'queue_id')::int;
  v_ref   text := p_f ->> 'ref';
  v_walk  refcursor;
begin
  if v_ref is not null and (select count(*) from (select from millrace.archive a where a.job_ref = v_ref limit p_most) a) < p_most then
    open v_walk for
      select a.*
        from (select a.* from millrace.archive a where a.job_ref = v_ref offset 0) a
       where a.job_id < p_id
       order by a.job_id desc;
  elsif v_queue is not null and (select count(*) from (select from millrace.archive a where a.queue_id = v_queue limit p_most) a) < p_most then
    open v_walk for
      select a.*
        from (select a.* from millrace.archive a where a.queue_id = v_queue offset 0) a
       where a.job_id < p_id
       order by a.job_id desc;
  else
    open v_walk for
      select a.*
        from millrace.archive a
       where a.job_id < p_id
       order by a.job_id desc;
  end if;
  return v_walk;
end $$;

-- What runs: the open jobs of the open claims, which the ledger knows; those claimed last come first. The jobs of a claim come in their order from the
-- last on. At most c_jobs are looked at, where a filter has to see the job itself.
create or replace function millrace.part_running(p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_jobs  constant int := 5000;
  c_least constant int := 200;
  v_part  millrace.page_part;
  v_at    bigint := coalesce(millrace.place_number(p_place, 'at'), 9223372036854775807);
  v_lane  bigint := coalesce(millrace.place_number(p_place, 'lane'), 9223372036854775807);
  v_no    bigint := coalesce(millrace.place_number(p_place, 'no'), 9223372036854775807);
  v_nth   bigint := coalesce(millrace.place_number(p_place, 'nth'), 2147483647);
  v_claim millrace.claim;
  v_job   millrace.job;
  v_seen  int := 0;
  v_lanes int[] := millrace.page_lanes(p_f);
  v_slots int2[];
  v_ids   bigint[];
  v_poss  bigint[];
begin
  v_part.keys := '{}';
  for v_claim in
    select k.*
      from unnest(v_lanes) l
     cross join lateral millrace.lane_open_claims(l, millrace.lane_tally(l)) k
     where (millrace.epoch_us(k.claimed_at), k.lane, k.no) <= (v_at, v_lane, v_no)
     order by k.claimed_at desc, k.lane desc, k.no desc
  loop
    v_slots := millrace.held_slots(v_claim);
    v_poss := v_claim.positions;      -- unfolded once, not for each job
    v_ids := coalesce(v_claim.job_ids, v_poss);
    for i in reverse v_claim.n .. 1 loop
      continue when (millrace.epoch_us(v_claim.claimed_at), v_claim.lane, v_claim.no) = (v_at, v_lane, v_no) and i >= v_nth
                 or substr(v_claim.outcome, i, 1) <> 'o';
      v_seen := v_seen + 1;
      v_part.seen := v_seen;
      v_part.place := jsonb_build_object('at', millrace.epoch_us(v_claim.claimed_at), 'lane', v_claim.lane, 'no', v_claim.no, 'nth', i);
      select j.*
        into v_job
        from millrace.job_rows(v_ids[i]) j
       where j.slot = any (v_slots)
         and j.pos = v_poss[i];
      if found and millrace.page_fits(p_f, v_job.job_kind, v_job.job_tenant, v_job.job_ref, v_job.job_source, case when p_f ? 'error' then v_job.trail -> -1 ->> 'error' end) then
        v_part.keys := v_part.keys || v_job.pos;
        v_part.places := v_part.places || v_part.place;
        v_part.faces := v_part.faces || millrace.log_face(v_job.slot, v_job.job_id, v_job.pos, 'running', v_claim);
      end if;
      if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen = c_jobs or v_seen >= c_least and clock_timestamp() > p_until then
        return v_part;
      end if;
    end loop;
  end loop;
  v_part.place := null;
  return v_part;
end $$;

-- What was cancelled while it waited, and no cursor has passed yet: by its mark.
create or replace function millrace.part_marked(p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_jobs  constant int := 2000;
  v_part  millrace.page_part;
  v_mark  millrace.mark;
  v_job   millrace.job;
  v_claim millrace.claim;
  v_seen  int := 0;
begin
  v_part.keys := '{}';
  for v_mark in
    select m.*
      from millrace.mark m
     where m.job_id < coalesce(millrace.place_number(p_place, 'id'), 9223372036854775807)
     order by m.job_id desc
     limit c_jobs
  loop
    v_seen := v_seen + 1;
    v_part.seen := v_seen;
    v_part.place := jsonb_build_object('id', v_mark.job_id);
    select j.*
      into v_job
      from millrace.job_rows(v_mark.job_id) j
     where j.pos = v_mark.pos
       and v_mark.letter = 'k';
    if found and coalesce(millrace.queue_of_lane(v_mark.lane) = (p_f ->> 'queue_id')::int, true) and millrace.page_fits(p_f, v_job.job_kind, v_job.job_tenant, v_job.job_ref, v_job.job_source, case when p_f ? 'error' then v_job.trail -> -1 ->> 'error' end) then
      v_claim.finished_at := v_mark.made_at;
      v_part.keys := v_part.keys || v_job.pos;
      v_part.places := v_part.places || v_part.place;
      v_part.faces := v_part.faces || millrace.log_face(v_job.slot, v_job.job_id, v_job.pos, 'cancelled', v_claim);
    end if;
    if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen = c_jobs or v_seen >= 200 and clock_timestamp() > p_until then
      return v_part;
    end if;
  end loop;
  v_part.place := null;
  return v_part;
end $$;

-- The lanes that a filter speaks of.
create or replace function millrace.page_lanes(p_f jsonb)
returns int[]
language plpgsql
as $$
begin
  if not p_f ? 'queue_id' then
    return array(select l from millrace.lanes_all() l);
  end if;
  return (select millrace.lanes_family(q) from millrace.queue q where q.queue_id = (p_f ->> 'queue_id')::int);
end $$;
