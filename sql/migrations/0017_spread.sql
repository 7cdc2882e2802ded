-- SPDX-License-Identifier: PostgreSQL
-- How long jobs waited and ran, as counts of jobs by how long (see spread.sql), in the ledger of each lane and in the pulse; and how many rows a page
-- of a list has looked at.

alter table millrace.tally
  add column wait_spread bigint[] not null default '{}',
  add column run_spread  bigint[] not null default '{}';
comment on column millrace.tally.wait_spread is 'jobs that have ended, by how long they waited: see spread_bounds. Counted from this version on';
comment on column millrace.tally.run_spread is 'jobs that have ended, by how long they ran';

alter table millrace.pulse
  add column wait_spread bigint[] not null default '{}',
  add column run_spread  bigint[] not null default '{}';

alter type millrace.page_part add attribute seen bigint;
comment on type millrace.page_part is
  'jobs, newest first: what they are sorted by, where to go on behind each, and the jobs; place: where to go on behind all of them, null: there is nothing more; seen: how many rows were looked at';

-- Functions that get other parameters.
drop function if exists millrace.queue_totals(millrace.queue);
drop function if exists millrace.log_batch(timestamptz, jsonb, int[], pg_snapshot[], pg_snapshot[], int[], xid8[], bigint[], int, xid8, bigint, int);
