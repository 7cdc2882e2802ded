-- SPDX-License-Identifier: PostgreSQL
-- Looks at what makes or breaks a queue in this database, one row a check: settings of the server, who holds the xmin horizon, WAL that
-- slots keep, segments, dead rows, upkeep, queues without workers, dead letters, roles, connections. verdict is ok, note (worth knowing),
-- warning (will hurt) or critical (hurts, or loses data); evidence is what was found, remedy what to do, null where all is well.
-- Refuses nothing: a schema of another cluster, a standby and a check that fails are rows, too. Changes nothing, but for the count of the ledger that stats() goes on with, too.
create or replace function millrace.doctor()
returns table (topic text, verdict text, evidence text, remedy text)
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
  return query
    select d.topic, d.verdict, d.evidence, d.remedy
      from millrace.doctor_at(clock_timestamp()) d;
end $$;
comment on function millrace.doctor() is
  'checks of the server and the schema, each with a verdict and a remedy';
