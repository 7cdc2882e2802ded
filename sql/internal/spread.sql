-- SPDX-License-Identifier: PostgreSQL
-- Spreads: how many jobs waited, or ran, for how long. A spread is an array of counts, one for each range between two bounds; a count that is null is 0,
-- and takes no room. Spreads can be added and taken from each other, which percentiles cannot: so those of all queues together and of any stretch of
-- time come from what the ledger and the pulse have anyway.

-- The bounds, in microseconds: from 100 on, each about 1.41 times the one before, up to 42 hours. What is shorter than the first is in the first range,
-- what is longer than the last in the last one.
create or replace function millrace.spread_bounds()
returns bigint[]
language sql
immutable
as $$
  select array_agg(round(100 * 2 ^ (g / 2.0))::bigint order by g) from generate_series(0, 61) g
$$;

-- A spread with p_jobs[i] jobs more that took p_us[i] each. A loop: mostly there are a few of them, and a statement costs more than a dozen turns.
create or replace function millrace.spread_with(p_spread bigint[], p_us bigint[], p_jobs int[])
returns bigint[]
language plpgsql
immutable
as $$
declare
  c_bounds constant bigint[] := millrace.spread_bounds();
  v_sum    bigint[] := coalesce(nullif(p_spread, '{}'), '{null}');      -- the first one has to be there, so that the others are counted from 1 on
  v_at     int;
begin
  for i in 1 .. coalesce(cardinality(p_us), 0) loop
    v_at := width_bucket(p_us[i], c_bounds) + 1;
    v_sum[v_at] := coalesce(v_sum[v_at], 0) + p_jobs[i];
  end loop;
  return v_sum;
end $$;

-- The sum of two spreads.
create or replace function millrace.spread_sum(p_a bigint[], p_b bigint[])
returns bigint[]
language plpgsql
immutable
as $$
begin
  if coalesce(p_b, '{}') = '{}' then
    return coalesce(p_a, '{}');
  elsif coalesce(p_a, '{}') = '{}' then
    return p_b;
  end if;
  for i in 1 .. cardinality(p_b) loop
    if p_b[i] is not null then
      p_a[i] := coalesce(p_a[i], 0) + p_b[i];
    end if;
  end loop;
  return p_a;
end $$;

-- What a spread has more than an earlier one; null where it has less somewhere: then counts began anew, as the sum of all queues does when one is dropped.
create or replace function millrace.spread_rise(p_now bigint[], p_before bigint[])
returns bigint[]
language plpgsql
immutable
as $$
begin
  for i in 1 .. coalesce(cardinality(p_before), 0) loop
    if p_before[i] is not null then
      if coalesce(p_now[i], 0) < p_before[i] then
        return null;
      end if;
      p_now[i] := nullif(p_now[i] - p_before[i], 0);
    end if;
  end loop;
  return p_now;
end $$;

-- The percentiles of a spread in seconds; null where it has no jobs. Inside a range jobs are taken to lie evenly on a scale of powers, so that a percentile
-- is at most a fifth off, and mostly much less.
create or replace function millrace.spread_percentiles(p_spread bigint[])
returns jsonb
language plpgsql
immutable
as $$
declare
  c_bounds constant bigint[] := millrace.spread_bounds();
  c_names  constant text[] := array['p50', 'p95', 'p99'];
  c_shares constant double precision[] := array[0.50, 0.95, 0.99];
  v_jobs   double precision := 0;
  v_upto   double precision := 0;
  v_nth    int := 1;
  v_all    jsonb := '{}';
begin
  for i in 1 .. coalesce(cardinality(p_spread), 0) loop
    v_jobs := v_jobs + coalesce(p_spread[i], 0);
  end loop;
  if v_jobs = 0 then
    return null;
  end if;
  for i in 1 .. cardinality(p_spread) loop
    continue when p_spread[i] is null or p_spread[i] = 0;
    while v_nth <= 3 and v_upto + p_spread[i] >= c_shares[v_nth] * v_jobs loop
      v_all := v_all || jsonb_build_object(c_names[v_nth], millrace.spread_value(c_bounds, i, (c_shares[v_nth] * v_jobs - v_upto) / p_spread[i]));
      v_nth := v_nth + 1;
    end loop;
    v_upto := v_upto + p_spread[i];
  end loop;
  return v_all;
end $$;

-- The value, in seconds, that lies at a share of the way through range p_at.
create or replace function millrace.spread_value(p_bounds bigint[], p_at int, p_share double precision)
returns numeric
language sql
immutable
as $$
  select round((case
                  when p_at = 1 then p_bounds[1] * p_share
                  when p_at > cardinality(p_bounds) then p_bounds[cardinality(p_bounds)]
                  else p_bounds[p_at - 1] * (p_bounds[p_at]::double precision / p_bounds[p_at - 1]) ^ p_share
                end / 1e6)::numeric, 6)
$$;
