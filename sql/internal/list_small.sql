-- SPDX-License-Identifier: PostgreSQL
-- Schedules, batches and workers as objects, for list_schedules, list_batches and list_workers.

-- The schedules by name. When they fire next is worked out for the first hundred that are active; of the others only next_at is known.
create or replace function millrace.list_schedules_at(p_now timestamptz)
returns jsonb
language plpgsql
as $$
begin
  perform millrace.at_home();
  return jsonb_build_object('schedules', coalesce((
    select jsonb_agg(millrace.page_face(to_jsonb(s) - 'nth', s.args, null)
                     || jsonb_build_object('next', case
                                                     when s.next_at is null then '[]'::jsonb
                                                     when s.nth > 100 then jsonb_build_array(s.next_at)
                                                     else millrace.schedule_times(s.cron, s.timezone, s.next_at, 3)
                                                   end) order by s.name)
      from (select s.*, count(s.next_at) over (order by s.name) as nth from millrace.schedules s) s), '[]'));
end $$;

-- One schedule, for schedule_story.
create or replace function millrace.schedule_story_of(p_name text)
returns jsonb
language plpgsql
as $$
declare
  v_row record;
begin
  perform millrace.at_home();
  select s.*
    into v_row
    from millrace.schedules s
   where s.name = p_name;
  if not found then
    perform millrace.refuse_schedule(p_name);
  end if;
  -- Not jsonb_strip_nulls on args: it would reach into them.
  return jsonb_strip_nulls(to_jsonb(v_row) - 'args')
         || jsonb_build_object('args', v_row.args,
                               'next', case when v_row.next_at is null then '[]' else millrace.schedule_times(v_row.cron, v_row.timezone, v_row.next_at, 5) end);
end $$;

-- p_first and the occurrences behind it, p_n in all.
create or replace function millrace.schedule_times(p_cron text, p_zone text, p_first timestamptz, p_n int)
returns jsonb
language plpgsql
as $$
declare
  v_spec  millrace.cron_spec := millrace.cron_parse(p_cron);
  v_times jsonb := '[]';
begin
  while p_first is not null and jsonb_array_length(v_times) < p_n loop
    v_times := v_times || to_jsonb(p_first);
    p_first := millrace.cron_after(v_spec, p_first, p_zone);
  end loop;
  return v_times;
end $$;

-- A page of batches, the newest first; at most c_rows are looked at, and for c_time.
create or replace function millrace.list_batches_page(p_filter jsonb)
returns jsonb
language plpgsql
as $$
declare
  c_rows  constant int := 20000;
  c_time  constant interval := '100 ms';
  v_until timestamptz := clock_timestamp() + c_time;
  v_f     jsonb := millrace.page_filter(p_filter, array['status', 'label', 'limit', 'after']);
  v_id    bigint := coalesce(millrace.place_number(millrace.page_place(v_f), 'id'), 9223372036854775807);
  v_batch millrace.batch;
  v_face  jsonb;
  v_faces jsonb := '[]';
  v_seen  int := 0;
  v_more  boolean := false;
begin
  perform millrace.at_home();
  if v_f ->> 'status' not in ('open', 'running', 'completed', 'failed') then
    perform millrace.refuse(format('there is no status %s of a batch', quote_literal(left(v_f ->> 'status', 80))), 'It is open, running, completed or failed.');
  end if;
  for v_batch in
    select b.*
      from millrace.batch b
     where b.batch_id < v_id
     order by b.batch_id desc
     limit c_rows
  loop
    v_seen := v_seen + 1;
    v_id := v_batch.batch_id;
    if coalesce(strpos(v_batch.batch_label, v_f ->> 'label') > 0, not v_f ? 'label') then
      v_face := millrace.batch_story(v_batch.batch_id);
      if v_face ->> 'status' = coalesce(v_f ->> 'status', v_face ->> 'status') then
        v_faces := v_faces || v_face;
      end if;
    end if;
    v_more := v_seen = c_rows or jsonb_array_length(v_faces) = (v_f ->> 'limit')::int or clock_timestamp() > v_until;
    exit when v_more;
  end loop;
  return jsonb_build_object('batches', v_faces, 'complete', not v_more, 'looked_at', v_seen,
                            'next', millrace.page_cursor(v_f, case when v_more then jsonb_build_object('id', v_id) end));
end $$;

create or replace function millrace.list_workers_all()
returns jsonb
language plpgsql
as $$
begin
  perform millrace.at_home();
  return jsonb_build_object('workers', coalesce((select jsonb_agg(jsonb_strip_nulls(to_jsonb(w)) order by w.queue, w.worker) from millrace.workers w), '[]'));
end $$;
