-- SPDX-License-Identifier: PostgreSQL
-- bridge_admit with the time as an argument.
--
-- 1. What is applied is read in one statement: the floor and the spans of one snapshot belong together.
-- 2. The span is written before anything is applied: whoever has one of the entries in hand is waited for here.
-- 3. Between 1 and 2 another one may have applied an entry, raised the floor over it and swept its span, so that the constraint has nothing to
--    say: hence the floor is looked at once more, in a snapshot from after 2.
create or replace function millrace.bridge_admit_at(p_now timestamptz, p_bridge text, p_stream text, p_group text, p_ids text[],
                                                    p_contiguous boolean)
returns int[]
language plpgsql
as $$
declare
  c_tries constant int := 20;
  v_base   numeric;
  v_places numeric[];
  v_new    int[];
  v_id     int;
begin
  perform millrace.check_isolation('bridge_admit');
  if p_ids is null or array_position(p_ids, null) is not null or array_ndims(p_ids) > 1 then
    perform millrace.refuse('ids must be an array of ids without nulls', 'Pass the ids of the entries as Redis gave them, array[''1700000000000-0''].');
  end if;
  v_id := (millrace.bridge_of(p_now, p_bridge, p_stream, p_group)).bridge_id;
  v_base := millrace.bridge_base(v_id);
  v_places := array(select v_base + millrace.stream_place(i.id) from unnest(p_ids) with ordinality i(id, ord) order by i.ord);
  if p_contiguous and exists (select from unnest(v_places) with ordinality p(place, ord) where p.ord > 1 and p.place <= v_places[p.ord - 1]) then
    perform millrace.refuse('ids that are contiguous must rise', 'Pass the entries of one read in the order in which Redis gave them, or contiguous => false.');
  end if;
  for v_try in 1..c_tries loop
    v_new := millrace.bridge_unknown(v_id, v_places);
    if cardinality(v_new) = 0 then
      return v_new;
    end if;
    begin
      insert into millrace.bridge_span (span, made_at)
      select numrange(min(n.place), max(n.place), '[]'), p_now
        from (select v_places[u.ord] as place, case when p_contiguous then u.ord - u.no else u.ord end as island
                from unnest(v_new) with ordinality u(ord, no)) n
       group by n.island
       order by 1;
      if not exists (select from millrace.bridge b where b.bridge_id = v_id and v_base + b.floor_place > any (select v_places[u] from unnest(v_new) u)) then
        return v_new;
      end if;
      raise exclusion_violation;
    exception when exclusion_violation then
      null;       -- look again: another one was faster
    end;
  end loop;
  raise exception using errcode = 'serialization_failure',
    message = format('entries of bridge %s are being applied by others at the same time', quote_literal(p_bridge)),
    hint = 'Try again.';
end $$;

-- Which of some places have not been applied: their ordinals. Of equal ones the first.
create or replace function millrace.bridge_unknown(p_bridge_id int, p_places numeric[])
returns int[]
language sql
volatile
as $$
  select coalesce(array_agg(p.ord order by p.ord), '{}')
    from (select p.place, min(p.ord)::int as ord
            from unnest(p_places) with ordinality p(place, ord)
           group by p.place) p
    join millrace.bridge b on b.bridge_id = p_bridge_id
   where p.place >= millrace.bridge_base(b.bridge_id) + b.floor_place
     and not exists (select
                       from millrace.bridge_span s
                      where s.span @> p.place)
$$;
