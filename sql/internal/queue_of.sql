-- SPDX-License-Identifier: PostgreSQL
-- The queue of a name, created with defaults when it is not there.
-- Two first producers of one queue meet here: the second waits for the first one's commit, once in the queue's life.
create or replace function millrace.queue_of(p_name text)
returns millrace.queue
language plpgsql
as $$
declare
  v_queue millrace.queue;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_name = p_name
     and q.parent_id is null;
  if found then
    return v_queue;
  end if;
  perform millrace.check_name('queue', p_name);
  insert into millrace.queue (queue_id, queue_name)
  values (millrace.queue_id_next('millrace.queue_seq', 'queue ' || quote_literal(p_name)), p_name)
      on conflict (queue_name) where parent_id is null do nothing;
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_name = p_name
     and q.parent_id is null;
  if not found then
    -- The other one committed after this transaction's snapshot was taken (repeatable read): only a retry can see it.
    raise exception using errcode = 'serialization_failure',
      message = format('queue %s was created by a concurrent transaction', quote_literal(p_name)),
      hint = 'Retry the transaction.';
  end if;
  return v_queue;
end $$;

-- The queue of a name that must be there (MR003).
create or replace function millrace.queue_known(p_name text)
returns millrace.queue
language plpgsql
as $$
declare
  v_queue millrace.queue;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_name = p_name
     and q.parent_id is null;
  if not found then
    perform millrace.refuse_unknown(format('queue %s does not exist', coalesce(quote_literal(left(p_name, 200)), 'null')),
      'See the view millrace.queues for those there are; enqueue or set_queue makes a new one.');
  end if;
  return v_queue;
end $$;

-- The id of a new queue or tenant, p_what says for whom. Lanes are made of them, and jobs in the log and in the archive keep them: an id is never used again.
create or replace function millrace.queue_id_next(p_sequence regclass, p_what text)
returns int
language plpgsql
as $$
begin
  return nextval(p_sequence);
exception when sequence_generator_limit_exceeded then
  raise exception using errcode = 'program_limit_exceeded',
    message = format('there is no room for %s', p_what),
    detail = 'A schema can make 65,535 queues and 458,752 tenants of fair queues in all, those counted that were dropped.',
    hint = 'Name a queue or a tenant that there is: what changes from job to job belongs into args or ref. A schema in another database begins anew.';
end $$;
