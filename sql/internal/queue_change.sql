-- SPDX-License-Identifier: PostgreSQL
-- Creates a queue or changes its settings, each checked against its row in queue_setting. A setting without a default is off without a value.
create or replace function millrace.queue_change(p_name text, p_settings jsonb)
returns void
language plpgsql
as $$
declare
  v_queue   millrace.queue;
  v_key     text;
  v_value   text;
  v_setting millrace.queue_setting;
  v_number  numeric;
  v_hint    text;
begin
  perform millrace.at_home();
  perform millrace.check_name('queue', p_name);
  if p_settings is null or jsonb_typeof(p_settings) <> 'object' then
    perform millrace.refuse('settings must be an object', 'Pass ''{}'' to create a queue with defaults.');
  end if;
  select t.key, t.value::text
    into v_key, v_value
    from jsonb_each(p_settings) t
   where jsonb_typeof(t.value) in ('object', 'array')
   limit 1;
  if found then
    perform millrace.refuse(format('setting %s does not accept %s', v_key, left(v_value, 200)), 'Pass a number or a text.');
  end if;
  v_queue := millrace.queue_of(p_name);
  for v_key, v_value in select t.key, t.value from jsonb_each_text(p_settings) t loop
    select s.*
      into v_setting
      from millrace.queue_setting s
     where s.setting_name = v_key;
    if not found then
      perform millrace.refuse(format('there is no setting %s', quote_literal(left(v_key, 200))),
        format('Settings are %s.', (select string_agg(s.setting_name, ', ' order by s.setting_name) from millrace.queue_setting s)));
    end if;
    v_hint := format('%s; the default is %s.', initcap(left(v_setting.summary, 1)) || substr(v_setting.summary, 2),
                     coalesce(v_setting.default_text, 'off'));
    begin
      v_value := coalesce(v_value, v_setting.default_text);
      v_number := case v_setting.value_type
                    when 'interval' then date_part('epoch', v_value::interval)::numeric
                    when 'text' then null
                    when 'rate' then (millrace.rate_parse(v_value, v_key)).most
                    when 'boolean' then null
                    else v_value::bigint
                  end;
      if v_number < v_setting.least_value or v_number > v_setting.most_value then
        perform millrace.refuse(format('setting %s must be from %s to %s%s, not %s', v_key, v_setting.least_value, v_setting.most_value,
                                       case v_setting.value_type when 'interval' then ' seconds' else '' end, v_value),
          coalesce(case when v_number = 0 then v_setting.zero_hint end, v_hint));
      end if;
      execute format('update millrace.queue set %I = $1::%s where queue_id = $2', v_setting.column_name,
                     case v_setting.value_type when 'rate' then 'text' else v_setting.value_type end)
        using v_value, v_queue.queue_id;
    exception
      when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
        or check_violation or interval_field_overflow then
        perform millrace.refuse(format('setting %s does not accept %s', v_key, quote_literal(left(v_value, 200))), v_hint);
    end;
  end loop;
  update millrace.queue q
     set parts_seen = greatest(q.parts_seen, w.parts)
    from (select q.queue_id,
                 case
                   when q.ordered then 32
                   when q.key_limit is not null or q.tenant_rate is not null then least(q.part_count + 1, 32)      -- see lines_claim
                   else q.part_count
                 end as parts
            from millrace.queue q) w
   where q.queue_id = v_queue.queue_id
     and w.queue_id = q.queue_id
     and q.parts_seen < w.parts;
  perform millrace.check_limits(v_queue.queue_id);
  perform millrace.check_transport(v_queue.queue_id);
  if p_settings ->> 'fair' is not null then
    perform millrace.fair_begin(v_queue.queue_id);
  end if;
  perform millrace.check_fair(v_queue.queue_id);
  if v_queue.has_tenants then
    perform millrace.tenants_follow(v_queue.queue_id);
  end if;
  perform millrace.turns_reset(clock_timestamp(), v_queue.queue_id, v_queue.ordered);
  perform millrace.lines_reset(clock_timestamp(), v_queue);
  perform millrace.check_other(p_name, t.key, t.value)
     from jsonb_each(p_settings) t
    where t.key in ('overflow', 'route');
  if p_settings ->> 'depth_limit' is not null then
    perform millrace.gauge_make(v_queue.queue_id);      -- after the queue's row, which lets one caller at a time through
  end if;
end $$;

-- Limits for each key or tenant are no business of an ordered queue (22023).
create or replace function millrace.check_limits(p_queue_id int)
returns void
language plpgsql
as $$
declare
  v_queue millrace.queue;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_queue_id
     and q.ordered;
  if v_queue.key_limit is not null then
    perform millrace.refuse('setting concurrency_per_key and ordered exclude each other',
      'In an ordered queue one job of a key runs at a time; where order does not matter set concurrency_per_key alone.');
  elsif v_queue.tenant_rate is not null then
    perform millrace.refuse('setting rate_per_tenant and ordered exclude each other',
      'Set one of them to null or false, or give the jobs two queues.');
  end if;
end $$;

-- Workers that take jobs from a stream keep no order (22023).
create or replace function millrace.check_transport(p_queue_id int)
returns void
language plpgsql
as $$
begin
  if exists (select from millrace.queue q where q.queue_id = p_queue_id and q.ordered and q.transport = 'redis') then
    perform millrace.refuse('setting transport redis and ordered exclude each other',
      'Workers take jobs from the stream side by side. Leave transport direct, or give the jobs that need no order a queue of their own.');
  end if;
end $$;

-- Settings that a queue cannot have that is fair or was: its tenants have lanes of their own, where jobs may be left, and these settings are about the
-- lanes of one queue.
create or replace function millrace.check_fair(p_queue_id int)
returns void
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_other text;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_queue_id
     and q.has_tenants;
  select string_agg(s.setting_name, ', ' order by s.setting_name)
    into v_other
    from (values
      ('concurrency',         v_queue.concurrency_limit is not null),
      ('rate',                v_queue.rate_limit is not null),
      ('concurrency_per_key', v_queue.key_limit is not null),
      ('rate_per_tenant',     v_queue.tenant_rate is not null),
      ('depth_limit',         v_queue.depth_limit is not null),
      ('overflow',            v_queue.overflow_queue is not null),
      ('ordered',             v_queue.ordered)
    ) s(setting_name, is_set)
   where s.is_set;
  if v_other is not null then
    perform millrace.refuse(format('a fair queue cannot have %s', v_other),
      format('Leave %s off. A queue that was fair keeps its tenants until it is dropped. A fair queue may be the overflow of another one.', v_other));
  end if;
end $$;

-- Makes a queue ready for tenants, if it is fair. It stays so when it is not fair any more: jobs may be in their lanes.
create or replace function millrace.fair_begin(p_queue_id int)
returns void
language plpgsql
as $$
begin
  update millrace.queue q
     set has_tenants = true
   where q.queue_id = p_queue_id
     and q.fair
     and not q.has_tenants;
  if found then
    perform millrace.fair_make(p_queue_id);
  end if;
end $$;

-- Another queue, by its name, or null.
create or replace function millrace.check_other(p_queue text, p_setting text, p_other jsonb)
returns void
language plpgsql
as $$
begin
  if jsonb_typeof(p_other) = 'null' then
    return;
  elsif jsonb_typeof(p_other) <> 'string' then
    perform millrace.refuse(format('setting %s does not accept %s', p_setting, left(p_other::text, 200)),
      'Pass the name of a queue as a text, or null for none.');
  end if;
  perform millrace.check_name(p_setting, p_other #>> '{}');
  if p_other #>> '{}' = p_queue then
    perform millrace.refuse(format('queue %s cannot be its own %s', quote_literal(p_queue), p_setting), 'Name another queue, or null for none.');
  end if;
end $$;
