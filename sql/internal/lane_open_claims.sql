-- SPDX-License-Identifier: PostgreSQL
-- The open claims of a lane: those the ledger knew to be open, and those taken since. In every leaf: a claim may have been committed long after its
-- segment was closed. But one that the ledger knew is looked for in the open leaf first, where most are: a look into all of them costs seventeen times as much.
create or replace function millrace.lane_open_claims(p_lane int, p_tally millrace.tally)
returns setof millrace.claim
language plpgsql
stable
as $$
declare
  v_slot int := pg_sequence_last_value('millrace.seg_seq'::regclass) % 16;
begin
  if cardinality(p_tally.open_nos) > 0 then
    return query
      select h.*
        from unnest(p_tally.open_nos) o(no)
       cross join lateral (select k.*
                             from millrace.claim k
                            where k.slot = v_slot
                              and k.lane = p_lane
                              and k.no = o.no
                            union all
                           select k.*
                             from millrace.claim k
                            where k.lane = p_lane
                              and k.no = o.no
                              and k.status = 'r'
                            limit 1) h
       where h.status = 'r';
  end if;
  return query
    select k.*
      from millrace.claim k
     where k.lane = p_lane
       and k.no > coalesce(p_tally.settled_no, 0)
       and k.status = 'r';
end $$;

-- How many claims of a lane are open, and how many jobs in them.
create or replace function millrace.lane_open(p_lane int, p_tally millrace.tally, out claims bigint, out jobs bigint)
language plpgsql
stable
as $$
begin
  select count(*), coalesce(sum(k.open_n), 0)
    into claims, jobs
    from millrace.lane_open_claims(p_lane, p_tally) k;
end $$;
