-- SPDX-License-Identifier: PostgreSQL
-- The log's row of the job at an ordinal of a claim.
create or replace function millrace.held_job(p_claim millrace.claim, p_ordinal int)
returns millrace.job
language plpgsql
as $$
declare
  v_job millrace.job;
begin
  select j.*
    into v_job
    from millrace.job j
   where j.slot = any (millrace.held_slots(p_claim))
     and j.job_id = (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal]
     and j.pos = p_claim.positions[p_ordinal];
  if not found then
    raise exception using errcode = 'data_corrupted',
      message = format('job %s is missing from the log', (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal]),
      hint = 'The tables of schema millrace were changed by hand, or the storage is damaged. Run "millrace doctor".';
  end if;
  return v_job;
end $$;
