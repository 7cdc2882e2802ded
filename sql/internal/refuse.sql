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

-- A job, queue or schedule that is not there (MR003).
create or replace function millrace.refuse_unknown(p_message text, p_hint text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'MR003', message = p_message, hint = p_hint;
end $$;

-- A part of the interface that this version does not have yet (0A000).
create or replace function millrace.refuse_feature(p_what text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = '0A000',
    message = format('%s is not supported by this version', p_what),
    hint = 'Nothing was changed. Leave it out, or upgrade Millrace once a version supports it.';
end $$;
