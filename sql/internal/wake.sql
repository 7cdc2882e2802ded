-- SPDX-License-Identifier: PostgreSQL
-- Wakes a waiting worker of a queue. NOTIFY takes a database-wide lock at commit, so it is sent only when a worker
-- has said that it waits; the first producer takes that word back, so that a burst sends one. A wake-up that gets lost
-- (a rollback, two queues of one group) costs a poll interval: polling is always the fallback.
create or replace function millrace.wake(p_queue_id int, p_now timestamptz)
returns void
language plpgsql
as $$
declare
  v_seq regclass := ('millrace.wait_' || p_queue_id % 64)::regclass;
begin
  if p_queue_id >= 65536 then      -- a tenant's: workers wait for its queue
    p_queue_id := millrace.queue_owner(p_queue_id);
    v_seq := ('millrace.wait_' || p_queue_id % 64)::regclass;
  end if;
  if coalesce(pg_sequence_last_value(v_seq), 0) > millrace.epoch_ms(p_now) then
    perform setval(v_seq, 0);
    perform pg_notify('millrace_' || p_queue_id, '');
  end if;
end $$;
