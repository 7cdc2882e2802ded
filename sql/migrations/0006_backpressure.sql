-- SPDX-License-Identifier: PostgreSQL
-- Back-pressure: a queue that takes no more jobs than its limit, and where the rest goes.
alter table millrace.queue
  add column depth_limit    bigint,
  add column overflow_queue text;
comment on column millrace.queue.depth_limit is
  'null: none. Otherwise the queue has a gauge, three sequences of its own: depth_in_, depth_base_ and depth_at_<queue_id> (see gauge.sql)';
comment on column millrace.queue.overflow_queue is 'the name of the queue that takes what depth_limit refuses; made with the first such job';

update millrace.queue_setting s
   set column_name = v.column_name,
       least_value = v.least_value,
       most_value = v.most_value,
       summary = v.summary
  from (values
    ('depth_limit', 'depth_limit',    1,    1000000000000, 'available jobs from which new ones are refused (MR002) or go to overflow'),
    ('overflow',    'overflow_queue', null, null,          'queue that takes what depth_limit refuses')
  ) v(setting_name, column_name, least_value, most_value, summary)
 where s.setting_name = v.setting_name;

-- Counts of a lane are numbered by a sequence: one that a long transaction has not committed yet holds nobody else back.
create sequence millrace.tally_seq as bigint;
select setval('millrace.tally_seq', coalesce((select max(t.no) from millrace.tally t), 0) + 1);
comment on sequence millrace.tally_seq is 'numbers of the rows in the depth ledger';
