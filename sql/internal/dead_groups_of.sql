-- SPDX-License-Identifier: PostgreSQL
-- Dead letters by what went wrong, for dead_groups: over the newest 20,000.
create or replace function millrace.dead_groups_of(p_queue text)
returns jsonb
language plpgsql
as $$
declare
  c_rows  constant int := 20000;
  v_queue int;
begin
  perform millrace.at_home();
  if p_queue is not null then
    v_queue := (millrace.queue_known(p_queue)).queue_id;
  end if;
  -- Two walks, one of which is empty: each has its index.
  return (select jsonb_build_object('groups', coalesce(jsonb_agg(to_jsonb(g) order by g.jobs desc, g.last_at desc) filter (where g.jobs > 0), '[]'),
                                    'complete', coalesce(sum(g.jobs), 0) <= c_rows)
            from (select q.queue_name as queue, d.job_kind as kind, millrace.error_shape(d.failure) as error, count(*) as jobs,
                         min(d.died_at) as first_at, max(d.died_at) as last_at, max(d.job_id) as sample_id
                    from ((select d.queue_id, d.job_kind, left(d.failure, 400) as failure, d.died_at, d.job_id
                             from millrace.dead d
                            where d.queue_id = v_queue
                            order by d.died_at desc, d.job_id desc
                            limit c_rows + 1)
                           union all
                          (select d.queue_id, d.job_kind, left(d.failure, 400), d.died_at, d.job_id
                             from millrace.dead d
                            where v_queue is null
                            order by d.job_id desc
                            limit c_rows + 1)) d
                    join millrace.queue q on q.queue_id = d.queue_id
                   group by 1, 2, 3) g);
end $$;

-- An error without what differs from job to job: quoted parts, uuids and numbers become #. The first 200 characters.
create or replace function millrace.error_shape(p_error text)
returns text
language sql
immutable
as $$
  select left(regexp_replace(p_error, '''[^'']*''|"[^"]*"|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9]+', '#', 'g'), 200)
$$;
