-- SPDX-License-Identifier: PostgreSQL
-- Refuses (MR004) when the schema was restored from another cluster, whose transaction ids mean nothing here.
-- The answer is remembered in a setting of the session, by the oid of the table: it holds until the schema is made anew.
create or replace function millrace.at_home()
returns void
language plpgsql
as $$
begin
  if current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text then
    return;
  end if;
  if not exists (select
                   from millrace.home h
                   join pg_control_system() c on c.system_identifier = h.system_id) then
    raise exception using errcode = 'MR004',
      message = 'this schema was restored from another cluster',
      detail = 'Its logs speak of transaction ids of another history.',
      hint = 'Run "millrace migrate" once: it appends the undelivered jobs again and makes the schema at home here.';
  end if;
  perform set_config('millrace.at_home', 'millrace.home'::regclass::oid::text, false);
end $$;

-- The same as a question, asked anew each time.
create or replace function millrace.is_home()
returns boolean
language sql
stable
as $$
  select exists (select
                   from millrace.home h
                   join pg_control_system() c on c.system_identifier = h.system_id)
$$;
