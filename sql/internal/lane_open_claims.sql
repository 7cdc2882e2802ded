-- SPDX-License-Identifier: PostgreSQL
-- The open claims of a lane: those the ledger knew to be open, and those taken since. In every leaf: a claim may have been
-- committed long after its segment was closed.
create or replace function millrace.lane_open_claims(p_lane int, p_tally millrace.tally)
returns setof millrace.claim
language plpgsql
as $$
begin
  return query
    select k.*
      from unnest(p_tally.open_nos) o
      join millrace.claim k on k.lane = p_lane and k.no = o
     where k.status = 'r';
  return query
    select k.*
      from millrace.claim k
     where k.lane = p_lane
       and k.no > coalesce(p_tally.settled_no, 0)
       and k.status = 'r';
end $$;

-- How many claims of a lane are open, and how many jobs in them.
create or replace function millrace.lane_open(p_lane int, out claims bigint, out jobs bigint)
language plpgsql
as $$
begin
  select count(*), coalesce(sum(k.open_n), 0)
    into claims, jobs
    from millrace.lane_open_claims(p_lane, millrace.lane_tally(p_lane)) k;
end $$;
