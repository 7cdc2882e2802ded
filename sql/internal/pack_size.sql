-- SPDX-License-Identifier: PostgreSQL
-- How many jobs of one enqueue_many go to a row of the log: so many that two rows fill a page, at most a block of positions, and no more
-- than leave something for every part of the queue. 1 where the args are so large that few would fit: then each job has its own row.
create or replace function millrace.pack_size(p_args jsonb[], p_parts int)
returns int
language plpgsql
as $$
declare
  c_bytes constant int := 3900;
  c_few   constant int := 6;
  v_fit   int := c_bytes / (4 + (select max(pg_column_size(a)) from unnest(p_args) a));
begin
  return case when v_fit < c_few then 1 else least(31, cardinality(p_args) / p_parts, v_fit) end;
end $$;
