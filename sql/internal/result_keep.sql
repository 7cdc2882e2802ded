-- SPDX-License-Identifier: PostgreSQL
-- Keeps the result of the job at an ordinal of a claim, in the open segment.
create or replace function millrace.result_keep(p_now timestamptz, p_claim millrace.claim, p_ordinal int, p_result jsonb)
returns void
language plpgsql
as $$
begin
  perform pg_current_xact_id();
  insert into millrace.result (slot, job_id, pos, finished_at, payload_result)
  values (pg_sequence_last_value('millrace.seg_seq'::regclass) % 16, (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal],
          p_claim.positions[p_ordinal], p_now, p_result);
end $$;
