-- SPDX-License-Identifier: PostgreSQL
-- The lanes of a queue to try first: those of the first priority that may have jobs, out of p_lanes.
-- memo and memo_xid: what the session may remember (see lane_memo) when the claim that follows finds a job and gets this xid.
create or replace function millrace.lanes_first(p_queue millrace.queue, p_lanes int[], out lanes int[], out memo text, out memo_xid xid8)
language plpgsql
as $$
declare
  v_key  text := millrace.lane_memo_key(p_queue);
  v_snap pg_snapshot := pg_current_snapshot();
begin
  lanes := millrace.lanes_ready(p_lanes, p_queue.parts_seen);
  if p_queue.parts_seen = 1 and pg_current_xact_id_if_assigned() is null
     and pg_snapshot_xmin(v_snap) = pg_snapshot_xmax(v_snap) then
    memo := v_key || lanes[1];
    memo_xid := pg_snapshot_xmax(v_snap);
  end if;
end $$;

-- What the session remembers: the first lane of a queue that had jobs, while no job can have come since. Null when it does not know.
-- Every job takes its transaction's xid first and its position then. The key holds the position that was reached before a snapshot
-- in which no transaction ran; the claim that followed got the very next xid, so none ran unseen either. As long as positions
-- stand there, no job has become visible since, and the lanes before the remembered one are still empty: a drain by one
-- claimer costs the same with twenty priorities as with one.
create or replace function millrace.lane_memo(p_queue millrace.queue)
returns int
language plpgsql
as $$
declare
  v_known text := current_setting('millrace.first_lane', true);
  v_key   text;
begin
  if v_known <> '' then
    v_key := millrace.lane_memo_key(p_queue);
    if starts_with(v_known, v_key) then
      return substr(v_known, length(v_key) + 1);
    end if;
  end if;
  return null;
end $$;

create or replace function millrace.lane_memo_key(p_queue millrace.queue)
returns text
language plpgsql
as $$
begin
  return concat_ws(' ', 'millrace.home'::regclass::oid, p_queue.queue_id, p_queue.parts_seen,
                   pg_sequence_last_value('millrace.seg_seq'::regclass), pg_sequence_last_value('millrace.pos_seq'::regclass), '');
end $$;
