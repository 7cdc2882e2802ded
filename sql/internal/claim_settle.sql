-- SPDX-License-Identifier: PostgreSQL
-- Writes the outcome of some jobs of a locked claim: one letter of p_marks for each of p_ordinals.
-- The claim ends with its last open job, and then looks like one that was finished whole.
do $do$
declare
  c_update constant text := $one$
  update millrace.claim_%s k
     set open_n = v_open,
         done_n = k.done_n + v_done,
         failed_n = k.failed_n + v_n - length(translate(p_marks, 'fd', '')),
         run_us = k.run_us + v_n * (date_part('epoch', p_now - k.claimed_at) * 1e6)::bigint,
         status = case when v_open = 0 then 'd' else 'r' end,
         finished_at = case when v_open = 0 then p_now end,
         outcome = case when v_outcome <> repeat('c', p_claim.n) then v_outcome end
   where k.lane = p_claim.lane
     and k.no = p_claim.no;$one$;
begin
  execute format($sql$
create or replace function millrace.claim_settle(p_now timestamptz, p_claim millrace.claim, p_ordinals int[], p_marks text)
returns void
language plpgsql
as $$
declare
  v_slot    int := p_claim.slot;      -- -1: parked
  v_n       int := cardinality(p_ordinals);
  v_done    int := v_n - length(replace(p_marks, 'c', ''));
  v_open    int := p_claim.open_n - v_n;
  v_outcome text := millrace.outcome_with(coalesce(p_claim.outcome, repeat('o', p_claim.n)), p_ordinals, p_marks);
begin
  if v_n = 0 then
    return;
  end if;
  if v_slot < 0 then
    %s
  else
    %s
  end if;
  if p_claim.hooks is not null then
    perform millrace.jobs_ended(p_now, millrace.hooks_of(p_claim.hooks, p_ordinals), p_marks);
  end if;
end $$
  $sql$, format(c_update, 'parked'), millrace.by_leaf('v_slot', c_update));
end $do$;
