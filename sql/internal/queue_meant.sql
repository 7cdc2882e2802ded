-- SPDX-License-Identifier: PostgreSQL
-- The queue of a name or, with a lease, the one that the lease is of; a tenant has the settings of its queue. Nothing where there is none: nothing is made.
create or replace function millrace.queue_meant(p_queue text, p_lease text)
returns setof millrace.queue
language plpgsql
stable
as $$
begin
  perform millrace.at_home();
  if p_lease is null then
    return query
      select q.*
        from millrace.queue q
       where q.queue_name = p_queue
         and q.parent_id is null;
  else
    return query
      select q.*
        from millrace.queue q
       where q.queue_id = (millrace.lease_parts(p_lease)).lane >> 12;
  end if;
end $$;
