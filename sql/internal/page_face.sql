-- SPDX-License-Identifier: PostgreSQL
-- Jobs and dead letters as lists show them.

-- One value. Not jsonb_strip_nulls: it would reach into it.
create or replace function millrace.page_value(p_name text, p_value jsonb)
returns jsonb
language sql
stable
as $$
  select case
           when p_value is null then '{}'
           when pg_column_size(p_value) > 2048 or octet_length(p_value::text) > 2048 then jsonb_build_object(p_name || '_cut', true)
           else jsonb_build_object(p_name, p_value)
         end
$$;

-- Jobs and dead letters as lists show them: what is null is left out, and so are args and meta over 2 KB, with a word that they were.
create or replace function millrace.page_face(p_row jsonb, p_args jsonb, p_meta jsonb)
returns jsonb
language sql
stable
as $$
  select jsonb_strip_nulls(p_row - 'args' - 'meta' - 'history')
         || case when p_row -> 'history' is null or p_row -> 'history' = 'null' then '{}' else jsonb_build_object('history', p_row -> 'history') end
         || millrace.page_value('args', p_args)
         || millrace.page_value('meta', p_meta)
$$;

-- A row of the log, or one job of a pack.
create or replace function millrace.log_face(p_slot int, p_id bigint, p_pos bigint, p_status text, p_claim millrace.claim)
returns jsonb
language sql
stable
as $$
  select millrace.page_face(jsonb_build_object(
           'id', p_id, 'queue', q.queue_name, 'kind', j.job_kind, 'status', p_status, 'priority', (j.lane >> 5) & 127, 'attempt', j.attempt,
           'max_attempts', j.attempts_limit, 'tenant', j.job_tenant, 'ref', j.job_ref, 'source', coalesce(j.job_source, 'sql'), 'created_at', j.created_at,
           'run_at', coalesce(j.ready_at, j.created_at), 'worker', p_claim.holder, 'claimed_at', p_claim.claimed_at,
           'finished_at', case when p_status <> 'running' then p_claim.finished_at end, 'error', j.trail -> -1 ->> 'error', 'ordering_key', j.order_key),
         j.payload_args, j.payload_meta)
    from millrace.job_rows(p_id) j
    join millrace.queue q on q.queue_id = j.lane >> 12
   where j.slot = p_slot
     and j.pos = p_pos
   limit 1
$$;

create or replace function millrace.delayed_status(p_now timestamptz, p_why "char", p_stale timestamptz)
returns text
language sql
stable
as $$
  select case
           when p_why = 'p' then 'paused'
           when p_why = 'w' then 'waiting'
           when p_why not in ('o', 'k', 't') then 'scheduled'
           when p_stale <= p_now then 'expired'
           else 'available'
         end
$$;

create or replace function millrace.delayed_face(p_now timestamptz, p_job millrace.delayed)
returns jsonb
language sql
stable
as $$
  select millrace.page_face(jsonb_build_object(
           'id', p_job.job_id, 'queue', q.queue_name, 'kind', p_job.job_kind, 'status', millrace.delayed_status(p_now, p_job.why, p_job.stale_at),
           'priority', (p_job.lane >> 5) & 127, 'attempt', p_job.attempt, 'max_attempts', p_job.attempts_limit, 'tenant', p_job.job_tenant,
           'ref', p_job.job_ref, 'source', coalesce(p_job.job_source, 'sql'), 'created_at', p_job.created_at,
           'run_at', case when p_job.why in ('p', 'w') then p_job.resume_at when p_job.why in ('o', 'k', 't') then p_job.created_at else p_job.due_at end,
           'error', p_job.trail -> -1 ->> 'error', 'ordering_key', p_job.order_key), p_job.payload_args, p_job.payload_meta)
    from millrace.queue q
   where q.queue_id = p_job.lane >> 12
$$;

create or replace function millrace.dead_face(p_job millrace.dead)
returns jsonb
language sql
stable
as $$
  select millrace.page_face(jsonb_build_object(
           'id', p_job.job_id, 'queue', q.queue_name, 'kind', p_job.job_kind, 'status', 'dead', 'priority', (p_job.lane >> 5) & 127,
           'attempt', p_job.attempt, 'max_attempts', p_job.attempts_limit, 'tenant', p_job.job_tenant, 'ref', p_job.job_ref,
           'source', coalesce(p_job.job_source, 'sql'), 'created_at', p_job.created_at, 'finished_at', p_job.died_at, 'error', p_job.failure,
           'ordering_key', p_job.order_key), p_job.payload_args, p_job.payload_meta)
    from millrace.queue q
   where q.queue_id = p_job.queue_id
$$;

create or replace function millrace.archive_status(p_outcome "char")
returns text
language sql
immutable
as $$
  select case p_outcome when 'x' then 'expired' when 'k' then 'cancelled' else 'completed' end
$$;

create or replace function millrace.archive_face(p_job millrace.archive)
returns jsonb
language sql
stable
as $$
  select millrace.page_face(jsonb_build_object(
           'id', p_job.job_id, 'queue', q.queue_name, 'kind', p_job.job_kind, 'status', millrace.archive_status(p_job.outcome),
           'priority', (p_job.lane >> 5) & 127, 'attempt', p_job.attempt, 'max_attempts', p_job.attempts_limit, 'tenant', p_job.job_tenant,
           'ref', p_job.job_ref, 'source', coalesce(p_job.job_source, 'sql'), 'created_at', p_job.created_at, 'worker', p_job.holder, 'claimed_at', p_job.claimed_at,
           'finished_at', p_job.finished_at, 'error', p_job.trail -> -1 ->> 'error', 'ordering_key', p_job.order_key),
         p_job.payload_args, p_job.payload_meta)
    from millrace.queue q
   where q.queue_id = p_job.queue_id
$$;

-- A dead letter as list_dead shows it: the columns of the view.
create or replace function millrace.letter_face(p_job millrace.dead)
returns jsonb
language sql
stable
as $$
  select millrace.page_face(jsonb_build_object(
           'id', p_job.job_id, 'queue', q.queue_name, 'kind', p_job.job_kind, 'cause', p_job.cause, 'error', p_job.failure,
           'attempt', p_job.attempt, 'max_attempts', p_job.attempts_limit, 'lost', p_job.lost, 'tenant', p_job.job_tenant, 'ref', p_job.job_ref,
           'source', coalesce(p_job.job_source, 'sql'), 'created_at', p_job.created_at, 'died_at', p_job.died_at, 'history', p_job.trail, 'bytes', p_job.bytes),
         p_job.payload_args, p_job.payload_meta)
    from millrace.queue q
   where q.queue_id = p_job.queue_id
$$;
