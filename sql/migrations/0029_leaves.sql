-- SPDX-License-Identifier: PostgreSQL
-- Functions that have become one for each leaf of the ring.
drop function if exists millrace.range_look(int, int, xid8, bigint, xid8, pg_snapshot, int);
drop function if exists millrace.take_odd(timestamptz, int, int, xid8, bigint, xid8, pg_snapshot, int, int, int, bigint, text, timestamptz, boolean,
                                          boolean);
drop function if exists millrace.lane_news(int, int, xid8, bigint, xid8[], bigint[], xid8[]);
drop function if exists millrace.jobs_fail(timestamptz, millrace.claim, int2[], jsonb, int[], bigint[]);
drop function if exists millrace.range_odd(int, int, xid8, bigint, xid8, pg_snapshot, int);
