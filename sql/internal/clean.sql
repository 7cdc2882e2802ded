-- SPDX-License-Identifier: PostgreSQL
-- Gives the disk of emptied leaves back: of delayed jobs whose hour has passed, of dead letters and archived jobs that went, of
-- parked leases that ended, of old figures, rounds of upkeep and of fair queues, starts, keys of enqueue_once and where jobs were moved, of what the toolbox has no use for any more; forgets marks, keys and batches that have nothing to say any more. Without VACUUM, because vacuum
-- may be stuck.
create or replace function millrace.clean(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_leaf record;
  v_gone boolean;
  v_class text;
  v_span interval;
  v_n    bigint := millrace.unpark(p_now) + millrace.marks_forget(p_now) + millrace.unique_forget(p_now) + millrace.batches_forget(p_now)
                   + millrace.depends_forget(p_now) + millrace.turns_forget(p_now)
                   + coalesce((select sum(millrace.tenants_follow(q.queue_id)) from millrace.queue q where q.has_tenants), 0)::bigint;
begin
  for v_leaf in
    select c.relname, p.relname as parent
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      join pg_class p on p.oid = i.inhparent
     where p.relnamespace = 'millrace'::regnamespace
       and p.relkind = 'p'
       and (p.relname in ('delayed', 'dead', 'archive', 'pulse', 'started', 'upkeep_round', 'once_key', 'fair_round', 'moved', 'spent_hour', 'spent_day', 'spent_month') or c.relname in ('job_parked', 'claim_parked'))
       and pg_table_size(c.oid) > 65536
  loop
    case v_leaf.parent
      when 'archive' then
        execute format('select not exists (select from millrace.%I where keep_until >= $1)', v_leaf.relname) into v_gone using p_now;
      when 'pulse' then
        execute format('select not exists (select from millrace.%I where taken_at >= $1)', v_leaf.relname) into v_gone
          using p_now - interval '6 hours';
      when 'upkeep_round' then
        execute format('select not exists (select from millrace.%I where ended_at >= $1)', v_leaf.relname) into v_gone
          using p_now - interval '2 hours';
      when 'fair_round' then
        execute format('select not exists (select from millrace.%I where made_at >= $1)', v_leaf.relname) into v_gone
          using p_now - interval '2 hours';
      when 'moved' then
        execute format('select not exists (select from millrace.%I where moved_at >= $1)', v_leaf.relname) into v_gone
          using p_now - interval '7 days';
      when 'once_key' then
        execute format('select not exists (select from millrace.%I where made_at >= $1)', v_leaf.relname) into v_gone
          using p_now - interval '24 hours';
      when 'started' then      -- only the leaves that come next: the others have starts of the last hours in them
        continue when v_leaf.relname not in ('started_' || millrace.started_slot(p_now + interval '1 hour', '1 hour'),
                                             'started_' || millrace.started_slot(p_now + interval '12 hours', '1 day'));
        execute format('select not exists (select from millrace.%I where started_at >= $1)', v_leaf.relname) into v_gone
          using p_now - case when v_leaf.relname < 'started_4' then interval '1 hour' else interval '1 day' end;
      when 'spent_hour', 'spent_day', 'spent_month' then      -- the same
        v_class := substr(v_leaf.parent, 7);
        v_span := case v_class when 'hour' then interval '1 hour' when 'day' then interval '1 day' else interval '31 days' end;
        continue when v_leaf.relname <> format('%s_%s', v_leaf.parent, millrace.spent_slot(v_class, p_now + v_span));
        execute format('select not exists (select from millrace.%I where spent_at >= $1)', v_leaf.relname) into v_gone using p_now - v_span;
      else
        execute format('select not exists (select from millrace.%I)', v_leaf.relname) into v_gone;
    end case;
    continue when not v_gone;
    -- A reader such as pg_dump holds them all: one short wait tells.
    exit when not millrace.truncate_leaves(array[v_leaf.relname]::text[], v_leaf.parent not in ('archive', 'pulse', 'started', 'upkeep_round', 'once_key', 'fair_round', 'moved', 'spent_hour', 'spent_day', 'spent_month'), '5ms');
    v_n := v_n + 1;
  end loop;
  delete from millrace.lane a
   using millrace.lane b
   where a.lane = b.lane
     and a.ctid > b.ctid;
  v_n := v_n + millrace.locks_clean(p_now) + millrace.cache_clean();
  perform setval('millrace.clean_clock', millrace.epoch_ms(p_now));
  return v_n;
end $$;
