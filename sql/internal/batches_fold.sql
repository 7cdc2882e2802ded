-- SPDX-License-Identifier: PostgreSQL
-- Folds the notes of batches into their totals and enqueues the callbacks of those that have ended, about p_limit of each. Returns how many batches
-- have ended. One transaction does both, and one at a time: a callback is enqueued once. Invariants:
--   1. Passes have windows of xids, as claims have (see lane_take): a note is in one window, and folded and deleted with it. So dead notes are
--      not walked, whoever holds a snapshot.
--   2. What is visible in one snapshot is of one moment: if the seal is, so is every member that was added, and if an end is, so is its beginning.
--      Hence a batch is looked at only when all of a window was folded (full_no), not when it was cut at p_limit.
create or replace function millrace.batches_fold(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_last  millrace.batch_pass;
  v_hi    pg_snapshot;
  v_cut   xid8;
  v_range record;
  v_n     bigint;
  v_seen  bigint := 0;
  v_ended bigint := 0;
  v_total millrace.batch_total;
begin
  if millrace.hint('millrace.batch_hint') = 0 or not pg_try_advisory_xact_lock(1297219592, 1) then
    return 0;
  end if;
  select p.*
    into v_last
    from millrace.batch_pass p
   order by p.no desc
   limit 1;
  v_last.no := v_last.no + 1;
  v_hi := millrace.snapshot();
  select n.xid
    into v_cut
    from millrace.batch_note n
   where n.xid >= pg_snapshot_xmax(v_last.win_hi)
     and n.xid < pg_snapshot_xmax(v_hi)
   order by n.xid
  offset p_limit
   limit 1;
  if v_cut is not null then
    v_cut := (v_cut::text::bigint + 1)::text::xid8;      -- at least one xid, whatever number of notes it has
    v_hi := millrace.snapshot_cut(v_hi, v_cut);
  else
    v_last.full_no := v_last.no;
  end if;
  v_range := millrace.window_ranges(v_last.win_hi, v_hi, '0');
  v_n := millrace.batch_notes_take(v_last.no, v_hi, v_range.from_xid, v_range.from_pos, v_range.to_xid);
  for v_total in
    select t.*
      from millrace.batch_total t
     where (t.no, t.batch_id) > (v_last.look_no, v_last.look_id)
       and t.no <= v_last.full_no
     order by t.no, t.batch_id
     limit p_limit
  loop
    v_ended := v_ended + millrace.batch_look(p_now, v_total, v_last.no + 1);
    v_seen := v_seen + 1;
    v_last.look_no := v_total.no;
    v_last.look_id := v_total.batch_id;
  end loop;
  if v_n + v_seen > 0 or v_cut is not null then
    delete from millrace.batch_pass p where p.no = v_last.no - 1;
    insert into millrace.batch_pass (no, win_hi, full_no, look_no, look_id)
    values (v_last.no, v_hi, v_last.full_no, v_last.look_no, v_last.look_id);
  end if;
  return v_ended;
end $$;

-- A snapshot that knows nothing of the xids from p_xid on.
create or replace function millrace.snapshot_cut(p_snap pg_snapshot, p_xid xid8)
returns pg_snapshot
language sql
immutable
as $$
  select format('%s:%s:%s', least(pg_snapshot_xmin(p_snap)::text::bigint, p_xid::text::bigint), p_xid,
                (select string_agg(x::text, ',' order by x) from pg_snapshot_xip(p_snap) x where x < p_xid))::pg_snapshot
$$;

-- Moves the notes of a window into the totals. Returns how many totals have changed.
create or replace function millrace.batch_notes_take(p_no bigint, p_hi pg_snapshot, p_from_xid xid8[], p_from_pos bigint[], p_to_xid xid8[])
returns bigint
language plpgsql
as $$
declare
  v_n bigint;
begin
  with gone as (
    delete from millrace.batch_note n
     using unnest(p_from_xid, p_from_pos, p_to_xid) r(from_xid, from_pos, to_xid)
     where n.xid >= r.from_xid
       and n.xid < r.to_xid
       and (n.xid > r.from_xid or r.from_pos < 0)
       and pg_visible_in_snapshot(n.xid, p_hi)
    returning n.*),
  news as (
    select g.batch_id, sum(g.member_n) as member_n, sum(g.completed_n) as completed_n, sum(g.dead_n) as dead_n,
           sum(g.cancelled_n) as cancelled_n, sum(g.expired_n) as expired_n, bool_or(g.sealed) as sealed
      from gone g
     group by g.batch_id)
  update millrace.batch_total t
     set no = p_no,
         member_n = t.member_n + c.member_n,
         completed_n = t.completed_n + c.completed_n,
         dead_n = t.dead_n + c.dead_n,
         cancelled_n = t.cancelled_n + c.cancelled_n,
         expired_n = t.expired_n + c.expired_n,
         sealed = t.sealed or c.sealed
    from (select n.*, o.place      -- by its place: a join by number would be planned for a table without rows
            from news n
           cross join lateral (select o.ctid as place
                                 from millrace.batch_total o
                                where o.batch_id = n.batch_id
                                order by o.no desc
                                limit 1) o) c
   where t.ctid = c.place;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- Whether a batch has ended, and what callbacks are due. Returns 1 when it ended here. A callback that cannot be enqueued (its queue is full, say) is
-- tried again in the next pass, p_again, and last_error tells; nothing else of the batch is lost with it.
create or replace function millrace.batch_look(p_now timestamptz, p_total millrace.batch_total, p_again bigint)
returns int
language plpgsql
as $$
declare
  v_batch millrace.batch;
  v_new   millrace.batch_total := p_total;
  v_bad   bigint := p_total.dead_n + p_total.cancelled_n + p_total.expired_n;
begin
  if p_total.ended_at is null and p_total.sealed and p_total.member_n <= p_total.completed_n + v_bad then
    v_new.ended_at := p_now;
  end if;
  if v_new.ended_at is null and (p_total.dead_n = 0 or p_total.death_job_id is not null) then
    return 0;
  end if;
  select b.*
    into v_batch
    from millrace.batch b
   where b.batch_id = p_total.batch_id;
  if v_new.ended_at is null and v_batch.payload_death is null then
    return 0;
  end if;
  v_new.last_error := null;
  begin
    if v_new.dead_n > 0 and v_new.death_job_id is null and v_batch.payload_death is not null then
      v_new.death_job_id := millrace.batch_call(p_now, v_batch, v_new, v_batch.payload_death);
    end if;
    if v_new.ended_at is not null and v_bad = 0 and v_new.complete_job_id is null and v_batch.payload_complete is not null then
      v_new.complete_job_id := millrace.batch_call(p_now, v_batch, v_new, v_batch.payload_complete);
    end if;
    if v_new.ended_at is not null and v_new.end_job_id is null and v_batch.payload_end is not null then
      v_new.end_job_id := millrace.batch_call(p_now, v_batch, v_new, v_batch.payload_end);
    end if;
  exception
    when others then
      v_new := p_total;
      v_new.no := p_again;
      v_new.last_error := sqlerrm;
      if p_total.last_error is distinct from sqlerrm then
        raise warning 'millrace: a callback of batch % failed: % (%)', p_total.batch_id, sqlerrm, sqlstate;
      end if;
  end;
  update millrace.batch_total t
     set no = v_new.no,
         ended_at = v_new.ended_at,
         complete_job_id = v_new.complete_job_id,
         death_job_id = v_new.death_job_id,
         end_job_id = v_new.end_job_id,
         last_error = v_new.last_error
   where t.batch_id = p_total.batch_id
     and t.no = p_total.no;
  return (v_new.ended_at is not null and p_total.ended_at is null)::int;
end $$;

-- open: members may be added. running: sealed, and some have not ended. completed or failed: all have ended, all of them well or not. p_rest: members
-- that have not completed.
create or replace function millrace.batch_status(p_sealed_at timestamptz, p_ended_at timestamptz, p_rest bigint)
returns text
language sql
immutable
as $$
  select case when p_sealed_at is null then 'open' when p_ended_at is null then 'running' when p_rest = 0 then 'completed' else 'failed' end
$$;

-- What is told of a batch.
create or replace function millrace.batch_facts(p_batch millrace.batch, p_total millrace.batch_total)
returns jsonb
language sql
stable
as $$
  select jsonb_build_object('id', p_batch.batch_id, 'label', p_batch.batch_label,
           'status', millrace.batch_status(p_batch.sealed_at, p_total.ended_at, p_total.member_n - p_total.completed_n),
           'jobs', p_total.member_n, 'completed', p_total.completed_n, 'dead', p_total.dead_n, 'cancelled', p_total.cancelled_n,
           'expired', p_total.expired_n)
$$;

-- Enqueues a callback; its meta says how the batch stands.
create or replace function millrace.batch_call(p_now timestamptz, p_batch millrace.batch, p_total millrace.batch_total, p_job jsonb)
returns bigint
language plpgsql
as $$
begin
  p_job := p_job || jsonb_build_object('meta', coalesce(nullif(p_job -> 'meta', 'null'), '{}')
                                               || jsonb_build_object('batch', millrace.batch_facts(p_batch, p_total)));
  return (select * from millrace.enqueue_jobs_at(p_now, jsonb_build_array(p_job), null, 'batch'));
end $$;

-- Forgets batches that ended seven days ago, some at a time. Takes the hint back when none is open; nor ended a moment ago, maybe in this transaction: if
-- that is rolled back the hint is not.
create or replace function millrace.batches_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_keep constant interval := '7 days';
  c_some constant int := 1000;
  v_n    bigint;
begin
  with gone as (
    delete from millrace.batch_total t
     using (select t.batch_id, t.no
              from millrace.batch_total t
             where t.ended_at < p_now - c_keep
             order by t.ended_at
             limit c_some) o
     where t.batch_id = o.batch_id
       and t.no = o.no
    returning t.batch_id)
  delete from millrace.batch b
   using gone g
   where b.batch_id = g.batch_id;
  get diagnostics v_n = row_count;
  if millrace.hint('millrace.batch_hint') > 0 and not millrace.batches_exist(p_now) and pg_try_advisory_xact_lock(1297219592, 4) then
    if not millrace.batches_exist(p_now) then      -- who had the lock may have begun one
      perform setval('millrace.batch_hint', 0);
    end if;
  end if;
  return v_n;
end $$;

-- Whether a batch is open, or was a minute ago.
create or replace function millrace.batches_exist(p_now timestamptz)
returns boolean
language plpgsql
as $$
begin
  return exists (select from millrace.batch_total t where t.ended_at is null)
         or exists (select from millrace.batch_total t where t.ended_at > p_now - interval '1 minute');
end $$;

-- One batch (see batch).
create or replace function millrace.batch_story(p_batch bigint)
returns jsonb
language plpgsql
as $$
declare
  v_batch millrace.batch;
  v_total millrace.batch_total;
begin
  perform millrace.at_home();
  v_batch := millrace.batch_known('', p_batch);
  select t.*
    into v_total
    from millrace.batch_total t
   where t.batch_id = p_batch
   order by t.no desc
   limit 1;
  return jsonb_strip_nulls(millrace.batch_facts(v_batch, v_total)
         || jsonb_build_object('began_at', v_batch.began_at, 'sealed_at', v_batch.sealed_at, 'ended_at', v_total.ended_at,
                               'on_complete', v_total.complete_job_id, 'on_death', v_total.death_job_id, 'on_end', v_total.end_job_id,
                               'error', v_total.last_error));
end $$;
