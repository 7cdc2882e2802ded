-- SPDX-License-Identifier: PostgreSQL
-- release with the time as an argument.
create or replace function millrace.release_at(p_now timestamptz, p_lease text, p_ids bigint[])
returns int
language plpgsql
as $$
declare
  v_claim    millrace.claim := millrace.lease_take(p_lease);
  v_ordinals int[];
  v_stopped  bigint[] := millrace.marks_of(v_claim);
  v_marks    text := '';
begin
  if p_ids is null then
    v_ordinals := array(select o
                          from generate_series(1, v_claim.n) o
                         where v_claim.outcome is null
                            or substr(v_claim.outcome, o, 1) = 'o');
  else
    v_ordinals := millrace.held_ordinals(v_claim, p_ids, p_lease);
  end if;
  for i in 1 .. cardinality(v_ordinals) loop
    if v_claim.positions[v_ordinals[i]] = any (v_stopped) then
      perform millrace.marks_end(p_now, v_claim.lane, array[v_claim.positions[v_ordinals[i]]]);
      v_marks := v_marks || 'k';
    else
      perform millrace.job_append(p_now, millrace.held_job(v_claim, v_ordinals[i]));
      v_marks := v_marks || 'r';
    end if;
  end loop;
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, v_marks);
  return cardinality(v_ordinals);
end $$;
