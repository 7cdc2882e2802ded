-- SPDX-License-Identifier: PostgreSQL
-- Workers by what they hold and took lately.
drop view if exists millrace.workers;
create view millrace.workers as
select w.worker, w.queue, w.claims_open, w.jobs_running, w.last_claim_at, w.lease_until
  from millrace.worker_list() w;
comment on view millrace.workers is 'workers that hold a lease or were among the newest hundred claims of a lane';
