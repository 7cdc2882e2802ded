-- SPDX-License-Identifier: PostgreSQL
-- The queue that takes a call's p_jobs jobs, p_ready of them at once, for a queue that has a depth_limit: that queue, or its overflow, which is not
-- followed further than one queue. Refuses where both are full (MR002) or too small for such a call (22023).
create or replace function millrace.queue_admit(p_now timestamptz, p_queue millrace.queue, p_jobs bigint, p_ready bigint)
returns millrace.queue
language plpgsql
as $$
declare
  v_depth bigint := millrace.gauge_admit(p_now, p_queue, p_jobs, p_ready);
  v_other millrace.queue;
  v_other_depth bigint;
begin
  if v_depth is null then
    return p_queue;
  end if;
  if p_queue.overflow_queue is not null then
    v_other := millrace.queue_of(p_queue.overflow_queue);
    if v_other.depth_limit is not null then
      v_other_depth := millrace.gauge_admit(p_now, v_other, p_jobs, p_ready);
    end if;
    if v_other_depth is null then
      return v_other;
    end if;
  end if;
  perform millrace.refuse_full(p_queue, v_depth, v_other, v_other_depth, p_jobs);
end $$;

-- What enqueue_jobs was given, with the jobs of full queues in their overflow. All queues are looked at before any job is moved, so that
-- none is moved twice.
create or replace function millrace.jobs_into(p_now timestamptz, p_jobs jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_one   record;
  v_to    millrace.queue;
  v_moved jsonb := '{}';
begin
  for v_one in
    select q as queue, d.jobs, d.ready
      from (select coalesce(r.queue, 'default') as queue_name, count(*) as jobs,
                   count(*) filter (where coalesce(r.run_at, p_now + r.delay, p_now) <= p_now) as ready
              from jsonb_to_recordset(p_jobs) as r(queue text, run_at timestamptz, delay interval)
             group by 1) d
      join millrace.queue q on q.queue_name = d.queue_name and q.parent_id is null
     where q.depth_limit is not null
     order by q.queue_id
  loop
    v_to := millrace.queue_admit(p_now, v_one.queue, v_one.jobs, v_one.ready);
    if v_to.queue_id <> (v_one.queue).queue_id then
      v_moved := v_moved || jsonb_build_object((v_one.queue).queue_name, v_to.queue_name);
    end if;
  end loop;
  if v_moved = '{}' then
    return p_jobs;
  end if;
  return (select jsonb_agg(case when v_moved ? coalesce(e.job ->> 'queue', 'default')
                                then e.job || jsonb_build_object('queue', v_moved -> coalesce(e.job ->> 'queue', 'default'))
                                else e.job end
                           order by e.ord)
            from jsonb_array_elements(p_jobs) with ordinality e(job, ord));
end $$;
