-- SPDX-License-Identifier: PostgreSQL
-- The log as a source of list_jobs. Segment by segment from the newest on, and in each the rows of all lanes that are asked for, merged by (xid, pos),
-- from the largest on (log_batch). What a lane's cursor has passed was taken, the rest waits: that is known without a look at claims, and each side has a
-- range of xids, so that a list of what waits does not walk through what was taken, or the other way round. Only for a job that was taken its claim is looked for, and jobs beside each other are mostly of one claim.
create or replace function millrace.part_log(p_now timestamptz, p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_rows   constant int := 20000;               -- rows looked at in a call
  c_least  constant int := 50;                  -- whatever the time: every call gets on
  c_looks  constant int := 300;                 -- searches for a claim
  c_batch  constant interval := '15 ms';        -- that a batch should take: between two nobody looks at the clock
  v_limit  int := (p_f ->> 'limit')::int;
  v_open   int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_part   millrace.page_part;
  v_at     record := millrace.log_cursors(millrace.page_lanes(p_f));
  v_seg    int := greatest(-1, least(millrace.place_number(p_place, 'seg'), v_open));
  v_xid    xid8 := coalesce(millrace.place_number(p_place, 'xid')::text, '18446744073709551615')::xid8;
  v_pos    bigint := coalesce(millrace.place_number(p_place, 'pos'), 9223372036854775807);
  v_upto   bigint := coalesce(millrace.place_number(p_place, 'at'), 9223372036854775807);
  v_size   int := 2 * v_limit;                  -- of a batch; they become larger
  v_more   boolean;
  v_begun  timestamptz;
  v_seen   int := 0;
  v_looks  int := 0;
  v_row    record;
  v_job    bigint;
  v_claim  millrace.claim;
  v_status text;
begin
  v_part.keys := '{}';
  if v_at.lanes is null then
    return v_part;
  end if;
  <<segments>>
  loop
    if v_seg >= greatest(0, v_open - 15) or v_seg = -1 then
      v_more := false;
      v_begun := clock_timestamp();
      for v_row in
        select r.*
          from millrace.log_batch(p_now, p_f, v_at.lanes, v_at.lo, v_at.hi, v_at.last_seg, v_at.last_xid, v_at.last_pos, v_seg, v_xid, v_pos, v_size) r
      loop
        v_more := v_row.more;
        v_seen := v_seen + 1;
        v_part.seen := v_seen;
        v_xid := v_row.xid;
        v_pos := v_row.pos;
        for i in 1 .. case when v_row.fits then v_row.jobs else 0 end loop
          v_job := v_row.pos - i + 1;
          continue when v_job >= v_upto;
          if v_row.taken or coalesce(v_job <= v_row.partly, false) then
            if (v_claim.lane = v_row.lane and v_job = any (v_claim.positions)) is not true then
              v_claim := millrace.claim_of(v_row.lane, case when v_row.slot < 0 then v_row.seg else v_seg end, v_row.xid, v_job);
              v_looks := v_looks + 1;
            end if;
            v_status := millrace.letter_status(millrace.claim_letter(v_claim, v_job));
          elsif p_f ->> 'status' = 'cancelled' then
            v_status := null;      -- part_marked has those
          else
            v_status := millrace.waiting_status(p_now, v_row.lane, v_job, v_row.stale_at);
          end if;
          v_part.place := jsonb_build_object('seg', v_seg, 'xid', v_xid::text::bigint, 'pos', v_pos, 'at', v_job);
          if v_status = coalesce(p_f ->> 'status', v_status) then
            v_part.keys := v_part.keys || v_job;
            v_part.places := v_part.places || v_part.place;
            v_part.faces := v_part.faces
                            || millrace.log_face(v_row.slot, case when v_row.packed then v_job else v_row.job_id end, v_job, v_status,
                                                 case when v_status not in ('available', 'expired') or v_row.taken then v_claim end);
          end if;
          exit segments when cardinality(v_part.keys) = v_limit or v_looks = c_looks;
        end loop;
        v_upto := 9223372036854775807;
        v_part.place := jsonb_build_object('seg', v_seg, 'xid', v_xid::text::bigint, 'pos', v_pos - 1);
        exit segments when v_seen = c_rows or v_seen >= c_least and clock_timestamp() > p_until;
      end loop;
      if v_more then
        v_pos := v_pos - 1;
        v_size := case when clock_timestamp() - v_begun < c_batch then least(v_size * 4, 4000) else greatest(v_size / 2, 50) end;
        continue;
      end if;
    end if;
    if v_seg = -1 then
      v_part.place := null;
      exit;
    end if;
    v_seg := case when v_seg > greatest(0, v_open - 15) then v_seg - 1 else -1 end;
    v_xid := '18446744073709551615';
    v_pos := 9223372036854775807;
    v_upto := v_pos;
    v_part.place := jsonb_build_object('seg', v_seg);
    exit when v_seen >= c_least and clock_timestamp() > p_until;
  end loop;
  return v_part;
end $$;

-- Where the cursors of some lanes stand, as arrays. A lane that nobody ever claimed from has none.
create or replace function millrace.log_cursors(p_lanes int[], out lanes int[], out lo pg_snapshot[], out hi pg_snapshot[], out last_seg int[],
                                                out last_xid xid8[], out last_pos bigint[])
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  select array_agg(l), array_agg(c.lo), array_agg(c.hi), array_agg(c.last_seg), array_agg(c.last_xid), array_agg(c.last_pos)
    into lanes, lo, hi, last_seg, last_xid, last_pos
    from unnest(p_lanes) l
   cross join lateral millrace.lane_cursor(l, v_open) c;
end $$;

-- The next rows of one segment, up to (p_xid, p_pos), from the largest on, at most p_size. taken: the cursor has passed it; partly: of a pack, up to which
-- job; more: there are further rows, and there always is one where that is so.
-- Of many lanes few are read: first the newest row of each is looked up. What is older than row p_size of the newest lane is not wanted, so most lanes drop
-- out. The others give a share each; rows older than the last of a share that was used up may come before rows that were not read, and are left for later.
create or replace function millrace.log_batch(p_now timestamptz, p_f jsonb, p_lanes int[], p_lo pg_snapshot[], p_hi pg_snapshot[], p_last_seg int[],
                                              p_last_xid xid8[], p_last_pos bigint[], p_seg int, p_xid xid8, p_pos bigint, p_size int)
returns table (slot int, seg int, lane int, xid xid8, pos bigint, job_id bigint, jobs int, packed boolean, stale_at timestamptz, fits boolean, taken boolean,
               partly bigint, more boolean)
language plpgsql
as $$
declare
  c_least  constant int := 10;      -- the smallest share
  v_status text := p_f ->> 'status';
  v_slot   int := case when p_seg < 0 then -1 else p_seg % 16 end;
  v_near   record;
  v_share  int;
begin
  if v_status = 'available' and p_seg < 0 then
    return;
  end if;
  v_near := millrace.log_near(v_status, p_lanes, p_lo, p_hi, p_last_seg, p_last_xid, p_seg, p_xid, p_pos, p_size);
  if v_near.nths is null then
    return;
  end if;
  v_share := case when cardinality(v_near.nths) = 1 then p_size else greatest(c_least, 2 * p_size / cardinality(v_near.nths)) end;
  return query
    with found as materialized (
      select l.hi, l.lo, l.last_seg, l.last_xid, l.last_pos, l.lane, j.*
        from unnest(v_near.nths) n
       cross join lateral (select p_lanes[n] as lane, p_lo[n] as lo, p_hi[n] as hi, p_last_seg[n] as last_seg, p_last_xid[n] as last_xid, p_last_pos[n] as last_pos) l
       cross join lateral millrace.log_side(v_status, p_seg, l.lo, l.hi, l.last_seg, l.last_xid) s
       cross join lateral (select j.*, row_number() over (order by j.xid desc, j.pos desc) as nth
                             from (select j.seg, j.xid, j.pos, j.job_id, j.pack_n, j.job_kind, j.job_tenant, j.job_ref, j.job_source, j.stale_at,
                                          case when p_f ? 'error' then j.trail -> -1 ->> 'error' end as error
                                     from millrace.job j
                                    where j.slot = v_slot
                                      and j.lane = l.lane
                                      and (j.xid, j.pos) <= (p_xid, p_pos)
                                      and j.xid >= s.low
                                      and j.xid < s.high
                                    order by j.xid desc, j.pos desc
                                    limit v_share) j) j),
    edge as materialized (
      select f.xid, f.pos
        from found f
       where f.nth = v_share
       order by f.xid desc, f.pos desc
       limit 1)
    select v_slot, f.seg, f.lane, f.xid, f.pos, f.job_id, coalesce(f.pack_n, 1)::int, f.pack_n is not null, f.stale_at,
           millrace.page_fits(p_f, f.job_kind, f.job_tenant, f.job_ref, f.job_source, f.error)
           and (v_status is distinct from 'expired' or coalesce(f.stale_at <= p_now, false))
           and f.stale_at is distinct from '-infinity',
           p_seg < 0 or coalesce(pg_visible_in_snapshot(f.xid, f.hi)
                                 and (pg_visible_in_snapshot(f.xid, f.lo) or (p_seg, f.xid, f.pos) <= (f.last_seg, f.last_xid, f.last_pos)), false),
           case when p_seg = f.last_seg and f.xid = f.last_xid then f.last_pos end,
           v_near.others or e.pos is not null or (select count(*) from found) > p_size
      from found f
      left join edge e on true
     where e.pos is null
        or (f.xid, f.pos) >= (e.xid, e.pos)
     order by f.xid desc, f.pos desc
     limit p_size;
end $$;

-- Which of some lanes, by their place in p_lanes, have one of the next p_size rows of a segment; null: none has any. others: there are rows behind those.
create or replace function millrace.log_near(p_status text, p_lanes int[], p_lo pg_snapshot[], p_hi pg_snapshot[], p_last_seg int[], p_last_xid xid8[], p_seg int,
                                             p_xid xid8, p_pos bigint, p_size int, out nths int[], out others boolean)
language plpgsql
as $$
declare
  v_slot int := case when p_seg < 0 then -1 else p_seg % 16 end;
  v_xids xid8[];
  v_poss bigint[];
  v_bar  record;
begin
  others := false;
  if cardinality(p_lanes) = 1 then
    nths := '{1}';
    return;
  end if;
  select array_agg(n order by j.xid desc, j.pos desc), array_agg(j.xid order by j.xid desc, j.pos desc), array_agg(j.pos order by j.xid desc, j.pos desc)
    into nths, v_xids, v_poss
    from generate_series(1, cardinality(p_lanes)) n
   cross join lateral millrace.log_side(p_status, p_seg, p_lo[n], p_hi[n], p_last_seg[n], p_last_xid[n]) s
   cross join lateral (select j.xid, j.pos
                         from millrace.job j
                        where j.slot = v_slot
                          and j.lane = p_lanes[n]
                          and (j.xid, j.pos) <= (p_xid, p_pos)
                          and j.xid >= s.low
                          and j.xid < s.high
                        order by j.xid desc, j.pos desc
                        limit 1) j;
  if nths is null or cardinality(nths) = 1 then
    return;
  end if;
  select j.xid, j.pos
    into v_bar
    from millrace.log_side(p_status, p_seg, p_lo[nths[1]], p_hi[nths[1]], p_last_seg[nths[1]], p_last_xid[nths[1]]) s
   cross join lateral (select j.xid, j.pos
                         from millrace.job j
                        where j.slot = v_slot
                          and j.lane = p_lanes[nths[1]]
                          and (j.xid, j.pos) <= (p_xid, p_pos)
                          and j.xid >= s.low
                          and j.xid < s.high
                        order by j.xid desc, j.pos desc
                       offset p_size - 1
                        limit 1) j;
  if found then
    others := true;
    nths := array(select u.nth from unnest(nths, v_xids, v_poss) u(nth, xid, pos) where (u.xid, u.pos) >= (v_bar.xid, v_bar.pos));
  end if;
end $$;

-- The xids of a lane's rows in a segment that can be on the side that a status is on: what waits, or what was taken (see part_log).
create or replace function millrace.log_side(p_status text, p_seg int, p_lo pg_snapshot, p_hi pg_snapshot, p_last_seg int, p_last_xid xid8)
returns table (low xid8, high xid8)
language sql
stable
as $$
  select case
           when p_status is distinct from 'available' or p_hi is null then '0'::xid8
           when p_seg > p_last_seg then pg_snapshot_xmin(p_lo)
           when p_seg = p_last_seg then least(p_last_xid, pg_snapshot_xmin(p_hi))
           else pg_snapshot_xmin(p_hi)
         end,
         case
           when p_seg < 0 or coalesce(p_status, '') not in ('completed', 'cancelled') then '18446744073709551615'::xid8
           when p_hi is null then '0'::xid8
           when p_seg > p_last_seg then pg_snapshot_xmax(p_lo)
           when p_seg = p_last_seg then greatest(pg_snapshot_xmax(p_lo), (p_last_xid::text::bigint + 1)::text::xid8)
           else pg_snapshot_xmax(p_hi)
         end
$$;

-- The status of a job that its lane's cursor has not passed. Null: it was withdrawn and goes on elsewhere.
create or replace function millrace.waiting_status(p_now timestamptz, p_lane int, p_pos bigint, p_stale timestamptz)
returns text
language plpgsql
as $$
declare
  v_mark "char";
begin
  if millrace.marks_exist() then
    select m.letter
      into v_mark
      from millrace.mark m
     where m.lane = p_lane
       and m.pos = p_pos;
  end if;
  return case when v_mark = 'w' then null when v_mark is not null then 'cancelled' when p_stale <= p_now then 'expired' else 'available' end;
end $$;

-- The log as a source where a ref is asked for that is rare: by its index.
create or replace function millrace.part_ref(p_now timestamptz, p_f jsonb, p_place jsonb, p_until timestamptz)
returns millrace.page_part
language plpgsql
as $$
declare
  c_least constant int := 20;
  v_ref   text := p_f ->> 'ref';
  v_part  millrace.page_part;
  v_row   record;
  v_stand record;
  v_claim millrace.claim;
  v_seen  int := 0;
begin
  v_part.keys := '{}';
  for v_row in
    select j.*
      from (select j.slot, j.lane, j.seg, j.xid, j.pos, j.job_id, j.job_kind, j.job_tenant, j.job_ref, j.job_source, j.stale_at, j.trail
              from millrace.job j
             where j.job_ref = v_ref
            offset 0) j
     where j.pos < coalesce(millrace.place_number(p_place, 'pos'), 9223372036854775807)
       and coalesce(j.lane >> 12 = (p_f ->> 'queue_id')::int, true)
     order by j.pos desc
  loop
    v_seen := v_seen + 1;
    v_part.seen := v_seen;
    v_part.place := jsonb_build_object('pos', v_row.pos);
    if millrace.page_fits(p_f, v_row.job_kind, v_row.job_tenant, v_row.job_ref, v_row.job_source, case when p_f ? 'error' then v_row.trail -> -1 ->> 'error' end) then
      v_stand := millrace.job_standing(v_row.slot, v_row.lane, v_row.seg, v_row.xid, v_row.pos);
      v_stand.status := case when v_stand.status = 'available' and v_row.stale_at <= p_now then 'expired' else v_stand.status end;
      if v_stand.status = coalesce(p_f ->> 'status', v_stand.status) and v_row.stale_at is distinct from '-infinity' then
        v_claim.holder := v_stand.worker;
        v_claim.claimed_at := v_stand.claimed_at;
        v_claim.finished_at := v_stand.finished_at;
        v_part.keys := v_part.keys || v_row.pos;
        v_part.places := v_part.places || v_part.place;
        v_part.faces := v_part.faces || millrace.log_face(v_row.slot, v_row.job_id, v_row.pos, v_stand.status, v_claim);
      end if;
    end if;
    if cardinality(v_part.keys) = (p_f ->> 'limit')::int or v_seen >= c_least and clock_timestamp() > p_until then
      return v_part;
    end if;
  end loop;
  v_part.place := null;
  return v_part;
end $$;

-- Whether few rows of the log have a ref. Where many have it, a walk through the log meets them soon.
create or replace function millrace.ref_rare(p_ref text)
returns boolean
language sql
stable
as $$
  select count(*) < 1000
    from (select from millrace.job j where j.job_ref = p_ref limit 1000) j
$$;
