-- SPDX-License-Identifier: PostgreSQL
-- Dead letters, newest first in the index (queue, died_at).
drop view if exists millrace.dead_letters;
create view millrace.dead_letters as
select d.job_id as id, q.queue_name as queue, d.job_kind as kind, d.cause, d.failure as error, d.attempt::int as attempt,
       d.attempts_limit::int as max_attempts, d.lost::int as lost, d.payload_args as args, d.payload_meta as meta, d.job_tenant as tenant,
       d.job_ref as ref, coalesce(d.job_source, 'sql') as source, d.created_at, d.died_at, d.trail as history, d.bytes
  from millrace.dead d
  join millrace.queue q on q.queue_id = d.queue_id;
comment on view millrace.dead_letters is 'dead letters with the error of their last attempt and the history of all';
