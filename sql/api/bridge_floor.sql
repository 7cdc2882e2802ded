-- SPDX-License-Identifier: PostgreSQL
-- Says that every entry of the stream with an id below `below` has been applied and acknowledged: they need no memory any more. Sweeps at most 10,000
-- rows. Returns how many. The floor never goes down. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.bridge_floor(bridge text,
  stream text,
  stream_group text,
  below text)
returns int
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
  perform millrace.at_home();
  return millrace.bridge_floor_at(clock_timestamp(), bridge, stream, stream_group, below);
end $$;
comment on function millrace.bridge_floor(text, text, text, text) is
  'says below which id all entries of a stream have been applied';
