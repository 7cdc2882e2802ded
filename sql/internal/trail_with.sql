-- SPDX-License-Identifier: PostgreSQL
-- A job's trail with one more entry: what became of an attempt. At most twenty entries, the newest.
create or replace function millrace.trail_with(p_trail jsonb, p_attempt int, p_outcome text, p_error text, p_holder text,
                                               p_at timestamptz)
returns jsonb
language plpgsql
as $$
begin
  p_trail := coalesce(p_trail, '[]') || jsonb_strip_nulls(jsonb_build_object(
    'attempt', p_attempt, 'outcome', p_outcome, 'error', left(p_error, 8192), 'worker', p_holder, 'at', p_at));
  while jsonb_array_length(p_trail) > 20 loop
    p_trail := p_trail - 0;
  end loop;
  return p_trail;
end $$;
