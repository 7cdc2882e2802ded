-- SPDX-License-Identifier: PostgreSQL
-- Functions that have become one for each leaf of the ring.
drop function if exists millrace.range_look(int, int, xid8, bigint, xid8, pg_snapshot, int);
drop function if exists millrace.take_odd(timestamptz, int, int, xid8, bigint, xid8, pg_snapshot, int, int, int, bigint, text, timestamptz, boolean,
                                          boolean);
drop function if exists millrace.range_odd(int, int, xid8, bigint, xid8, pg_snapshot, int);
drop function if exists millrace.lane_news(int, int, xid8, bigint, xid8[], bigint[], xid8[]);
drop function if exists millrace.jobs_fail(timestamptz, millrace.claim, int2[], jsonb, int[], bigint[]);

-- What autovacuum has to know of the ring's leaves when it analyzes them, which it does again and again where they fill up in seconds: a tenth of
-- the usual sample, and nothing of what is no condition anywhere. A leaf of 60,000 jobs of 4.5 KB is analyzed in 55 ms instead of 540; the functions
-- do not ask for statistics, only the views and what users ask themselves.
do $$
declare
  v_column record;
begin
  for v_column in
    select a.attrelid::regclass as parent, a.attname, case when t.typlen = -1 and t.typcategory <> 'S' then 0 else 10 end as target
      from pg_attribute a
      join pg_type t on t.oid = a.atttypid
     where a.attrelid in ('millrace.job'::regclass, 'millrace.claim'::regclass, 'millrace.result'::regclass, 'millrace.report'::regclass,
                          'millrace.tally'::regclass)
       and a.attnum > 0
       and not a.attisdropped
  loop
    execute format('alter table %s alter column %I set statistics %s', v_column.parent, v_column.attname, v_column.target);
  end loop;
end $$;
