-- SPDX-License-Identifier: PostgreSQL
-- Whether every part of a claimed job can be read. A damaged value would otherwise raise when the rows are sent,
-- after the claim, and stop its lane for ever.
create or replace function millrace.job_decodes(p_job millrace.claimed_job)
returns boolean
language plpgsql
as $$
begin
  perform length(p_job.args::text), length(p_job.meta::text);
  perform get_byte(p_job.state, 0) where length(p_job.state) > 0;
  perform get_byte(p_job.blob, 0) where length(p_job.blob) > 0;
  return true;
exception
  when data_corrupted or internal_error or data_exception then
    return false;
end $$;
