-- SPDX-License-Identifier: PostgreSQL
-- The way of payload parts to the blob store and back, with the time as an argument. The daemon carries the bytes; here is decided what is carried, and whether what was
-- carried still is what the row says. Nothing is locked while the daemon talks to the store. Order is everything:
--   1. An object is written before a row names it, and its name is in the ledger from the transaction on that makes the row name it.
--   2. The bytes are in the row again before the object is doomed, in one transaction, and on the disk before the object is removed.
--   3. A row that changed meanwhile is left alone: by the SHA-256 of the part on the way out, by the name of the object on the way back.

-- Whose turn it is to carry: one daemon at a time, so that nothing is carried twice. It keeps the turn by asking; another gets it half a minute after it has
-- stopped to ask, or at once where it gives the turn back (p_over). Null: it is another's turn. Else what the names of this database's objects begin with.
create or replace function millrace.offload_turn_at(p_now timestamptz, p_worker text, p_over boolean = false)
returns text
language plpgsql
as $$
declare
  c_name constant text := 'millrace: offload';
  v_held record;
begin
  perform millrace.check_name('worker', p_worker);
  if p_over then
    perform millrace.unlock_lease_at(p_now, c_name, p_worker);
    return null;
  end if;
  v_held := millrace.lock_newest(millrace.cache_key(c_name), c_name);
  if v_held.holder <> p_worker and v_held.held_until > p_now then
    return null;
  elsif (v_held.holder = p_worker and v_held.held_until > p_now + interval '20 seconds') is not true
        and millrace.lock_lease_at(p_now, c_name, p_worker, interval '30 seconds') is null then
    return null;
  end if;
  return millrace.blob_home();
end $$;

-- What is to be moved to the store, from the number p_after on: of at most p_max jobs and about p_bytes, but at least one. A job that is due within seconds
-- stays. A part that cannot be read stays, too: it is buried when the job is due.
create or replace function millrace.offload_take_at(p_now timestamptz, p_after bigint, p_max int, p_bytes bigint)
returns table (no bigint, place text, id bigint, part text, object_name text, body bytea)
language plpgsql
as $$
declare
  v_home text := millrace.blob_home();
begin
  return query
    select w.out_no, w.place, w.job_id, w.part, w.object_name, w.bytes
      from (select r.out_no, r.place, r.job_id, p.part, millrace.part_bytes(p.bytes) as bytes,
                   format('%s/%s/%s-%s-%s', v_home, to_char(p_now at time zone 'utc', 'YYYYMMDD'), r.job_id, p.part, left(replace(gen_random_uuid()::text, '-', ''), 16)) as object_name
              from (select s.*, sum(coalesce(octet_length(s.payload_state), 0) + coalesce(octet_length(s.payload_blob), 0)) over (order by s.out_no) as bytes_so_far
                      from ((select d.out_no, 'delayed' as place, d.job_id, d.payload_state, d.payload_blob
                               from millrace.delayed d
                              where d.out_no > p_after
                                and d.due_at > p_now + interval '5 seconds'
                              order by d.out_no
                              limit p_max)
                             union all
                            (select d.out_no, 'dead', d.job_id, d.payload_state, d.payload_blob
                               from millrace.dead d
                              where d.out_no > p_after
                              order by d.out_no
                              limit p_max)
                              order by out_no
                              limit p_max) s) r
             cross join lateral (values ('state', r.payload_state), ('blob', r.payload_blob)) p(part, bytes)
             where (r.bytes_so_far <= p_bytes or r.bytes_so_far = coalesce(octet_length(r.payload_state), 0) + coalesce(octet_length(r.payload_blob), 0))
               and octet_length(p.bytes) >= 512
            offset 0) w
     where w.bytes is not null
     order by w.out_no;
end $$;

-- What was stored: [{"place", "id", "part", "key", "sha256"}]. The parts become references, where they are what was stored. Returns the names of objects that nobody needs:
-- the job has gone on, was changed, or somebody is at it.
create or replace function millrace.offload_done_at(p_now timestamptz, p_stored jsonb)
returns setof text
language plpgsql
as $$
declare
  v_one  record;
  v_used boolean;
begin
  for v_one in
    select r.place, r.id, array_agg(r.key) as keys, max(r.key) filter (where r.part = 'state') as state_key, max(r.sha256) filter (where r.part = 'state') as state_sha,
           max(r.key) filter (where r.part = 'blob') as blob_key, max(r.sha256) filter (where r.part = 'blob') as blob_sha
      from jsonb_to_recordset(p_stored) r(place text, id bigint, part text, key text, sha256 text)
     group by r.place, r.id
     order by r.place, r.id
  loop
    v_used := case v_one.place
                when 'delayed' then millrace.offload_delayed(p_now, v_one.id, v_one.state_key, v_one.state_sha, v_one.blob_key, v_one.blob_sha)
                when 'dead' then millrace.offload_letter(p_now, v_one.id, v_one.state_key, v_one.state_sha, v_one.blob_key, v_one.blob_sha)
                else false
              end;
    if not v_used then
      return query
        select k
          from unnest(v_one.keys) k
         where not exists (select from millrace.blob_object o where o.object_key = k);      -- told twice
    end if;
  end loop;
end $$;

-- Whether a part is what its object has. No object: it stays as it is. A part that cannot be read is not.
create or replace function millrace.part_is(p_part bytea, p_key text, p_sha256 text)
returns boolean
language plpgsql
as $$
begin
  return p_key is null or coalesce(encode(sha256(p_part), 'hex') = p_sha256, false);
exception
  when data_corrupted or internal_error or data_exception then
    return false;
end $$;

create or replace function millrace.offload_delayed(p_now timestamptz, p_id bigint, p_state_key text, p_state_sha text, p_blob_key text, p_blob_sha text)
returns boolean
language plpgsql
as $$
declare
  v_row millrace.delayed;
begin
  select d.*
    into v_row
    from millrace.delayed d
   where d.job_id = p_id
     and d.out_no is not null
     and d.due_at > p_now + interval '5 seconds'
     for update skip locked;
  if not found or not millrace.part_is(v_row.payload_state, p_state_key, p_state_sha) or not millrace.part_is(v_row.payload_blob, p_blob_key, p_blob_sha) then
    return false;
  end if;
  update millrace.delayed d
     set payload_state = case when p_state_key is null then d.payload_state else millrace.part_away(d.payload_state, p_state_key, p_state_sha) end,
         payload_blob = case when p_blob_key is null then d.payload_blob else millrace.part_away(d.payload_blob, p_blob_key, p_blob_sha) end,
         out_no = null,
         away_due = d.due_at
   where d.slot = v_row.slot
     and d.job_id = p_id;
  perform millrace.object_keep(p_now, p_id, p_state_key, octet_length(v_row.payload_state)),
          millrace.object_keep(p_now, p_id, p_blob_key, octet_length(v_row.payload_blob));
  return true;
end $$;

create or replace function millrace.offload_letter(p_now timestamptz, p_id bigint, p_state_key text, p_state_sha text, p_blob_key text, p_blob_sha text)
returns boolean
language plpgsql
as $$
declare
  v_row millrace.dead;
begin
  select d.*
    into v_row
    from millrace.dead d
   where d.job_id = p_id
     and d.out_no is not null
     for update skip locked;
  if not found or not millrace.part_is(v_row.payload_state, p_state_key, p_state_sha) or not millrace.part_is(v_row.payload_blob, p_blob_key, p_blob_sha) then
    return false;
  end if;
  update millrace.dead d
     set payload_state = case when p_state_key is null then d.payload_state else millrace.part_away(d.payload_state, p_state_key, p_state_sha) end,
         payload_blob = case when p_blob_key is null then d.payload_blob else millrace.part_away(d.payload_blob, p_blob_key, p_blob_sha) end,
         bytes = greatest(d.bytes - case when p_state_key is null then 0 else octet_length(d.payload_state) end
                                  - case when p_blob_key is null then 0 else octet_length(d.payload_blob) end, 0)
                 + 200 * (num_nonnulls(p_state_key, p_blob_key)),
         out_no = null
   where d.slot = v_row.slot
     and d.job_id = p_id;
  perform millrace.object_keep(p_now, p_id, p_state_key, octet_length(v_row.payload_state)),
          millrace.object_keep(p_now, p_id, p_blob_key, octet_length(v_row.payload_blob));
  return true;
end $$;

-- Jobs that are due within p_ahead and whose payload is away: of at most p_max jobs and about p_bytes, but at least one.
create or replace function millrace.offload_due_at(p_now timestamptz, p_ahead interval, p_max int, p_bytes bigint)
returns table (id bigint, part text, object_name text, size bigint, sha256 text)
language plpgsql
as $$
begin
  return query
    select w.job_id, w.part, w.ref ->> 'key', coalesce((w.ref ->> 'size')::bigint, 0), w.ref ->> 'sha256'
      from (select d.due_at, d.job_id, p.part, p.ref, sum(coalesce((p.ref ->> 'size')::bigint, 0)) over (order by d.due_at, d.job_id) as bytes_so_far,
                   dense_rank() over (order by d.due_at, d.job_id) as nth
              from (select d.due_at, d.job_id, d.payload_state, d.payload_blob
                      from millrace.delayed d
                     where d.away_due is not null
                       and d.due_at <= p_now + p_ahead
                     order by d.due_at
                     limit p_max) d
             cross join lateral (values ('state', case when millrace.is_away(d.payload_state) then millrace.part_reference(d.payload_state) end),
                                        ('blob', case when millrace.is_away(d.payload_blob) then millrace.part_reference(d.payload_blob) end)) p(part, ref)
             where p.ref is not null) w
     where w.bytes_so_far <= p_bytes
        or w.nth = 1
     order by w.due_at, w.job_id;
end $$;

-- What came back: of each part its bytes, or null and why there are none. A job whose parts are all there again is due. One whose object is missing or damaged becomes a dead letter with
-- that reason, and keeps the reference. Returns how many jobs went on, and how many are dead letters now.
create or replace function millrace.offload_restore_at(p_now timestamptz, p_ids bigint[], p_parts text[], p_keys text[], p_bodies bytea[], p_errors text[],
                                                       out restored int, out buried int)
language plpgsql
as $$
declare
  v_one record;
  v_end text;
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'local', true);      -- the objects are removed soon
  end if;
  restored := 0;
  buried := 0;
  for v_one in
    select r.id, array_agg(r.part order by r.part) as parts, array_agg(r.key order by r.part) as keys, array_agg(r.body order by r.part) as bodies,
           string_agg(format('object %s of %s: %s', r.key, r.part, r.error), '; ' order by r.part) filter (where r.error <> '') as error
      from unnest(p_ids, p_parts, p_keys, p_bodies, p_errors) r(id, part, key, body, error)
     group by r.id
     order by r.id
  loop
    v_end := millrace.offload_back(p_now, v_one.id, v_one.parts, v_one.keys, v_one.bodies, v_one.error);
    restored := restored + (v_end = 'restored')::int;
    buried := buried + (v_end = 'buried')::int;
  end loop;
end $$;

-- One job: restored, buried, or passed where it is not as it was.
create or replace function millrace.offload_back(p_now timestamptz, p_id bigint, p_parts text[], p_keys text[], p_bodies bytea[], p_error text)
returns text
language plpgsql
as $$
declare
  v_row  millrace.delayed;
  v_part bytea;
  v_due  timestamptz;
begin
  select d.*
    into v_row
    from millrace.delayed d
   where d.job_id = p_id
     and d.away_due is not null
     for update skip locked;
  if not found then
    return 'passed';
  end if;
  for i in 1 .. cardinality(p_parts) loop
    v_part := case p_parts[i] when 'state' then v_row.payload_state when 'blob' then v_row.payload_blob end;
    if not millrace.is_away(v_part) or millrace.part_reference(v_part) ->> 'key' is distinct from p_keys[i] then
      return 'passed';
    elsif p_error is null and encode(sha256(p_bodies[i]), 'hex') is distinct from millrace.part_reference(v_part) ->> 'sha256' then
      p_error := format('object %s of %s is damaged: its SHA-256 is another one', p_keys[i], p_parts[i]);
    elsif p_error is null and p_parts[i] = 'state' then
      v_row.payload_state := p_bodies[i];
    elsif p_error is null then
      v_row.payload_blob := p_bodies[i];
    end if;
  end loop;
  if p_error is not null then
    perform millrace.delayed_bury(p_now, p_id, p_error);
    return 'buried';
  elsif millrace.is_away(v_row.payload_state) or millrace.is_away(v_row.payload_blob) then
    return 'passed';      -- one part is not enough
  end if;
  -- Put off, it is due now; fetched ahead of time, it is due when it was.
  v_due := case when v_row.due_at > v_row.away_due then greatest(v_row.away_due, p_now) else v_row.due_at end;
  v_row.away_due := null;
  perform millrace.delayed_move(p_now, v_row, v_due);
  perform millrace.objects_doom(p_now, p_id, p_keys);
  return 'restored';
end $$;

-- A job of delayed becomes a dead letter. The caller has its row locked.
create or replace function millrace.delayed_bury(p_now timestamptz, p_id bigint, p_error text)
returns void
language plpgsql
as $$
declare
  v_later record;
begin
  v_later := millrace.job_recall(p_id);
  perform millrace.job_bury(p_now, v_later.job, 'damaged', left(p_error, 8192));
  perform millrace.job_ended_alone(p_now, v_later.job, 'd');
end $$;
