-- SPDX-License-Identifier: PostgreSQL
-- Makes a schema that was restored from another cluster at home in this one. The xids of its logs are of another history and may lie in the
-- future here, so nothing of the logs can stay: what was not delivered is appended again, in order; jobs under open leases go back, their
-- tokens are void, but for those that were cancelled; finished jobs move to the archive until their retention ends; the sequences are moved behind what is there.
create or replace function millrace.rehome(p_now timestamptz)
returns bigint
language plpgsql
set enable_seqscan = on
set enable_bitmapscan = on
as $$
declare
  v_open int := greatest(pg_sequence_last_value('millrace.seg_seq'::regclass), (select max(g.seg) + 1 from millrace.segment g),
                         (select max(j.seg) from millrace.job j where j.slot >= 0), (select max(k.seg) from millrace.claim k));
  v_n    bigint;
begin
  perform setval('millrace.seg_seq', v_open);      -- a logical copy does not carry sequences
  perform setval('millrace.queue_version', pg_current_xact_id()::text::bigint);
  perform setval('millrace.dead_seq', coalesce(pg_sequence_last_value('millrace.dead_seq'::regclass), 0));
  perform setval('millrace.queue_seq', greatest((select max(q.queue_id) from millrace.queue q where q.parent_id is null), pg_sequence_last_value('millrace.queue_seq'::regclass), 1));
  perform setval('millrace.tenant_seq', greatest((select max(q.queue_id) from millrace.queue q), pg_sequence_last_value('millrace.tenant_seq'::regclass), 65536));
  -- The first of a block of positions: 1, 33, 65 and so on.
  perform setval('millrace.pos_seq', 1 + (~31 & greatest(pg_sequence_last_value('millrace.pos_seq'::regclass), (select max(j.pos) from millrace.job j),
                                              (select max(j.job_id) from millrace.job j), (select max(k.last_pos) from millrace.claim k),
                                              (select max(g.closed_pos) from millrace.segment g), (select max(d.job_id) from millrace.delayed d),
                                              (select max(d.job_id) from millrace.dead d), (select max(a.job_id) from millrace.archive a),
                                              (select p.shard_no::bigint << 48 from millrace.shard_place p), 1)));
  perform setval('millrace.batch_seq', greatest((select max(b.batch_id) from millrace.batch b), pg_sequence_last_value('millrace.batch_seq'::regclass),
                                                (select p.shard_no::bigint << 48 from millrace.shard_place p), 1));
  perform setval('millrace.cache_no', greatest((select max(c.entry_no) from millrace.cache_0 c), (select max(c.entry_no) from millrace.cache_1 c), pg_sequence_last_value('millrace.cache_no'::regclass), 1)),
          setval('millrace.lock_no', greatest((select max(h.lock_no) from millrace.lock_held h), pg_sequence_last_value('millrace.lock_no'::regclass), 1)),
          setval('millrace.fence_seq', greatest((select max(h.fence) from millrace.lock_held h), pg_sequence_last_value('millrace.fence_seq'::regclass), 1)),
          setval('millrace.cache_clock', 0), setval('millrace.cache_turned', 0);
  delete from millrace.cache_pass;      -- it speaks of a turn that the sequence may not be at
  -- A row was delivered when its lane's cursor has passed it; all that is compared comes from the dump, so it is of one history.
  create temporary table millrace_rehome on commit drop as
  select j.*, coalesce(m.letter, f.letter) as letter, f.holder, f.claimed_at, coalesce(m.made_at, f.finished_at) as finished_at, m.mark_text, m.asked,
         row_number() over (order by f.letter = 'o' desc nulls last, j.in_window desc, j.log_seg, j.xid, j.pos) as ord
    from (select j.*, c.no is not null and pg_visible_in_snapshot(j.xid, c.hi) as in_window, c.lo, c.last_seg, c.last_xid, c.last_pos,
                 case when j.slot < 0 then j.seg else v_open - (v_open - j.slot) % 16 end as log_seg
            from (select j.xid, p.at as pos, case when j.pack_n is null then j.job_id else p.at end as job_id, j.created_at, j.seg, j.lane, j.slot,
                         j.attempt, j.lost, j.attempts_limit, j.job_kind,
                         case when j.pack_n is null then j.payload_args else j.pack[p.at - j.pos + j.pack_n] end as payload_args, j.ready_at,
                         j.stale_at, j.run_limit, j.payload_meta, j.payload_state, j.payload_blob, j.job_tenant, j.job_ref, j.job_source,
                         j.trail, j.order_key, j.unique_name, j.batch_id
                    from millrace.job j
                   cross join lateral generate_series(j.pos - coalesce(j.pack_n, 1) + 1, j.pos) p(at)) j
            left join (select l as lane, (millrace.lane_cursor(l, v_open)).*
                         from millrace.lanes_all() l) c on c.lane = j.lane) j
    left join (select k.lane, u.pos, k.holder, k.claimed_at, k.finished_at,
                      case
                        when k.outcome is null then case k.status when 'r' then 'o' else 'c' end
                        when k.status = 'd' then translate(substr(k.outcome, u.ord::int, 1), 'o', 'c')
                        else substr(k.outcome, u.ord::int, 1)
                      end as letter
                 from millrace.claim k
                cross join lateral unnest(k.positions) with ordinality u(pos, ord)) f on f.lane = j.lane and f.pos = j.pos
    left join (select m.lane, m.pos, m.made_at, m.mark_text, case m.letter when 'w' then 'w' else 'k' end as letter, m.letter = 'a' as asked
                 from millrace.mark m) m on m.lane = j.lane and m.pos = j.pos and coalesce(f.letter, 'o') = 'o'
   where f.letter in ('o', 'c', 'x', 'k')
      or not (j.in_window and (pg_visible_in_snapshot(j.xid, j.lo)
                               or (j.log_seg, j.xid, j.pos) <= (j.last_seg, j.last_xid, j.last_pos)));
  insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome, holder,
                                claimed_at, job_kind, payload_args, run_limit, payload_meta, payload_state, payload_blob,
                                payload_result, job_tenant, job_ref, job_source, trail, order_key)
  select j.finished_at, j.finished_at + q.retention_time, j.job_id, j.created_at, coalesce(q.parent_id, q.queue_id), j.lane,
         millrace.archive_slot(p_now, j.finished_at + q.retention_time), j.attempt, j.attempts_limit,
         j.letter::"char", j.holder, j.claimed_at, j.job_kind, j.payload_args, j.run_limit, j.payload_meta,
         j.payload_state, j.payload_blob,
         coalesce(r.payload_result, case when j.mark_text is not null then jsonb_build_object('reason', j.mark_text) end), j.job_tenant, j.job_ref, j.job_source, j.trail,
         j.order_key
    from millrace_rehome j
    join millrace.queue q on q.queue_id = j.lane >> 12
    left join millrace.result r on r.job_id = j.job_id and r.pos = j.pos
   where j.letter in ('c', 'x', 'k')
     and j.finished_at + q.retention_time > p_now;
  -- A running job that was cancelled ends here: its batch has to know. The others' ends were told. Notes have xids, too, and get new ones.
  perform millrace.batch_ends(array_agg(row(j.job_id, j.lane, j.order_key, j.unique_name, j.batch_id)::millrace.hook), repeat('k', count(*)::int))
     from millrace_rehome j
    where j.asked
      and j.letter = 'k'
      and j.batch_id is not null;
  update millrace.batch_note set xid = pg_current_xact_id();
  update millrace.batch_pass set win_hi = '1:1:';
  truncate millrace.job, millrace.claim, millrace.result, millrace.report, millrace.tally, millrace.pulse, millrace.segment, millrace.mark, millrace.fair_round;
  insert into millrace.segment (seg, closed_xid, closed_at, closed_pos, parked, archived, truncated)
  values (v_open, '3', p_now, pg_sequence_last_value('millrace.pos_seq'::regclass), true, true, true);
  perform setval('millrace.seg_seq', v_open + 1);
  perform pg_current_xact_id();
  insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at,
                            run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail, order_key,
                            unique_name, batch_id)
  select nextval('millrace.pos_seq'), o.job_id, o.created_at,
         case when o.order_key is null or not q.ordered then o.lane else (o.lane & ~31) + millrace.part_of(o.order_key, 0, 1) end, o.attempt, o.lost, o.attempts_limit, o.job_kind, o.payload_args,
         coalesce(o.ready_at, o.created_at), o.stale_at, o.run_limit, o.payload_meta, o.payload_state, o.payload_blob, o.job_tenant,
         o.job_ref, o.job_source, o.trail, o.order_key, o.unique_name, o.batch_id
    from (select *
            from millrace_rehome
           where letter is null
              or letter = 'o'
           order by ord) o
    join millrace.queue q on q.queue_id = o.lane >> 12
   order by o.ord;
  get diagnostics v_n = row_count;
  drop table millrace_rehome;
  delete from millrace.unique_key u
   where u.free_at is null
     and not exists (select from millrace.job j where j.job_id = u.job_id)
     and not exists (select from millrace.delayed d where d.job_id = u.job_id);
  perform millrace.turns_rehome();
  perform millrace.lines_rehome(p_now);
  perform setval('millrace.promote_hint', 0), setval('millrace.rescue_hint', 0), setval('millrace.promote_sweep', 0),
          setval('millrace.rescue_sweep', 0), setval('millrace.upkeep_clock', 0), setval('millrace.pulse_clock', 0),
          setval('millrace.clean_clock', 0), setval('millrace.mark_hint', 0),
          setval('millrace.batch_hint', 1), setval('millrace.depend_hint', 1), setval('millrace.depend_low', 0), setval('millrace.depend_place', 0),
          setval('millrace.unique_hint', 0), setval('millrace.unique_sweep', 0);
  insert into millrace.home (system_id, blob_database)
  select c.system_identifier, d.oid
    from pg_control_system() c
    join pg_database d on d.datname = current_database()
      on conflict on constraint home_pk do update
     set system_id = excluded.system_id,
         blob_home = excluded.blob_home,
         blob_database = excluded.blob_database;
  -- Objects belong to the database that wrote them. What rows of this one name it reads, but does not remove.
  delete from millrace.blob_object;
  delete from millrace.blob_doomed;
  perform setval('millrace.offload_seq', greatest((select max(d.out_no) from millrace.delayed d), (select max(d.out_no) from millrace.dead d), pg_sequence_last_value('millrace.offload_seq'::regclass), 1));
  return v_n;
end $$;
