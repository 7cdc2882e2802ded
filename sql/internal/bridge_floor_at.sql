-- SPDX-License-Identifier: PostgreSQL
-- bridge_floor with the time as an argument. Floor and sweep are one transaction: bridge_admit sees both or none.
create or replace function millrace.bridge_floor_at(p_now timestamptz, p_bridge text, p_stream text, p_group text, p_below text)
returns int
language plpgsql
as $$
declare
  c_sweep constant int := 10000;
  v_place  numeric := millrace.stream_place(p_below);
  v_bridge millrace.bridge := millrace.bridge_of(p_now, p_bridge, p_stream, p_group);
  v_base   numeric := millrace.bridge_base(v_bridge.bridge_id);
  v_swept  int;
begin
  update millrace.bridge b
     set floor_place = v_place,
         floor_set_at = p_now
   where b.bridge_id = v_bridge.bridge_id
     and b.floor_place < v_place;
  delete from millrace.bridge_span d
   where d.ctid = any (array(select s.ctid
                               from millrace.bridge_span s
                              where s.span <@ numrange(v_base, v_base + greatest(v_place, v_bridge.floor_place), '[)')
                              limit c_sweep));
  get diagnostics v_swept = row_count;
  return v_swept;
end $$;
