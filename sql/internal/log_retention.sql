-- SPDX-License-Identifier: PostgreSQL
-- How long the log keeps finished jobs: the shortest retention of any queue. Queues that keep theirs longer have them
-- copied to the archive when their segment goes.
create or replace function millrace.log_retention()
returns interval
language sql
as $$
  select coalesce(min(q.retention_time), '24 hours')
    from millrace.queue q
$$;
