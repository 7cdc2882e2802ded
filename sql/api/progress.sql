-- SPDX-License-Identifier: PostgreSQL
-- Reports how far a running job is: percent from 0 to 100, and a note. job() and outcome() show the newest report of an attempt. Needs the
-- live lease that holds the job open, locks nothing and extends nothing. Every call is a row: report once a second, not for each step.
-- Errors: 22023, MR001 lost lease or job finished already, MR003 an id that is not in the lease.
create or replace function millrace.progress(lease text,
  id bigint,
  percent double precision,
  note text = null)
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
  perform millrace.progress_at(clock_timestamp(), lease, id, percent, note);
end $$;
comment on function millrace.progress(text, bigint, double precision, text) is
  'reports how far a running job is';
