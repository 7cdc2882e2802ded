-- SPDX-License-Identifier: PostgreSQL
-- Tenants of fair queues: each is a row of queue, with the name and the settings of its queue, its parent.

-- Where the jobs of a tenant go: into the tenant's own lanes if the queue is fair, else into the queue's. Made with the first job; two first producers
-- of one tenant meet here, as those of a queue do: the second waits for the first one's commit, once in the tenant's life.
create or replace function millrace.tenant_of(p_queue millrace.queue, p_tenant text)
returns millrace.queue
language plpgsql
as $$
declare
  v_tenant millrace.queue;
begin
  if p_tenant is null or not p_queue.fair then
    return p_queue;
  end if;
  select q.*
    into v_tenant
    from millrace.queue q
   where q.parent_id = p_queue.queue_id
     and q.tenant_name = p_tenant;
  if found then
    return v_tenant;
  end if;
  insert into millrace.queue
  select (jsonb_populate_record(p_queue, jsonb_build_object(
            'queue_id', millrace.queue_id_next('millrace.tenant_seq', 'tenant ' || quote_literal(p_tenant)), 'parent_id', p_queue.queue_id,
            'tenant_name', p_tenant, 'created_at', clock_timestamp(), 'paused_at', null, 'fair', false, 'has_tenants', false))).*
      on conflict (parent_id, tenant_name) where parent_id is not null do nothing;
  select q.*
    into v_tenant
    from millrace.queue q
   where q.parent_id = p_queue.queue_id
     and q.tenant_name = p_tenant;
  if not found then
    -- As in queue_of.
    raise exception using errcode = 'serialization_failure',
      message = format('tenant %s was created by a concurrent transaction', quote_literal(p_tenant)),
      hint = 'Retry the transaction.';
  end if;
  return v_tenant;
end $$;

-- A queue, or the tenant of it that is named. The queue must be there (MR003) and be fair (22023), and the tenant be known (MR003).
create or replace function millrace.tenant_known(p_name text, p_tenant text)
returns millrace.queue
language plpgsql
as $$
declare
  v_queue  millrace.queue := millrace.queue_known(p_name);
  v_tenant millrace.queue;
begin
  if p_tenant is null then
    return v_queue;
  elsif not v_queue.has_tenants then
    perform millrace.refuse(format('queue %s is not fair: it has no tenants of its own', quote_literal(p_name)),
      format('Make it fair with set_queue(%s, ''{"fair": true}''), or leave tenant out.', quote_literal(p_name)));
  end if;
  select q.*
    into v_tenant
    from millrace.queue q
   where q.parent_id = v_queue.queue_id
     and q.tenant_name = p_tenant;
  if not found then
    perform millrace.refuse_unknown(format('queue %s has no tenant %s', quote_literal(p_name), quote_literal(left(p_tenant, 200))),
      'See tenant_stats() for those there are; a tenant is known from its first job on.');
  end if;
  return v_tenant;
end $$;

-- The queue that a queue's id belongs to: of a tenant its parent.
create or replace function millrace.queue_owner(p_queue_id int)
returns int
language plpgsql
as $$
begin
  return case when p_queue_id < 65536 then p_queue_id else (select q.parent_id from millrace.queue q where q.queue_id = p_queue_id) end;
end $$;

-- The ids of a queue and its tenants.
create or replace function millrace.family(p_queue_id int)
returns setof int
language sql
stable
rows 100
as $$
  select p_queue_id
   union all
  select q.queue_id
    from millrace.queue q
   where q.parent_id = p_queue_id
$$;

-- The queue to which the jobs of a lane belong: a tenant's is the fair one.
create or replace function millrace.queue_of_lane(p_lane int)
returns int
language sql
stable
as $$
  select coalesce(q.parent_id, q.queue_id)
    from millrace.queue q
   where q.queue_id = p_lane >> 12
$$;

-- The lanes of a queue and its tenants, in any order.
create or replace function millrace.lanes_family(p_queue millrace.queue)
returns int[]
language plpgsql
as $$
begin
  if not p_queue.has_tenants then
    return millrace.lanes_of(p_queue, 0);
  end if;
  return array(select distinct l.lane + p
                 from millrace.family(p_queue.queue_id) f
                 join millrace.lane l on l.lane >= f << 12 and l.lane < (f + 1) << 12
                cross join generate_series(0, p_queue.parts_seen - 1) p);
end $$;

-- Gives tenants the settings of their queue. Called when those change, and now and then: a tenant that was being made at that moment has the old ones.
create or replace function millrace.tenants_follow(p_queue_id int)
returns bigint
language plpgsql
as $$
declare
  v_columns text := (select string_agg(format('%I', s.column_name), ', ' order by s.column_name) || ', parts_seen'
                       from millrace.queue_setting s
                      where s.setting_name <> 'fair'
                        and s.column_name is not null);
  v_n bigint;
begin
  execute format('update millrace.queue t
                     set (%1$s) = (select %1$s from millrace.queue where queue_id = $1)
                   where t.parent_id = $1
                     and row(%2$s) is distinct from (select row(%1$s) from millrace.queue where queue_id = $1)',
                 v_columns, 't.' || replace(v_columns, ', ', ', t.'))
    using p_queue_id;
  get diagnostics v_n = row_count;
  return v_n;
end $$;
