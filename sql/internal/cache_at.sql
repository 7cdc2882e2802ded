-- SPDX-License-Identifier: PostgreSQL
-- The cache, with the time as an argument.
--
-- An entry is never changed: a key that is set again, or deleted, gets another row, and of all rows of a key, in both leaves, the one with the largest
-- number counts. So two sessions that set one key do not wait for each other, and a get reads one row, however often its key was set while somebody held
-- a snapshot. What is old goes when upkeep copies the rest into the other leaf and truncates this one (cache_sweep).

-- What stands for a key in indexes: the first half of its SHA-256. The text is compared, too.
create or replace function millrace.cache_key(p_key text)
returns uuid
language sql
stable
as $$
  select encode(substring(sha256(convert_to(p_key, 'UTF8')) from 1 for 16), 'hex')::uuid
$$;

-- A key of the cache or of the rate limiter, a name of a lock.
create or replace function millrace.check_key(p_what text, p_key text)
returns void
language plpgsql
as $$
begin
  if p_key is null or p_key = '' then
    perform millrace.refuse(format('%s must not be %s', p_what, case when p_key is null then 'null' else 'empty' end),
      format('Pass a text of 1 to 16384 bytes as the %s.', p_what));
  elsif octet_length(p_key) > 16384 then
    perform millrace.refuse(format('%s is %s bytes long, the limit is 16384', p_what, octet_length(p_key)),
      format('Choose a shorter %s, or a hash of it: encode(sha256(convert_to(%s, ''UTF8'')), ''hex'').', p_what, p_what));
  end if;
end $$;

-- A time to live, or the lease of a lock: it must be given.
create or replace function millrace.check_ttl(p_ttl interval)
returns void
language plpgsql
as $$
begin
  if (p_ttl > interval '0' and p_ttl <= interval '1000 years') is not true then
    perform millrace.refuse(format('ttl must be longer than zero and at most 1000 years, not %s', coalesce(p_ttl::text, 'null')),
      'Nothing is kept for ever: pass an interval such as ''5 minutes''.');
  end if;
end $$;

-- Appends a row for a key. The sequence is read again behind the lock of the leaf, which the insert takes before it looks at its condition: so
-- nobody writes to a leaf any more once it was locked after the leaves changed places.
create or replace function millrace.cache_put(p_key_id uuid, p_key text, p_value jsonb, p_until timestamptz)
returns void
language plpgsql
as $$
begin
  loop
    if pg_sequence_last_value('millrace.cache_turn'::regclass) % 2 = 0 then
      insert into millrace.cache_0 (key_id, entry_no, good_until, key_text, entry_value)
      select p_key_id, nextval('millrace.cache_no'), p_until, p_key, p_value
       where pg_sequence_last_value('millrace.cache_turn'::regclass) % 2 = 0;
    else
      insert into millrace.cache_1 (key_id, entry_no, good_until, key_text, entry_value)
      select p_key_id, nextval('millrace.cache_no'), p_until, p_key, p_value
       where pg_sequence_last_value('millrace.cache_turn'::regclass) % 2 = 1;
    end if;
    exit when found;
  end loop;
end $$;

create or replace function millrace.cache_set_at(p_now timestamptz, p_key text, p_value jsonb, p_ttl interval)
returns void
language plpgsql
as $$
declare
  c_most constant int := 16 * 1024 * 1024;
begin
  perform millrace.at_home();
  if p_key is null or p_key = '' or octet_length(p_key) > 16384 then
    perform millrace.check_key('key', p_key);
  end if;
  if p_value is null then
    perform millrace.refuse('value must not be null', 'Pass a JSON value; ''null'' in JSON is one. To remove a key call cache_delete.');
  elsif pg_column_size(p_value) > c_most / 256 and millrace.json_size(p_value, c_most) > c_most then
    perform millrace.refuse(format('value is %s bytes long, the limit is %s', millrace.json_size(p_value, c_most), c_most),
      'Keep large values elsewhere, such as in an object store, and cache where they are.');
  end if;
  if p_ttl is null or p_ttl <= interval '0' or p_ttl > interval '1000 years' then
    perform millrace.check_ttl(p_ttl);
  end if;
  perform millrace.cache_put(millrace.cache_key(p_key), p_key, p_value, p_now + p_ttl);
end $$;

-- Null: there is none, or it has expired, or it was deleted.
create or replace function millrace.cache_get_at(p_now timestamptz, p_key text)
returns jsonb
language plpgsql
as $$
declare
  v_id uuid;
begin
  perform millrace.at_home();
  if p_key is null or p_key = '' or octet_length(p_key) > 16384 then
    perform millrace.check_key('key', p_key);
  end if;
  v_id := millrace.cache_key(p_key);
  return (select e.entry_value
            from ((select c.entry_no, c.good_until, c.entry_value
                     from millrace.cache_0 c
                    where c.key_id = v_id
                      and c.key_text = p_key
                    order by c.entry_no desc
                    limit 1)
                  union all
                  (select c.entry_no, c.good_until, c.entry_value
                     from millrace.cache_1 c
                    where c.key_id = v_id
                      and c.key_text = p_key
                    order by c.entry_no desc
                    limit 1)
                  order by 1 desc
                  limit 1) e
           where e.good_until > p_now);
end $$;

create or replace function millrace.cache_get_many_at(p_now timestamptz, p_keys text[])
returns setof millrace.cache_entry
language plpgsql
as $$
declare
  c_most constant int := 10000;
begin
  perform millrace.at_home();
  if p_keys is null then
    perform millrace.refuse('keys must not be null', 'Pass an array of texts; an empty one is fine.');
  elsif cardinality(p_keys) > c_most then
    perform millrace.refuse(format('%s keys at once, the limit is %s', cardinality(p_keys), c_most), 'Ask for fewer keys in one call.');
  end if;
  perform millrace.check_key('key', k)
     from unnest(p_keys) k
    where k is null
       or k = ''
       or octet_length(k) > 16384;
  return query
    select k.key_text, e.entry_value
      from (select u, min(n) as place from unnest(p_keys) with ordinality a(u, n) group by u) k(key_text, place)
     cross join lateral (select i.* from (select millrace.cache_key(k.key_text) as key_id offset 0) i) i
     cross join lateral ((select c.entry_no, c.good_until, c.entry_value
                            from millrace.cache_0 c
                           where c.key_id = i.key_id
                             and c.key_text = k.key_text
                           order by c.entry_no desc
                           limit 1)
                         union all
                         (select c.entry_no, c.good_until, c.entry_value
                            from millrace.cache_1 c
                           where c.key_id = i.key_id
                             and c.key_text = k.key_text
                           order by c.entry_no desc
                           limit 1)
                         order by 1 desc
                         limit 1) e
     where e.good_until > p_now
     order by k.place;
end $$;

-- Whether there was a value. Nothing is written where there is none.
create or replace function millrace.cache_delete_at(p_now timestamptz, p_key text)
returns boolean
language plpgsql
as $$
begin
  if millrace.cache_get_at(p_now, p_key) is null then
    return false;
  end if;
  perform millrace.cache_put(millrace.cache_key(p_key), p_key, null, '-infinity');
  return true;
end $$;

-- The keys that have a value, one row each. Looks at every entry, as they lie on the disk: a sample of all, because plain scans are switched off for the sake of the other functions.
create or replace function millrace.cache_live(p_now timestamptz)
returns table (key_id uuid, key_text text)
language sql
stable
as $$
  select c.key_id, c.key_text
    from millrace.cache_0 c tablesample system (100)
   where c.good_until > p_now
     and not exists (select from millrace.cache_0 o where o.key_id = c.key_id and o.entry_no > c.entry_no)
     and not exists (select from millrace.cache_1 o where o.key_id = c.key_id and o.entry_no >= c.entry_no)
   union all
  select c.key_id, c.key_text
    from millrace.cache_1 c tablesample system (100)
   where c.good_until > p_now
     and not exists (select from millrace.cache_1 o where o.key_id = c.key_id and o.entry_no > c.entry_no)
     and not exists (select from millrace.cache_0 o where o.key_id = c.key_id and o.entry_no > c.entry_no)
$$;

-- Deletes every key that is like a pattern. Where the leaves change places meanwhile, what is left is looked for again.
create or replace function millrace.cache_delete_like_at(p_now timestamptz, p_pattern text)
returns bigint
language plpgsql
as $$
declare
  v_turn bigint;
  v_n    bigint;
  v_all  bigint := 0;
begin
  perform millrace.at_home();
  perform millrace.check_key('pattern', p_pattern);
  if length(substring(p_pattern from '\\*$')) % 2 = 1 then
    perform millrace.refuse('pattern ends with a lone backslash', 'A backslash takes the meaning from the % or _ behind it; write two for one that is meant.');
  end if;
  loop
    v_turn := pg_sequence_last_value('millrace.cache_turn'::regclass);
    if v_turn % 2 = 0 then
      insert into millrace.cache_0 (key_id, entry_no, good_until, key_text)
      select l.key_id, nextval('millrace.cache_no'), '-infinity', l.key_text
        from millrace.cache_live(p_now) l
       where l.key_text like p_pattern
         and pg_sequence_last_value('millrace.cache_turn'::regclass) = v_turn;
    else
      insert into millrace.cache_1 (key_id, entry_no, good_until, key_text)
      select l.key_id, nextval('millrace.cache_no'), '-infinity', l.key_text
        from millrace.cache_live(p_now) l
       where l.key_text like p_pattern
         and pg_sequence_last_value('millrace.cache_turn'::regclass) = v_turn;
    end if;
    get diagnostics v_n = row_count;
    v_all := v_all + v_n;
    exit when pg_sequence_last_value('millrace.cache_turn'::regclass) = v_turn;
  end loop;
  return v_all;
end $$;
