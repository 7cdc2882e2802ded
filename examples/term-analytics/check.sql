-- SPDX-License-Identifier: PostgreSQL
-- What came out against what came in: everything counted again from the events, and compared by EXCEPT both ways. Each row: a name, what was
-- expected, what is there. Variables: entries (of the stream), poison (of these, no events).
create temporary view moves as
select d.term_id, d.curve, d.account, d.shares, d.assets, d.assets as volume, (d.at at time zone 'UTC')::date as day from terms.deposited_events d
 union all
select r.term_id, r.curve, r.account, -r.shares, -r.assets, r.assets, (r.at at time zone 'UTC')::date from terms.redeemed_events r;

create temporary view counted_positions as
select m.term_id, m.curve, m.account, sum(m.shares) as shares from moves m group by 1, 2, 3;

create temporary view counted_vaults as
select k.term_id, k.curve, coalesce(m.shares, 0) as total_shares, coalesce(m.assets, 0) as total_assets, coalesce(s.price, 1) as share_price,
       coalesce(p.n, 0) as position_count, coalesce(m.shares, 0) * coalesce(s.price, 1) as market_cap
  from (select m.term_id, m.curve from moves m union select s.term_id, s.curve from terms.share_price_events s) k
  left join (select m.term_id, m.curve, sum(m.shares) as shares, sum(m.assets) as assets from moves m group by 1, 2) m using (term_id, curve)
  left join (select p.term_id, p.curve, count(*) as n from counted_positions p where p.shares > 0 group by 1, 2) p using (term_id, curve)
  left join (select distinct on (s.term_id, s.curve) s.term_id, s.curve, s.price
               from terms.share_price_events s order by s.term_id, s.curve, s.block_number desc, s.log_index desc) s using (term_id, curve);

create temporary view counted_terms as
select v.term_id, sum(v.market_cap) as market_cap, sum(v.position_count) as holders from counted_vaults v group by 1;

-- The row says as of when it is: which hour, day and week are meant.
create temporary view counted_analytics as
select a.term_id, n.price / h.price - 1 as price_change_1h, n.price / d.price - 1 as price_change_24h, n.price / w.price - 1 as price_change_7d,
       a.day, coalesce(v.assets, 0) as volume_day, t.holders, t.rank
  from (select t.term_id, t.holders, rank() over (order by t.market_cap desc) as rank from counted_terms t) t
  join terms.term_analytics a using (term_id)
  left join (select m.term_id, m.day, sum(m.volume) as assets from moves m group by 1, 2) v on v.term_id = t.term_id and v.day = a.day
  left join (select distinct on (s.term_id) s.term_id, s.price from terms.share_price_events s order by s.term_id, s.at desc, s.block_number desc, s.log_index desc) n on n.term_id = t.term_id
  left join lateral (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= a.updated_at - interval '1 hour' order by s.at, s.block_number, s.log_index limit 1) h on true
  left join lateral (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= a.updated_at - interval '1 day' order by s.at, s.block_number, s.log_index limit 1) d on true
  left join lateral (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= a.updated_at - interval '7 days' order by s.at, s.block_number, s.log_index limit 1) w on true;

select 'entries of the stream: events + dead letters', :entries::text,
       ((select count(*) from terms.atom_events) + (select count(*) from terms.triple_events) + (select count(*) from terms.deposited_events)
        + (select count(*) from terms.redeemed_events) + (select count(*) from terms.share_price_events)
        + (select count(*) from millrace.dead_letters where queue = 'indexer'))::text
union all
select 'entries that are no event: dead letters', :poison::text, (select count(*) from millrace.dead_letters where queue = 'indexer')::text
union all
select 'positions that differ from a recount', '0', (select count(*) from (
         (select p.term_id, p.curve, p.account, p.shares from terms.position p except table counted_positions)
         union all (table counted_positions except select p.term_id, p.curve, p.account, p.shares from terms.position p)) x)::text
union all
select 'vaults that differ from a recount', '0', (select count(*) from (
         (select v.term_id, v.curve, v.total_shares, v.total_assets, v.share_price, v.position_count, v.market_cap from terms.vault v except table counted_vaults)
         union all (table counted_vaults except select v.term_id, v.curve, v.total_shares, v.total_assets, v.share_price, v.position_count, v.market_cap from terms.vault v)) x)::text
union all
select 'terms that differ from a recount', '0', (select count(*) from (
         (select t.term_id, t.market_cap, t.holders from terms.term t except table counted_terms)
         union all (table counted_terms except select t.term_id, t.market_cap, t.holders from terms.term t)) x)::text
union all
select 'analytics that differ from a recount', '0', (select count(*) from (
         (select a.term_id, a.price_change_1h, a.price_change_24h, a.price_change_7d, a.day, a.volume_day, a.holders, a.rank from terms.term_analytics a except table counted_analytics)
         union all (table counted_analytics except select a.term_id, a.price_change_1h, a.price_change_24h, a.price_change_7d, a.day, a.volume_day, a.holders, a.rank from terms.term_analytics a)) x)::text
union all
select 'terms without analytics', '0', (select count(*) from (select term_id from counted_terms except select term_id from terms.term_analytics) x)::text
union all
select 'jobs that are not finished, or dead', '0',
       (select sum(s.available + s.running + s.scheduled + s.retrying + s.dead) from millrace.stats() s where s.queue in ('cascade', 'term_queue', 'term_rank'))::text;
