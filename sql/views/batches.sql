-- SPDX-License-Identifier: PostgreSQL
-- Batches and how they stand, about a second behind.
drop view if exists millrace.batches;
create view millrace.batches as
select b.batch_id as id, b.batch_label as label, case when b.sealed_at is null then 'open' when t.ended_at is null then 'running'
                                                         when t.completed_n = t.member_n then 'completed' else 'failed' end as status,
       t.member_n as jobs, t.completed_n as completed, t.dead_n as dead, t.cancelled_n as cancelled, t.expired_n as expired,
       b.began_at, b.sealed_at, t.ended_at, t.complete_job_id as on_complete, t.death_job_id as on_death, t.end_job_id as on_end,
       t.last_error as error
  from millrace.batch b
  join millrace.batch_total t on t.batch_id = b.batch_id;
comment on view millrace.batches is 'batches and how they stand';
