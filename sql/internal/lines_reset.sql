-- SPDX-License-Identifier: PostgreSQL
-- A limit that is gone holds nobody back: all that was set aside for it comes back, in the order of its lines. One that has another value counts from the next
-- claim on; what the list knows of times is forgotten. Claims keep away from the queue until this is committed. p_before: the queue as it was.
create or replace function millrace.lines_reset(p_now timestamptz, p_before millrace.queue)
returns void
language plpgsql
as $$
declare
  v_queue  millrace.queue;
  v_list   record;
  v_gone   "char"[];
  v_places tid[];
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_before.queue_id;
  if (v_queue.key_limit, v_queue.tenant_rate) is not distinct from (p_before.key_limit, p_before.tenant_rate)
     or (p_before.key_limit is null and p_before.tenant_rate is null) then
    return;
  end if;
  perform millrace.check_isolation('set_queue with another limit for each key or tenant');
  perform pg_advisory_xact_lock(1297219596, v_queue.queue_id);
  v_list := millrace.lines_of(v_queue.queue_id);
  if v_list.place is null then
    return;
  end if;
  v_gone := array_remove(array[case when v_queue.key_limit is null then 'k' end, case when v_queue.tenant_rate is null then 't' end]::"char"[], null);
  perform millrace.lines_write(p_now, v_queue.queue_id,
                               (select array_agg(row(l.lane, l.why, l.line_name, l.from_pos, null)::millrace.line)
                                  from unnest(v_list.lines) l
                                 where l.why <> all (v_gone)), v_list.place);
  select array_agg(a.place)
    into v_places
    from (select d.ctid as place
            from millrace.delayed d
           where d.slot = 56
             and d.lane >= v_queue.queue_id << 12
             and d.lane < (v_queue.queue_id + 1) << 12
             and d.why in ('k', 't')
             and d.why = any (v_gone)
             for update) a;
  if v_places is not null then
    perform millrace.aside_let_in(p_now, v_places, null);
    perform millrace.wake(v_queue.queue_id, p_now);
  end if;
end $$;

-- After a restore: the lists as what is set aside says.
create or replace function millrace.lines_rehome(p_now timestamptz)
returns void
language plpgsql
as $$
begin
  delete from millrace.line_list;
  perform millrace.lines_write(p_now, s.queue_id, s.lines, null)
     from (select l.lane >> 12 as queue_id, array_agg(row(l.lane, l.why, l.line_name, 0, null)::millrace.line) as lines
             from (select distinct d.lane, d.why, case d.why when 'k' then d.order_key else d.job_tenant end as line_name
                     from millrace.delayed d
                    where d.why in ('k', 't')) l
            group by 1) s;
end $$;
