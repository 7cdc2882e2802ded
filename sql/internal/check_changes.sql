-- SPDX-License-Identifier: PostgreSQL
-- Checks what requeue was asked to change and to clear.
create or replace function millrace.check_changes(p_changes jsonb, p_clear text[])
returns void
language plpgsql
as $$
declare
  c_changes constant text[] := array['queue', 'priority', 'run_at', 'delay', 'args', 'meta'];
  c_parts   constant text[] := array['args', 'meta', 'state', 'blob'];
  v_bad     text;
begin
  if p_changes is null or jsonb_typeof(p_changes) <> 'object' then
    perform millrace.refuse('changes must be an object', 'Pass ''{}'' to change nothing.');
  end if;
  select k
    into v_bad
    from jsonb_object_keys(p_changes) k
   where k <> all (c_changes)
   limit 1;
  if found then
    perform millrace.refuse(format('changes has the unknown key %s', quote_literal(v_bad)),
      format('Keys are %s; state and blob are arguments of their own.', array_to_string(c_changes, ', ')));
  end if;
  select e.key
    into v_bad
    from jsonb_each(p_changes) e
   where jsonb_typeof(e.value) in ('object', 'array')
     and e.key not in ('args', 'meta')
   limit 1;
  if found then
    perform millrace.refuse(format('changes: %s must not be an %s', v_bad, jsonb_typeof(p_changes -> v_bad)),
      'Only args and meta may be objects or arrays.');
  end if;
  select c
    into v_bad
    from unnest(p_clear) c
   where c is null
      or c <> all (c_parts)
   limit 1;
  if found or p_clear is null then
    perform millrace.refuse(format('clear has the unknown part %s', coalesce(quote_literal(v_bad), 'null')),
      format('Parts are %s.', array_to_string(c_parts, ', ')));
  end if;
  if p_changes ->> 'run_at' is not null and p_changes ->> 'delay' is not null then
    perform millrace.refuse('changes has both run_at and delay', 'Give one of them.');
  end if;
  perform millrace.check_interval('delay', (p_changes ->> 'delay')::interval);
  perform (p_changes ->> 'priority')::int, (p_changes ->> 'run_at')::timestamptz;
exception
  when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
    or interval_field_overflow then
    perform millrace.refuse('changes has a value of the wrong type: ' || sqlerrm, 'priority is a number, run_at a time, delay an interval.');
end $$;
