-- SPDX-License-Identifier: PostgreSQL
-- The running totals of a queue: the sum of its lanes' ledgers.
create or replace function millrace.queue_totals(p_queue millrace.queue, out done_total bigint, out failed_total bigint,
                                                 out wait_total bigint, out run_total bigint, out fresh_total bigint, out retried_total bigint,
                                                 out dead_total bigint, out rescued_total bigint, out cancelled_total bigint,
                                                 out wait_spread bigint[], out run_spread bigint[])
language plpgsql
as $$
declare
  v_tallies millrace.tally[];
  v_one     millrace.tally;
begin
  select coalesce(sum(t.done_total), 0), coalesce(sum(t.failed_total), 0), coalesce(sum(t.wait_total), 0), coalesce(sum(t.run_total), 0),
         coalesce(sum(t.fresh_total), 0), coalesce(sum(t.retried_total), 0), coalesce(sum(t.dead_total), 0), coalesce(sum(t.rescued_total), 0),
         coalesce(sum(t.cancelled_total), 0), array_agg(t)
    into done_total, failed_total, wait_total, run_total, fresh_total, retried_total, dead_total, rescued_total, cancelled_total, v_tallies
    from unnest(millrace.lanes_of(p_queue, 0)) l
   cross join lateral millrace.lane_tally(l) t;
  wait_spread := '{}';
  run_spread := '{}';
  foreach v_one in array coalesce(v_tallies, '{}') loop
    wait_spread := millrace.spread_sum(wait_spread, v_one.wait_spread);
    run_spread := millrace.spread_sum(run_spread, v_one.run_spread);
  end loop;
end $$;
