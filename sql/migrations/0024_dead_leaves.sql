-- SPDX-License-Identifier: PostgreSQL
-- Dead letters go to a leaf until it is full, not to that of the day: a flood of them is then many leaves, and what has to go goes as a whole (see dead_retain.sql).
create sequence millrace.dead_seq as int minvalue 0 maxvalue 31;
select setval('millrace.dead_seq', (date_part('epoch', now())::bigint / 86400) % 32);
comment on sequence millrace.dead_seq is 'the leaf that new dead letters go to; moved by dead_rotate() alone';

-- What goes first in retention: this dead letter of a queue, and all that are older.
create type millrace.dead_border as (queue_id int, died_at timestamptz, job_id bigint);
