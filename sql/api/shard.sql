-- SPDX-License-Identifier: PostgreSQL
-- What this database is in its set of shards: one row, with nulls where it is none. numbers are the numbers of the whole set; status is joining, active or draining; read_only is true where
-- nothing can be written now, as on a standby. Errors: MR004 restored schema.
create or replace function millrace.shard()
returns millrace.shard_face
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
  v_face millrace.shard_face;
begin
  perform millrace.at_home();
  select p.set_uuid, p.shard_no, p.shard_status, p.member_nos
    into v_face.set_id, v_face.number, v_face.status, v_face.numbers
    from millrace.shard_place p;
  v_face.read_only := pg_is_in_recovery() or current_setting('transaction_read_only')::boolean;
  return v_face;
end $$;
comment on function millrace.shard() is
  'number and status in the set of shards';
