-- SPDX-License-Identifier: PostgreSQL
-- Figures of the tenants of a fair queue by name, of one or of max_tenants of them; jobs without a tenant are in none of these. As stats, which has the figures
-- of the whole queue. An unknown tenant gives no row. Errors: MR003 unknown queue, 22023 not a fair queue or a bad argument.
create or replace function millrace.tenant_stats(queue text,
  tenant text = null,
  max_tenants int = 1000)
returns setof millrace.tenant_stats
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
    select *
      from millrace.tenant_stats_at(clock_timestamp(), queue, tenant, max_tenants);
end $$;
comment on function millrace.tenant_stats(text, text, int) is
  'figures of the tenants of a fair queue';
