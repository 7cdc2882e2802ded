-- SPDX-License-Identifier: PostgreSQL
-- Makes (queue, priority) known to claimers, once. No unique index, hence no wait for another producer's commit;
-- a duplicate is harmless and removed by upkeep.
create or replace function millrace.lane_register(p_lane int)
returns void
language plpgsql
as $$
begin
  if not exists (select from millrace.lane l where l.lane = p_lane) then
    insert into millrace.lane (lane)
    values (p_lane);
  end if;
end $$;
