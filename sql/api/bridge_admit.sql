-- SPDX-License-Identifier: PostgreSQL
-- Takes entries of a stream in hand, once: returns which of `ids` have not been applied, as ordinals from 1, and writes down that they are, in this
-- transaction. Apply them before it commits, acknowledge them after it. An entry that another transaction has in hand is waited for. contiguous: the
-- ids are a run that one read of new entries gave, without a gap; then one row is written for all of them.
-- Errors: 22023 bad argument, 25000 isolation level, 40001 try again, MR004 restored schema.
create or replace function millrace.bridge_admit(bridge text,
  stream text,
  stream_group text,
  ids text[],
  contiguous boolean = false)
returns int[]
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
  return millrace.bridge_admit_at(clock_timestamp(), bridge, stream, stream_group, ids, coalesce(contiguous, false));
end $$;
comment on function millrace.bridge_admit(text, text, text, text[], boolean) is
  'which entries of a stream have not been applied, and takes them in hand';
