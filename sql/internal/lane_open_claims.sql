-- SPDX-License-Identifier: PostgreSQL
-- The open claims of a lane: those the ledger knew to be open, and those taken since.
create or replace function millrace.lane_open_claims(p_lane int, p_tally millrace.tally)
returns setof millrace.claim
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  return query
    select k.*
      from unnest(p_tally.open_nos) o
      join millrace.claim k on k.lane = p_lane and k.no = o
     where k.status = 'r';
  return query
    select k.*
      from millrace.claim k
     where k.slot = any (array(select (g % 16)::int2
                                 from generate_series(greatest(coalesce(p_tally.seg, 0), v_open - 15), v_open) g) || -1::int2)
       and k.lane = p_lane
       and k.no > coalesce(p_tally.settled_no, 0)
       and k.status = 'r';
end $$;
