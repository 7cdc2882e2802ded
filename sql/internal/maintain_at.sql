-- SPDX-License-Identifier: PostgreSQL
-- maintain with the time as an argument. The duties in order: rotate first, while the transaction has no xid; those that hold locks
-- of lanes or leaves last, because locks are held to the end. Each duty fails alone: the others go on, the next round repairs.
-- Where somebody calls it every second claims leave upkeep alone: a slice would cost one of them what the round does anyway.
create or replace function millrace.maintain_at(p_now timestamptz)
returns setof millrace.duty_done
language plpgsql
as $$
declare
  c_duties constant text[] := array['rotate', 'promote', 'schedule', 'rescue', 'turns', 'batch', 'depend', 'count', 'pulse', 'dead', 'archive', 'cache', 'objects', 'tick', 'compact', 'retire', 'clean'];
  c_shared constant text[] := array['rotate', 'promote', 'schedule', 'rescue', 'turns', 'batch', 'depend', 'count'];      -- with locks of their own; the others take turns
  v_before jsonb := millrace.rounds_last();
  v_round  jsonb := '{}';
  v_begun  timestamptz;
  v_duty   text;
  v_done   bigint;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('maintain');
  foreach v_duty in array c_duties loop
    v_begun := clock_timestamp();
    begin
      v_done := null;
      if v_duty = any (c_shared) or pg_try_advisory_xact_lock(1297219592, 0) then
        v_done := millrace.duty(p_now, v_duty);
      end if;
    exception
      when others then
        raise warning 'millrace: duty % failed: % (%)', v_duty, sqlerrm, sqlstate;
    end;
    v_round := v_round || millrace.round_duty(p_now, v_duty, v_done, clock_timestamp() - v_begun, v_before);
    if v_duty = 'rotate' then
      perform setval('millrace.upkeep_clock', (millrace.epoch_ms(p_now) + 998) | 1);      -- gives the transaction an xid
    elsif v_duty = 'retire' and v_done is not null then
      v_round := jsonb_set(v_round, '{retire}', v_round -> 'retire'
                 || millrace.round_jobs(v_before -> 'retire', case when v_done > 0 then current_setting('millrace.retired_jobs', true)::bigint end));
    end if;
    return next row(v_duty, coalesce(v_done, 0))::millrace.duty_done;
  end loop;
  perform millrace.round_add(p_now, v_round, v_before);
end $$;

-- One duty of upkeep by its name.
create or replace function millrace.duty(p_now timestamptz, p_duty text)
returns bigint
language plpgsql
as $$
begin
  case p_duty
    when 'rotate' then return millrace.rotate(p_now);
    when 'promote' then return millrace.promote(p_now, 10000);
    when 'schedule' then return millrace.schedule_due(p_now, 100);
    when 'rescue' then return millrace.rescue(p_now, 10000);
    when 'batch' then return millrace.batches_fold(p_now, 100000);
    when 'depend' then return millrace.depends_look(p_now, 2000);
    when 'turns' then return millrace.turns_settle(p_now, 1000);
    when 'count' then return millrace.count_all(p_now) + 0 * millrace.fair_passes(p_now);
    when 'pulse' then return millrace.pulse(p_now);
    when 'dead' then return millrace.dead_look(p_now);
    when 'archive' then return millrace.archive(p_now);
    when 'cache' then return millrace.cache_sweep(p_now, 5000);
    when 'objects' then return millrace.objects_look(p_now, 500);
    when 'compact' then return millrace.compact(p_now);
    when 'tick' then return millrace.tick(p_now);
    when 'retire' then return millrace.retire(p_now);
    when 'clean' then return case when millrace.due('millrace.clean_clock', p_now, 10000) then millrace.clean(p_now) end;
  end case;
end $$;

-- Counts every lane on, but for lanes of tenants in which nothing has happened. Returns how many.
create or replace function millrace.count_all(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_lane int;
  v_n    bigint := 0;
begin
  for v_lane in
    select l
      from millrace.lanes_all() l
     where l < 65536 << 12
     union all
    select unnest(millrace.lanes_uncounted(array(select l from millrace.lanes_all() l where l >= 65536 << 12)))
  loop
    perform millrace.lane_count(p_now, v_lane, '0');
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;

-- Of some lanes those whose ledger has to be brought on, no more than one round has time for: whoever asks for the depth counts, too. A queue may have thousands of tenants, most of them idle: one statement for all. A lane is counted when
-- its ledger stands in the open segment, was written behind the last rotation, knows the newest claim and has none open, and no row has come since.
create or replace function millrace.lanes_uncounted(p_lanes int[])
returns int[]
language plpgsql
as $$
declare
  v_open   int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_slot   int := v_open % 16;
  v_closed xid8 := (select g.closed_xid from millrace.segment g where g.seg = v_open - 1);
begin
  return array(
    select l
      from unnest(p_lanes) l
     where (select t.open_nos = '{}'
                   and pg_snapshot_xmin(t.win_hi) >= v_closed
                   and t.settled_no >= coalesce((select k.no from millrace.claim k where k.slot = v_slot and k.lane = l order by k.no desc limit 1), 0)
                   and not exists (select from millrace.job j where j.slot = v_slot and j.lane = l and j.xid >= pg_snapshot_xmin(t.win_hi))
              from millrace.tally t
             where t.slot = v_slot
               and t.lane = l
             order by t.no desc
             limit 1) is not true
     order by random()
     limit 250);
end $$;
