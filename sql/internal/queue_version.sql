-- SPDX-License-Identifier: PostgreSQL
-- What a session may remember of a queue between its claims, and how it knows that it still holds.
-- queue_version is the xid of whoever changed queues or lanes last, set before the change: a sequence, because that is read without a statement.
-- A session notes it before it reads a queue, and only when that xid and all before it have ended: then what it reads holds every change of
-- theirs. Whoever changes a queue later sets another number first, so that a memo with this one is void even before the change is committed, and no
-- memo can be made until it has ended.
-- A setting belongs to its session, which may forge it. What it would gain is claims that pass over a pause or a limit of its own queue.
create or replace function millrace.queue_changes()
returns trigger
language plpgsql
as $$
begin
  perform setval('millrace.queue_version', pg_current_xact_id()::text::bigint);
  return coalesce(new, old);
end $$;

-- Remembers a queue whose lanes claim_take takes itself. The lease in microseconds: months and days count as a claim would count them from a fixed day,
-- so only what has none is remembered.
create or replace function millrace.queue_remember(p_queue text, p_version bigint, p_base int, p_parts int, p_lease interval)
returns void
language plpgsql
as $$
begin
  if extract(day from p_lease) = 0 and extract(month from p_lease) = 0 and extract(year from p_lease) = 0 then
    perform set_config('millrace.queue_memo', array[p_version, p_base, p_parts, (date_part('epoch', p_lease) * 1e6)::bigint]::text, false),
            set_config('millrace.queue_known', p_queue, false);
  end if;
end $$;
