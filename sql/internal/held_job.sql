-- SPDX-License-Identifier: PostgreSQL
-- The log's row of the job at an ordinal of a claim.
create or replace function millrace.held_job(p_claim millrace.claim, p_ordinal int)
returns millrace.job
language plpgsql
as $$
declare
  v_id    bigint := (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal];
  v_pos   bigint := p_claim.positions[p_ordinal];
  v_slots int2[] := millrace.held_slots(p_claim);
  v_job   millrace.job;
begin
  select j.*
    into v_job
    from millrace.job_rows(v_id) j
   where j.slot = any (v_slots)
     and j.pos = v_pos;
  if not found then
    raise exception using errcode = 'data_corrupted',
      message = format('job %s is missing from the log', v_id),
      hint = 'The tables of schema millrace were changed by hand, or the storage is damaged. Run "millrace doctor".';
  end if;
  return v_job;
end $$;
