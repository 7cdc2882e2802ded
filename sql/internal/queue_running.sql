-- SPDX-License-Identifier: PostgreSQL
-- How many jobs of a queue run, for claim_limited: the open jobs of its open claims. The ledger names the older ones, so what is read is the
-- open claims and those of the last moments, however long the log is. Where it has fallen behind it is brought on.
-- p_enough: more than so many, and leases that have ended are taken back at once, not with the next slice of upkeep.
create or replace function millrace.queue_running(p_now timestamptz, p_queue millrace.queue, p_enough int)
returns bigint
language plpgsql
as $$
declare
  c_behind constant int := 100;      -- claims that every claim may look at
  v_run  record := millrace.lanes_running(p_now, millrace.lanes_of(p_queue, 0), c_behind);
  v_lane int;
begin
  if v_run.running > p_enough and v_run.ended and pg_current_xact_id_if_assigned() is null then
    perform millrace.rescue(p_now, 1000);
    v_run := millrace.lanes_running(p_now, millrace.lanes_of(p_queue, 0), c_behind);
  end if;
  if v_run.behind is not null then
    foreach v_lane in array v_run.behind loop
      perform millrace.lane_settle(v_lane);
    end loop;
  end if;
  return v_run.running;
end $$;

-- The open jobs of some lanes; whether a lease among them has ended; and the lanes of which at least p_behind claims are newer than the
-- ledger. An open claim is looked for in the open leaf first: there most of them are.
create or replace function millrace.lanes_running(p_now timestamptz, p_lanes int[], p_behind int, out running bigint, out ended boolean,
                                                  out behind int[])
language plpgsql
as $$
declare
  v_slot int := pg_sequence_last_value('millrace.seg_seq'::regclass) % 16;
begin
  select coalesce(sum(c.running), 0), coalesce(bool_or(c.ended), false), array_agg(l.lane) filter (where c.newer >= p_behind)
    into running, ended, behind
    from unnest(p_lanes) l(lane)
   cross join lateral millrace.lane_tally(l.lane) t
   cross join lateral (select sum(k.open_n) filter (where k.status = 'r') as running,
                              bool_or(k.leased_till < p_now) filter (where k.status = 'r') as ended,
                              count(*) filter (where k.newer) as newer
                         from (select true as newer, k.status, k.open_n, k.leased_till
                                 from millrace.claim k
                                where k.lane = l.lane
                                  and k.no > coalesce(t.settled_no, 0)
                                union all
                               select false, h.status, h.open_n, h.leased_till
                                 from unnest(t.open_nos) o(no)
                                cross join lateral (select k.status, k.open_n, k.leased_till
                                                      from millrace.claim k
                                                     where k.slot = v_slot
                                                       and k.lane = l.lane
                                                       and k.no = o.no
                                                     union all
                                                    select k.status, k.open_n, k.leased_till
                                                      from millrace.claim k
                                                     where k.lane = l.lane
                                                       and k.no = o.no
                                                       and k.status = 'r'
                                                     limit 1) h) k) c;
end $$;
