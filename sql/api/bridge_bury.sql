-- SPDX-License-Identifier: PostgreSQL
-- Makes an entry of a stream a dead letter of a queue, with its id as `ref` and in `meta`. To be called for an entry that bridge_admit has given in
-- this transaction. Returns the id of the dead letter. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.bridge_bury(bridge text,
  stream text,
  stream_group text,
  entry_id text,
  queue text,
  kind text,
  args jsonb,
  error text)
returns bigint
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
  return millrace.bridge_bury_at(clock_timestamp(), bridge, stream, stream_group, entry_id, queue, kind, args, error);
end $$;
comment on function millrace.bridge_bury(text, text, text, text, text, text, jsonb, text) is
  'makes an entry of a stream a dead letter';
