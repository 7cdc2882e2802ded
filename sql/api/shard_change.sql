-- SPDX-License-Identifier: PostgreSQL
-- Changes the status of a shard (joining, active, draining) or the numbers of its set; null leaves each as it is. Clients see it within seconds. Errors: 22023 bad argument, or no
-- shard; MR004.
create or replace function millrace.shard_change(new_status text = null, numbers int[] = null)
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
  v_no int;
begin
  perform millrace.at_home();
  select p.shard_no into v_no from millrace.shard_place p;
  if not found then
    perform millrace.refuse('this database is not a shard', 'Make it one with `millrace shard add`.');
  end if;
  if new_status not in ('joining', 'active', 'draining') then
    perform millrace.refuse(format('a shard cannot be %s', quote_literal(left(new_status, 80))), 'Its status is joining, active or draining.');
  end if;
  if numbers is not null then
    perform millrace.shard_check(v_no, numbers);
  end if;
  update millrace.shard_place p
     set shard_status = coalesce(new_status, p.shard_status),
         member_nos = coalesce(numbers, p.member_nos);
end $$;
comment on function millrace.shard_change(text, int[]) is
  'the status of a shard, and the numbers of its set';
