-- SPDX-License-Identifier: PostgreSQL
-- Producers and claimers of a fair queue that keep books of their own, each entry in the transaction of the call it tells of.
create schema app;
create table app.sent (id bigint, tenant text);
create table app.got (id bigint, tenant text);

-- One to five jobs of a random tenant, the first of which is the deepest; now and then a transaction that is rolled back.
create procedure app.produce() language plpgsql as $$
declare
  v_tenant text := 'tenant-' || floor(power(random(), 3) * 200)::int;
begin
  insert into app.sent (id, tenant)
  select e.id, v_tenant
    from generate_series(1, 1 + floor(random() * 5)::int) g
   cross join lateral millrace.enqueue('k', to_jsonb(g), 'fair', tenant => v_tenant) e(id);
  if random() < 0.05 then
    rollback;
  end if;
end $$;

-- Claims a few, and completes, releases or fails them; now and then the claim is rolled back.
create procedure app.work() language plpgsql as $$
declare
  v_lease text;
  v_ids   bigint[];
  v_who   text[];
begin
  select min(c.lease), array_agg(c.id), array_agg(c.tenant)
    into v_lease, v_ids, v_who
    from millrace.claim('fair', max_jobs => 1 + floor(random() * 10)::int) c;
  if random() < 0.05 then
    rollback;
    return;
  end if;
  commit;
  if v_lease is null then
    return;
  elsif random() < 0.1 then
    perform millrace.release(v_lease);
  else
    insert into app.got (id, tenant) select * from unnest(v_ids, v_who);
    perform millrace.complete(v_lease);
  end if;
end $$;
