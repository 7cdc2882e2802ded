-- SPDX-License-Identifier: PostgreSQL
-- Begins to move a queue to a place elsewhere, or goes on with it: one row for each queue and place.
create or replace function millrace.move_begin_at(p_now timestamptz, p_queue text, p_place text, p_place_queue text)
returns jsonb
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_move  millrace.move;
begin
  perform millrace.at_home();
  v_queue := millrace.queue_known(p_queue);
  perform millrace.check_name('to_queue', p_place_queue);
  if p_place is null or p_place !~ '^[0-9]+\.[0-9]+$' then
    perform millrace.refuse(format('place %s is none', coalesce(quote_literal(left(p_place, 80)), 'null')), 'Ask the other database: move_target() returns its place.');
  elsif p_place = millrace.place() and p_place_queue = p_queue then
    perform millrace.refuse(format('queue %s cannot be moved to itself', quote_literal(p_queue)), 'Name another database, or another queue.');
  end if;
  insert into millrace.move (queue_id, place_name, place_queue, origin_name, begun_at)
  values (v_queue.queue_id, p_place, p_place_queue, '', p_now)
      on conflict on constraint move_once do nothing;
  update millrace.move m
     set origin_name = format('%s.%s', millrace.place(), m.move_id)
   where m.queue_id = v_queue.queue_id
     and m.place_name = p_place
     and m.place_queue = p_place_queue
     and not m.copy
     and m.origin_name = '';
  select m.*
    into v_move
    from millrace.move m
   where m.queue_id = v_queue.queue_id
     and m.place_name = p_place
     and m.place_queue = p_place_queue
     and not m.copy;
  return jsonb_build_object('move', v_move.move_id, 'origin', v_move.origin_name, 'ordered', v_queue.ordered, 'fair', v_queue.fair)
         || millrace.move_story_at(p_now, v_move, v_queue);
end $$;

-- Which database this is, among all.
create or replace function millrace.place()
returns text
language sql
stable
as $$
  select format('%s.%s', c.system_identifier, d.oid)
    from pg_control_system() c
   cross join pg_database d
   where d.datname = current_database()
$$;

-- What is left of a queue, and what of it has left.
create or replace function millrace.move_story_at(p_now timestamptz, p_move millrace.move, p_queue millrace.queue)
returns jsonb
language plpgsql
as $$
declare
  v_last millrace.departure := millrace.departure_newest(p_move.move_id);
begin
  return (select jsonb_build_object('available', f.available, 'scheduled', f.scheduled, 'retrying', f.retrying, 'running', f.running, 'dead', f.dead)
            from millrace.queue_figures(p_now, p_queue.queue_name, 1000000000, '0') f)
         || jsonb_build_object('moved', v_last.total, 'merged', v_last.merged_total,
                               'moving', (select count(*) from millrace.moving m where m.move_id = p_move.move_id));
end $$;
