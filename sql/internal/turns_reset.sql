-- SPDX-License-Identifier: PostgreSQL
-- Begins anew with the turns of a queue that has become ordered, or is so no longer: then all that was set aside comes back, in the order of its
-- keys' lines. Claims keep away from the queue until this is committed. Nothing where the setting is as it was.
create or replace function millrace.turns_reset(p_now timestamptz, p_queue_id int, p_before boolean)
returns void
language plpgsql
as $$
declare
  v_places tid[];
begin
  if millrace.queue_ordered(p_queue_id) = p_before then
    return;
  end if;
  perform millrace.check_isolation('set_queue with another value of ordered');
  perform pg_advisory_xact_lock(1297219599, (p_queue_id << 5) + g) from generate_series(0, 31) g;
  delete from millrace.turn_doubt t where t.queue_id = p_queue_id;
  delete from millrace.turn t where t.queue_id = p_queue_id;
  select array_agg(a.place)
    into v_places
    from (select d.ctid as place
            from millrace.delayed d
           where d.slot = 56
             and d.lane >> 12 = p_queue_id
             and d.why = 'o'
             for update) a;
  if v_places is not null then
    perform millrace.aside_let_in(p_now, v_places, null);
    perform millrace.wake(p_queue_id, p_now);
  end if;
end $$;

-- Forgets keys that have been nobody's for a while and have nothing set aside; whoever comes next begins anew. The locks of their parts first, then
-- the look: so nothing can have been set aside unseen.
create or replace function millrace.turns_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_some  constant int := 50000;
  v_old   record;
  v_parts int[];
  v_n     bigint;
begin
  select array_agg(t.queue_id) as queues, array_agg(t.order_key) as keys, array_agg(t.place) as places
    into v_old
    from (select t.queue_id, t.order_key, t.ctid as place
            from millrace.turn t
           where t.job_id = 0
             and t.given_at < p_now - interval '1 minute'
           order by t.given_at
           limit c_some) t;
  if v_old.keys is null then
    return 0;
  end if;
  v_parts := array(select (p.queue_id << 5) + p.part
                     from (select distinct e.queue_id, millrace.part_of(e.order_key, 0, 1) as part
                             from unnest(v_old.queues, v_old.keys) e(queue_id, order_key)
                           offset 0) p
                    where millrace.turn_lock(p.queue_id, p.part));
  delete from millrace.turn t
   where t.ctid = any (v_old.places)
     and t.job_id = 0
     and (t.queue_id << 5) + millrace.part_of(t.order_key, 0, 1) = any (v_parts)
     and not exists (select
                       from millrace.delayed d
                      where d.slot = 56
                        and d.lane >> 12 = t.queue_id
                        and d.order_key = t.order_key
                        and d.why = 'o'
                        and d.aside_pos > t.from_pos);
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- After a restore: leases are void and their jobs wait again, so turns stay with them; those of jobs that are not there go, and every key
-- for which jobs are set aside is looked at.
create or replace function millrace.turns_rehome()
returns void
language plpgsql
as $$
begin
  perform setval('millrace.turn_seq', greatest((select max(d.aside_pos) from millrace.delayed d), (select max(t.no) from millrace.turn t),
                                               pg_sequence_last_value('millrace.turn_seq'::regclass), 1));
  delete from millrace.turn_doubt;
  delete from millrace.turn t
   where not exists (select from millrace.job j where j.job_id = t.job_id)
     and not exists (select from millrace.delayed d where d.job_id = t.job_id);
  insert into millrace.turn (queue_id, order_key, no, job_id, from_pos, given_at)
  select a.queue_id, a.order_key, nextval('millrace.turn_seq'), 0, 0, now()
    from (select distinct d.lane >> 12 as queue_id, d.order_key
            from millrace.delayed d
           where d.why = 'o') a
   where not exists (select from millrace.turn t where t.queue_id = a.queue_id and t.order_key = a.order_key);
  insert into millrace.turn_doubt (queue_id, order_key, turn_no)
  select t.queue_id, t.order_key, 0
    from millrace.turn t
   where t.job_id = 0;
end $$;
