-- SPDX-License-Identifier: PostgreSQL
-- The leaf of `delayed` for a due time: 0-23 by the hour when it is less than 20 hours away, 24-55 by the day when it is less than
-- 30 days away, 56 for all that is farther. So a leaf empties when its hour or day has passed and can be truncated;
-- jobs that wait for months do not keep the leaves of the hours from it.
create or replace function millrace.delayed_slot(p_now timestamptz, p_due timestamptz)
returns int2
language sql
stable
as $$
  select case
           when p_due < p_now + interval '20 hours' then (date_part('epoch', p_due)::bigint / 3600) % 24
           when p_due < p_now + interval '30 days' then 24 + (date_part('epoch', p_due)::bigint / 86400) % 32
           else 56
         end::int2
$$;
