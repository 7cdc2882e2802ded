-- SPDX-License-Identifier: PostgreSQL
-- The closed segments whose leaves still hold rows. A held snapshot keeps old versions of the table's rows, so only the newest
-- sixteen are looked at: there are no more leaves.
create or replace function millrace.segments_live()
returns setof millrace.segment
language sql
stable
as $$
  select g.*
    from (select g.*
            from millrace.segment g
           order by g.seg desc
           limit 16) g
   where not g.truncated
$$;
