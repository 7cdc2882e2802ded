-- SPDX-License-Identifier: PostgreSQL
-- The last entry of a bridge that is known to be applied, as a place in its stream; null: none. Reads all its spans.
create or replace function millrace.bridge_known(p_bridge_id int)
returns numeric
language sql
volatile
as $$
  select nullif(greatest(max(b.floor_place) - 1,
                         (select max(upper(s.span)) - millrace.bridge_base(p_bridge_id)
                            from millrace.bridge_span s
                           where s.span <@ numrange(millrace.bridge_base(p_bridge_id), millrace.bridge_base(p_bridge_id + 1), '[)'))), -1)
    from millrace.bridge b
   where b.bridge_id = p_bridge_id
$$;

-- Forgets which entries were applied; returns how many rows that were.
create or replace function millrace.bridge_clear(p_bridge_id int)
returns int
language plpgsql
as $$
declare
  v_gone int;
begin
  update millrace.bridge b
     set floor_place = 0,
         floor_set_at = null
   where b.bridge_id = p_bridge_id;
  delete from millrace.bridge_span s
   where s.span <@ numrange(millrace.bridge_base(p_bridge_id), millrace.bridge_base(p_bridge_id + 1), '[)');
  get diagnostics v_gone = row_count;
  return v_gone;
end $$;
