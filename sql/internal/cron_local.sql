-- SPDX-License-Identifier: PostgreSQL
-- The first time on the wall, at p_from or later, at which an expression fires. Null: not within 41 years, hence never: a certain weekday on
-- 29 February is the rarest there is and comes back after 40 years at most.
create or replace function millrace.cron_local(p_spec millrace.cron_spec, p_from timestamp)
returns timestamp
language plpgsql
immutable
as $$
declare
  v_month date := date_trunc('month', p_from)::date;
  v_today int := date_part('day', p_from);
  v_day   int;
  v_time  time;
begin
  for i in 0..492 loop
    if date_part('month', v_month)::int = any (p_spec.months) then
      foreach v_day in array millrace.cron_month(p_spec, v_month) loop
        if i > 0 or v_day > v_today then
          return v_month + (v_day - 1) + make_time(p_spec.hours[1], p_spec.minutes[1], p_spec.seconds[1]);
        elsif v_day = v_today then
          v_time := millrace.cron_time(p_spec, p_from::time);
          if v_time is not null then
            return v_month + (v_day - 1) + v_time;
          end if;
        end if;
      end loop;
    end if;
    v_month := (v_month + interval '1 month')::date;
  end loop;
  return null;
end $$;

-- The first time of a day, at p_from or later, at which an expression fires; null if none is left.
create or replace function millrace.cron_time(p_spec millrace.cron_spec, p_from time)
returns time
language plpgsql
immutable
as $$
declare
  v_hour   int := date_part('hour', p_from);
  v_minute int := date_part('minute', p_from);
  v_left   int;
begin
  if v_hour = any (p_spec.hours) then
    if v_minute = any (p_spec.minutes) then
      v_left := (select min(s) from unnest(p_spec.seconds) s where s >= date_part('second', p_from));
      if v_left is not null then
        return make_time(v_hour, v_minute, v_left);
      end if;
    end if;
    v_left := (select min(m) from unnest(p_spec.minutes) m where m > v_minute);
    if v_left is not null then
      return make_time(v_hour, v_left, p_spec.seconds[1]);
    end if;
  end if;
  v_left := (select min(h) from unnest(p_spec.hours) h where h > v_hour);
  return case when v_left is not null then make_time(v_left, p_spec.minutes[1], p_spec.seconds[1]) end;
end $$;
