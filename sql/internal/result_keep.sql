-- SPDX-License-Identifier: PostgreSQL
-- Keeps the result of the job at an ordinal of a claim, in the open segment. One of more than 64 MiB is refused (22023).
create or replace function millrace.result_keep(p_now timestamptz, p_claim millrace.claim, p_ordinal int, p_result jsonb)
returns void
language plpgsql
as $$
declare
  c_most constant int := 67108864;
begin
  if pg_column_size(p_result) > c_most then
    perform millrace.refuse(format('result is %s bytes long, the limit is %s', pg_column_size(p_result), c_most),
      'Keep large results in a table or an object store such as S3, and return a reference.');
  end if;
  perform pg_current_xact_id();
  insert into millrace.result (slot, job_id, pos, finished_at, payload_result)
  values (pg_sequence_last_value('millrace.seg_seq'::regclass) % 16, (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal],
          p_claim.positions[p_ordinal], p_now, p_result);
end $$;
