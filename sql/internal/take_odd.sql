-- SPDX-License-Identifier: PostgreSQL
-- Takes from a range in which some jobs have expired, are marked (p_marked), have hooks or are large, for lane_take: up to p_limit jobs as claim returns
-- them, and of those passed over the ordinals (after p_base) and their letters, x expired, k cancelled, w withdrawn or set aside because
-- it is not their turn or there is no room for them, d damaged and buried.
-- Large jobs are read here, not with the result: a damaged value would raise when it is sent, and stop its lane for ever. And no more
-- bytes of them than p_budget, but one if p_taken is 0: a claim is built in memory. cut: the rest of the range is for the next claim;
-- more: it may hold more, but not for want of memory.
-- take_odd_0 to take_odd_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.take_odd_%1$s(p_now timestamptz, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                             p_hi pg_snapshot, p_limit int, p_base int, p_taken int, p_budget bigint, p_lease text,
                                             p_until timestamptz, p_state boolean, p_marked boolean,
                                             out n int, out positions bigint[], out ids bigint[], out xid xid8, out wait interval,
                                             out jobs millrace.claimed_job[], out ordinals int[], out marks text, out bytes bigint,
                                             out more boolean, out cut boolean, out hooks millrace.hook[])
language plpgsql
as $$
declare
  c_passed constant int := 1000;      -- rows passed over at a time
  v_ahead int := c_passed;            -- rows looked at beyond as many as are wanted
  v_seen int;
  v_live int;
  v_job  millrace.claimed_job;
  v_queue millrace.queue;
  v_turns "char"[];                   -- of an ordered queue, see turns_decide; of one with limits inside, see lines_decide
  v_buried int[];
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_lane >> 12
     and (q.ordered or q.key_limit is not null or q.tenant_rate is not null);
  if v_queue.ordered then
    n := 0;
    if not millrace.turn_lock(p_lane >> 12, p_lane & 31) then
      return;      -- a claim of another priority has jobs of this part in hand: passed over, as a busy lane is
    end if;
    v_turns := millrace.turns_decide(p_now, %1$s, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit + c_passed, p_marked);
  elsif v_queue.queue_id is not null then
    n := 0;
    if not pg_try_advisory_xact_lock(1297219596, v_queue.queue_id) then
      return;      -- the limit is younger than this claim, and others claim by it already
    end if;
    v_ahead := least(greatest(p_limit / 4, p_base, 16), c_passed);      -- usually there is room: what is not taken has been looked at in vain
    v_turns := millrace.lines_decide(p_now, v_queue, %1$s, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit + v_ahead, p_marked);
    if cardinality(v_turns) = p_limit + v_ahead and cardinality(array_remove(v_turns, null)) > v_ahead and v_ahead < c_passed then
      v_ahead := c_passed;
      v_turns := millrace.lines_decide(p_now, v_queue, %1$s, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit + v_ahead, p_marked);
    end if;
  else
    -- Most jobs come here because they are large or have a key, and none is passed over: then no row is read in vain.
    v_ahead := least(8 * (p_base - p_taken), c_passed);
  end if;
  select count(*) filter (where r.kept), count(*), array_agg(r.pos) filter (where r.kept), array_agg(r.job_id) filter (where r.kept),
         millrace.newest_xid(r.xid) filter (where r.kept), coalesce(sum(r.waited) filter (where r.kept and r.live), '0'),
         array_agg(p_base + r.ord::int) filter (where r.kept and not r.live),
         string_agg(case when r.stale_at = '-infinity' then 'd' else coalesce(r.mark::text, 'x') end, '') filter (where r.kept and not r.live),
         coalesce(max(r.bytes) filter (where r.kept), 0), count(*) filter (where r.kept and r.live),
         case when bool_or(r.hooked) filter (where r.kept) then
           array_agg(case when r.hooked then row(r.job_id, p_lane, r.order_key, r.unique_name, r.batch_id)::millrace.hook end) filter (where r.kept)
         end
    into n, v_seen, positions, ids, xid, wait, ordinals, marks, bytes, v_live, hooks
    from (select r.*, r.rank - r.live::int < p_limit and (r.bytes <= p_budget or (r.rank <= 1 and p_taken = 0)) as kept
            from (select r.*, row_number() over o as ord, count(*) filter (where r.live) over o as rank,
                         coalesce(sum(r.size) filter (where r.live) over o, 0) as bytes
                    from (select j.xid, j.pos, j.job_id, j.stale_at, coalesce(m.mark, a.mark) as mark, j.order_key, j.unique_name, j.batch_id,
                                 num_nonnulls(j.order_key, j.unique_name, j.batch_id) > 0 and (v_turns[j.ord] in ('k', 't')) is not true as hooked,
                                 (j.stale_at <= p_now) is not true and m.mark is null and a.mark is null as live,
                                 p_now - coalesce(j.ready_at, j.created_at) as waited,
                                 -- JSON is measured as it is stored, maybe compressed, and may take eight times as much
                                 8 * (coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0))
                                 + coalesce(octet_length(j.payload_blob), 0)
                                 + case when p_state then coalesce(octet_length(j.payload_state), 0) else 0 end as size
                            from (select j.*, row_number() over () as ord
                                    from millrace.range_jobs_%1$s(p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit + v_ahead) j) j
                           cross join lateral (select case when v_turns[j.ord] in ('a', 'm', 'k', 't') then 'w' end as mark) a
                            left join lateral (select case m.letter when 'w' then 'w' else 'k' end as mark
                                                 from millrace.mark m
                                                where p_marked
                                                  and m.lane = p_lane
                                                  and m.pos = j.pos
                                                limit 1) m on true) r
                  window o as (order by r.xid, r.pos rows unbounded preceding)) r) r;
  cut := n < v_seen and v_live < p_limit;
  more := n < v_seen or v_seen = p_limit + v_ahead;
  if v_turns is not null and not v_queue.ordered then
    v_buried := millrace.lines_claim(p_now, %1$s, p_lane, ids, positions, v_turns);
    cut := cut or v_live + p_taken > 0;      -- what this claim has taken is not in the log yet: the next range could not count it
  elsif v_turns is not null and hooks is not null then
    v_buried := millrace.turns_claim(p_now, %1$s, p_lane, positions, hooks, v_turns);
    -- What was taken is not kept waiting while a long line of one key is set aside.
    cut := cut or (n - v_live >= c_passed and v_live + p_taken > 0);
  end if;
  if v_buried is not null then
    for i in 1 .. cardinality(v_buried) loop
      marks := overlay(marks placing 'd' from array_position(ordinals, p_base + v_buried[i]) for 1);
    end loop;
  end if;
  begin
    select coalesce(array_agg(row(p_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.payload_meta,
                                  case when p_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, p_lane >> 5 & 127,
                                  j.job_source, j.created_at, p_until, j.run_limit)::millrace.claimed_job), '{}')
      into jobs
      from (select j.*, row_number() over () as ord
              from millrace.range_jobs_%1$s(p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, n) j) j
     where (j.stale_at <= p_now) is not true
       and (v_turns[j.ord] in ('a', 'm', 'k', 't')) is not true
       and not (p_marked and exists (select from millrace.mark m where m.lane = p_lane and m.pos = j.pos))
           -- a JSON value that lies out of line is decoded here, not when it is sent
       and (pg_column_size(j.payload_args) >= 1500 and length(j.payload_args::text) = 0) is not true
       and (pg_column_size(j.payload_meta) >= 1500 and length(j.payload_meta::text) = 0) is not true;
    return;
  exception
    when data_corrupted or internal_error or data_exception or program_limit_exceeded then
      jobs := '{}';
  end;
  -- Some part of some job cannot be read: each by itself.
  for i in 1 .. n loop
    continue when p_base + i = any (ordinals);
    v_job := millrace.job_read(%1$s, ids[i], positions[i], p_lease, p_lane >> 5 & 127, p_until, p_state);
    if v_job is null then
      ordinals := ordinals || p_base + i;
      marks := concat(marks, 'd');
      perform millrace.job_bury_damaged(p_now, %1$s, ids[i], positions[i]);
    else
      jobs := jobs || v_job;
    end if;
  end loop;
end $$
    $sql$, slot);
  end loop;
end $do$;
