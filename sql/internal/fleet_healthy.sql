-- SPDX-License-Identifier: PostgreSQL
-- Whether other claims of the queue have finished since a claim was taken: then its loss is its own. In a stall of the whole
-- fleet nothing finishes, and no job is blamed. Looks at the newest hundred claims of each lane, whatever the history.
create or replace function millrace.fleet_healthy(p_claim millrace.claim)
returns boolean
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_queue millrace.queue;
  v_lane  int;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_claim.lane >> 12;
  if v_queue.parent_id is not null then      -- a tenant's: the fleet is its queue's
    select q.*
      into v_queue
      from millrace.queue q
     where q.queue_id = v_queue.parent_id;
  end if;
  foreach v_lane in array millrace.lanes_family(v_queue) loop
    for v_seg in reverse v_open .. greatest(v_open - 1, 0) loop
      if exists (select
                   from (select k.no, k.status, k.done_n, k.failed_n, k.finished_at
                           from millrace.claim k
                          where k.slot = v_seg % 16
                            and k.lane = v_lane
                          order by k.no desc
                          limit 100) k
                  where k.status = 'd'
                    and k.done_n + k.failed_n > 0
                    and (v_lane <> p_claim.lane or k.no <> p_claim.no)
                    and k.finished_at > p_claim.claimed_at) then
        return true;
      end if;
    end loop;
  end loop;
  return false;
end $$;
