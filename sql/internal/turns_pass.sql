-- SPDX-License-Identifier: PostgreSQL
-- Passes the turn on: called with the end of a job, in the transaction that ends it, which may be an application's and long. So it waits for nobody, and
-- nobody for it. The rules that make that safe:
--   1. The turn's row is locked first, and what is set aside is read then, with a statement of its own.
--   2. A claim that sets a job aside holds a share of that row to its end (turns_claim). So of the two one sees what the other did, or finds
--      the row locked; and whoever finds it locked leaves a doubt, which upkeep settles (turns_settle).
--   3. Jobs are let in from the head of the line only. Where somebody is at the first (cancels it, say), nobody is let in, and a doubt is left.
-- A turn ends with its job; with a failure, too, where the queue says skip: then the job joins behind when it comes back.
create or replace function millrace.turns_pass(p_now timestamptz, p_hooks millrace.hook[], p_letters text)
returns void
language plpgsql
as $$
declare
  v_queues int[];
  v_keys   text[];
  v_nos    bigint[];
  v_places tid[];
  v_mine   record;
  v_passed bigint[] := '{}';
begin
  perform pg_current_xact_id();
  select array_agg(t.queue_id), array_agg(t.order_key), array_agg(t.no), array_agg(t.place)
    into v_queues, v_keys, v_nos, v_places
    from (select h.lane >> 12 as queue_id, h.order_key, h.job_id, h.letter
            from unnest(p_hooks, string_to_array(p_letters, null)) h(job_id, lane, order_key, unique_name, batch_id, letter)
           where h.order_key is not null) h
    join millrace.queue q on q.queue_id = h.queue_id and q.ordered
   cross join lateral (select t.queue_id, t.order_key, t.no, t.job_id, t.ctid as place
                         from millrace.turn t
                        where t.queue_id = h.queue_id
                          and t.order_key = h.order_key
                        order by t.no desc
                        limit 1) t
   where t.job_id = h.job_id
     and (h.letter in ('c', 'd', 'k', 'x', 'p') or (h.letter in ('f', 'l') and q.on_failure = 'skip'));
  if v_keys is null then
    return;
  end if;
  if current_setting('transaction_isolation') = 'read committed' then
    select array_agg(m.queue_id) as queues, array_agg(m.order_key) as keys, array_agg(m.no) as nos, array_agg(m.from_pos) as froms,
           array_agg(m.place) as places, count(*)::int as n
      into v_mine
      from (select t.queue_id, t.order_key, t.no, t.from_pos, t.ctid as place
              from millrace.turn t
             where t.ctid = any (v_places)
               for update skip locked) m;
    if v_mine.n > 0 then
      v_passed := v_mine.nos;
      perform millrace.turns_next(p_now, v_mine.queues, v_mine.keys, v_mine.places, v_mine.froms);
    end if;
    if v_mine.n = cardinality(v_keys) then
      return;
    end if;
  end if;
  -- Not mine to pass on now; or with an old snapshot, in which what was set aside since cannot be seen.
  insert into millrace.turn_doubt (queue_id, order_key, turn_no)
  select e.queue_id, e.order_key, e.no
    from unnest(v_queues, v_keys, v_nos) e(queue_id, order_key, no)
   where e.no <> all (v_passed);
end $$;

-- Gives the turns of some keys, whose rows the caller has locked, to the first that was set aside; to nobody where there is none. Ones that have expired
-- meanwhile are let in, too, to end in the log as all do, and do not count.
create or replace function millrace.turns_next(p_now timestamptz, p_queues int[], p_keys text[], p_places tid[], p_froms bigint[])
returns void
language plpgsql
as $$
declare
  c_rounds constant int := 1000;
  v_at     int[] := array(select g from generate_subscripts(p_keys, 1) g);      -- keys that are still to be looked at
  v_next   bigint[] := array_fill(0::bigint, array[cardinality(p_keys)]);
  v_doubt  int[];
  v_first  record;
  v_in     bigint[];
  v_all    boolean;
begin
  for v_round in 1 .. c_rounds loop
    select array_agg(a.at) as at, array_agg(d.job_id) as ids, array_agg(d.place) as places, array_agg(d.aside_pos) as poss, array_agg(d.stale) as stale
      into v_first
      from unnest(v_at) a(at)
     cross join lateral (select d.job_id, d.ctid as place, d.aside_pos, (d.stale_at <= p_now) is true as stale
                           from millrace.delayed d
                          where d.slot = 56
                            and d.lane >> 12 = p_queues[a.at]
                            and d.order_key = p_keys[a.at]
                            and d.why = 'o'
                            and d.aside_pos > p_froms[a.at]
                          order by d.aside_pos
                          limit 1) d;
    v_at := '{}';
    exit when v_first.ids is null;
    v_in := coalesce(millrace.aside_let_in(p_now, v_first.places, null), '{}');
    v_all := cardinality(v_in) = cardinality(v_first.ids);
    for i in 1 .. cardinality(v_first.ids) loop
      if not (v_all or v_first.ids[i] = any (v_in)) then
        v_doubt := v_doubt || v_first.at[i];
        continue;
      end if;
      p_froms[v_first.at[i]] := v_first.poss[i];
      if v_first.stale[i] then
        v_at := v_at || v_first.at[i];
      else
        v_next[v_first.at[i]] := v_first.ids[i];
      end if;
    end loop;
    exit when v_at = '{}';
  end loop;
  with gone as (
    delete from millrace.turn t
     where t.ctid = any (p_places))
  insert into millrace.turn (queue_id, order_key, no, job_id, from_pos, given_at)
  select e.queue_id, e.order_key, nextval('millrace.turn_seq'), e.job_id, e.from_pos, p_now
    from unnest(p_queues, p_keys, v_next, p_froms) e(queue_id, order_key, job_id, from_pos);
  insert into millrace.turn_doubt (queue_id, order_key, turn_no)
  select p_queues[o.at], p_keys[o.at], 0
    from unnest(v_doubt || v_at) o(at);
  if v_in is not null then
    perform millrace.wake(w.queue_id, p_now)
       from (select distinct unnest(p_queues) as queue_id) w;
  end if;
end $$;

-- Settles doubts, at most p_limit: a key that is nobody's, or whose turn is over, and for which jobs are set aside, is given to the first of them. A key that
-- somebody is at is left for the next round. Returns how many were settled.
create or replace function millrace.turns_settle(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_doubt record;
  v_turn  record;
  v_n     bigint := 0;
begin
  for v_doubt in
    select t.ctid as place, t.queue_id, t.order_key, t.turn_no
      from millrace.turn_doubt t
     limit p_limit
       for update skip locked
  loop
    continue when not millrace.turn_lock(v_doubt.queue_id, millrace.part_of(v_doubt.order_key, 0, 1));
    select t.*, t.ctid as place
      into v_turn
      from millrace.turn t
     where t.queue_id = v_doubt.queue_id
       and t.order_key = v_doubt.order_key
     order by t.no desc
     limit 1;
    if found then
      perform
         from millrace.turn t
        where t.ctid = v_turn.place
          for update skip locked;
      continue when not found;
      if v_turn.job_id = 0 or v_turn.no = v_doubt.turn_no then
        perform millrace.turns_next(p_now, array[v_turn.queue_id], array[v_turn.order_key], array[v_turn.place], array[v_turn.from_pos]);
      end if;
    end if;
    delete from millrace.turn_doubt t where t.ctid = v_doubt.place;
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;
