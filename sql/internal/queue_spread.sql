-- SPDX-License-Identifier: PostgreSQL
-- How long the jobs of a queue waited and ran: percentiles in seconds, over its newest finished claims, at most p_claims. A claim knows the sums
-- over its jobs only, so each job counts with the average of its claim.
create or replace function millrace.queue_spread(p_queue millrace.queue, p_claims int)
returns jsonb
language plpgsql
as $$
declare
  v_lanes int[] := millrace.lanes_of(p_queue, 0);
  v_each  int := greatest(10, p_claims / greatest(cardinality(v_lanes), 1));
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_jobs  int[];
  v_wait  double precision[];
  v_run   double precision[];
begin
  -- The open leaf; the one before, too, shortly after a rotation.
  select array_agg(k.n), array_agg(k.wait_us / 1e6 / k.n), array_agg(k.run_us / 1e6 / k.n)
    into v_jobs, v_wait, v_run
    from (select k.n, k.wait_us, k.run_us
            from unnest(v_lanes) l
           cross join lateral (select k.n, k.wait_us, k.run_us, k.finished_at, k.status
                                 from (select s from unnest(array[v_open, v_open - 1]) s where s >= 0) g
                                cross join lateral (select k.n, k.wait_us, k.run_us, k.finished_at, k.status
                                                      from millrace.claim k
                                                     where k.slot = g.s % 16
                                                       and k.lane = l
                                                     order by k.no desc
                                                     limit v_each) k
                                limit v_each) k
           where k.status in ('d', 'l')
             and k.n > 0
             and k.run_us > 0
           order by k.finished_at desc
           limit p_claims) k;
  if v_jobs is null then
    return '{}';
  end if;
  return jsonb_build_object('wait', millrace.percentiles(v_wait, v_jobs), 'run', millrace.percentiles(v_run, v_jobs));
end $$;

-- Percentiles of values that count several times each.
create or replace function millrace.percentiles(p_values double precision[], p_weights int[])
returns jsonb
language sql
immutable
as $$
  select jsonb_build_object('p50', min(s.value) filter (where s.upto >= 0.50 * s.weight), 'p95', min(s.value) filter (where s.upto >= 0.95 * s.weight),
                            'p99', min(s.value) filter (where s.upto >= 0.99 * s.weight))
    from (select u.value, sum(u.weight) over (order by u.value rows unbounded preceding) as upto, sum(u.weight) over () as weight
            from unnest(p_values, p_weights) u(value, weight)) s
$$;
