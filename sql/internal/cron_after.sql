-- SPDX-License-Identifier: PostgreSQL
-- The first occurrence of an expression after a time, in a time zone; null: never.
--
-- Where the clocks of the zone change:
--   1. An expression that names every hour goes by the time that passes: nothing for the hour that is left out, and the hour that comes
--      twice counts twice.
--   2. Any other goes by the clock on the wall, once for each time it shows: what falls into the hour that is left out fires at the moment
--      of the change, once; what falls into the hour that comes twice fires in the first one.
create or replace function millrace.cron_after(p_spec millrace.cron_spec, p_after timestamptz, p_zone text)
returns timestamptz
language plpgsql
stable
as $$
declare
  v_every  boolean := cardinality(p_spec.hours) = 24;
  v_at     timestamptz := date_trunc('second', p_after) + interval '1 second';
  v_shift  interval;      -- of the zone, at v_at
  v_later  interval;      -- a day later
  v_change timestamptz;
  v_local  timestamp;
  v_next   timestamp;
begin
  loop
    v_shift := millrace.zone_shift(v_at, p_zone);
    if not v_every then
      v_later := millrace.zone_shift(v_at - interval '1 day', p_zone);
      if v_later > v_shift and millrace.zone_shift(v_at - (v_later - v_shift), p_zone) = v_later then
        -- The wall has shown this time before.
        v_at := millrace.zone_change(v_at - interval '1 day', v_at, p_zone) + (v_later - v_shift);
      end if;
    end if;
    v_local := v_at at time zone p_zone;
    v_next := millrace.cron_local(p_spec, v_local);
    if v_next is null then
      return null;
    end if;
    v_later := millrace.zone_shift(v_at + interval '1 day', p_zone);
    if v_later <> v_shift then
      v_change := millrace.zone_change(v_at, v_at + interval '1 day', p_zone);
      if v_at + (v_next - v_local) < v_change then
        return v_at + (v_next - v_local);
      elsif not v_every and v_later > v_shift and v_next < v_change at time zone p_zone then
        return v_change;
      end if;
      v_at := v_change;
    elsif v_next - v_local <= interval '1 day' then
      return v_at + (v_next - v_local);
    else
      -- Nothing fires before, whatever the clocks do on the way.
      v_at := greatest(v_at + interval '1 day', (v_next - interval '36 hours') at time zone p_zone);
    end if;
  end loop;
end $$;

-- The newest occurrence after p_after and not after p_until; null: none. By halving, so that a long time with many costs little.
create or replace function millrace.cron_newest(p_spec millrace.cron_spec, p_after timestamptz, p_until timestamptz, p_zone text)
returns timestamptz
language plpgsql
stable
as $$
declare
  v_low  timestamptz := p_after;      -- something fires after it and not after p_until
  v_high timestamptz := p_until;      -- nothing does
  v_mid  timestamptz;
begin
  if (millrace.cron_after(p_spec, p_after, p_zone) <= p_until) is not true then
    return null;
  end if;
  while v_high - v_low > interval '1 second' loop
    v_mid := v_low + (v_high - v_low) / 2;
    if millrace.cron_after(p_spec, v_mid, p_zone) <= p_until then
      v_low := v_mid;
    else
      v_high := v_mid;
    end if;
  end loop;
  return millrace.cron_after(p_spec, v_low, p_zone);
end $$;

-- How far a zone's clocks are ahead of UTC at a time.
create or replace function millrace.zone_shift(p_at timestamptz, p_zone text)
returns interval
language sql
stable
as $$
  select (p_at at time zone p_zone) - (p_at at time zone 'UTC')
$$;

-- The moment, to the second, at which the clocks of a zone change between two times, of which the first is before and the second after it.
create or replace function millrace.zone_change(p_before timestamptz, p_after timestamptz, p_zone text)
returns timestamptz
language plpgsql
stable
as $$
declare
  v_shift interval := millrace.zone_shift(p_before, p_zone);
  v_low   timestamptz := p_before;
  v_high  timestamptz := p_after;
  v_mid   timestamptz;
begin
  while v_high - v_low > interval '1 second' loop
    v_mid := date_trunc('second', v_low + (v_high - v_low) / 2);
    if millrace.zone_shift(v_mid, p_zone) = v_shift then
      v_low := v_mid;
    else
      v_high := v_mid;
    end if;
  end loop;
  return v_high;
end $$;
