-- SPDX-License-Identifier: PostgreSQL
-- Whether the jobs of a tenant go to the route of a queue that has one: always the same tenants for a share, those of shadow --share. Jobs without a tenant by chance,
-- each for itself.
create or replace function millrace.route_takes(p_queue millrace.queue, p_tenant text)
returns boolean
language plpgsql
volatile
as $$
begin
  return case
           when p_tenant is null then random() * 100
           when p_tenant = any (string_to_array(p_queue.route_tenants, ',')) then -1
           else millrace.shadow_share(p_tenant, null)
         end < p_queue.route_share;
end $$;

-- The queue for a job of a queue that has a route: that one, or its route, whose own route is not asked. Order and limits of a key are of one queue, so jobs with
-- an ordering key stay.
create or replace function millrace.queue_route(p_queue millrace.queue, p_tenant text, p_ordering_key text)
returns millrace.queue
language plpgsql
as $$
begin
  if p_ordering_key is null and millrace.route_takes(p_queue, p_tenant) then
    return millrace.queue_of(p_queue.route_queue);
  end if;
  return p_queue;
end $$;

-- How many of p_jobs jobs without a tenant go to the route: the share of them, and what is left of a job by chance.
create or replace function millrace.route_count(p_queue millrace.queue, p_jobs int)
returns int
language sql
volatile
as $$
  select floor(p_jobs * p_queue.route_share / 100.0 + random())::int
$$;

-- What enqueue_jobs was given, with the jobs that a route takes in their other queue. These have the queue that was named as "asked": their unique keys are of that one.
create or replace function millrace.jobs_routed(p_jobs jsonb)
returns jsonb
language plpgsql
as $$
begin
  perform millrace.queue_of(q.route_queue)
     from (select distinct coalesce(r.queue, 'default') as queue_name
             from jsonb_to_recordset(p_jobs) as r(queue text)) d
     join millrace.queue q on q.queue_name = d.queue_name and q.parent_id is null
    where q.route_queue is not null
    order by q.route_queue;
  return (select jsonb_agg(case when q.route_queue is not null and e.job ->> 'ordering_key' is null and millrace.route_takes(q, e.job ->> 'tenant')
                                then e.job || jsonb_build_object('queue', q.route_queue, 'asked', q.queue_name)
                                else e.job end
                           order by e.ord)
            from jsonb_array_elements(p_jobs) with ordinality e(job, ord)
            join millrace.queue q on q.queue_name = coalesce(e.job ->> 'queue', 'default') and q.parent_id is null);
end $$;
