-- SPDX-License-Identifier: PostgreSQL
-- shadow_begin, shadow_check and shadow_story with the time as an argument.
create or replace function millrace.shadow_begin_at(p_now timestamptz, p_queue text, p_place text, p_place_queue text, p_share real, p_tenant text)
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
    perform millrace.refuse(format('queue %s cannot be its own shadow', quote_literal(p_queue)), 'Name another database, or another queue.');
  elsif p_share is null or p_share <= 0 or p_share > 100 then
    perform millrace.refuse(format('share_percent must be above 0 and at most 100, not %s', coalesce(p_share::text, 'null')), 'Pass a percentage such as 10.');
  end if;
  insert into millrace.move (queue_id, place_name, place_queue, origin_name, begun_at, copy, copy_from, copy_share, copy_tenant)
  values (v_queue.queue_id, p_place, p_place_queue, '', p_now, true, millrace.snapshot(), p_share, p_tenant)
      on conflict on constraint move_once do update
     set copy_share = excluded.copy_share,
         copy_tenant = excluded.copy_tenant
  returning *
       into v_move;
  if v_move.origin_name = '' then
    v_move.origin_name := format('%s.%s', millrace.place(), v_move.move_id);
    update millrace.move m
       set origin_name = v_move.origin_name
     where m.move_id = v_move.move_id;
  end if;
  return jsonb_build_object('move', v_move.move_id, 'origin', v_move.origin_name, 'mirrored', (millrace.departure_newest(v_move.move_id)).total, 'cut', v_move.cut_n,
                            'moving', (select count(*) from millrace.moving m where m.move_id = v_move.move_id));
end $$;

-- Gives out copies as a worker would get them, compares each with what it is a copy of, and completes it. Order: in each lane copies come out as they went in.
create or replace function millrace.shadow_check_at(p_now timestamptz, p_origin text, p_max int)
returns jsonb
language plpgsql
as $$
declare
  v_queue text;
  v_job   record;
  v_old   millrace.mirror_total;
  v_new   millrace.mirror_total;
  v_lease text;
  v_lane  text;
  v_what  text;
  v_n     int := 0;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('shadow_check');
  perform millrace.check_number('max_jobs', p_max, 1, 10000);
  perform pg_advisory_xact_lock(1297219611, hashtext(p_origin));
  v_queue := (select q.queue_name
                from millrace.queue q
               where q.queue_id = (select a.queue_id from millrace.arrival a where a.origin_name = p_origin order by a.batch_no desc limit 1));
  v_old := millrace.mirror_newest(p_origin);
  v_new := v_old;
  if v_queue is not null then
    for v_job in
      select c.lease, c.id, m.ord, m.copied_id, m.hash = millrace.payload_hash(c.kind, c.args, c.meta, c.state, c.blob) as alike
        from millrace.claim_at(p_now, v_queue, 'shadow', p_max, null, true) c
        left join millrace.mirror m on m.job_id = c.id and m.origin_name = p_origin
    loop
      v_n := v_n + 1;
      v_lease := v_job.lease;
      v_lane := split_part(v_lease, '.', 2);
      v_what := case
                  when v_job.ord is null then 'extra'
                  when not v_job.alike then 'different'
                  when v_job.ord <= (v_new.last_ords ->> v_lane)::bigint then 'out of order'
                end;
      v_new.extra_n := v_new.extra_n + (v_what is not distinct from 'extra')::int;
      v_new.different_n := v_new.different_n + (v_what is not distinct from 'different')::int;
      v_new.disordered_n := v_new.disordered_n + (v_what is not distinct from 'out of order')::int;
      v_new.equal_n := v_new.equal_n + (v_what is null)::int;
      if v_job.ord is not null then
        v_new.last_ords := v_new.last_ords || jsonb_build_object(v_lane, greatest(v_job.ord, (v_new.last_ords ->> v_lane)::bigint));
      end if;
      if v_what is not null then
        insert into millrace.mirror_mismatch (origin_name, found_at, what, copied_id, job_id)
        values (p_origin, p_now, v_what, v_job.copied_id, v_job.id);
      end if;
      delete from millrace.mirror m
       where m.job_id = v_job.id;
    end loop;
  end if;
  if v_n > 0 then
    perform millrace.complete_at(p_now, v_lease, null, null);
    perform millrace.mirror_note(p_now, v_old, v_new);
  end if;
  return jsonb_build_object('checked', v_n) || millrace.mirror_facts(v_new);
end $$;

create or replace function millrace.mirror_newest(p_origin text)
returns millrace.mirror_total
language plpgsql
as $$
declare
  v_last millrace.mirror_total;
begin
  select t.*
    into v_last
    from millrace.mirror_total t
   where t.origin_name = p_origin
   order by t.no desc
   limit 1;
  if not found then
    v_last := row(p_origin, 0, '-infinity', 0, 0, 0, 0, '{}');
  end if;
  return v_last;
end $$;

create or replace function millrace.mirror_note(p_now timestamptz, p_old millrace.mirror_total, p_new millrace.mirror_total)
returns void
language plpgsql
as $$
declare
  c_kept constant int := 1000;
begin
  delete from millrace.mirror_total t
   where t.origin_name = p_old.origin_name
     and t.no = p_old.no;
  insert into millrace.mirror_total (origin_name, no, checked_at, equal_n, different_n, disordered_n, extra_n, last_ords)
  values (p_new.origin_name, p_new.no + 1, p_now, p_new.equal_n, p_new.different_n, p_new.disordered_n, p_new.extra_n, p_new.last_ords);
  if p_new.different_n + p_new.disordered_n + p_new.extra_n > p_old.different_n + p_old.disordered_n + p_old.extra_n then
    delete from millrace.mirror_mismatch m
     where m.ctid = any (array(select k.ctid
                                 from millrace.mirror_mismatch k
                                where k.origin_name = p_new.origin_name
                                order by k.found_at desc
                               offset c_kept));
  end if;
end $$;

-- Sums, and what is outstanding: copies that have come and were not given out. missing: of these, all where the queue has nothing more to give.
create or replace function millrace.mirror_facts(p_total millrace.mirror_total)
returns jsonb
language plpgsql
as $$
declare
  v_queue   text := (select q.queue_name
                       from millrace.queue q
                      where q.queue_id = (select a.queue_id from millrace.arrival a where a.origin_name = p_total.origin_name order by a.batch_no desc limit 1));
  v_waiting bigint := (select count(*) from millrace.mirror m where m.origin_name = p_total.origin_name);
begin
  return jsonb_build_object('arrived', coalesce((select a.total from millrace.arrival a where a.origin_name = p_total.origin_name order by a.batch_no desc limit 1), 0),
                            'equal', p_total.equal_n, 'different', p_total.different_n, 'out_of_order', p_total.disordered_n, 'extra', p_total.extra_n, 'waiting', v_waiting,
                            'missing', case when v_waiting > 0 and (select s.available + s.running + s.scheduled + s.retrying from millrace.stats(v_queue) s) = 0 then v_waiting else 0 end);
end $$;
