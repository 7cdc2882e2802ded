-- SPDX-License-Identifier: PostgreSQL
-- finish with the time as an argument.
create or replace function millrace.finish_at(p_now timestamptz, p_lease text, p_outcomes jsonb)
returns int
language plpgsql
as $$
declare
  c_keys constant text[] := array['id', 'outcome', 'result', 'error', 'retry_in', 'retry', 'changes', 'delay', 'state', 'blob', 'clear', 'damaged'];
  v_claim    millrace.claim;
  v_slots    int2[];
  v_ids      bigint[];
  v_positions bigint[];
  v_ordinals int[];
  v_failed   bigint[];
  v_stopped  bigint[];
  v_marks    text;
  v_mark     text;
  v_one      record;
begin
  if p_outcomes is null or jsonb_typeof(p_outcomes) <> 'array' then
    perform millrace.refuse('outcomes must be an array of objects',
      'Pass a JSON array such as [{"id": 1, "outcome": "completed"}, {"id": 2, "outcome": "failed", "error": "why"}].');
  end if;
  v_claim := millrace.lease_take(p_lease);
  begin
    select e.value as entry, e.value ->> 'id' as id, e.value ->> 'outcome' as outcome
      into v_one
      from jsonb_array_elements(p_outcomes) e
     where millrace.outcome_is_plain(e.value) is not true
       and (jsonb_typeof(e.value) <> 'object'
            or case when jsonb_typeof(e.value) = 'object' then e.value - c_keys <> '{}' end
            or e.value ->> 'id' is null
            or e.value ->> 'outcome' is null
            or e.value ->> 'outcome' not in ('completed', 'failed', 'released', 'requeued', 'snoozed', 'lost')
            or jsonb_typeof(e.value -> 'clear') <> 'array'
            or jsonb_typeof(e.value -> 'retry_in') in ('object', 'array')
            or jsonb_typeof(e.value -> 'delay') in ('object', 'array')
            or jsonb_typeof(e.value -> 'damaged') <> 'boolean'
            or (e.value ->> 'outcome' = 'snoozed') <> (e.value ->> 'delay' is not null))
     limit 1;
    if found then
      perform millrace.refuse(format('outcomes has a wrong entry: id %s, outcome %s%s', coalesce(v_one.id, 'null'),
                                     coalesce(quote_literal(v_one.outcome), 'null'),
                                     case when jsonb_typeof(v_one.entry) <> 'object' then ', not an object'
                                          else (select ', key ' || quote_literal(min(o))
                                                  from jsonb_object_keys(v_one.entry) o
                                                 where o <> all (c_keys)) end),
        'Each entry has id and outcome (completed, failed, released, requeued, snoozed, lost), and where it applies result, error, retry_in, retry, changes, state, blob, clear, damaged; snoozed needs delay, and nothing else has one.');
    end if;
    perform millrace.check_base64('state', e ->> 'state'), millrace.check_base64('blob', e ->> 'blob')
       from jsonb_array_elements(p_outcomes) e
      where e ?| array['state', 'blob'];
    v_ordinals := millrace.held_ordinals(v_claim, array(select (e ->> 'id')::bigint
                                                          from jsonb_array_elements(p_outcomes) e), p_lease);
    perform millrace.check_interval('retry_in', (e ->> 'retry_in')::interval)
       from jsonb_array_elements(p_outcomes) e
      where e ->> 'outcome' = 'failed'
        and e ->> 'retry_in' is not null;
    v_slots := millrace.held_slots(v_claim);
    v_positions := v_claim.positions;      -- unfolded once, not for each job
    v_ids := coalesce(v_claim.job_ids, v_positions);
    v_stopped := millrace.marks_of(v_claim);
    v_failed := millrace.jobs_fail(p_now, v_claim, v_slots, p_outcomes, v_ordinals, v_stopped);
    v_marks := coalesce((select string_agg(case when f.id is null then 'c' else 'f' end, '' order by e.ord)
                           from jsonb_array_elements(p_outcomes) with ordinality e(job, ord)
                           left join unnest(v_failed) f(id) on f.id = (e.job ->> 'id')::bigint), '');
    -- Completed with nothing to say is settled by its mark alone. The others are read here, all with one statement.
    for v_one in
      select e.ord::int as place, v_ordinals[e.ord] as at, e.job ->> 'outcome' as outcome, e.job -> 'result' as result,
             e.job ->> 'error' as error, (e.job ->> 'retry_in')::interval as retry_in, coalesce((e.job ->> 'retry')::boolean, true) as retry, coalesce((e.job ->> 'damaged')::boolean, false) as damaged,
             coalesce(e.job -> 'changes', '{}') || case when e.job ? 'delay' then jsonb_build_object('delay', e.job -> 'delay') else '{}' end as changes,
             decode(e.job ->> 'state', 'base64') as state, decode(e.job ->> 'blob', 'base64') as blob,
             array(select jsonb_array_elements_text(coalesce(e.job -> 'clear', '[]'))) as clear, h.job as held, h.pos
        from jsonb_array_elements(p_outcomes) with ordinality e(job, ord)
        left join unnest(v_failed) f(id) on f.id = (e.job ->> 'id')::bigint
       cross join lateral (select v_ids[v_ordinals[e.ord]] as id, v_positions[v_ordinals[e.ord]] as pos
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
        perform millrace.held_job(v_claim, v_one.at);      -- says what is wrong
      end if;
      if v_one.outcome <> 'completed' and v_positions[v_one.at] = any (v_stopped) then
        v_one.outcome := 'cancelled';
      end if;
      case v_one.outcome
        when 'cancelled' then
          perform millrace.marks_end(p_now, v_claim.lane, array[v_positions[v_one.at]]);
          v_mark := 'k';
        when 'completed' then
          if v_one.result is not null then
            perform millrace.result_keep(p_now, v_claim, v_one.at, v_one.result);
          end if;
          continue;
        when 'failed' then
          v_mark := millrace.job_fail(p_now, v_one.held, v_claim.holder, v_one.error, v_one.retry_in, v_one.retry, v_one.state,
                                      case when v_one.damaged then 'damaged' else 'failed' end);
        when 'released' then
          perform millrace.job_append(p_now, v_one.held);
          v_mark := 'r';
        when 'lost' then
          v_mark := millrace.job_rescue(p_now, v_one.held, v_claim.holder,
                                        v_claim.done_n + v_claim.failed_n > 0 or millrace.fleet_healthy(v_claim),
                                        (select q.poison_limit from millrace.queue q where q.queue_id = v_claim.lane >> 12));
        when 'requeued', 'snoozed' then
          perform millrace.check_changes(v_one.changes, v_one.clear);
          perform millrace.job_requeue(p_now, v_one.held, v_one.changes, v_one.state, v_one.blob, v_one.clear);
          v_mark := 'q';
      end case;
      v_marks := overlay(v_marks placing v_mark from v_one.place for 1);
    end loop;
  exception
    when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
      or interval_field_overflow then
      perform millrace.refuse('outcomes has a value of the wrong type: ' || sqlerrm,
        'id is a number, retry and damaged are booleans, retry_in an interval, state and blob base64 text.');
  end;
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, v_marks);
  return cardinality(v_ordinals);
end $$;
