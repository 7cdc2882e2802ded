-- SPDX-License-Identifier: PostgreSQL
-- The usual completion, for complete_at: a whole claim of which nothing was finished before. Null where it is not that.
-- complete_all_0 to complete_all_15 for the leaves, see by_leaf. p_key is a lease's slot, lane and number.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.complete_all_%s(p_now timestamptz, p_key bigint[], p_token text)
returns int
language plpgsql
as $$
declare
  v_n int;
begin
  update millrace.claim_%1$s k
     set open_n = 0,
         done_n = k.n,
         run_us = k.n * (date_part('epoch', p_now - k.claimed_at) * 1e6)::bigint,
         status = 'd',
         finished_at = p_now
   where k.lane = p_key[2]
     and k.no = p_key[3]
     and k.token::text = p_token
     and k.status = 'r'
     and k.outcome is null
  returning k.n
    into v_n;
  return v_n;
end $$
    $sql$, slot);
  end loop;
end $do$;
