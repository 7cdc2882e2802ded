-- SPDX-License-Identifier: PostgreSQL
-- The story of one job (see job).
create or replace function millrace.job_story(p_id bigint)
returns jsonb
language plpgsql
as $$
declare
  v_story    jsonb;
  v_attempts jsonb;
  v_trail    jsonb;
  v_result   jsonb;
  v_reason   text;
  v_asked    boolean;
  v_report   record;
begin
  perform millrace.at_home();
  select to_jsonb(v) - 'row_id'
    into v_story
    from millrace.job_list v
   where v.id = p_id
     and v.row_id >= p_id
     and v.row_id <= p_id | 31
   limit 1;
  if v_story is null then
    perform millrace.refuse_job(p_id);
  end if;
  v_trail := coalesce((select j.trail from millrace.job_rows(p_id) j order by j.pos desc limit 1), '[]');
  v_trail := coalesce((select d.trail from millrace.delayed d where d.job_id = p_id limit 1), v_trail);
  v_trail := coalesce((select d.trail from millrace.dead d where d.job_id = p_id limit 1), v_trail);
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
           'attempt', j.attempt, 'worker', s.worker, 'claimed_at', s.claimed_at, 'finished_at', s.finished_at,
           'outcome', case s.letter when 'o' then 'running' when 'c' then 'completed' when 'f' then 'failed' when 'd' then 'dead'
                                    when 'r' then 'released' when 'q' then 'requeued' when 'l' then 'lost' when 'x' then 'expired'
                                    when 'p' then 'cancelled' when 'k' then 'cancelled'
                                    when 'w' then case when j.order_key is null then 'withdrawn' else 'set aside' end else 'waiting' end,
           'progress', r.percent_done, 'progress_note', r.report_note, 'progress_at', r.reported_at,
           'error', (select t ->> 'error'
                       from jsonb_array_elements(v_trail) t
                      where (t ->> 'attempt')::int = j.attempt
                        and s.letter in ('f', 'd', 'l')
                      order by t ->> 'at' desc
                      limit 1))) order by j.pos), '[]')
    into v_attempts
    from millrace.job_rows(p_id) j
   cross join lateral millrace.job_standing(j.slot, j.lane, j.seg, j.xid, j.pos) s
    left join lateral (select r.percent_done, r.report_note, r.reported_at
                         from millrace.report r
                        where r.job_id = p_id
                          and r.pos = j.pos
                        order by r.reported_at desc
                        limit 1) r on true;
  -- Not jsonb_strip_nulls: it would reach into args and meta.
  v_story := (select jsonb_object_agg(e.key, e.value) from jsonb_each(v_story) e where e.value <> 'null');
  v_result := coalesce((select r.payload_result
                        from millrace.result r
                       where r.job_id = p_id
                       order by r.finished_at desc
                       limit 1),
                     (select a.payload_result
                        from millrace.archive a
                       where a.job_id = p_id
                         and a.payload_result is not null));
  select m.mark_text, true
    into v_reason, v_asked
    from millrace.mark m
   where m.job_id = p_id
     and m.letter <> 'w'
   limit 1;
  if v_story ->> 'status' not in ('scheduled', 'available', 'paused', 'waiting') then
    v_report := millrace.report_newest(p_id);
    v_story := v_story || jsonb_strip_nulls(jsonb_build_object('progress', v_report.percent_done, 'progress_note', v_report.report_note,
                                                               'progress_at', v_report.reported_at));
  end if;
  if v_story ->> 'status' = 'available' and v_story ? 'ordering_key' then
    v_story := v_story || jsonb_strip_nulls(jsonb_build_object('waits_for', millrace.turn_before(p_id)));
  end if;
  if v_story ->> 'status' = 'available' then
    v_story := v_story || jsonb_strip_nulls(jsonb_build_object('limited_by', (select case d.why when 'k' then 'concurrency_per_key' when 't' then 'rate_per_tenant' end
                                                                               from millrace.delayed d
                                                                              where d.job_id = p_id
                                                                              limit 1)));
  end if;
  if v_story ->> 'status' = 'moved' then
    v_story := v_story || millrace.job_moved(p_id);
  end if;
  return v_story || jsonb_build_object('attempts', v_attempts, 'history', v_trail) || millrace.job_relations(p_id) || millrace.job_payload(p_id)
         || case
              when v_story ->> 'status' = 'cancelled' then jsonb_strip_nulls(jsonb_build_object('reason', coalesce(v_reason, v_result ->> 'reason')))
              when v_asked and v_story ->> 'status' = 'running' then jsonb_strip_nulls(jsonb_build_object('cancel_requested', true, 'reason', v_reason))
              when v_result is not null then jsonb_build_object('result', v_result)
              else '{}'
            end;
end $$;

-- Where a job went that was moved: the queue there and, once it has arrived, its id.
create or replace function millrace.job_moved(p_id bigint)
returns jsonb
language plpgsql
as $$
begin
  return (select jsonb_build_object('moved_to', jsonb_strip_nulls(jsonb_build_object('place', w.place_name, 'queue', w.place_queue, 'id', g.place_id, 'arrived', g.arrived)))
            from (select m.move_id, m.place_id, true as arrived
                    from millrace.moved m
                   where m.job_id = p_id
                   union all
                  select m.move_id, null, false
                    from millrace.moving m
                   where m.job_id = p_id
                     and not m.copy
                   limit 1) g
            join millrace.move w on w.move_id = g.move_id);
end $$;
