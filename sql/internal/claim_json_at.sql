-- SPDX-License-Identifier: PostgreSQL
-- claim_json with the time as an argument.
create or replace function millrace.claim_json_at(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                                  p_with_state boolean)
returns jsonb
language plpgsql
as $$
declare
  v_taken millrace.taken := millrace.claim_take(p_now, p_queue, p_worker, p_max_jobs, p_lease_for, p_with_state);
begin
  return jsonb_build_object('lease', v_taken.lease, 'lease_until', v_taken.until)
         || case when v_taken.limited is null then '{}' else jsonb_build_object('limited', v_taken.limited) end
         || jsonb_build_object('jobs', coalesce((select jsonb_agg(millrace.claimed_face(c)) from millrace.claim_read(v_taken, p_with_state) c), '[]'));
end $$;

-- A claimed job as an object; what is null is left out, bytes are base64. Not jsonb_strip_nulls on the whole: it would reach into args and meta.
create or replace function millrace.claimed_face(p_job millrace.claimed_job)
returns jsonb
language sql
stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
           'id', p_job.id, 'attempt', p_job.attempt, 'max_attempts', p_job.max_attempts, 'kind', p_job.kind, 'tenant', p_job.tenant, 'ref', p_job.ref,
           'priority', p_job.priority, 'source', p_job.source, 'created_at', p_job.created_at, 'timeout', p_job.timeout,
           'state', translate(encode(p_job.state, 'base64'), E'\n', ''), 'blob', translate(encode(p_job.blob, 'base64'), E'\n', '')))
         || jsonb_build_object('args', p_job.args)
         || case when p_job.meta is null then '{}' else jsonb_build_object('meta', p_job.meta) end
$$;
