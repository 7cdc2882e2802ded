-- SPDX-License-Identifier: PostgreSQL
-- Registers a worker as waiting for jobs of a queue for five seconds and returns the channel to LISTEN on: a producer that commits meanwhile
-- notifies it. Listen first, claim once more, then wait. A wake-up is a hint: keep polling.
-- Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.wait_channel(queue text,
  worker text)
returns text
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
  v_id int;
begin
  perform millrace.at_home();
  perform millrace.check_name('worker', worker);
  v_id := (millrace.queue_of(queue)).queue_id;
  perform setval(('millrace.wait_' || v_id % 64)::regclass, millrace.epoch_ms(clock_timestamp()) + 5000);
  return 'millrace_' || v_id;
end $$;
comment on function millrace.wait_channel(text, text) is
  'registers as waiting and returns the channel to listen on';
