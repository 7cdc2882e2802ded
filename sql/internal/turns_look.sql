-- SPDX-License-Identifier: PostgreSQL
-- The job whose turn it is, where that is not this one's: the one that a job with an ordering key waits for. Null: none, as far as claims have seen.
create or replace function millrace.turn_before(p_id bigint)
returns bigint
language plpgsql
as $$
declare
  v_lane int;
  v_key  text;
begin
  select j.lane, j.order_key
    into v_lane, v_key
    from (select j.lane, j.order_key, j.pos from millrace.job_rows(p_id) j
           union all
          select d.lane, d.order_key, null from millrace.delayed d where d.job_id = p_id) j
   order by j.pos desc nulls first
   limit 1;
  return (select nullif(nullif(t.job_id, p_id), 0)
            from millrace.turn t
           where t.queue_id = v_lane >> 12
             and t.order_key = v_key
           order by t.no desc
           limit 1);
end $$;

-- The jobs of a queue that are set aside, exactly; they count as available. Costs as much as there are.
create or replace function millrace.queue_aside(p_queue millrace.queue)
returns bigint
language plpgsql
as $$
begin
  if p_queue.ordered then
    return (select count(*)
              from millrace.delayed d
             where d.slot = 56
               and d.lane >> 12 = p_queue.queue_id
               and d.why = 'o');
  elsif p_queue.key_limit is not null or p_queue.tenant_rate is not null then
    return (select count(*)
              from millrace.delayed d
             where d.slot = 56
               and d.lane >= p_queue.queue_id << 12
               and d.lane < (p_queue.queue_id + 1) << 12
               and d.why in ('k', 't'));
  end if;
  return 0;
end $$;

-- The same for those who ask often: exact up to ten thousand, and above that the figure of the last ten seconds, if upkeep took one.
create or replace function millrace.queue_aside_about(p_queue millrace.queue)
returns bigint
language plpgsql
as $$
declare
  c_exact constant int := 10000;
  v_n bigint;
begin
  if not (p_queue.ordered or p_queue.key_limit is not null or p_queue.tenant_rate is not null) then
    return 0;
  end if;
  select count(*)
    into v_n
    from (select
            from millrace.delayed d
           where d.slot = 56
             and d.lane >= p_queue.queue_id << 12
             and d.lane < (p_queue.queue_id + 1) << 12
             and d.why in ('o', 'k', 't')
           limit c_exact + 1) d;
  if v_n > c_exact then
    return greatest(v_n, (select p.aside from millrace.pulse p where p.queue_id = p_queue.queue_id order by p.taken_at desc limit 1));
  end if;
  return v_n;
end $$;
