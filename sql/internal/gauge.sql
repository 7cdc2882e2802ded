-- SPDX-License-Identifier: PostgreSQL
-- The gauge of a queue that has a depth_limit: how deep it is, as producers know it without counting. Three sequences, made with the limit:
--   depth_in_<queue_id>    goes up with each job that is let in, and is never set;
--   depth_base_<queue_id>  is what has to be added to it to get the depth, set by each count;
--   depth_at_<queue_id>    when that was, in milliseconds since 1970.
-- A sequence is no part of a transaction, so producers see each other's jobs before they are committed, wait for nobody and leave no dead
-- row behind.
--   1. The gauge is counted anew from the depth ledger by the first producer that finds it a second old, or that finds the queue full
--      and the gauge 20 ms old. So what workers took is known after 20 ms, and what was appended without being asked for (retries, promoted
--      and replayed jobs) after a second. No daemon is needed.
--   2. A count does not see the jobs of transactions that are open, but for those of its own, which it knows by own_jobs(). Until the
--      next count the queue may thus get as many jobs more than its limit as open transactions had put into it.
--   3. A wrong gauge costs a refusal too many or too few for a second, never a job.

-- Lets p_ready jobs into a queue, which a call of p_jobs jobs wants to put there, and returns null. Where it is full, or would never
-- take so many at once, returns the depth that it has.
create or replace function millrace.gauge_admit(p_now timestamptz, p_queue millrace.queue, p_jobs bigint, p_ready bigint)
returns bigint
language plpgsql
as $$
declare
  v_in    regclass := ('millrace.depth_in_' || p_queue.queue_id)::regclass;
  v_own   bigint := millrace.own_jobs(p_queue.queue_id);
  v_depth bigint := greatest(v_own, millrace.gauge_read(p_now, p_queue, v_own));
begin
  if v_depth >= p_queue.depth_limit or p_jobs > p_queue.depth_limit then
    return v_depth;
  end if;
  if p_ready > 0 then
    if nextval(v_in) + millrace.gauge_base(p_queue.queue_id) > p_queue.depth_limit then
      return p_queue.depth_limit;      -- others were let in this moment
    end if;
    perform nextval(v_in)
       from generate_series(2, p_ready);
    perform set_config('millrace.own_' || p_queue.queue_id, (v_own + p_ready)::text, true);
  end if;
  return null;
end $$;

-- The depth of a queue as its gauge has it, counted anew where the gauge is old. In a transaction whose snapshot is older than
-- the gauge (repeatable read) a count would say less than the gauge does.
create or replace function millrace.gauge_read(p_now timestamptz, p_queue millrace.queue, p_own bigint)
returns bigint
language plpgsql
as $$
declare
  v_at    regclass := ('millrace.depth_at_' || p_queue.queue_id)::regclass;
  v_known bigint := millrace.gauge_depth(p_queue.queue_id);
begin
  if millrace.due(v_at, p_now, case when v_known >= p_queue.depth_limit then 20 else 1000 end)
     and (current_setting('transaction_isolation') = 'read committed' or millrace.hint(v_at) < millrace.epoch_ms(now())) then
    perform millrace.gauge_count(p_now, p_queue, p_own);
    return millrace.gauge_depth(p_queue.queue_id);
  end if;
  return v_known;
end $$;

create or replace function millrace.gauge_base(p_queue_id int)
returns bigint
language sql
volatile
as $$
  select millrace.hint(('millrace.depth_base_' || p_queue_id)::regclass)
$$;

create or replace function millrace.gauge_depth(p_queue_id int)
returns bigint
language sql
volatile
as $$
  select millrace.hint(('millrace.depth_in_' || p_queue_id)::regclass) + millrace.gauge_base(p_queue_id)
$$;

-- Counts a queue and sets its gauge. The time is set first: the others go on with what is known instead of counting, too. What they let
-- in meanwhile is added, because the count may have missed it. One at a time: of two counts the older could be the last to set the gauge.
-- The lock ends with the count, as that of the ledger, which is therefore counted on before: what is written in between is undone.
-- How many were let in is read first and the lanes after it: jobs of a lane that is made in between would be taken for counted.
create or replace function millrace.gauge_count(p_now timestamptz, p_queue millrace.queue, p_own bigint)
returns void
language plpgsql
as $$
declare
  v_in bigint;
begin
  perform setval(('millrace.depth_at_' || p_queue.queue_id)::regclass,
                 millrace.epoch_ms(case when current_setting('transaction_isolation') = 'read committed' then p_now else now() end));
  perform millrace.lane_count(p_now, l, '1 second')
     from unnest(millrace.lanes_of(p_queue, 0)) l;
  begin
    if pg_try_advisory_xact_lock(1297219604, p_queue.queue_id) then
      v_in := millrace.hint(('millrace.depth_in_' || p_queue.queue_id)::regclass);
      perform setval(('millrace.depth_base_' || p_queue.queue_id)::regclass,
                     p_own - v_in
                     + (select coalesce(sum(millrace.lane_depth(p_now, l)), 0)::bigint from unnest(millrace.lanes_of(p_queue, 0)) l)
                     + millrace.queue_aside_about(p_queue));
    end if;
    raise exception using errcode = 'MRLET';      -- to let go of the lock
  exception
    when sqlstate 'MRLET' then
      null;
  end;
end $$;

-- How many jobs this transaction has let into a queue with a limit. Kept in a setting of the transaction, which a rollback to a savepoint
-- takes back with the jobs; whoever writes it by hand betrays only the limit.
create or replace function millrace.own_jobs(p_queue_id int)
returns bigint
language plpgsql
as $$
declare
  v_text text := current_setting('millrace.own_' || p_queue_id, true);
begin
  return case when v_text ~ '^\d{1,15}$' then v_text::bigint else 0 end;
end $$;

-- Makes the gauge of a queue, or has it counted by the next producer.
create or replace function millrace.gauge_make(p_queue_id int)
returns void
language plpgsql
as $$
declare
  v_part record;
begin
  if to_regclass('millrace.depth_at_' || p_queue_id) is not null then
    perform setval(('millrace.depth_at_' || p_queue_id)::regclass, 0);
    return;
  end if;
  for v_part in
    select *
      from (values
        ('in',   0,                    'jobs let into queue %s since it got a limit'),
        ('base', -4611686018427387904, 'the depth of queue %s less the jobs let in'),
        ('at',   0,                    'milliseconds since 1970: when the depth of queue %s was counted')
      ) v(name, least_value, about)
  loop
    execute format('create sequence millrace.depth_%s_%s as bigint minvalue %s start 1', v_part.name, p_queue_id, v_part.least_value);
    execute format('comment on sequence millrace.depth_%s_%s is %L', v_part.name, p_queue_id, format(v_part.about, p_queue_id));
  end loop;
end $$;

-- Removes it, with its queue. A limit that is only switched off keeps its gauge: a producer may have read the limit already.
create or replace function millrace.gauge_drop(p_queue_id int)
returns void
language plpgsql
as $$
begin
  if to_regclass('millrace.depth_at_' || p_queue_id) is not null then
    execute format('drop sequence millrace.depth_in_%1$s, millrace.depth_base_%1$s, millrace.depth_at_%1$s', p_queue_id);
  end if;
end $$;
