-- SPDX-License-Identifier: PostgreSQL
-- finish with the time as an argument.
create or replace function millrace.finish_at(p_now timestamptz, p_lease text, p_outcomes jsonb)
returns int
language plpgsql
as $$
declare
  c_keys constant text[] := array['id', 'outcome', 'result', 'error', 'retry_in', 'retry', 'changes', 'delay', 'state', 'blob', 'clear', 'damaged'];
  v_claim    millrace.claim;
  v_ordinals int[];
  v_failed   bigint[];
  v_stopped  bigint[];
  v_marks    text;
  v_more     boolean;
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
    v_stopped := millrace.marks_of(v_claim);
    v_failed := millrace.jobs_fail(p_now, v_claim, p_outcomes, v_ordinals, v_stopped);
    -- Completed with nothing to say is settled by its mark alone.
    select coalesce(string_agg(case when f.id is null then 'c' else 'f' end, '' order by e.ord), ''),
           bool_or(f.id is null and millrace.outcome_is_plain(e.job) is not true)
      into v_marks, v_more
      from jsonb_array_elements(p_outcomes) with ordinality e(job, ord)
      left join unnest(v_failed) f(id) on f.id = (e.job ->> 'id')::bigint;
    if v_more then
      v_marks := millrace.finish_each(p_now, v_claim, p_outcomes, v_ordinals, v_failed, v_stopped, v_marks);
    end if;
  exception
    when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
      or interval_field_overflow then
      perform millrace.refuse('outcomes has a value of the wrong type: ' || sqlerrm,
        'id is a number, retry and damaged are booleans, retry_in an interval, state and blob base64 text.');
  end;
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, v_marks);
  return cardinality(v_ordinals);
end $$;
