-- SPDX-License-Identifier: PostgreSQL
-- Settings of the cache. unlogged (boolean, default false): entries are not written to the log of the server, which makes set cheaper; they are gone after a crash, and
-- cannot be read on a standby. Changing it rewrites the entries and locks the cache meanwhile. Errors: 22023 bad argument, 55P03 the lock was not had within 5 s, MR004.
create or replace function millrace.set_cache(
  settings jsonb)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set lock_timeout = '5s'
as $$
declare
  v_wrong text;
begin
  perform millrace.at_home();
  if settings is null or jsonb_typeof(settings) <> 'object' then
    perform millrace.refuse(format('settings must be an object, not %s', coalesce(jsonb_typeof(settings), 'null')), 'Pass settings such as {"unlogged": true}.');
  end if;
  select s.key into v_wrong from jsonb_each(settings) s where s.key <> 'unlogged' limit 1;
  if v_wrong is not null then
    perform millrace.refuse(format('the cache has no setting %s', quote_literal(left(v_wrong, 80))), 'Its only setting is unlogged, true or false.');
  end if;
  if settings ? 'unlogged' and jsonb_typeof(settings -> 'unlogged') <> 'boolean' then
    perform millrace.refuse(format('unlogged must be true or false, not %s', left(settings ->> 'unlogged', 80)), 'Pass {"unlogged": true} or {"unlogged": false}.');
  end if;
  if settings ? 'unlogged' then
    for i in 0..1 loop
      execute format('alter table millrace.cache_%s set %s', i, case when (settings ->> 'unlogged')::boolean then 'unlogged' else 'logged' end);
    end loop;
  end if;
end $$;
comment on function millrace.set_cache(jsonb) is
  'settings of the cache';
