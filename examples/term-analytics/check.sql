-- SPDX-License-Identifier: PostgreSQL
-- What came out against what came in. Each row: a name, what was expected, what is there.
select 'entries of the stream: events + dead letters', :entries::text,
       ((select count(*) from terms.atom_events) + (select count(*) from terms.triple_events) + (select count(*) from terms.deposited_events)
        + (select count(*) from terms.redeemed_events) + (select count(*) from terms.share_price_events)
        + (select count(*) from millrace.dead_letters where queue = 'indexer'))::text
union all
select 'entries that are no event: dead letters', :poison::text, (select count(*) from millrace.dead_letters where queue = 'indexer')::text
union all
select 'vaults that differ from their events', '0', (select count(*) from (
         (select v.term_id, v.curve, v.total_shares, v.total_assets from terms.vault v where v.total_shares <> 0
          except
          select m.term_id, m.curve, sum(m.shares), sum(m.assets) from (select term_id, curve, shares, assets from terms.deposited_events
                                                                         union all select term_id, curve, -shares, -assets from terms.redeemed_events) m group by 1, 2)
         union all
         (select m.term_id, m.curve, sum(m.shares), sum(m.assets) from (select term_id, curve, shares, assets from terms.deposited_events
                                                                         union all select term_id, curve, -shares, -assets from terms.redeemed_events) m group by 1, 2
          except
          select v.term_id, v.curve, v.total_shares, v.total_assets from terms.vault v)) x)::text
union all
select 'positions that differ from their events', '0', (select count(*) from (
         (select p.term_id, p.curve, p.account, p.shares from terms.position p
          except
          select m.term_id, m.curve, m.account, sum(m.shares) from (select term_id, curve, account, shares from terms.deposited_events
                                                                     union all select term_id, curve, account, -shares from terms.redeemed_events) m group by 1, 2, 3)) x)::text
union all
select 'terms whose analytics differ', '0', (select count(*) from (
         (select a.term_id, a.holders, a.volume_day from terms.term_analytics a
          except
          select v.term_id, coalesce(h.holders, 0)::int, coalesce(d.assets, 0)
            from (select distinct term_id from terms.vault) v
            left join (select p.term_id, count(*) filter (where p.shares > 0) as holders from terms.position p group by 1) h on h.term_id = v.term_id
            left join (select m.term_id, sum(m.assets) as assets from (select term_id, assets from terms.deposited_events
                                                                      union all select term_id, assets from terms.redeemed_events) m group by 1) d on d.term_id = v.term_id)) x)::text
union all
select 'terms without analytics', '0', (select count(*) from (select term_id from terms.vault except select term_id from terms.term_analytics) x)::text
union all
select 'jobs that are not finished, or dead', '0', (select sum(s.available + s.running + s.scheduled + s.retrying + s.dead) from millrace.stats() s where s.queue in ('cascade', 'term_queue'))::text;
