-- SPDX-License-Identifier: PostgreSQL
-- Retention of dead letters: by age, number and bytes of their queue. What has to go goes with its leaf where it can, because rows that are deleted one by one leave a
-- file as large as it was. 2 million dead letters in a queue that keeps 100,000 cost no more than the leaves they fill.

-- Removes dead letters beyond their queue's age, number and bytes: leaves of which at least half goes, then, oldest first, at most p_limit of a queue one by one.
-- The caller holds the lock of upkeep.
create or replace function millrace.dead_retain(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_borders millrace.dead_border[] := millrace.dead_borders(p_now);
  v_border  millrace.dead_border;
  v_n       bigint := 0;
  v_k       bigint;
  v_away    bigint[];
  v_objects boolean := exists (select from millrace.blob_object);
begin
  if v_borders is null then
    return 0;
  end if;
  v_n := millrace.dead_drop_leaves(p_now, v_borders, p_limit);
  foreach v_border in array v_borders loop
    with gone as (
      delete from millrace.dead d
       where d.queue_id = v_border.queue_id
         and (d.died_at, d.job_id) in (select o.died_at, o.job_id
                                         from millrace.dead o
                                        where o.queue_id = v_border.queue_id
                                          and (o.died_at, o.job_id) <= (v_border.died_at, v_border.job_id)
                                        order by o.died_at, o.job_id
                                        limit p_limit)
      returning d.job_id, v_objects and (millrace.is_object(d.payload_state) or millrace.is_object(d.payload_blob)) as away)
    select count(*), array_agg(g.job_id) filter (where g.away)
      into v_k, v_away
      from gone g;
    perform millrace.objects_doom_all(p_now, v_away);
    v_n := v_n + v_k;
  end loop;
  return v_n;
end $$;

-- Of each queue that has too many the newest dead letter that goes: by age, or the first that number or bytes leave no room for. Null where there is none.
-- Looks at no more than the queue keeps.
create or replace function millrace.dead_borders(p_now timestamptz)
returns millrace.dead_border[]
language plpgsql
as $$
declare
  v_queue   millrace.queue;
  v_border  millrace.dead_border;
  v_borders millrace.dead_border[];
begin
  for v_queue in
    select q.*
      from millrace.queue q
     where exists (select from millrace.dead d where d.queue_id = q.queue_id)
  loop
    select v_queue.queue_id, o.died_at, o.job_id
      into v_border
      from (select d.died_at, d.job_id, row_number() over w as number, sum(d.bytes) over w as bytes
              from (select d.died_at, d.job_id, d.bytes
                      from millrace.dead d
                     where d.queue_id = v_queue.queue_id
                     order by d.died_at desc, d.job_id desc
                     limit v_queue.dead_limit + 1) d
            window w as (order by d.died_at desc, d.job_id desc)) o
     where o.died_at < p_now - v_queue.dead_time
        or o.number > v_queue.dead_limit
        or o.bytes > v_queue.dead_bytes
     order by o.number
     limit 1;
    if found then
      v_borders := v_borders || v_border;
    end if;
  end loop;
  return v_borders;
end $$;

-- Drops leaves of which at least half has to go and no more than p_limit letters stay. Not the open one. Returns how many went.
create or replace function millrace.dead_drop_leaves(p_now timestamptz, p_borders millrace.dead_border[], p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.dead_seq'::regclass);
  v_goes bigint;
  v_all  bigint;
  v_n    bigint := 0;
begin
  for v_slot in 0 .. 31 loop
    continue when v_slot = v_open
               or pg_relation_size(format('millrace.dead_%s', v_slot)) = 0
               or not exists (select
                                from unnest(p_borders) b
                               cross join lateral (select
                                                     from millrace.dead d
                                                    where d.slot = v_slot
                                                      and d.queue_id = b.queue_id
                                                      and (d.died_at, d.job_id) <= (b.died_at, b.job_id)
                                                    limit 1) d);
    select count(*), count(*) filter (where (d.died_at, d.job_id) <= (b.died_at, b.job_id))
      into v_all, v_goes
      from millrace.dead d
      left join unnest(p_borders) b on b.queue_id = d.queue_id
     where d.slot = v_slot;
    if v_goes * 2 >= v_all and v_all - v_goes <= p_limit then
      v_n := v_n + millrace.dead_drop_leaf(p_now, v_slot, v_open, p_borders);
    end if;
  end loop;
  return v_n;
end $$;

-- Moves what stays to the open leaf and truncates this one. 0: somebody reads or writes in it, the next round tries again. Locked first: whoever waits for a letter
-- that moves (replay, purge_dead) waits for the leaf, and then finds the letter where it is.
create or replace function millrace.dead_drop_leaf(p_now timestamptz, p_slot int, p_open int, p_borders millrace.dead_border[])
returns bigint
language plpgsql
as $$
declare
  v_leaf text := 'dead_' || p_slot;
  v_n    bigint;
begin
  if not millrace.lock_leaves(array[v_leaf], '50ms') then
    return 0;
  end if;
  update millrace.dead d
     set slot = p_open
   where d.slot = p_slot
     and not exists (select
                       from unnest(p_borders) b
                      where b.queue_id = d.queue_id
                        and (d.died_at, d.job_id) <= (b.died_at, b.job_id));
  select count(*)
    into v_n
    from millrace.dead d
   where d.slot = p_slot;
  -- Letters whose payloads are in a blob store are looked for only where there is one.
  if exists (select from millrace.blob_object) then
    perform millrace.objects_doom_all(p_now, array(select d.job_id
                                                     from millrace.dead d
                                                    where d.slot = p_slot
                                                      and (millrace.is_object(d.payload_state) or millrace.is_object(d.payload_blob))));
  end if;
  execute format('truncate millrace.%I', v_leaf);
  return v_n;
end $$;

-- Opens another leaf once the open one is full: p_bytes, or an eighth of all, so that the ring holds whatever the queues keep. Returns whether it did; not where no leaf is
-- empty: then the open one grows.
create or replace function millrace.dead_rotate(p_bytes bigint)
returns boolean
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.dead_seq'::regclass);
  v_size bigint := pg_table_size(format('millrace.dead_%s', v_open));
  v_next int;
begin
  if v_size < p_bytes
     or v_size < (select sum(pg_table_size(format('millrace.dead_%s', s))) / 8 from generate_series(0, 31) s) then
    return false;
  end if;
  select s
    into v_next
    from generate_series(v_open + 1, v_open + 31) o
   cross join lateral (select o % 32 as s) s
   where pg_relation_size(format('millrace.dead_%s', s)) = 0
   order by o
   limit 1;
  if found then
    perform setval('millrace.dead_seq', v_next);
  end if;
  return found;
end $$;

-- The duty: retention every ten seconds, and in a flood whenever a leaf is full.
create or replace function millrace.dead_look(p_now timestamptz)
returns bigint
language plpgsql
as $$
begin
  if millrace.dead_rotate(67108864) or millrace.due('millrace.clean_clock', p_now, 10000) then
    return millrace.dead_retain(p_now, 10000);
  end if;
  return null;
end $$;
