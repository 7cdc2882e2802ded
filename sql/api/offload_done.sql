-- SPDX-License-Identifier: PostgreSQL
-- Parts of offload_take that have been written to the blob store: [{"place", "id", "part", "key", "sha256"}]. They become references in their rows, where they are what was written.
-- Returns the names of the objects that nobody needs because the job went on or was changed meanwhile: remove them. Errors: 22023.
create or replace function millrace.offload_done(stored jsonb)
returns setof text
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
  if stored is null or jsonb_typeof(stored) <> 'array' then
    perform millrace.refuse('stored must be an array of objects', 'Pass [{"place", "id", "part", "key", "sha256"}], an object for each part; an empty array is fine.');
  end if;
  return query select * from millrace.offload_done_at(clock_timestamp(), stored);
end $$;
comment on function millrace.offload_done(jsonb) is
  'takes note of payload parts that were written to the blob store';
