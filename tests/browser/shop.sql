-- SPDX-License-Identifier: PostgreSQL
-- The traffic of a shop, for tools/dashboard-picture: shop.feed() puts jobs into five queues, shop.work() takes some of one, each once a call.
select millrace.set_queue('email', '{"warn_depth": 2000, "critical_depth": 20000}');
select millrace.set_queue('payments', '{"warn_depth": 500}');
select millrace.set_queue('search-index', '{"warn_depth": 5000, "critical_depth": 50000}');
select millrace.set_queue('thumbnails', '{"warn_depth": 300, "critical_depth": 5000}');
select millrace.set_retry('charge', 3, '3 seconds', 2, '1 minute', 0.5);
select millrace.set_retry('send', 4, '4 seconds', 2, '1 minute', 0.5);
select millrace.enqueue('report', '{"month": "2026-10"}', 'reports', delay => '3 hours');
select millrace.enqueue('report', '{"month": "2026-11"}', 'reports', delay => '30 days');

create schema shop;
create table shop.trade (queue text primary key, kind text not null, mean double precision not null, failing double precision not null, batch int not null);
insert into shop.trade values
  ('email', 'send', 28, 0.012, 40), ('payments', 'charge', 9, 0.03, 14), ('search-index', 'index', 45, 0.001, 60), ('thumbnails', 'resize', 16, 0.004, 11),
  ('webhooks', 'deliver', 12, 0.05, 16);

create function shop.feed()
returns void
language plpgsql
as $$
declare
  v_wave  double precision := 1 + 0.45 * sin(date_part('epoch', clock_timestamp()) / 23) + 0.2 * random();
  v_trade shop.trade;
begin
  for v_trade in select t.* from shop.trade t loop
    perform count(*)
       from millrace.enqueue_many(v_trade.kind, array(select jsonb_build_object('no', (random() * 100000)::int, 'customer', 'c-' || (random() * 999)::int)
                                                        from generate_series(1, (v_trade.mean * v_wave * (0.7 + 0.6 * random()) / 3)::int)), v_trade.queue);
  end loop;
end $$;

create procedure shop.work(p_queue text)
language plpgsql
as $$
declare
  c_errors constant text[] := array['connection refused: 10.0.3.7:443', 'card declined for "customer 17"', 'timeout after 30 s'];
  v_trade  shop.trade := (select t from shop.trade t where t.queue = p_queue);
  v_job    millrace.claimed_job;
  v_lease  text;
  v_done   bigint[] := '{}';
begin
  for v_job in select c.* from millrace.claim(p_queue, p_queue || '-' || (1 + (random() * 2)::int), (v_trade.batch * (0.35 + 0.3 * random()))::int + 1) c loop
    v_lease := v_job.lease;
    if random() < v_trade.failing then
      perform millrace.fail(v_lease, v_job.id, c_errors[1 + (random() * 2.99)::int]);
    else
      v_done := v_done || v_job.id;
    end if;
  end loop;
  commit;
  perform pg_sleep(0.05 + 0.25 * random());
  if v_done <> '{}' then
    perform millrace.complete(v_lease, v_done);
  end if;
end $$;
