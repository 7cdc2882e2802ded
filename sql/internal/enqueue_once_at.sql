-- SPDX-License-Identifier: PostgreSQL
-- enqueue_once with the time as an argument. Of two calls with one key the second waits for the end of the first's transaction, at an advisory lock on
-- the key's hash, and then sees what came of it: hence at read committed only. A key is looked for in all leaves and written to that of the time.
create or replace function millrace.enqueue_once_at(p_now timestamptz, p_key text, p_jobs jsonb, p_source text = null)
returns jsonb
language plpgsql
as $$
declare
  c_keep constant interval := '24 hours';
  v_hash bytea;
  v_old  record;
  v_ids  bigint[];
begin
  perform millrace.at_home();
  if p_key is null or p_key = '' or length(p_key) > 255 then
    perform millrace.refuse(format('idempotency_key must have 1 to 255 characters, not %s', coalesce(length(p_key)::text, 'null')),
      'Pass a text that the caller makes anew for each request and repeats when it tries again, such as a UUID.');
  end if;
  if jsonb_typeof(p_jobs) = 'object' then
    p_jobs := jsonb_build_array(p_jobs);
  end if;
  if p_jobs is null or jsonb_typeof(p_jobs) <> 'array' then
    perform millrace.refuse(format('jobs must be an array of objects or one object, not %s', coalesce(jsonb_typeof(p_jobs), 'null')),
      'Pass a JSON array such as [{"kind": "email", "args": {"to": 1}}]; an empty one is fine.');
  end if;
  perform millrace.check_isolation('enqueue_once');
  v_hash := sha256(convert_to(p_jobs::text, 'UTF8'));
  perform pg_advisory_xact_lock(1297219610, hashtext(p_key));
  select o.jobs_hash, o.job_ids
    into v_old
    from millrace.once_key o
   where o.once_name = p_key
     and o.made_at > p_now - c_keep
   limit 1;
  if found then
    if v_old.jobs_hash <> v_hash then
      raise exception using errcode = 'MR005',
        message = format('idempotency_key %s was used for other jobs', quote_literal(left(p_key, 80))),
        hint = 'Nothing was changed. Send the same jobs again, or choose another key; keys are remembered for 24 hours.';
    end if;
    return jsonb_build_object('ids', to_jsonb(v_old.job_ids), 'again', true);
  end if;
  v_ids := array(select * from millrace.enqueue_jobs_at(p_now, p_jobs, null, p_source));
  insert into millrace.once_key (slot, made_at, once_name, jobs_hash, job_ids)
  values ((date_part('epoch', p_now)::bigint / 21600) % 6, p_now, p_key, v_hash, v_ids);
  return jsonb_build_object('ids', to_jsonb(v_ids), 'again', false);
end $$;
