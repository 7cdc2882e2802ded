-- SPDX-License-Identifier: PostgreSQL
-- The newest row of a lane's depth ledger; all null for a lane that was never counted.
create or replace function millrace.lane_tally(p_lane int)
returns millrace.tally
language plpgsql
stable
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_tally millrace.tally;
begin
  for v_seg in reverse v_open .. greatest(v_open - 15, 0) loop
    select t.*
      into v_tally
      from millrace.tally t
     where t.slot = v_seg % 16
       and t.lane = p_lane
     order by t.no desc
     limit 1;
    exit when v_tally.no is not null;
  end loop;
  return v_tally;
end $$;
