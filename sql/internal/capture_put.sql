-- SPDX-License-Identifier: PostgreSQL
-- Enqueues captured rows, in their order: called by the functions that capture() makes, with the rights of the table's owner, hence granted to producers. Those
-- functions are in dumps and in databases that are older than this file: parameters may be added at the end, with a default, and never change otherwise.
-- p_keys: a unique key for each row, or null. p_notify: a channel that hears of the rows.
create or replace function millrace.capture_put(p_queue text, p_kind text, p_table text, p_args jsonb[], p_keys text[], p_on_conflict text, p_notify text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  if p_keys is null then
    perform count(*)
       from millrace.enqueue_many_at(clock_timestamp(), p_kind, p_args, p_queue, 50, null, null, null, 'capture:' || p_table);
  else
    perform millrace.capture_put_keyed(clock_timestamp(), p_queue, p_kind, p_args, p_keys, p_on_conflict, 'capture:' || p_table);
  end if;
  if p_notify is not null then
    perform millrace.capture_notify(p_notify, p_args);
  end if;
end $$;

-- Rows with unique keys. Of several with one key the first counts, or with replace the last. Keys are taken with one statement and in their own order, so
-- that two writers with the same keys wait for each other and not in a circle; only keys that are held are looked at one by one. A job that holds
-- its key and waits is told the new args, with replace; one that runs has read the old ones: then there is another job, without a key.
create or replace function millrace.capture_put_keyed(p_now timestamptz, p_queue text, p_kind text, p_args jsonb[], p_keys text[], p_on_conflict text,
                                                      p_source text)
returns void
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_route millrace.queue;      -- takes the first v_away rows; the keys of all are those of the queue that was named
  v_away  int := 0;
  v_key_queue int;
  v_args  jsonb[];
  v_keys  text[];
  v_ids   bigint[];
  v_taken bigint[];
  v_bare  bigint[] := '{}';
  v_one   record;
begin
  perform millrace.at_home();
  perform millrace.check_job('', p_kind, '{}', p_queue, 50, null, null, 'key', null, null, null, null, null, null, p_on_conflict);
  perform pg_current_xact_id();
  select array_agg(d.key order by d.ord), array_agg(d.args order by d.ord)
    into v_keys, v_args
    from (select distinct on (u.key collate "C") u.ord, u.args, u.key
            from (select u.ord, u.args, case when octet_length(u.key) > 1000 then md5(u.key) else u.key end as key
                    from unnest(p_args, p_keys) with ordinality u(args, key, ord)) u
           order by u.key collate "C", case when p_on_conflict = 'replace' then -u.ord else u.ord end) d;
  if v_keys is null then
    return;
  end if;
  v_queue := millrace.queue_of(p_queue);
  if v_queue.route_queue is not null then
    v_key_queue := v_queue.queue_id;
    v_away := millrace.route_count(v_queue, cardinality(v_keys));
    v_route := millrace.capture_admit(p_now, millrace.queue_of(v_queue.route_queue), v_args[: v_away]);
  end if;
  v_queue := millrace.capture_admit(p_now, v_queue, v_args[v_away + 1 :]);
  v_key_queue := coalesce(v_key_queue, v_queue.queue_id);
  v_ids := array(select nextval('millrace.pos_seq') from generate_series(1, cardinality(v_keys)));
  v_taken := millrace.unique_take_fresh(array_fill(v_key_queue, array[cardinality(v_keys)]), v_keys, v_ids, null);
  if cardinality(v_taken) < cardinality(v_ids) then
    for v_one in
      select u.id, u.key, u.args
        from unnest(v_ids, v_keys, v_args) u(id, key, args)
        left join unnest(v_taken) t(id) on t.id = u.id
       where t.id is null
       order by u.key collate "C"
    loop
      case millrace.capture_meet(p_now, v_key_queue, v_one.key, v_one.id, v_one.args, p_on_conflict)
        when 'taken' then v_taken := v_taken || v_one.id;
        when 'bare' then v_bare := v_bare || v_one.id;
        else null;
      end case;
    end loop;
  end if;
  if v_away > 0 then
    perform millrace.capture_append(p_now, v_route, p_kind, v_ids[: v_away], v_keys[: v_away], v_args[: v_away], v_taken, v_bare, p_source);
  end if;
  perform millrace.capture_append(p_now, v_queue, p_kind, v_ids[v_away + 1 :], v_keys[v_away + 1 :], v_args[v_away + 1 :], v_taken, v_bare, p_source);
end $$;

-- The queue that takes captured rows, if there are any: this one or its overflow. Refuses args that are too large.
create or replace function millrace.capture_admit(p_now timestamptz, p_queue millrace.queue, p_args jsonb[])
returns millrace.queue
language plpgsql
as $$
begin
  if cardinality(p_args) = 0 then
    return p_queue;
  end if;
  if p_queue.depth_limit is not null then
    p_queue := millrace.queue_admit(p_now, p_queue, cardinality(p_args), cardinality(p_args));
  end if;
  perform millrace.check_size('the largest of args', (select max(millrace.json_written(a, p_queue.args_bytes)) from unnest(p_args) a), p_queue.args_bytes, 'max_args');
  return p_queue;
end $$;

-- Appends those of some captured rows whose ids have taken their keys, or are bare: without one.
create or replace function millrace.capture_append(p_now timestamptz, p_queue millrace.queue, p_kind text, p_ids bigint[], p_keys text[], p_args jsonb[], p_taken bigint[],
                                                   p_bare bigint[], p_source text)
returns void
language plpgsql
as $$
begin
  perform millrace.lane_register((p_queue.queue_id << 12) + (50 << 5));
  insert into millrace.job (pos, job_id, created_at, lane, attempts_limit, job_kind, payload_args, job_source, unique_name)
  select u.id, u.id, p_now, (p_queue.queue_id << 12) + (50 << 5) + (u.id >> 5) % p_queue.part_count,
         coalesce((select r.attempts_limit from millrace.retry_policy r where r.policy_kind = p_kind), p_queue.attempts_limit), p_kind, u.args, p_source,
         case when t.keyed then u.key end
    from unnest(p_ids, p_keys, p_args) u(id, key, args)
    join (select unnest(p_taken) as id, true as keyed
           union all
          select unnest(p_bare), false) t on t.id = u.id
   order by u.id;
  if found then
    perform millrace.wake(p_queue.queue_id, p_now);
  end if;
end $$;

-- What becomes of a row whose key was held a moment ago: taken, bare (a job without a key), or old: the job that is there is enough.
create or replace function millrace.capture_meet(p_now timestamptz, p_queue_id int, p_key text, p_id bigint, p_args jsonb, p_on_conflict text)
returns text
language plpgsql
as $$
declare
  v_first bigint := millrace.unique_take(p_now, p_queue_id, p_key, p_id, null);
begin
  return case
           when v_first is null then 'taken'
           when p_on_conflict = 'ignore' then 'old'
           when millrace.unique_replace(p_now, v_first, p_args, null, true) then 'old'
           else 'bare'
         end;
end $$;

-- Tells a channel of some rows, each by itself. A payload has less than 8,000 bytes: a larger row is told without its values.
create or replace function millrace.capture_notify(p_channel text, p_args jsonb[])
returns void
language plpgsql
as $$
begin
  perform pg_notify(p_channel, case when octet_length(t.told) < 8000 then t.told else (u.args - 'new' - 'old' || '{"large": true}')::text end)
     from unnest(p_args) u(args)
    cross join lateral (select u.args::text as told) t;
end $$;
