-- SPDX-License-Identifier: PostgreSQL
-- The functions of examples/term-analytics, called as its daemons call them: what they count, that it equals a recount, what they read, what they refuse.
-- The whole of it, with servers and kills, is tests/fault/term_analytics.bats.
\ir lib/helpers.psql
\ir ../../examples/term-analytics/schema.sql
reset search_path;
select no_plan();

-- An entry of the stream as the bridge hands it over; the block has the entry's number.
create function t.event(p_n int, p_name text, p_term text, p_args jsonb = '{}')
returns jsonb
language sql
as $$
  select jsonb_build_object('id', '1700000000000-' || p_n, 'data', jsonb_build_object('event_name', p_name, 'block_number', p_n, 'log_index', 0,
           'transaction_hash', '0x' || p_n, 'block_timestamp', date_part('epoch', now()), 'args', jsonb_strip_nulls(jsonb_build_object('term_id', p_term, 'curve', 1) || p_args)))
$$;
create function t.moved(p_n int, p_name text, p_term text, p_account text, p_shares numeric)
returns jsonb
language sql
as $$
  select t.event(p_n, p_name, p_term, jsonb_build_object('account', p_account, 'shares', p_shares::text, 'assets', p_shares::text))
$$;
-- What the three daemons do with what there is for them.
create function t.work()
returns void
language plpgsql
as $$
declare
  v_job jsonb;
begin
  for v_job in select jsonb_build_object('args', j.args) from millrace.jobs j where j.queue = 'cascade' and j.status = 'available' order by j.id loop
    perform terms.cascade(v_job);
  end loop;
  perform millrace.purge('cascade');
  perform terms.refresh_analytics(array(select jsonb_build_object('args', j.args) from millrace.jobs j where j.queue = 'term_queue' and j.status = 'available'));
  perform terms.rank_terms('{}');
end $$;

-- ---- events, and what is none ----
select is(array(select id || ': ' || error from terms.ingest_events(array[
            t.event(1, 'AtomCreated', '0xa', '{"creator": "0x1"}'), t.event(2, 'TripleCreated', '0xb', '{"subject": "0xa", "predicate": "0xa", "object": "0xa"}'),
            t.moved(3, 'Deposited', '0xa', 'ann', 100), t.moved(4, 'Deposited', '0xa', 'bob', 50), t.moved(5, 'Deposited', '0xb', 'ann', 10),
            t.event(6, 'SharePriceChanged', '0xa', '{"price": "2"}'), t.event(7, 'Vanished', '0xa'), t.event(8, 'Deposited', null), '{"id": "1700000000000-9", "data": {}}'])),
          array['1700000000000-7: no event that is known: Vanished', '1700000000000-8: no event that is known: Deposited', '1700000000000-9: no event that is known: without a name'],
          'what is no event is named, the rest is taken');
select is(array(select id from terms.ingest_events('{}')), '{}', 'an empty batch is fine');
select throws_ok($$select terms.ingest_events(array[t.moved(10, 'Deposited', '0xa', 'ann', null)])$$, '23502', null, 'an event without shares is refused');
select throws_ok($$select terms.ingest_events(array[t.event(11, 'SharePriceChanged', '0xa', '{"price": "0"}')])$$, '23514', null, 'so is a price of nothing');
select throws_ok($$select terms.ingest_events(array[t.event(12, 'SharePriceChanged', '0xa', '{"price": "dear"}')])$$, '22P02', null, 'and one that is no number');
select is((select count(*) from millrace.jobs where queue = 'cascade'), 1::bigint, 'one cascade for a batch with events, none for others');
select t.work() \g /dev/null
select results_eq($$select term_id, market_cap, holders from terms.term order by 1$$, $$values ('0xa', 300::numeric, 2), ('0xb', 10::numeric, 1)$$, 'market cap and holders');
select results_eq($$select term_id, holders, rank from terms.term_analytics order by 1$$, $$values ('0xa', 2, 1::bigint), ('0xb', 1, 2::bigint)$$, 'analytics and ranks');

-- ---- positions that open and close; prices that come late ----
select is(array(select id from terms.ingest_events(array[
            t.moved(20, 'Redeemed', '0xa', 'bob', 50), t.moved(21, 'Deposited', '0xb', 'bob', 5), t.moved(22, 'Redeemed', '0xb', 'bob', 5), t.moved(23, 'Redeemed', '0xb', 'cat', 7),
            t.moved(24, 'Deposited', '0xb', 'dan', 500), t.event(25, 'SharePriceChanged', '0xa', '{"price": "3"}'), t.event(26, 'SharePriceChanged', '0xa', '{"price": "4"}')])), '{}', 'a second batch');
select is(array(select id from terms.ingest_events(array[t.event(24, 'SharePriceChanged', '0xa', '{"price": "9"}') || '{"id": "1700000000001-0"}'])), '{}', 'a price of an earlier block');
select t.work() \g /dev/null
select results_eq($$select term_id, total_shares, share_price, position_count, market_cap from terms.vault order by 1$$,
                  $$values ('0xa', 100::numeric, 4::numeric, 1, 400::numeric), ('0xb', 503::numeric, 1::numeric, 2, 503::numeric)$$,
                  'a position that is empty, or below, is none; the newest block has the price');
select is((select string_agg(term_id || ' ' || rank, ', ' order by rank) from terms.term_analytics), '0xb 1, 0xa 2', 'all terms are ranked anew');

-- ---- a load, and the recount of check.sql ----
create function t.load(p_from int, p_events int)
returns void
language sql
as $$
  select count(*) from terms.ingest_events(array(
    select case when n % 10 < 6 then t.moved(n, 'Deposited', '0x' || n * 7 % 50, 'account ' || n * 13 % 997, 1 + n % 100)
                when n % 10 < 9 then t.moved(n, 'Redeemed', '0x' || n * 7 % 50, 'account ' || n * 11 % 997, 1 + n % 90)
                else t.event(n, 'SharePriceChanged', '0x' || n * 7 % 50, jsonb_build_object('price', (1 + n % 17)::text)) end
      from generate_series(p_from, p_from + p_events - 1) n));
$$;
select t.load(1000, 6000) \g /dev/null
select t.work() \g /dev/null
\set entries 0
\set poison 0
\o /dev/null
\ir ../../examples/term-analytics/check.sql
\o
create function t.differences()
returns text[]
language sql
as $$
  select array[(select count(*) from ((select p.term_id, p.curve, p.account, p.shares from terms.position p except table counted_positions)
                                      union all (table counted_positions except select p.term_id, p.curve, p.account, p.shares from terms.position p)) x)::text,
               (select count(*) from ((select v.term_id, v.curve, v.total_shares, v.total_assets, v.share_price, v.position_count, v.market_cap from terms.vault v except table counted_vaults)
                                      union all (table counted_vaults except select v.term_id, v.curve, v.total_shares, v.total_assets, v.share_price, v.position_count, v.market_cap from terms.vault v)) x)::text,
               (select count(*) from ((select t.term_id, t.market_cap, t.holders from terms.term t except table counted_terms)
                                      union all (table counted_terms except select t.term_id, t.market_cap, t.holders from terms.term t)) x)::text,
               (select count(*) from ((select a.term_id, a.price_change_1h, a.price_change_24h, a.price_change_7d, a.day, a.volume_day, a.holders, a.rank from terms.term_analytics a
                                       except table counted_analytics)
                                      union all (table counted_analytics except
                                       select a.term_id, a.price_change_1h, a.price_change_24h, a.price_change_7d, a.day, a.volume_day, a.holders, a.rank from terms.term_analytics a)) x)::text]
$$;
select is(t.differences(), '{0,0,0,0}', 'positions, vaults, terms, analytics are as a recount has them, EXCEPT both ways');
select cmp_ok((select count(*) from terms.position where shares <= 0), '>', 0::bigint, 'though some positions are empty');
update terms.vault set position_count = position_count + 1 where term_id = '0xa';
select isnt(t.differences(), '{0,0,0,0}', 'and the recount sees a position too many');
update terms.vault set position_count = position_count - 1 where term_id = '0xa';

-- ---- what a batch reads does not grow with what is there ----
-- Rows of a table that the cascade and the analytics of one term read.
create function t.read_by_one_term()
returns table (positions bigint, prices bigint)
language plpgsql
as $$
declare
  v_before bigint[];
  v_after  bigint[];
begin
  perform pg_stat_clear_snapshot();
  v_before := t.rows_read();
  perform terms.cascade('{"args": {"terms": {"0x13": 1700000000000}}}');
  perform terms.refresh_analytics(array['{"args": {"term_id": "0x13", "event_ms": 1700000000000}}'::jsonb]);
  perform pg_stat_clear_snapshot();
  v_after := t.rows_read();
  return query select v_after[1] - v_before[1], v_after[2] - v_before[2];
end $$;
create function t.rows_read()
returns bigint[]
language sql
as $$
  select array[(select s.seq_tup_read + coalesce(s.idx_tup_fetch, 0) from pg_stat_xact_user_tables s where s.relid = 'terms.position'::regclass),
               (select s.seq_tup_read + coalesce(s.idx_tup_fetch, 0) from pg_stat_xact_user_tables s where s.relid = 'terms.share_price_events'::regclass)]
$$;
analyze terms.share_price_events, terms.vault, terms.term, terms.term_analytics;
select results_eq('select * from t.read_by_one_term()', 'values (0::bigint, 4::bigint)', 'no position is read for a term, and of its prices four');
select t.load(30000, 3000) \g /dev/null
select results_eq('select * from t.read_by_one_term()', 'values (0::bigint, 4::bigint)', 'as many after half as many events again');

-- ---- ranks: one job for all batches until it has run ----
select is((select count(*) from millrace.jobs where queue = 'term_rank'), 1::bigint, 'ranking is enqueued once');

-- ---- paths ----
select throws_ok($$select terms.use_path('carrier pigeon')$$, '22023', 'no path: ''carrier pigeon''', 'an unknown path is refused');
select throws_ok('select terms.use_path(null)', '22023', 'no path: null', 'so is none');
select throws_ok('update terms.route set to_queue = false', '23514', null, 'and no path at all');
select millrace.purge('term_queue') \g /dev/null
select terms.use_path('both') \g /dev/null
select terms.cascade('{"args": {"terms": {"0x7": 1, "0x8": 2}}}') \g /dev/null
select results_eq($$select j.queue, j.args from millrace.jobs j where j.queue in ('term_queue', 'old_path') and j.status = 'available' order by 1, 2$$,
                  $$values ('old_path', '{"terms": {"0x7": 1, "0x8": 2}}'::jsonb), ('term_queue', '{"term_id": "0x7", "event_ms": 1}'), ('term_queue', '{"term_id": "0x8", "event_ms": 2}')$$, 'both paths');
select terms.use_path('redis') \g /dev/null
select terms.cascade('{"args": {"terms": {"0x9": 3}}}') \g /dev/null
select results_eq($$select j.queue, count(*) from millrace.jobs j where j.queue in ('term_queue', 'old_path') and j.status = 'available' group by 1 order by 1$$, $$values ('old_path', 2::bigint), ('term_queue', 2::bigint)$$, 'the old one alone');
select is(array(select id from terms.refresh_from_stream(array['{"id": "1-1", "data": {"term_id": "0x9"}}'::jsonb, '{"id": "1-2", "data": {"term_id": "0xnone"}}', '{"id": "1-3", "data": {}}'])), '{}',
          'entries of the old stream, of terms that are none too');
select is((select array_agg(term_id) from terms.term_analytics_old), '{0x9}', 'have a table of their own');
select is(terms.path_differences(), 0::bigint, 'in which is what the queue makes of them');
update terms.term_analytics_old set holders = holders + 1;
select is(terms.path_differences(), 2::bigint, 'what differs is seen, both ways');
select terms.use_path('queue') \g /dev/null

-- ---- a term once more ----
select throws_ok($$select terms.replay(null, now() - interval '1 hour', now())$$, '22023', 'a term and a time range are needed', 'no term is refused');
select throws_ok($$select terms.replay('0x7', now(), now())$$, '22023', null, 'so is an empty range');
select is(terms.replay('0x7', now() - interval '1 hour', now()), 0::bigint, 'what has not completed is not replayed');
select count(millrace.complete(l.lease)) from (select distinct c.lease from millrace.claim('term_queue', max_jobs => 100) c) l \g /dev/null
select is(terms.replay('0x7', now() - interval '1 hour', now() + interval '1 hour'), 1::bigint, 'one term of two is replayed');
select is(terms.replay('0x7', now() - interval '2 hours', now() - interval '1 hour'), 0::bigint, 'but not out of another time');
select is(array(select j.args from millrace.jobs j where j.queue = 'term_queue' and j.status = 'available'), array['{"term_id": "0x7"}'::jsonb], 'as a job of that term');
select * from finish();
