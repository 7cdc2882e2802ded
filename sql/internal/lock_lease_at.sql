-- SPDX-License-Identifier: PostgreSQL
-- Locks. Those of a session are advisory locks of PostgreSQL. Those with a lease are rows, appended and read newest first, so that a lock that is renewed every second costs the
-- same beside a snapshot that is held.

-- The advisory lock of a name: 64 bits of a SHA-256. The text before the name keeps it apart from keys that an application takes itself.
create or replace function millrace.lock_key(p_name text)
returns bigint
language sql
stable
as $$
  select ('x' || encode(substring(sha256(convert_to('millrace lock ' || p_name, 'UTF8')) from 1 for 8), 'hex'))::bit(64)::bigint
$$;

-- lock_lease with the time as an argument; null: now, once it is the caller's turn.
create or replace function millrace.lock_lease_at(p_now timestamptz, p_name text, p_owner text, p_ttl interval)
returns bigint
language plpgsql
as $$
declare
  v_id    uuid;
  v_held  record;
  v_fence bigint;
begin
  perform millrace.at_home();
  perform millrace.check_key('name', p_name);
  perform millrace.check_key('owner', p_owner);
  perform millrace.check_ttl(p_ttl);
  perform millrace.check_isolation('lock_lease');
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'local', true);
  end if;
  v_id := millrace.cache_key(p_name);
  perform pg_advisory_xact_lock(1297219612, hashtext(p_name));
  p_now := coalesce(p_now, clock_timestamp());
  v_held := millrace.lock_newest(v_id, p_name);
  if v_held.held_until > p_now then
    if v_held.holder <> p_owner then
      return null;
    end if;
    v_fence := v_held.fence;
  else
    v_fence := nextval('millrace.fence_seq');
  end if;
  insert into millrace.lock_held (slot, lock_id, lock_no, lock_name, holder, fence, held_until)
  values (millrace.spent_slot('hour', p_now), v_id, nextval('millrace.lock_no'), p_name, p_owner, v_fence, p_now + p_ttl);
  return v_fence;
end $$;

-- unlock_lease with the time as an argument; null: now, once it is the caller's turn.
create or replace function millrace.unlock_lease_at(p_now timestamptz, p_name text, p_owner text)
returns boolean
language plpgsql
as $$
declare
  v_id   uuid;
  v_held record;
begin
  perform millrace.at_home();
  perform millrace.check_key('name', p_name);
  perform millrace.check_key('owner', p_owner);
  perform millrace.check_isolation('unlock_lease');
  v_id := millrace.cache_key(p_name);
  perform pg_advisory_xact_lock(1297219612, hashtext(p_name));
  p_now := coalesce(p_now, clock_timestamp());
  v_held := millrace.lock_newest(v_id, p_name);
  if (v_held.holder = p_owner and v_held.held_until > p_now) is not true then
    return false;
  end if;
  insert into millrace.lock_held (slot, lock_id, lock_no, lock_name, holder, fence, held_until)
  values (millrace.spent_slot('hour', p_now), v_id, nextval('millrace.lock_no'), p_name, p_owner, v_held.fence, '-infinity');
  return true;
end $$;

-- The row of a name that counts.
create or replace function millrace.lock_newest(p_id uuid, p_name text, out holder text, out fence bigint, out held_until timestamptz)
language plpgsql
as $$
begin
  select h.holder, h.fence, h.held_until
    into holder, fence, held_until
    from millrace.lock_held h
   where h.lock_id = p_id
     and h.lock_name = p_name
   order by h.lock_no desc
   limit 1;
end $$;

-- Empties the leaf that comes next: its rows are an hour old or older, and those that still count go to the leaf of now. A name that is in somebody's hand puts it off.
create or replace function millrace.locks_clean(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_slot int := millrace.spent_slot('hour', p_now + interval '1 hour');
  v_leaf text := format('lock_held_%s', v_slot);
  v_row  record;
  v_full boolean;
begin
  execute format('select exists (select from millrace.%I)', v_leaf) into v_full;
  if not v_full then
    return 0;
  end if;
  for v_row in
    select h.lock_id, h.lock_name, h.lock_no
      from millrace.lock_held h
     where h.slot = v_slot
       and h.held_until > p_now
       and not exists (select from millrace.lock_held o where o.lock_id = h.lock_id and o.lock_no > h.lock_no)
  loop
    if not pg_try_advisory_xact_lock(1297219612, hashtext(v_row.lock_name)) then
      return 0;
    end if;
    insert into millrace.lock_held (slot, lock_id, lock_no, lock_name, holder, fence, held_until)
    select millrace.spent_slot('hour', p_now), h.lock_id, nextval('millrace.lock_no'), h.lock_name, h.holder, h.fence, h.held_until
      from millrace.lock_held h
     where h.slot = v_slot
       and h.lock_id = v_row.lock_id
       and h.lock_no = v_row.lock_no
       and not exists (select from millrace.lock_held o where o.lock_id = h.lock_id and o.lock_no > h.lock_no);
  end loop;
  return millrace.truncate_leaves(array[v_leaf], false, '5ms')::int;
end $$;
