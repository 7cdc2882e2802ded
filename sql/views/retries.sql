-- SPDX-License-Identifier: PostgreSQL
-- Retry policies by kind (see set_retry).
drop view if exists millrace.retries;
create view millrace.retries as
select p.policy_kind as kind, p.attempts_limit as max_attempts, p.base_delay as base, p.growth as factor, p.delay_cap as cap,
       p.jitter_share as jitter
  from millrace.retry_policy p;
comment on view millrace.retries is 'attempts and backoff of the kinds that have a policy';
