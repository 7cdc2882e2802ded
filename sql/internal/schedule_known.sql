-- SPDX-License-Identifier: PostgreSQL
-- The schedule of a name that must be there (MR003), locked: whoever changes it waits for a pass that is at it, and the other way round.
create or replace function millrace.schedule_known(p_name text)
returns millrace.schedule
language plpgsql
as $$
declare
  v_schedule millrace.schedule;
begin
  select s.*
    into v_schedule
    from millrace.schedule s
   where s.schedule_name = p_name
     for update;
  if not found then
    perform millrace.refuse_schedule(p_name);
  end if;
  return v_schedule;
end $$;

-- A schedule that is not there (MR003).
create or replace function millrace.refuse_schedule(p_name text)
returns void
language plpgsql
as $$
begin
  perform millrace.refuse_unknown(format('schedule %s does not exist', coalesce(quote_literal(left(p_name, 200)), 'null')),
    'See the view millrace.schedules for those there are; schedule() makes a new one.');
end $$;

-- The first occurrence of an expression after a time. Refuses a zone that does not exist, and an expression that never fires (22023).
create or replace function millrace.schedule_next(p_cron text, p_after timestamptz, p_zone text)
returns timestamptz
language plpgsql
stable
as $$
declare
  v_spec millrace.cron_spec := millrace.cron_parse(p_cron);
  v_next timestamptz;
begin
  if not millrace.zone_known(p_zone) then
    perform millrace.refuse(format('time zone %s does not exist', coalesce(quote_literal(left(p_zone, 200)), 'null')),
      'Give the name of a place, such as ''Europe/Berlin'', or ''UTC''; pg_timezone_names lists them.');
  end if;
  v_next := millrace.cron_after(v_spec, p_after, p_zone);
  if v_next is null then
    perform millrace.refuse(format('cron %s never fires', quote_literal(p_cron)), 'No month it names has such a day.');
  end if;
  return v_next;
end $$;

-- Whether a zone is there. The server itself takes abbreviations and offsets, too; those do not know when clocks change, or have their sign the
-- wrong way round. Not by the view of all names: that reads a thousand files.
create or replace function millrace.zone_known(p_zone text)
returns boolean
language plpgsql
stable
as $$
begin
  if upper(p_zone) in ('UTC', 'GMT') then
    return true;
  elsif p_zone is null or p_zone !~ '^[A-Za-z_]+(/[A-Za-z0-9_+-]+)*$'
        or p_zone !~ '/' and exists (select from pg_timezone_abbrevs a where a.abbrev = upper(p_zone)) then
    return false;
  end if;
  perform now() at time zone p_zone;
  return true;
exception
  when invalid_parameter_value then
    return false;
end $$;
