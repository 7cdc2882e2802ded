-- SPDX-License-Identifier: PostgreSQL
-- An application that keeps books of its own, each entry in the transaction of the call it tells of. A dump has both from one
-- snapshot: what the books say was not finished is what a restored queue has to deliver.
create schema app;
create table app.sent (id bigint, queue text, priority int, writer int, n int, delayed boolean not null default false);
create table app.held (lease text, id bigint, worker int);      -- every claim, also those that are finished
create table app.done (id bigint, lease text);
create table app.buried (id bigint);
create table app.later (id bigint);                             -- failed, comes back
create table app.counter (writer int primary key, n int);
insert into app.counter select g, 0 from generate_series(0, 99) g;
create table app.got (ord bigint generated always as identity, id bigint, attempt int, lane int, lease text);
create unlogged table app.burn (x int);

create function app.produce(p_writer int, p_queue text, p_priority int, p_jobs int) returns void language plpgsql as $$
declare
  v_n int;
begin
  update app.counter set n = n + p_jobs where writer = p_writer returning n - p_jobs into v_n;
  insert into app.sent (id, queue, priority, writer, n)
  select e.id, p_queue, p_priority, p_writer, v_n + e.ord
    from millrace.enqueue_many('work', array(select jsonb_build_object('writer', p_writer, 'n', v_n + g)
                                               from generate_series(1, p_jobs) g), p_queue, p_priority)
         with ordinality e(id, ord);
end $$;

create function app.take(p_worker int, p_queue text, p_jobs int) returns text language sql as $$
  with c as (
    insert into app.held (lease, id, worker)
    select c.lease, c.id, p_worker
      from millrace.claim(p_queue, 'worker ' || p_worker, p_jobs, '1 hour') c
    returning lease)
  select min(lease) from c
$$;

create function app.finish(p_worker int) returns void language plpgsql as $$
declare
  v_lease text;
begin
  for v_lease in select distinct h.lease from app.held h where h.worker = p_worker
                  and not exists (select from app.done d where d.lease = h.lease) loop
    perform millrace.complete(v_lease, null, '{"by": "app"}');
    insert into app.done select h.id, h.lease from app.held h where h.lease = v_lease;
  end loop;
end $$;

-- A subtransaction that writes takes an xid of its own.
create procedure app.burn_xids(p_n int) language plpgsql as $$
begin
  for i in 1 .. p_n loop
    begin
      insert into app.burn values (i);
      raise no_data_found;
    exception when no_data_found then
    end;
    if i % 10000 = 0 then
      commit;
      truncate app.burn;
    end if;
  end loop;
end $$;

-- Takes everything that is available and completes it, in transactions of their own.
create procedure app.drain() language plpgsql as $$
declare
  v_queue text;
  v_lease text;
begin
  for v_queue in select queue from millrace.queues loop
    loop
      with c as (
        insert into app.got (id, attempt, lane, lease)
        select c.id, c.attempt, split_part(c.lease, '.', 2)::int, c.lease
          from millrace.claim(v_queue, 'drain', 37, '1 hour') c
        returning lease)
      select min(lease) into v_lease from c;
      commit;
      exit when v_lease is null;
      perform millrace.complete(v_lease);
      commit;
    end loop;
  end loop;
end $$;
