-- SPDX-License-Identifier: PostgreSQL
-- Numbers of rows whose payload is to be moved to the blob store; null where the queue does not want that. Called for rows with a part of c_least bytes
-- and more only (512, in each caller): an object smaller than that costs more than it saves.

create or replace function millrace.offload_no(p_now timestamptz, p_due timestamptz, p_lane int)
returns bigint
language plpgsql
as $$
begin
  return (select nextval('millrace.offload_seq')
            from millrace.queue q
           where q.queue_id = p_lane >> 12
             and p_due > p_now + q.offload_after
             and p_due < 'infinity');
end $$;

-- The same for a dead letter.
create or replace function millrace.offload_letter_no(p_lane int)
returns bigint
language plpgsql
as $$
begin
  return (select nextval('millrace.offload_seq')
            from millrace.queue q
           where q.queue_id = p_lane >> 12
             and q.offload_dead);
end $$;
