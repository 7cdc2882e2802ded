-- SPDX-License-Identifier: PostgreSQL
-- The running totals of a queue: the sum of its lanes' ledgers.
create or replace function millrace.queue_totals(p_queue millrace.queue, out done_total bigint, out failed_total bigint,
                                                 out wait_total bigint, out run_total bigint)
language plpgsql
as $$
begin
  select coalesce(sum(t.done_total), 0), coalesce(sum(t.failed_total), 0), coalesce(sum(t.wait_total), 0), coalesce(sum(t.run_total), 0)
    into done_total, failed_total, wait_total, run_total
    from unnest(millrace.lanes_of(p_queue, 0)) l
   cross join lateral millrace.lane_tally(l) t;
end $$;
