-- SPDX-License-Identifier: PostgreSQL
-- The failed jobs of a finish that come back later, all with one statement: what job_fail does with one, without a function
-- and an insert for each of them. Returns their ids. Those that die, are missing from the log, or were cancelled (p_stopped) are
-- left to finish_at.
-- jobs_fail_0 to jobs_fail_15 for claims whose jobs lie in one leaf, see by_leaf; jobs_fail_all for the others.
do $do$
begin
  for slot in -1..15 loop
    execute format($sql$
create or replace function millrace.jobs_fail_%1$s(p_now timestamptz, p_claim millrace.claim, p_outcomes jsonb, p_ordinals int[], p_stopped bigint[])
returns bigint[]
language plpgsql
as $$
declare
  v_slots     int2[] := millrace.held_slots(p_claim);
  v_positions bigint[] := p_claim.positions;      -- unfolded once, not for each job
  v_held      bigint[] := coalesce(p_claim.job_ids, v_positions);
  v_ids       bigint[];
  v_kept      bigint;
begin
  with put as (
    insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                  stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source,
                                  trail, order_key, unique_name, batch_id, out_no)
    select f.due_at, f.job_id, f.created_at, f.lane, millrace.delayed_slot(p_now, f.due_at), least(f.attempt + 1, 32767), 0,
           f.attempts_limit, 'r', f.job_kind, f.payload_args, f.stale_at, f.run_limit, f.payload_meta,
           case when f.state is null then f.payload_state else millrace.state_within(f.lane, decode(f.state, 'base64')) end, f.payload_blob, f.job_tenant, f.job_ref, f.job_source,
           millrace.trail_with(f.trail, f.attempt, 'failed', f.error, p_claim.holder, p_now), f.order_key, f.unique_name, f.batch_id,
           case when greatest(coalesce(length(f.state) / 4 * 3, octet_length(f.payload_state)), octet_length(f.payload_blob)) >= 512
                then millrace.offload_no(p_now, f.due_at, f.lane) end
      from (select j.*, e.job ->> 'error' as error, e.job ->> 'state' as state,
                   p_now + coalesce((e.job ->> 'retry_in')::interval, millrace.backoff(j.job_kind, j.attempt, random())) as due_at
              from jsonb_array_elements(p_outcomes) with ordinality e(job, ord)
             cross join lateral (select v_held[p_ordinals[e.ord]] as id, v_positions[p_ordinals[e.ord]] as pos
                                 offset 0) w
             cross join lateral (select j.*
                                   from millrace.job_rows%2$s(w.id) j
                                  where %3$sj.pos = w.pos
                                  limit 1) j      -- the limit as in finish_at
             where e.job ->> 'outcome' = 'failed'
               and coalesce((e.job ->> 'retry')::boolean, true)
               and j.attempt < j.attempts_limit
               and (w.pos = any (p_stopped)) is not true) f
    returning job_id, case when millrace.is_object(payload_state) then payload_state end as state)
  select array_agg(p.job_id), sum(millrace.parts_keep(p_now, p.job_id, p.state, null)) filter (where p.state is not null)
    into v_ids, v_kept
    from put p;
  return v_ids;
end $$
    $sql$, case when slot < 0 then 'all' else slot::text end, case when slot < 0 then '' else '_' || slot end,
           case when slot < 0 then 'j.slot = any (v_slots) and ' else '' end);
  end loop;
  execute format($sql$
create or replace function millrace.jobs_fail(p_now timestamptz, p_claim millrace.claim, p_outcomes jsonb, p_ordinals int[], p_stopped bigint[])
returns bigint[]
language plpgsql
as $$
declare
  v_seg int := millrace.held_leaf(p_claim);
begin
  if v_seg is null then
    return millrace.jobs_fail_all(p_now, p_claim, p_outcomes, p_ordinals, p_stopped);
  end if;
  %s
end $$
  $sql$, millrace.by_leaf('v_seg', 'return millrace.jobs_fail_%s(p_now, p_claim, p_outcomes, p_ordinals, p_stopped);'));
end $do$;
