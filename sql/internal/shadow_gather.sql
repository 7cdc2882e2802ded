-- SPDX-License-Identifier: PostgreSQL
-- Shadows: copies of a queue's jobs, read from the log as a claim reads it and put on their way as a move does. Nothing is taken, no lane is locked.
--   1. The window rule, with cursors of its own: a window is frozen, windows are disjoint and cover every xid. So each job that is committed is read once.
--   2. All leaves are read at once, by (xid, pos): a row that compaction or parking has moved to another leaf has kept both.
--   3. No segment waits for a shadow. A truncated one that may have held rows behind the cursor cuts the shadow off: it says so and goes on with now.
--   4. A job is copied when it first stands in the log: not its retries, and not again when it was given back.
create or replace function millrace.shadow_gather(p_now timestamptz, p_move millrace.move, p_queue millrace.queue, p_batch bigint, p_max int)
returns void
language plpgsql
as $$
declare
  v_lane int;
  v_n    int := 0;
begin
  foreach v_lane in array array(select l from unnest(millrace.lanes_family(p_queue)) l order by l >> 5 & 127, l) loop
    v_n := v_n + millrace.shadow_lane(p_now, p_move, v_lane, p_batch, p_max - v_n, v_n);
    exit when v_n >= p_max;
  end loop;
  if v_n > 0 then
    perform millrace.move_split(p_move.move_id, p_batch);
  end if;
end $$;

-- Copies up to p_max jobs of a lane and moves the shadow's cursor in it.
create or replace function millrace.shadow_lane(p_now timestamptz, p_move millrace.move, p_lane int, p_batch bigint, p_max int, p_ord int)
returns int
language plpgsql
as $$
declare
  c_often constant interval := '1 minute';      -- an idle lane's cursor moves on so often
  v_cur   millrace.shadow_cursor;
  v_range record;
  v_found record;
  v_n     int := 0;
  v_want  int;
begin
  v_cur := millrace.shadow_place(p_now, p_move, p_lane);
  loop
    v_range := millrace.window_ranges(v_cur.win_lo, v_cur.win_hi, v_cur.last_xid);
    for i in 1 .. coalesce(cardinality(v_range.to_xid), 0) loop
      continue when v_range.to_xid[i] <= v_cur.last_xid;
      loop
        v_want := p_max - v_n;
        v_found := millrace.shadow_copy(p_move, p_lane, p_batch, p_ord + v_n, greatest(v_range.from_xid[i], v_cur.last_xid),
                                        case
                                          when v_range.from_xid[i] < v_cur.last_xid then v_cur.last_pos
                                          when v_range.from_xid[i] = v_cur.last_xid then greatest(v_range.from_pos[i], v_cur.last_pos)
                                          else v_range.from_pos[i]
                                        end, v_range.to_xid[i], v_cur.win_hi, v_want);
        exit when v_found.rows = 0;
        v_n := v_n + v_found.copied;
        v_cur.last_xid := v_found.last_xid;
        v_cur.last_pos := v_found.last_pos;
        exit when v_n >= p_max or v_found.rows < v_want;
      end loop;
      if v_n >= p_max then
        perform millrace.shadow_moves(p_now, v_cur);
        return v_n;
      end if;
    end loop;
    v_cur.win_lo := v_cur.win_hi;
    v_cur.last_xid := '0';
    v_cur.last_pos := -1;
    exit when v_cur.read_at = p_now;      -- one new window in a call
    v_cur.win_hi := millrace.snapshot();
    v_cur.read_at := p_now;
  end loop;
  if v_n > 0 or p_now - (select c.read_at from millrace.shadow_cursor c where c.move_id = v_cur.move_id and c.lane = p_lane and c.no = v_cur.no) < c_often is not true then
    perform millrace.shadow_moves(p_now, v_cur);
  end if;
  return v_n;
end $$;

-- Where a shadow stands in a lane. In one that it has not read yet at its beginning; where the log behind that is gone, now.
create or replace function millrace.shadow_place(p_now timestamptz, p_move millrace.move, p_lane int)
returns millrace.shadow_cursor
language plpgsql
as $$
declare
  v_cur millrace.shadow_cursor;
begin
  select c.*
    into v_cur
    from millrace.shadow_cursor c
   where c.move_id = p_move.move_id
     and c.lane = p_lane
   order by c.no desc
   limit 1;
  if not found then
    v_cur := row(p_move.move_id, p_lane, 0, '-infinity', p_move.copy_from, p_move.copy_from, '0', -1);
  end if;
  if exists (select
               from (select g.closed_xid, g.truncated from millrace.segment g order by g.seg desc limit 32) g
              where g.truncated
                and g.closed_xid > pg_snapshot_xmin(v_cur.win_lo)
                and g.closed_xid > v_cur.last_xid) then
    update millrace.move m
       set cut_n = m.cut_n + 1
     where m.move_id = p_move.move_id;
    v_cur.win_lo := millrace.snapshot();
    v_cur.win_hi := v_cur.win_lo;
    v_cur.last_xid := '0';
    v_cur.last_pos := -1;
    v_cur.read_at := '-infinity';
  end if;
  return v_cur;
end $$;

-- Writes down where a shadow stands; the row before is not needed any more.
create or replace function millrace.shadow_moves(p_now timestamptz, p_cur millrace.shadow_cursor)
returns void
language plpgsql
as $$
begin
  delete from millrace.shadow_cursor c
   where c.move_id = p_cur.move_id
     and c.lane = p_cur.lane
     and c.no = p_cur.no;
  insert into millrace.shadow_cursor (move_id, lane, no, read_at, win_lo, win_hi, last_xid, last_pos)
  values (p_cur.move_id, p_cur.lane, p_cur.no + 1, p_now, p_cur.win_lo, p_cur.win_hi, p_cur.last_xid, p_cur.last_pos);
end $$;

-- Copies jobs of a range: those of the shadow's tenant or share that stand in the log for the first time. rows: how many were read, and where the last one stands.
create or replace function millrace.shadow_copy(p_move millrace.move, p_lane int, p_batch bigint, p_ord int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                p_hi pg_snapshot, p_max int, out rows int, out copied int, out last_xid xid8, out last_pos bigint)
language plpgsql
as $$
begin
  with seen as materialized (
    select j.*, row_number() over (order by j.xid, j.pos) as nth
      from millrace.shadow_range(p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_max) j),
  fit as (
    select s.*, row_number() over (order by s.nth) as ord
      from seen s
     where s.attempt = 1
       and s.lost = 0
       and (p_move.copy_tenant is null or s.job_tenant = p_move.copy_tenant)
       and millrace.shadow_share(s.job_tenant, s.job_id) < p_move.copy_share
       and (s.pos = s.job_id or not exists (select from millrace.job_rows(s.job_id) b where b.pos < s.pos))),
  put as (
    insert into millrace.moving (move_id, batch_no, ord, copy, job_id, lane, facts, payload_args, payload_meta, payload_state, payload_blob)
    select p_move.move_id, p_batch, p_ord + f.ord, true, f.job_id, p_lane,
           millrace.move_facts(f.job_id, p_lane, 'a', null, f.created_at, f.ready_at, null, f.run_limit, f.attempt, f.lost, f.attempts_limit, f.job_kind, f.job_tenant,
                               f.job_ref, f.job_source, null, null, null)
           || jsonb_build_object('hash', millrace.payload_hash(f.job_kind, f.payload_args, f.payload_meta, f.payload_state, f.payload_blob)),
           f.payload_args, f.payload_meta, f.payload_state, f.payload_blob
      from fit f
    returning job_id)
  select count(*), (select count(*) from put), (array_agg(s.xid order by s.nth desc))[1], (array_agg(s.pos order by s.nth desc))[1]
    into rows, copied, last_xid, last_pos
    from seen s;
end $$;

-- The first p_limit jobs of a lane in a range of the log, in whichever leaf they are (see range_jobs).
create or replace function millrace.shadow_range(p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8, p_hi pg_snapshot, p_limit int)
returns table (xid xid8, pos bigint, job_id bigint, created_at timestamptz, attempt int2, lost int2, attempts_limit int2, job_kind text, payload_args jsonb,
               ready_at timestamptz, run_limit interval, payload_meta jsonb, payload_state bytea, payload_blob bytea, job_tenant text, job_ref text, job_source text)
language sql
stable
as $$
  select j.xid, coalesce(p.at, j.pos), coalesce(p.at, j.job_id), j.created_at, j.attempt, j.lost, j.attempts_limit, j.job_kind,
         case when j.pack_n is null then j.payload_args else j.pack[p.at - j.pos + j.pack_n] end, j.ready_at, j.run_limit, j.payload_meta, j.payload_state,
         j.payload_blob, j.job_tenant, j.job_ref, j.job_source
    from millrace.job j
    left join lateral (select a.at
                         from generate_series(case when j.xid = p_from_xid then greatest(j.pos - j.pack_n, p_from_pos) else j.pos - j.pack_n end + 1, j.pos) a(at)
                        where j.pack_n is not null
                       offset 0) p on true
   where j.lane = p_lane
     and (j.xid, j.pos) > (p_from_xid, p_from_pos)
     and j.xid < p_to_xid
     and pg_visible_in_snapshot(j.xid, p_hi)
     and j.stale_at is distinct from '-infinity'
   order by j.xid, j.pos
   limit p_limit
$$;

-- From 0 to below 100: all jobs of a tenant have one place, jobs without one each their own.
create or replace function millrace.shadow_share(p_tenant text, p_id bigint)
returns real
language sql
immutable
as $$
  select ((hashtext(coalesce(p_tenant, p_id::text)) & 2147483647) % 10000 / 100.0)::real
$$;

-- What is compared of a job.
create or replace function millrace.payload_hash(p_kind text, p_args jsonb, p_meta jsonb, p_state bytea, p_blob bytea)
returns text
language sql
immutable
as $$
  select encode(sha256(convert_to(jsonb_build_array(p_kind, p_args, p_meta, length(p_state), length(p_blob))::text, 'UTF8') || coalesce(p_state, '') || coalesce(p_blob, '')), 'hex')
$$;
