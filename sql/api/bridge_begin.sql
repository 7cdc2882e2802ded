-- SPDX-License-Identifier: PostgreSQL
-- Asked when the consumer group of a bridge is not there: where a new one has to begin, as the id behind which entries are read, null when nothing is
-- known of this stream. `last_entry`: the last id that the stream has given. When it is before what was applied the stream was started again: then all
-- that is known of it is forgotten (restarted). Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.bridge_begin(bridge text,
  stream text,
  stream_group text,
  last_entry text,
  out begin_after text,
  out restarted boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_bridge millrace.bridge;
  v_last   numeric := millrace.stream_place(last_entry);
  v_known  numeric;
begin
  perform millrace.at_home();
  v_bridge := millrace.bridge_of(clock_timestamp(), bridge, stream, stream_group);
  v_known := millrace.bridge_known(v_bridge.bridge_id);
  restarted := coalesce(v_last < v_known, false);
  if restarted then
    perform millrace.bridge_clear(v_bridge.bridge_id);
  end if;
  begin_after := case when restarted or (v_known is not null and v_bridge.floor_place = 0) then '0-0'
                      when v_known is not null then millrace.stream_id(v_bridge.floor_place - 1) end;
end $$;
comment on function millrace.bridge_begin(text, text, text, text) is
  'where a new consumer group of a bridge has to begin';
