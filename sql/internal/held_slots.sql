-- SPDX-License-Identifier: PostgreSQL
-- The leaves in which the jobs of a claim may lie: those of its segments, and where they are parked.
create or replace function millrace.held_slots(p_claim millrace.claim)
returns int2[]
language sql
immutable
as $$
  select array(select (g % 16)::int2
                 from generate_series(p_claim.min_seg, least(p_claim.last_seg, p_claim.min_seg + 15)) g) || -1::int2
$$;

-- The one leaf in which they usually lie; null where there may be more, or they are parked. A job may be parked while its claim is not. A claim
-- that has taken all there was has a cursor behind the open segment, in which it lies itself.
create or replace function millrace.held_leaf(p_claim millrace.claim)
returns int
language plpgsql
immutable
as $$
begin
  return case when p_claim.min_seg = least(p_claim.last_seg, p_claim.seg) and p_claim.slot >= 0 then p_claim.min_seg % 16 end;
end $$;
