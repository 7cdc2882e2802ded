-- SPDX-License-Identifier: PostgreSQL
-- Limits of a queue: how many of its jobs run at once, and how many are started in a time.
alter table millrace.queue
  add column concurrency_limit int,
  add column rate_limit text;
comment on column millrace.queue.concurrency_limit is 'jobs running at once; null: any number';
comment on column millrace.queue.rate_limit is 'jobs started per time, as rate_parse reads it; null: any number';

alter table millrace.queue_setting add column zero_hint text;
comment on column millrace.queue_setting.zero_hint is 'what to do instead, for those who set 0';
update millrace.queue_setting s
   set column_name = 'concurrency_limit',
       least_value = 1,
       most_value = 1000000,
       zero_hint = 'To stop a queue, pause it; null takes the limit away.'
 where s.setting_name = 'concurrency';
update millrace.queue_setting s
   set column_name = 'rate_limit',
       value_type = 'rate',
       summary = 'jobs started per time, such as 100/s, 5000/min, 20/h'
 where s.setting_name = 'rate';

-- What queues with a rate have started, a row for each claim, appended under the queue's lock. The running total makes any period the
-- difference of two rows. Four leaves, one an hour, for periods up to an hour, and four of half a day for longer ones.
create table millrace.started (
  slot          int2 not null,
  queue_id      int not null,
  started_at    timestamptz not null,
  started_total bigint not null,
  started_n     int not null
) partition by list (slot);
comment on table millrace.started is 'what queues with a rate have started';
do $$
begin
  for i in 0..7 loop
    execute format('create table millrace.started_%s partition of millrace.started for values in (%s)', i, i);
  end loop;
end $$;
create index started_queue on millrace.started (queue_id, started_at, started_total);

alter type millrace.taken add attribute limited text;
comment on type millrace.taken is
  'what a claim took: n jobs, in ranges of the log that are still to be read, or read already; limited: concurrency or rate, where the queue has a limit';
