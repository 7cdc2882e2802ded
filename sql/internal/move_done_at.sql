-- SPDX-License-Identifier: PostgreSQL
-- A batch has arrived elsewhere: it is forgotten here, but for where each job went. p_arrived: what move_arrive said, with their ids there in the order of the batch; null where it is not
-- known any more. Objects that only its jobs named are removed. Nothing, and 0, where somebody has said so before.
create or replace function millrace.move_done_at(p_now timestamptz, p_move int, p_batch bigint, p_arrived jsonb)
returns bigint
language plpgsql
as $$
declare
  v_gone bigint[];
  v_ids  bigint[] := array(select i::bigint from jsonb_array_elements_text(case when jsonb_typeof(p_arrived -> 'ids') = 'array' then p_arrived -> 'ids' else '[]' end) i);
  v_last millrace.departure;
  v_n    bigint;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('move_done');
  perform millrace.move_locked(p_move);
  v_last := millrace.departure_newest(p_move);
  if p_batch is null or p_batch > v_last.batch_no + 1 then
    perform millrace.refuse(format('batch %s of move %s was not taken', coalesce(p_batch::text, 'null'), p_move),
      format('The last one that arrived is %s.', v_last.batch_no));
  elsif p_batch <= v_last.batch_no then
    return 0;
  end if;
  with gone as (
    delete from millrace.moving m
     where m.move_id = p_move
       and m.batch_no = p_batch
    returning m.job_id, m.lane, m.ord, m.facts, m.copy),
  kept as (
    insert into millrace.moved (slot, moved_at, job_id, place_id, created_at, lane, move_id, attempt, attempts_limit, job_kind, job_tenant, job_ref, job_source)
    select (date_part('epoch', p_now)::bigint / 86400) % 8, p_now, g.job_id, v_ids[row_number() over (order by g.ord)], (g.facts ->> 'created_at')::timestamptz, g.lane, p_move,
           (g.facts ->> 'attempt')::int2, (g.facts ->> 'max_attempts')::int2, g.facts ->> 'kind', g.facts ->> 'tenant', g.facts ->> 'ref', g.facts ->> 'source'
      from gone g
     where not g.copy)
  select count(*), array_agg(g.job_id) filter (where not g.copy)
    into v_n, v_gone
    from gone g;
  if exists (select from millrace.blob_object) then
    perform millrace.objects_doom_all(p_now, v_gone);      -- the other database has what was in them
  end if;
  insert into millrace.departure (move_id, batch_no, departed_at, total, merged_total)
  values (p_move, p_batch, p_now, v_last.total + v_n, v_last.merged_total + coalesce((p_arrived ->> 'merged')::int, 0));
  delete from millrace.departure d
   where d.move_id = p_move
     and d.batch_no <= v_last.batch_no;
  return v_n;
end $$;
