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
   where j.slot = any (array(select (g % 16)::int2
                               from generate_series(p_claim.min_seg, least(p_claim.last_seg, p_claim.min_seg + 15)) g) || -1::int2)
     and j.job_id = (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal]
     and j.pos = p_claim.positions[p_ordinal];
  if not found then
    raise exception using errcode = 'data_corrupted',
      message = format('job %s is missing from the log', (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal]),
      hint = 'The tables of schema millrace were changed by hand, or the storage is damaged. Run "millrace doctor".';
  end if;
  return v_job;
end $$;
