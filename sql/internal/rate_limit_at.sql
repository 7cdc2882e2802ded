-- SPDX-License-Identifier: PostgreSQL
-- rate_limit with the time as an argument; null: now, once it is the caller's turn. Each call that is allowed appends a row with the key's running total: what was spent in a period
-- is the difference of two rows, found by two probes of an index, and nothing is ever updated.
create or replace function millrace.rate_limit_at(p_now timestamptz, p_key text, p_max_events int, p_per interval, p_cost int)
returns millrace.rate_answer
language plpgsql
as $$
declare
  v_id uuid;
begin
  perform millrace.at_home();
  if p_key is null or p_key = '' or octet_length(p_key) > 16384 then
    perform millrace.check_key('key', p_key);
  end if;
  if p_max_events is null or p_max_events < 0 then
    perform millrace.check_number('max_events', p_max_events, 0, 2147483647);
  elsif p_cost is null or p_cost < 0 then
    perform millrace.check_number('cost', p_cost, 0, 2147483647);
  elsif p_per is null or p_per <= interval '0' or p_per > interval '31 days' then
    perform millrace.refuse(format('per must be longer than zero and at most 31 days, not %s', coalesce(p_per::text, 'null')), 'Pass a period such as ''1 minute''.');
  elsif current_setting('transaction_isolation') <> 'read committed' then
    perform millrace.check_isolation('rate_limit');
  end if;
  v_id := millrace.cache_key(p_key);
  perform pg_advisory_xact_lock(1297219611, hashtext(p_key));
  p_now := coalesce(p_now, clock_timestamp());
  case millrace.spent_class(p_per)
    when 'hour' then return millrace.spend_hour(p_now, v_id, p_max_events, p_per, p_cost);
    when 'day' then return millrace.spend_day(p_now, v_id, p_max_events, p_per, p_cost);
    when 'month' then return millrace.spend_month(p_now, v_id, p_max_events, p_per, p_cost);
  end case;
end $$;

-- Where spendings of a period are kept: for so long at least.
create or replace function millrace.spent_class(p_per interval)
returns text
language sql
immutable
as $$
  select case when p_per <= interval '1 hour' then 'hour' when p_per <= interval '1 day' then 'day' else 'month' end
$$;

-- The leaf of a time, of three that take turns. A leaf covers the longest period of its class.
create or replace function millrace.spent_slot(p_class text, p_at timestamptz)
returns int
language sql
immutable
as $$
  select (date_part('epoch', p_at)::bigint / case p_class when 'hour' then 3600 when 'day' then 86400 else 2678400 end % 3)::int
$$;

-- One function for each class, so that a call has to do with the leaves of one. A spending that lies more than a period ahead was made before the clock was put back; it is
-- forgotten, or its key would stand until then. To tell when a call that was refused fits, no more than a thousand rows are looked at; beyond them it is the end of the window.
do $do$
declare
  v_class text;
begin
  foreach v_class in array array['hour', 'day', 'month'] loop
    execute format($f$
create or replace function millrace.spend_%1$s(p_now timestamptz, p_key_id uuid, p_max_events int, p_per interval, p_cost int)
returns millrace.rate_answer
language plpgsql
as $$
declare
  v_at      timestamptz := p_now;
  v_last    timestamptz;
  v_total   bigint;
  v_first   timestamptz;
  v_base    bigint;
  v_used    bigint;
  v_allowed boolean;
  v_resets  timestamptz;
begin
  for i in 1..2 loop
    select n.spent_at, n.spent_total, f.spent_at, f.spent_total - f.spent_n
      into v_last, v_total, v_first, v_base
      from (select s.spent_at, s.spent_total
              from millrace.spent_%1$s s
             where s.key_id = p_key_id
             order by s.spent_at desc, s.spent_total desc
             limit 1) n
      left join lateral (select s.spent_at, s.spent_total, s.spent_n
                           from millrace.spent_%1$s s
                          where s.key_id = p_key_id
                            and s.spent_at > greatest(p_now, n.spent_at) - p_per
                          order by s.spent_at, s.spent_total
                          limit 1) f on true;
    exit when (v_last > p_now + p_per) is not true;
    delete from millrace.spent_%1$s s
     where s.key_id = p_key_id
       and s.spent_at > p_now;
  end loop;
  v_at := greatest(p_now, v_last);
  v_used := coalesce(v_total - v_base, 0);
  v_allowed := case when p_cost = 0 then v_used < p_max_events else v_used + p_cost <= p_max_events end;
  if v_allowed and p_cost > 0 then
    insert into millrace.spent_%1$s (slot, key_id, spent_at, spent_total, spent_n)
    values (millrace.spent_slot('%1$s', v_at), p_key_id, v_at, coalesce(v_total, 0) + p_cost, p_cost);
    v_used := v_used + p_cost;
  end if;
  if v_allowed then
    v_resets := coalesce(v_first, v_at) + p_per;
  elsif greatest(p_cost, 1) <= p_max_events then
    select coalesce(min(x.spent_at) filter (where x.spent_total - v_base >= v_used + greatest(p_cost, 1) - p_max_events), v_last) + p_per
      into v_resets
      from (select s.spent_at, s.spent_total
              from millrace.spent_%1$s s
             where s.key_id = p_key_id
               and s.spent_at >= v_first
             order by s.spent_at, s.spent_total
             limit 1000) x;
  end if;
  return row(v_allowed, greatest(p_max_events - v_used, 0), v_resets)::millrace.rate_answer;
end $$
$f$, v_class);
  end loop;
end $do$;
