-- SPDX-License-Identifier: PostgreSQL
-- Where each range that a claim took ends, for claim_packs, which reads rows of the log and not jobs.
alter type millrace.taken add attribute till_xid xid8[];
alter type millrace.taken add attribute till_pos bigint[];

create type millrace.claimed_pack as (
  lease        text,
  id           bigint,
  attempt      int,
  max_attempts int,
  kind         text,
  args         jsonb,
  meta         jsonb,
  state        bytea,
  blob         bytea,
  tenant       text,
  ref          text,
  priority     int,
  source       text,
  created_at   timestamptz,
  lease_until  timestamptz,
  timeout      interval,
  pack         jsonb[]
);
comment on type millrace.claimed_pack is 'a job as claim returns it, or several that differ in id and args only';
