-- SPDX-License-Identifier: PostgreSQL
-- Figures of the toolbox for the metrics, which are asked for every few seconds for ever: whatever is in the tables, a look costs a bounded number of pages.
create or replace function millrace.toolbox_figures(p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
  c_pages  constant int := 32;
  c_most   constant int := 1000;
  v_sample record := millrace.cache_sample(p_now, c_pages);
begin
  return jsonb_build_object(
    'cache_keys', jsonb_build_object('valid', v_sample.valid, 'expired', v_sample.total - v_sample.valid),
    'limiter_keys', millrace.limiter_keys(c_most),
    'locks_held', millrace.locks_held(p_now, c_most),
    'lock_leases_total', coalesce(pg_sequence_last_value('millrace.fence_seq'::regclass), 0),
    'toolbox_bytes', (select jsonb_object_agg(b.part, b.bytes)
                        from (select l.part, sum(pg_total_relation_size(format('millrace.%s', l.name)::regclass))::bigint as bytes
                                from (select format('%s_%s', t.name, i) as name, t.part
                                        from (values ('cache', 'cache', 1), ('limiter', 'spent_hour', 2), ('limiter', 'spent_day', 2), ('limiter', 'spent_month', 2),
                                                     ('locks', 'lock_held', 2)) t(part, name, last)
                                       cross join lateral generate_series(0, t.last) i) l
                               group by l.part) b));
end $$;

-- How many keys the rate limiter has rows of, at most so many for each length of period, and in all: from key to key, down the index, past however many rows each has.
create or replace function millrace.limiter_keys(p_most int)
returns bigint
language plpgsql
as $$
declare
  v_class text;
  v_n     bigint;
  v_all   bigint := 0;
begin
  foreach v_class in array array['hour', 'day', 'month'] loop
    execute format('with recursive k(id) as (
                      (select s.key_id from millrace.spent_%1$s s order by s.key_id limit 1)
                      union all
                      select (select s.key_id from millrace.spent_%1$s s where s.key_id > k.id order by s.key_id limit 1) from k where k.id is not null)
                    select count(l.id) from (select k.id from k limit $1) l', v_class)
       into v_n
      using p_most;
    v_all := v_all + v_n;
  end loop;
  return least(v_all, p_most);
end $$;

-- How many of the first so many names of locks are held.
create or replace function millrace.locks_held(p_now timestamptz, p_most int)
returns bigint
language sql
stable
as $$
  with recursive k(id) as (
    (select h.lock_id from millrace.lock_held h order by h.lock_id limit 1)
    union all
    select (select h.lock_id from millrace.lock_held h where h.lock_id > k.id order by h.lock_id limit 1) from k where k.id is not null)
  select count(*)
    from (select k.id from k limit p_most) l
   cross join lateral (select h.held_until from millrace.lock_held h where h.lock_id = l.id order by h.lock_no desc limit 1) n
   where n.held_until > p_now
$$;
