-- SPDX-License-Identifier: PostgreSQL
-- Seals a batch: no members are added from now on, and it ends with the last of those it has; without any, within about a second. Waits for transactions
-- that have added some. A batch that is sealed stays so. Errors: MR003 unknown batch, MR004 restored schema.
create or replace function millrace.batch_seal(batch bigint)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  perform millrace.batch_seal_at(clock_timestamp(), batch);
end $$;
comment on function millrace.batch_seal(bigint) is
  'seals a batch: it ends with its last member';
