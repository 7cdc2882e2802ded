-- SPDX-License-Identifier: PostgreSQL
-- A page of dead letters, for list_dead. In a queue those that died last come first, in all queues those with the largest id: there is an index for
-- each. At most c_rows are looked at, and for c_time.
create or replace function millrace.list_dead_page(p_filter jsonb)
returns jsonb
language plpgsql
as $$
declare
  c_rows   constant int := 20000;
  c_time   constant interval := '100 ms';
  v_until  timestamptz := clock_timestamp() + c_time;
  v_f      jsonb := millrace.page_filter(p_filter, array['queue', 'kind', 'error', 'cause', 'limit', 'after']);
  v_place  jsonb := millrace.page_place(v_f);
  v_limit  int := (v_f ->> 'limit')::int;
  v_queue  int;
  v_letter millrace.dead;
  v_walk   refcursor;
  v_seen   int := 0;
  v_faces  jsonb[] := '{}';
  v_more   boolean;
begin
  perform millrace.at_home();
  if v_f ? 'queue' then
    v_queue := (millrace.queue_known(v_f ->> 'queue')).queue_id;
  end if;
  v_walk := millrace.dead_walk(v_queue, millrace.place_number(v_place, 'at'), millrace.place_number(v_place, 'id'));
  loop
    fetch v_walk into v_letter;
    exit when not found;
    v_seen := v_seen + 1;
    v_place := jsonb_build_object('id', v_letter.job_id, 'at', millrace.epoch_us(v_letter.died_at));
    if coalesce(v_letter.job_kind = v_f ->> 'kind', true) and coalesce(v_letter.cause = v_f ->> 'cause', true)
       and (v_f ->> 'error' is null or strpos(v_letter.failure, v_f ->> 'error') > 0) then
      v_faces := v_faces || millrace.letter_face(v_letter);
    end if;
    v_more := cardinality(v_faces) = v_limit or v_seen = c_rows or clock_timestamp() > v_until;
    exit when v_more;
  end loop;
  close v_walk;
  return jsonb_build_object('jobs', to_jsonb(v_faces), 'complete', v_more is not true, 'looked_at', v_seen,
                            'next', millrace.page_cursor(v_f, case when v_more then v_place end));
end $$;

-- Dead letters behind a place: of a queue by the time they died, of all by their ids, from the newest on.
create or replace function millrace.dead_walk(p_queue_id int, p_at_us bigint, p_id bigint)
returns refcursor
language plpgsql
as $$
declare
  v_at   timestamptz := coalesce('epoch'::timestamptz + p_at_us * interval '1 microsecond', 'infinity');
  v_id   bigint := coalesce(p_id, 9223372036854775807);
  v_walk refcursor;
begin
  if p_queue_id is null then
    open v_walk for
      select d.*
        from millrace.dead d
       where d.job_id < v_id
       order by d.job_id desc;
  else
    open v_walk for
      select d.*
        from millrace.dead d
       where d.queue_id = p_queue_id
         and (d.died_at, d.job_id) < (v_at, v_id)
       order by d.died_at desc, d.job_id desc;
  end if;
  return v_walk;
end $$;
