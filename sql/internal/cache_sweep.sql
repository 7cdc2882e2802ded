-- SPDX-License-Identifier: PostgreSQL
-- Upkeep of the cache. When half of what is in it is old (set again, deleted or expired), the leaves change places, and what still counts is copied from
-- the leaf that was written into the one that is, so many keys a round; then clean truncates it. So the disk comes back without VACUUM and beside a
-- snapshot that is held, and each entry that lasts is copied about once for each time that the cache turns over.

-- What the cache holds. entries: rows; total: keys, with those that have expired; valid: keys that have a value. Counted where it is small; otherwise
-- estimated from about that many pages taken at random, so that a look costs the same however large it is. How many came is left to chance, how many rows are on
-- one is not: so the rows of a page count, times all pages.
create or replace function millrace.cache_sample(p_now timestamptz, p_pages int, out entries bigint, out total bigint, out valid bigint, out exact boolean)
language plpgsql
as $$
declare
  v_old   int := (millrace.hint('millrace.cache_turn') + 1) % 2;
  v_pages double precision;
  v_scale double precision;
  v_one   record;
begin
  entries := 0;
  total := 0;
  valid := 0;
  exact := true;
  for i in 0..1 loop
    v_pages := pg_relation_size(format('millrace.cache_%s', i)::regclass) / current_setting('block_size')::double precision;
    execute format('select count(*) as entries, count(*) filter (where s.newest and s.is_there) as total, count(*) filter (where s.newest and s.is_good) as valid,
                           count(distinct s.page) as pages
                      from (select c.entry_value is not null as is_there, c.good_until > $1 as is_good, %5$s as page,
                                   not exists (select from millrace.cache_%1$s o where o.key_id = c.key_id and o.entry_no > c.entry_no)
                                   and not exists (select from millrace.cache_%2$s o where o.key_id = c.key_id and o.entry_no %3$s c.entry_no) as newest
                              from millrace.cache_%1$s c %4$s) s',
                   i, 1 - i, case when i = v_old then '>=' else '>' end,
                   case when v_pages > p_pages then format('tablesample system (%s)', 100 * p_pages / v_pages) end,
                   case when v_pages > p_pages then 'split_part(c.ctid::text, '','', 1)' else 'null::text' end)
       into v_one
      using p_now;
    v_scale := case when v_pages > p_pages then v_pages / greatest(v_one.pages, 1) else 1 end;
    entries := entries + (v_one.entries * v_scale)::bigint;
    total := total + (v_one.total * v_scale)::bigint;
    valid := valid + (v_one.valid * v_scale)::bigint;
    exact := exact and v_pages <= p_pages;
  end loop;
end $$;

create or replace function millrace.cache_stats_at(p_now timestamptz)
returns millrace.cache_figures
language plpgsql
as $$
declare
  v_sample record;
begin
  perform millrace.at_home();
  v_sample := millrace.cache_sample(p_now, 256);
  return row(v_sample.total, v_sample.valid, v_sample.total - v_sample.valid,
             pg_total_relation_size('millrace.cache_0') + pg_total_relation_size('millrace.cache_1'), v_sample.exact)::millrace.cache_figures;
end $$;

-- A round of it. Returns how many keys went.
create or replace function millrace.cache_sweep(p_now timestamptz, p_keys int)
returns bigint
language plpgsql
as $$
declare
  c_small  constant bigint := 1024 * 1024;      -- bytes; a smaller cache is swept less often
  c_rest   constant int := 600000;              -- how often, in milliseconds
  v_turn   bigint := millrace.hint('millrace.cache_turn');
  v_full   boolean;
  v_sample record;
begin
  execute format('select exists (select from millrace.cache_%s)', (v_turn + 1) % 2) into v_full;
  if v_full then
    return case when millrace.cache_pass_done(v_turn) then 0 else millrace.cache_move(p_now, v_turn, p_keys) end;
  end if;
  if millrace.due('millrace.cache_clock', p_now, 10000) then
    perform setval('millrace.cache_clock', millrace.epoch_ms(p_now));
    v_sample := millrace.cache_sample(p_now, 256);
    if v_sample.entries > v_sample.valid
       and v_sample.entries >= 2 * v_sample.valid
       and (pg_relation_size(format('millrace.cache_%s', v_turn % 2)::regclass) >= c_small
            or millrace.due('millrace.cache_turned', p_now, c_rest)) then
      perform setval('millrace.cache_turned', millrace.epoch_ms(p_now));
      perform setval('millrace.cache_turn', v_turn + 1);
    end if;
  end if;
  return 0;
end $$;

-- Whether everything that counts has been copied.
create or replace function millrace.cache_pass_done(p_turn bigint)
returns boolean
language sql
stable
as $$
  select coalesce((select p.finished from millrace.cache_pass p where p.turn = p_turn order by p.upto desc limit 1), false)
$$;

-- Copies the next keys of the leaf that is not written any more. Whoever wrote to it has ended once the lock is granted: nothing is missed. What has
-- expired stays where an older value of its key would show up without it: one that took its number first and was written last.
create or replace function millrace.cache_move(p_now timestamptz, p_turn bigint, p_keys int)
returns bigint
language plpgsql
as $$
declare
  v_to   text := format('cache_%s', p_turn % 2);
  v_from text := format('cache_%s', (p_turn + 1) % 2);
  v_upto uuid := coalesce((select p.upto from millrace.cache_pass p where p.turn = p_turn order by p.upto desc limit 1), '00000000-0000-0000-0000-000000000000');
  v_done record;
begin
  if not millrace.lock_leaf_shared(v_from, '5ms') then
    return 0;
  end if;
  execute format('
    with recursive k as (
      (select c.key_id from millrace.%1$I c where c.key_id > $1 order by c.key_id limit 1)
      union all
      select (select c.key_id from millrace.%1$I c where c.key_id > k.key_id order by c.key_id limit 1)
        from k
       where k.key_id is not null),
    next as materialized (select k.key_id from k where k.key_id is not null limit $2),
    moved as (
      insert into millrace.%2$I (key_id, entry_no, good_until, key_text, entry_value)
      select c.key_id, c.entry_no, c.good_until, c.key_text, c.entry_value
        from next n
       cross join lateral (select c.key_id, c.entry_no, c.good_until, c.key_text, c.entry_value
                             from millrace.%1$I c
                            where c.key_id = n.key_id
                            order by c.entry_no desc
                            limit 1) c
       where not exists (select from millrace.%2$I o where o.key_id = c.key_id and o.entry_no >= c.entry_no)
         and (c.good_until > $3 or exists (select from millrace.%2$I o where o.key_id = c.key_id))
      returning 1)
    select (select count(*) from next) as seen, (select count(*) from moved) as moved, (select n.key_id from next n order by n.key_id desc limit 1) as last',
    v_from, v_to)
     into v_done
    using v_upto, p_keys, p_now;
  insert into millrace.cache_pass (turn, upto, finished)
  values (p_turn, coalesce(v_done.last, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), v_done.seen < p_keys);
  return v_done.seen - v_done.moved;
end $$;

-- Truncates the leaf whose entries have been copied. Returns the number of leaves.
create or replace function millrace.cache_clean()
returns bigint
language plpgsql
as $$
declare
  v_turn bigint := millrace.hint('millrace.cache_turn');
begin
  if not millrace.cache_pass_done(v_turn)
     or not millrace.truncate_leaves(array[format('cache_%s', (v_turn + 1) % 2)], false, '5ms') then
    return 0;
  end if;
  delete from millrace.cache_pass p
   where p.turn <= v_turn;
  return 1;
end $$;

-- Locks a leaf against writers if that can be had within p_wait, to the end of the transaction.
create or replace function millrace.lock_leaf_shared(p_leaf text, p_wait text)
returns boolean
language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
begin
  perform set_config('lock_timeout', p_wait, true);
  execute format('lock table millrace.%I in share mode', p_leaf);
  perform set_config('lock_timeout', v_before, true);
  return true;
exception
  when lock_not_available or deadlock_detected then
    perform set_config('lock_timeout', v_before, true);
    return false;
end $$;
