-- SPDX-License-Identifier: PostgreSQL
-- From now on the server ends this session, and with it frees its locks, when nothing was heard of its client for so long: for holders of locks whose network may die. The client has to
-- say something in time, such as call this again. Sets idle_session_timeout (from PostgreSQL 14 on), tcp_keepalives_* and tcp_user_timeout for the session.
-- Silence from 1 second to 1 day. Errors: 22023 bad argument.
create or replace function millrace.lock_guard(
  silence interval = '30 seconds')
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
declare
  v_s int;
begin
  perform millrace.at_home();
  if silence is null or silence < interval '1 second' or silence > interval '1 day' then
    perform millrace.refuse(format('silence must be from 1 second to 1 day, not %s', coalesce(silence::text, 'null')), 'Pass an interval such as ''30 seconds''.');
  end if;
  v_s := ceil(extract(epoch from silence));
  perform set_config('tcp_keepalives_idle', greatest(v_s / 2, 1)::text, false);
  perform set_config('tcp_keepalives_interval', greatest(v_s / 6, 1)::text, false);
  perform set_config('tcp_keepalives_count', '3', false);
  perform set_config('tcp_user_timeout', (v_s * 1000)::text, false);
  if current_setting('server_version_num')::int >= 140000 then
    perform set_config('idle_session_timeout', (v_s * 1000)::text, false);
  end if;
end $$;
comment on function millrace.lock_guard(interval) is
  'ends this session when its client is silent for so long';
