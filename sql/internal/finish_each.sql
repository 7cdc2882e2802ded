-- SPDX-License-Identifier: PostgreSQL
-- The outcomes of a finish that are more than a mark, one by one: all but what is completed with nothing to say, and what jobs_fail has seen to
-- (p_failed). Their jobs are read with one statement. Returns p_marks with theirs put in.
create or replace function millrace.finish_each(p_now timestamptz, p_claim millrace.claim, p_outcomes jsonb, p_ordinals int[], p_failed bigint[],
                                                p_stopped bigint[], p_marks text)
returns text
language plpgsql
as $$
declare
  v_slots     int2[] := millrace.held_slots(p_claim);
  v_positions bigint[] := p_claim.positions;      -- unfolded once, not for each job
  v_ids       bigint[] := coalesce(p_claim.job_ids, v_positions);
  v_mark      text;
  v_one       record;
begin
  for v_one in
    select e.ord::int as place, p_ordinals[e.ord] as at, e.job ->> 'outcome' as outcome, e.job -> 'result' as result,
           e.job ->> 'error' as error, (e.job ->> 'retry_in')::interval as retry_in, coalesce((e.job ->> 'retry')::boolean, true) as retry, coalesce((e.job ->> 'damaged')::boolean, false) as damaged,
           coalesce(e.job -> 'changes', '{}') || case when e.job ? 'delay' then jsonb_build_object('delay', e.job -> 'delay') else '{}' end as changes,
           decode(e.job ->> 'state', 'base64') as state, decode(e.job ->> 'blob', 'base64') as blob,
           array(select jsonb_array_elements_text(coalesce(e.job -> 'clear', '[]'))) as clear, h.job as held, h.pos
      from jsonb_array_elements(p_outcomes) with ordinality e(job, ord)
      left join unnest(p_failed) f(id) on f.id = (e.job ->> 'id')::bigint
     cross join lateral (select v_ids[p_ordinals[e.ord]] as id, v_positions[p_ordinals[e.ord]] as pos
                         offset 0) w
      left join lateral (select j as job, j.pos
                           from millrace.job_rows(w.id) j
                          where e.job ->> 'outcome' <> 'completed'
                            and f.id is null
                            and j.slot = any (v_slots)
                            and j.pos = w.pos
                          limit 1) h on true      -- with the limit it is looked up for each: a join would be planned for an empty log
     where millrace.outcome_is_plain(e.job) is not true
       and f.id is null
  loop
    if v_one.pos is null and v_one.outcome <> 'completed' then
      perform millrace.held_job(p_claim, v_one.at);      -- says what is wrong
    end if;
    if v_one.outcome <> 'completed' and v_positions[v_one.at] = any (p_stopped) then
      v_one.outcome := 'cancelled';
    end if;
    case v_one.outcome
      when 'cancelled' then
        perform millrace.marks_end(p_now, p_claim.lane, array[v_positions[v_one.at]]);
        v_mark := 'k';
      when 'completed' then
        if v_one.result is not null then
          perform millrace.result_keep(p_now, p_claim, v_one.at, v_one.result);
        end if;
        continue;
      when 'failed' then
        v_mark := millrace.job_fail(p_now, v_one.held, p_claim.holder, v_one.error, v_one.retry_in, v_one.retry, v_one.state,
                                    case when v_one.damaged then 'damaged' else 'failed' end);
      when 'released' then
        perform millrace.job_append(p_now, v_one.held);
        v_mark := 'r';
      when 'lost' then
        v_mark := millrace.job_rescue(p_now, v_one.held, p_claim.holder,
                                      p_claim.done_n + p_claim.failed_n > 0 or millrace.fleet_healthy(p_claim),
                                      (select q.poison_limit from millrace.queue q where q.queue_id = p_claim.lane >> 12));
      when 'requeued', 'snoozed' then
        perform millrace.check_changes(v_one.changes, v_one.clear);
        perform millrace.job_requeue(p_now, v_one.held, v_one.changes, v_one.state, v_one.blob, v_one.clear);
        v_mark := 'q';
    end case;
    p_marks := overlay(p_marks placing v_mark from v_one.place for 1);
  end loop;
  return p_marks;
end $$;
