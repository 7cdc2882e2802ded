-- SPDX-License-Identifier: PostgreSQL
-- Removes dead letters beyond their queue's age, number and bytes, oldest first, at most p_limit of a queue.
create or replace function millrace.dead_retain(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_queue  millrace.queue;
  v_border timestamptz;
  v_n      bigint := 0;
  v_k      bigint;
  v_away   bigint[];
begin
  for v_queue in
    select q.*
      from millrace.queue q
     where exists (select from millrace.dead d where d.queue_id = q.queue_id)
  loop
    -- The newest dead letter that goes: by age, or the first that number or bytes leave no room for.
    select max(d.died_at)
      into v_border
      from (select d.died_at, row_number() over w as number, sum(d.bytes) over w as bytes
              from millrace.dead d
             where d.queue_id = v_queue.queue_id
            window w as (order by d.died_at desc, d.job_id desc)) d
     where d.died_at < p_now - v_queue.dead_time
        or d.number > v_queue.dead_limit
        or d.bytes > v_queue.dead_bytes;
    continue when v_border is null;
    with gone as (
      delete from millrace.dead d
       where d.queue_id = v_queue.queue_id
         and (d.died_at, d.job_id) in (select o.died_at, o.job_id
                                         from (select d.died_at, d.job_id, row_number() over w as number, sum(d.bytes) over w as bytes
                                                 from millrace.dead d
                                                where d.queue_id = v_queue.queue_id
                                               window w as (order by d.died_at desc, d.job_id desc)) o
                                        where o.died_at < p_now - v_queue.dead_time
                                           or o.number > v_queue.dead_limit
                                           or o.bytes > v_queue.dead_bytes
                                        order by o.died_at
                                        limit p_limit)
      returning d.job_id, millrace.is_away(d.payload_state) or millrace.is_away(d.payload_blob) as away)
    select count(*), array_agg(g.job_id) filter (where g.away)
      into v_k, v_away
      from gone g;
    perform millrace.objects_doom_all(p_now, v_away);
    v_n := v_n + v_k;
  end loop;
  return v_n;
end $$;
