-- SPDX-License-Identifier: PostgreSQL
-- What finishers of a batch do: take jobs in one transaction, end them in another. One job in a thousand dies.
create schema app;
create unlogged table app.held (key bigint generated always as identity, lease text, outcomes jsonb);

create function app.add(p_batch bigint, p_n int) returns bigint language sql as $$
  select count(*)
    from millrace.batch_add(p_batch, (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'm', 'args', jsonb_build_object('i', i)))
                                        from generate_series(1, p_n) i))
$$;

-- Returns 0 where there is nothing to take.
create function app.take(p_dies int, out key bigint) language plpgsql as $$
begin
  insert into app.held (lease, outcomes)
  select min(c.lease), jsonb_agg(case when (c.args ->> 'i')::int % 1000 = p_dies then jsonb_build_object('id', c.id, 'outcome', 'failed', 'error', 'e', 'retry', false)
                                      else jsonb_build_object('id', c.id, 'outcome', 'completed') end)
    from millrace.claim('m', 'w' || pg_backend_pid(), 100, '2 seconds') c
  having count(*) > 0
  returning held.key
       into key;
  key := coalesce(key, 0);
end $$;

-- A lease that was lost meanwhile is somebody else's work.
create function app.settle(p_key bigint) returns int language plpgsql as $$
begin
  return millrace.finish(h.lease, h.outcomes) from app.held h where h.key = p_key;
exception
  when sqlstate 'MR001' then
    return 0;
end $$;
