-- SPDX-License-Identifier: PostgreSQL
-- The log's row of the job at an ordinal of a claim.
do $do$
begin
  execute format($sql$
create or replace function millrace.held_job(p_claim millrace.claim, p_ordinal int)
returns millrace.job
language plpgsql
as $$
declare
  v_id    bigint := (coalesce(p_claim.job_ids, p_claim.positions))[p_ordinal];
  v_pos   bigint := p_claim.positions[p_ordinal];
  v_seg   int := millrace.held_leaf(p_claim);
  v_slots int2[];
  v_job   millrace.job;
begin
  if v_seg >= 0 then
    %s
  end if;
  if v_job.pos is null then
    v_slots := millrace.held_slots(p_claim);
    select j.*
      into v_job
      from millrace.job_rows(v_id) j
     where j.slot = any (v_slots)
       and j.pos = v_pos;
  end if;
  if v_job.pos is null then
    raise exception using errcode = 'data_corrupted',
      message = format('job %%s is missing from the log', v_id),
      hint = 'The tables of schema millrace were changed by hand, or the storage is damaged. Run "millrace doctor".';
  end if;
  return v_job;
end $$
  $sql$,
    millrace.by_leaf('v_seg', $one$
    select j.*
      into v_job
      from millrace.job_rows_%s(v_id) j
     where j.pos = v_pos;$one$));
end $do$;
