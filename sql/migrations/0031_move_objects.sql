-- SPDX-License-Identifier: PostgreSQL
-- A mover that knows the blob store takes jobs whose payload is in it: functions that have one argument more.
drop function if exists millrace.move_take(int, int, boolean);
drop function if exists millrace.move_take_at(timestamptz, int, int, boolean);
drop function if exists millrace.move_gather(timestamptz, millrace.move, millrace.queue, bigint, int, boolean);
drop function if exists millrace.move_stays(bigint, bigint);
drop function if exists millrace.move_lines(timestamptz, int, millrace.queue, bigint, int);
drop function if exists millrace.move_delayed(timestamptz, int, millrace.queue, bigint, int, int);
drop function if exists millrace.move_log(timestamptz, millrace.move, millrace.queue, bigint, int, int);
drop function if exists millrace.move_ranges(timestamptz, int, bigint, int, millrace.taken);
drop function if exists millrace.move_dead(int, millrace.queue, bigint, int, int);
