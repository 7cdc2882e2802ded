-- SPDX-License-Identifier: PostgreSQL
-- The bridge of a name, a stream and a consumer group, made when it is not there.
create or replace function millrace.bridge_of(p_now timestamptz, p_bridge text, p_stream text, p_group text)
returns millrace.bridge
language plpgsql
as $$
declare
  c_tries constant int := 20;
  v_bridge millrace.bridge;
begin
  perform millrace.check_name('bridge', p_bridge);
  perform millrace.check_stream('stream', p_stream);
  perform millrace.check_stream('stream_group', p_group);
  for v_try in 1..c_tries loop
    select b.*
      into v_bridge
      from millrace.bridge b
     where b.bridge_name = p_bridge
       and b.stream_key = p_stream
       and b.group_key = p_group;
    if found then
      return v_bridge;
    end if;
    -- Another one may take the number, or make this bridge: then look again.
    insert into millrace.bridge (bridge_id, bridge_name, stream_key, group_key, made_at)
    select coalesce(max(b.bridge_id), 0) + 1, p_bridge, p_stream, p_group, p_now
      from millrace.bridge b
        on conflict do nothing;
  end loop;
  raise exception using errcode = 'serialization_failure',
    message = format('bridge %s was created by a concurrent transaction', quote_literal(p_bridge)),
    hint = 'Retry the transaction.';
end $$;

-- The name of a key or a group in Redis.
create or replace function millrace.check_stream(p_what text, p_name text)
returns void
language plpgsql
as $$
begin
  if p_name is null or p_name = '' then
    perform millrace.refuse(format('%s must not be %s', p_what, case when p_name is null then 'null' else 'empty' end),
      format('Give the name of the %s as Redis has it, 1 to 1000 bytes.', p_what));
  elsif octet_length(p_name) > 1000 then
    perform millrace.refuse(format('%s is %s bytes long, the limit is 1000', p_what, octet_length(p_name)),
      format('Choose a shorter name for the %s.', p_what));
  end if;
end $$;
