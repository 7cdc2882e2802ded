-- SPDX-License-Identifier: PostgreSQL
-- Whether a unique key of a queue is held now, by a job that has not ended or ended a short while ago. False where there is no such queue or key, and for null.
create or replace function millrace.unique_is_held(p_now timestamptz, p_queue text, p_key text)
returns boolean
language plpgsql
as $$
declare
  v_held millrace.unique_key;
begin
  if p_key is null then
    return false;
  end if;
  select u.*
    into v_held
    from millrace.unique_key u
    join millrace.queue q on q.queue_id = u.queue_id
   where q.queue_name = p_queue
     and q.parent_id is null
     and u.unique_name = p_key
   order by u.use_no desc
   limit 1;
  return found and not millrace.unique_is_free(p_now, v_held);
end $$;
