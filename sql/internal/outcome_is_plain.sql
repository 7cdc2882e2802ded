-- SPDX-License-Identifier: PostgreSQL
-- Whether an entry of finish says that a job is completed, and nothing else. Null may stand for no.
create or replace function millrace.outcome_is_plain(p_entry jsonb)
returns boolean
language sql
immutable
as $$
  select case
           when jsonb_typeof(p_entry) = 'object' then
             p_entry - '{id,outcome}'::text[] = '{}' and p_entry ->> 'outcome' = 'completed' and p_entry ->> 'id' is not null
         end
$$;
