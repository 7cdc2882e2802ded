-- SPDX-License-Identifier: PostgreSQL
-- Forgets which entries a bridge has applied, in all its streams: what Redis gives again is applied again. For a deliberate second run (XGROUP SETID), or a
-- stream that was deleted and is filled with ids that were used before. Returns how many streams that concerned. Errors: MR003 unknown bridge.
create or replace function millrace.bridge_forget(bridge text)
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
declare
  v_streams int;
begin
  perform millrace.at_home();
  select count(millrace.bridge_clear(b.bridge_id))
    into v_streams
    from millrace.bridge b
   where b.bridge_name = bridge_forget.bridge;
  if v_streams = 0 then
    perform millrace.refuse_unknown(format('bridge %s does not exist', coalesce(quote_literal(left(bridge, 200)), 'null')),
      'See the view millrace.bridges for those there are.');
  end if;
  return v_streams;
end $$;
comment on function millrace.bridge_forget(text) is
  'forgets which entries of its streams a bridge has applied';
