-- SPDX-License-Identifier: PostgreSQL
-- Errors that public functions raise. The texts are part of the interface: lower case, no period;
-- the hint is a sentence that names the remedy.

-- A bad argument (22023).
create or replace function millrace.refuse(p_message text, p_hint text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = '22023', message = p_message, hint = p_hint;
end $$;

-- A lease that is not, or no longer, the live one (MR001).
create or replace function millrace.refuse_lease(p_lease text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'MR001',
    message = format('lease %s is lost', coalesce(quote_literal(left(p_lease, 80)), 'null')),
    detail = 'The token is wrong, its jobs were rescued after it expired, or they are finished already.',
    hint = 'Nothing was changed. Drop the work and claim again; for long jobs call heartbeat() before the lease expires.';
end $$;

-- A queue that is full, and its overflow where it has one (MR002). A call of more jobs than the last of them ever takes is a bad argument.
create or replace function millrace.refuse_full(p_queue millrace.queue, p_depth bigint, p_other millrace.queue, p_other_depth bigint,
                                                p_jobs bigint)
returns void
language plpgsql
as $$
declare
  v_limit bigint := coalesce(p_other.depth_limit, p_queue.depth_limit);
begin
  if p_jobs > v_limit then
    perform millrace.refuse(format('%s jobs at once are more than queue %s takes', p_jobs,
                                   quote_literal(coalesce(p_other.queue_name, p_queue.queue_name))),
      format('Its depth_limit is %s: enqueue at most that many in one call, or raise the limit with set_queue.', v_limit));
  end if;
  raise exception using errcode = 'MR002',
    message = format('queue %s is full', quote_literal(p_queue.queue_name))
              || coalesce(', and so is its overflow ' || quote_literal(p_other.queue_name), ''),
    hint = format('%s jobs wait in it and its depth_limit is %s', p_depth, p_queue.depth_limit)
           || coalesce('; in ' || quote_literal(p_other.queue_name) || format(' %s wait and the limit is %s', p_other_depth, p_other.depth_limit), '')
           || '. Try again when workers have taken some, start more workers, or raise the limit with set_queue.';
end $$;

-- A job, queue or schedule that is not there (MR003).
create or replace function millrace.refuse_unknown(p_message text, p_hint text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'MR003', message = p_message, hint = p_hint;
end $$;
