-- SPDX-License-Identifier: PostgreSQL
-- Events of an indexer, base tables that triggers maintain, aggregates that the cascade makes of them, analytics per term. Nothing here counts
-- again what was counted before: a batch costs what its own events cost, whatever is in the tables already.
create schema terms;
set search_path = terms;

-- ---- events: one row for each entry of the stream, named by its id, in the order of the chain by block and log index ----
create type event as (entry text, name text, term_id text, args jsonb, at timestamptz, block_number bigint, log_index int, transaction_hash text);
create table atom_events (entry text primary key, term_id text not null, creator text not null, at timestamptz not null, block_number bigint not null, log_index int not null,
                          transaction_hash text not null);
create table triple_events (entry text primary key, term_id text not null, subject text not null, predicate text not null, object text not null, at timestamptz not null,
                            block_number bigint not null, log_index int not null, transaction_hash text not null);
create table deposited_events (entry text primary key, term_id text not null, curve int not null, account text not null, shares numeric not null, assets numeric not null,
                               at timestamptz not null, block_number bigint not null, log_index int not null, transaction_hash text not null);
create table redeemed_events (entry text primary key, term_id text not null, curve int not null, account text not null, shares numeric not null, assets numeric not null,
                              at timestamptz not null, block_number bigint not null, log_index int not null, transaction_hash text not null);
create table share_price_events (entry text primary key, term_id text not null, curve int not null, price numeric not null check (price > 0), at timestamptz not null,
                                 block_number bigint not null, log_index int not null, transaction_hash text not null);
create index share_price_events_by_term on share_price_events (term_id, at, block_number, log_index);

-- ---- base tables ----
create table atom (term_id text primary key, creator text not null, created_at timestamptz not null);
create table triple (term_id text primary key, subject text not null, predicate text not null, object text not null, created_at timestamptz not null);
-- position_count is kept by the triggers, market_cap by the cascade; price_block and price_index: where on the chain the price is from.
create table vault (term_id text not null, curve int not null, total_shares numeric not null default 0, total_assets numeric not null default 0,
                    share_price numeric not null default 1, price_block bigint not null default -1, price_index int not null default -1, position_count int not null default 0,
                    market_cap numeric not null default 0, primary key (term_id, curve)) with (fillfactor = 70);
create table position (term_id text not null, curve int not null, account text not null, shares numeric not null, primary key (term_id, curve, account)) with (fillfactor = 70);
create table volume (term_id text not null, day date not null, assets numeric not null, primary key (term_id, day)) with (fillfactor = 70);
create table term (term_id text primary key, market_cap numeric not null, holders int not null) with (fillfactor = 70);

-- ---- analytics: as of updated_at; rank is null until terms are ranked for the first time. Of the old path: see below ----
create table term_analytics (term_id text primary key, price_change_1h numeric, price_change_24h numeric, price_change_7d numeric, day date not null, volume_day numeric not null,
                             holders int not null, rank bigint, updated_at timestamptz not null) with (fillfactor = 70);
create table term_analytics_old (like term_analytics including all) with (fillfactor = 70);

-- ---- what the run measures: seconds from an event to the analytics of its term, and what each call cost ----
create table lag (seconds double precision not null, at timestamptz not null default clock_timestamp());
create table cost (stage text not null, items int not null, ms double precision not null, at timestamptz not null default clock_timestamp());
create function spent(p_stage text, p_items int, p_began timestamptz) returns void language sql as $$
  insert into terms.cost (stage, items, ms) values (p_stage, p_items, 1000 * date_part('epoch', clock_timestamp() - p_began));
$$;

-- ---- triggers: statements of many rows, in one order, so that two writers do not deadlock ----
create function atoms_made() returns trigger language plpgsql as $$
begin
  insert into terms.atom select n.term_id, n.creator, n.at from new_rows n order by 1 on conflict do nothing;
  return null;
end $$;
create trigger made after insert on atom_events referencing new table as new_rows for each statement execute function atoms_made();

create function triples_made() returns trigger language plpgsql as $$
begin
  insert into terms.triple select n.term_id, n.subject, n.predicate, n.object, n.at from new_rows n order by 1 on conflict do nothing;
  return null;
end $$;
create trigger made after insert on triple_events referencing new table as new_rows for each statement execute function triples_made();

-- Shares and assets that came (1) or went (-1), as the trigger's argument says. What a position was before is what it is now without what moved: so
-- positions that open or close are counted as they do, and never again.
create function shares_moved() returns trigger language plpgsql as $$
declare
  v_sign int := tg_argv[0];
begin
  with moved as (
    select n.term_id, n.curve, n.account, v_sign * sum(n.shares) as shares, v_sign * sum(n.assets) as assets from new_rows n group by 1, 2, 3),
  held as (
    insert into terms.position as p
    select m.term_id, m.curve, m.account, m.shares from moved m order by 1, 2, 3
        on conflict (term_id, curve, account) do update set shares = p.shares + excluded.shares
    returning p.term_id, p.curve, p.account, p.shares)
  insert into terms.vault as v (term_id, curve, total_shares, total_assets, position_count)
  select m.term_id, m.curve, sum(m.shares), sum(m.assets), sum((h.shares > 0)::int - (h.shares - m.shares > 0)::int)
    from moved m join held h on h.term_id = m.term_id and h.curve = m.curve and h.account = m.account group by 1, 2 order by 1, 2
      on conflict (term_id, curve) do update set total_shares = v.total_shares + excluded.total_shares, total_assets = v.total_assets + excluded.total_assets,
         position_count = v.position_count + excluded.position_count;
  insert into terms.volume as v
  select n.term_id, (n.at at time zone 'UTC')::date, sum(n.assets) from new_rows n group by 1, 2 order by 1, 2
      on conflict (term_id, day) do update set assets = v.assets + excluded.assets;
  return null;
end $$;
create trigger moved after insert on deposited_events referencing new table as new_rows for each statement execute function shares_moved('1');
create trigger moved after insert on redeemed_events referencing new table as new_rows for each statement execute function shares_moved('-1');

-- The newest price of the chain, in whatever order prices come.
create function prices_changed() returns trigger language plpgsql as $$
begin
  insert into terms.vault as v (term_id, curve, share_price, price_block, price_index)
  select distinct on (n.term_id, n.curve) n.term_id, n.curve, n.price, n.block_number, n.log_index from new_rows n
   order by n.term_id, n.curve, n.block_number desc, n.log_index desc
      on conflict (term_id, curve) do update set share_price = excluded.share_price, price_block = excluded.price_block, price_index = excluded.price_index
   where (v.price_block, v.price_index) < (excluded.price_block, excluded.price_index);
  return null;
end $$;
create trigger changed after insert on share_price_events referencing new table as new_rows for each statement execute function prices_changed();

-- ---- the writer: called by the bridge with a batch, in the transaction that remembers its entries ----
-- What is no event that is known becomes a dead letter. One cascade for the terms of the batch is enqueued in the same transaction.
create function ingest_events(entries jsonb[]) returns table (id text, error text) language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
  v_batch terms.event[];
begin
  v_batch := array(select row(e ->> 'id', d ->> 'event_name', d -> 'args' ->> 'term_id', d -> 'args', to_timestamp((d ->> 'block_timestamp')::double precision),
                              (d ->> 'block_number')::bigint, (d ->> 'log_index')::int, d ->> 'transaction_hash')::terms.event
                     from unnest(entries) e cross join lateral (select e -> 'data' as d) d);
  return query
    select b.entry, format('no event that is known: %s', coalesce(b.name, 'without a name'))
      from unnest(v_batch) b
     where b.term_id is null
        or b.name is null
        or b.name not in ('AtomCreated', 'TripleCreated', 'Deposited', 'Redeemed', 'SharePriceChanged');
  v_batch := array(select b from unnest(v_batch) b where b.term_id is not null and b.name in ('AtomCreated', 'TripleCreated', 'Deposited', 'Redeemed', 'SharePriceChanged'));
  -- The cascade updates the same vaults, as another writer does: whoever takes all of them first, in one order, never meets them half way.
  insert into terms.vault (term_id, curve)
  select distinct b.term_id, (b.args ->> 'curve')::int from unnest(v_batch) b
   where b.name in ('Deposited', 'Redeemed', 'SharePriceChanged') and not exists (select from terms.vault v where v.term_id = b.term_id and v.curve = (b.args ->> 'curve')::int)
   order by 1, 2 on conflict do nothing;
  perform from terms.vault v where v.term_id = any (array(select b.term_id from unnest(v_batch) b)) order by v.term_id, v.curve for update;
  insert into terms.atom_events
  select b.entry, b.term_id, b.args ->> 'creator', b.at, b.block_number, b.log_index, b.transaction_hash from unnest(v_batch) b where b.name = 'AtomCreated';
  insert into terms.triple_events
  select b.entry, b.term_id, b.args ->> 'subject', b.args ->> 'predicate', b.args ->> 'object', b.at, b.block_number, b.log_index, b.transaction_hash
    from unnest(v_batch) b where b.name = 'TripleCreated';
  insert into terms.deposited_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, b.args ->> 'account', (b.args ->> 'shares')::numeric, (b.args ->> 'assets')::numeric, b.at, b.block_number, b.log_index,
         b.transaction_hash
    from unnest(v_batch) b where b.name = 'Deposited';
  insert into terms.redeemed_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, b.args ->> 'account', (b.args ->> 'shares')::numeric, (b.args ->> 'assets')::numeric, b.at, b.block_number, b.log_index,
         b.transaction_hash
    from unnest(v_batch) b where b.name = 'Redeemed';
  insert into terms.share_price_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, (b.args ->> 'price')::numeric, b.at, b.block_number, b.log_index, b.transaction_hash
    from unnest(v_batch) b where b.name = 'SharePriceChanged';
  perform millrace.enqueue('cascade', jsonb_build_object('terms', t.terms), 'cascade')
     from (select jsonb_object_agg(b.term_id, b.first_ms) as terms
             from (select b.term_id, min(split_part(b.entry, '-', 1)::bigint) as first_ms from unnest(v_batch) b group by 1) b) t
    where t.terms is not null;
  perform terms.spent('writer', cardinality(entries), v_began);
end $$;

-- ---- which way the ids of touched terms go to the analytics: the queue, the Redis stream of old, or both for comparison ----
create table route (to_queue boolean not null, to_redis boolean not null, check (to_queue or to_redis));
create unique index route_is_one on route ((true));
insert into route values (true, false);
create function use_path(path text) returns void language plpgsql as $$
begin
  if path is null or path not in ('queue', 'redis', 'both') then
    raise exception using errcode = '22023', message = format('no path: %s', coalesce(quote_literal(left(path, 200)), 'null')), hint = 'Pass queue, redis or both.';
  end if;
  update terms.route set to_queue = path in ('queue', 'both'), to_redis = path in ('redis', 'both');
end $$;

-- ---- the cascade: a transaction of its own, with the publication of the terms that it touched ----
create function cascade(job jsonb) returns void language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
  v_terms text[] := array(select k from jsonb_object_keys(job -> 'args' -> 'terms') k order by k);
  v_route terms.route;
begin
  perform from terms.vault v where v.term_id = any (v_terms) order by v.term_id, v.curve for update;
  update terms.vault v set market_cap = v.total_shares * v.share_price where v.term_id = any (v_terms) and v.market_cap <> v.total_shares * v.share_price;
  insert into terms.term as t
  select v.term_id, sum(v.market_cap), sum(v.position_count) from terms.vault v where v.term_id = any (v_terms) group by 1 order by 1
      on conflict (term_id) do update set market_cap = excluded.market_cap, holders = excluded.holders
   where (t.market_cap, t.holders) <> (excluded.market_cap, excluded.holders);
  select r.* into strict v_route from terms.route r;
  if v_route.to_queue then
    perform count(*)
       from millrace.enqueue_many('term', array(select jsonb_build_object('term_id', t.key, 'event_ms', t.value) from jsonb_each(job -> 'args' -> 'terms') t), 'term_queue');
  end if;
  if v_route.to_redis then
    perform millrace.enqueue('publish', jsonb_build_object('terms', job -> 'args' -> 'terms'), 'old_path');
  end if;
  perform terms.spent('cascade', cardinality(v_terms), v_began);
end $$;

-- ---- analytics of some terms at a time: a few steps down an index for each, however many events there are (offset 0: each price is looked for once) ----
create function figures(p_terms text[], p_now timestamptz)
returns table (term_id text, price_change_1h numeric, price_change_24h numeric, price_change_7d numeric, day date, volume_day numeric, holders int)
language sql stable as $$
  select t.term_id, p.now / nullif(p.hour, 0) - 1, p.now / nullif(p.day, 0) - 1, p.now / nullif(p.week, 0) - 1, d.day, coalesce(v.assets, 0), t.holders
    from terms.term t
   cross join (select (p_now at time zone 'UTC')::date as day) d
    left join terms.volume v on v.term_id = t.term_id and v.day = d.day
   cross join lateral (
     select (select s.price from terms.share_price_events s where s.term_id = t.term_id order by s.at desc, s.block_number desc, s.log_index desc limit 1) as now,
            (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= p_now - interval '1 hour' order by s.at, s.block_number, s.log_index limit 1) as hour,
            (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= p_now - interval '1 day' order by s.at, s.block_number, s.log_index limit 1) as day,
            (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= p_now - interval '7 days' order by s.at, s.block_number, s.log_index limit 1) as week offset 0) p
   where t.term_id = any (p_terms)
   order by t.term_id
$$;

-- Terms are ranked among all: not with each batch, but in a second from now, once for all batches until then. A job that waits or runs holds the key; the
-- lock keeps one from running between this transaction's look at the key and its commit, so that no change goes without a ranking after it.
create function rank_soon() returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('terms.rank'));
  perform millrace.enqueue('rank', queue => 'term_rank', delay => interval '1 second', unique_key => 'rank');
end $$;
create function rank_terms(job jsonb) returns void language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
  v_n     int;
begin
  perform pg_advisory_xact_lock(hashtext('terms.rank'));
  update terms.term_analytics a
     set rank = r.rank
    from (select t.term_id, rank() over (order by t.market_cap desc) as rank from terms.term t) r
   where a.term_id = r.term_id and a.rank is distinct from r.rank;
  get diagnostics v_n = row_count;
  perform terms.spent('rank', v_n, v_began);
end $$;

-- ---- the analytics worker: many terms in one statement ----
-- Rows are taken before the figures are read, by a statement of its own: of two workers with the same term the second one reads what is there when the first
-- has committed, and never writes what is older over what is newer.
create function refresh_terms(p_terms text[]) returns void language plpgsql as $$
begin
  insert into terms.term_analytics (term_id, day, volume_day, holders, updated_at)
  select t.term_id, date '1970-01-01', 0, 0, '-infinity' from terms.term t
   where t.term_id = any (p_terms) and not exists (select from terms.term_analytics a where a.term_id = t.term_id) order by 1 on conflict do nothing;
  perform from terms.term_analytics a where a.term_id = any (p_terms) order by a.term_id for update;
  update terms.term_analytics a
     set price_change_1h = f.price_change_1h, price_change_24h = f.price_change_24h, price_change_7d = f.price_change_7d,
         day = f.day, volume_day = f.volume_day, holders = f.holders, updated_at = now()
    from terms.figures(p_terms, now()) f
   where a.term_id = f.term_id;
end $$;
create function refresh_analytics(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
begin
  perform terms.rank_soon();
  perform terms.refresh_terms(array(select distinct j -> 'args' ->> 'term_id' from unnest(jobs) j));
  insert into terms.lag (seconds)
  select date_part('epoch', clock_timestamp()) - (j -> 'args' ->> 'event_ms')::double precision / 1000 from unnest(jobs) j where j -> 'args' ? 'event_ms';
  perform terms.spent('analytics', cardinality(jobs), v_began);
end $$;

-- ---- the old path: term ids in a Redis stream, whose entries a bridge hands over. Beside the queue it has a table of its own to be compared; alone it
-- does the queue's work ----
create function refresh_from_stream(entries jsonb[]) returns table (id text, error text) language plpgsql as $$
declare
  v_terms text[] := array(select distinct e -> 'data' ->> 'term_id' from unnest(entries) e);
begin
  perform terms.rank_soon();
  insert into terms.term_analytics_old as a
  select f.term_id, f.price_change_1h, f.price_change_24h, f.price_change_7d, f.day, f.volume_day, f.holders, null, now() from terms.figures(v_terms, now()) f
      on conflict (term_id) do update set price_change_1h = excluded.price_change_1h, price_change_24h = excluded.price_change_24h, price_change_7d = excluded.price_change_7d,
         day = excluded.day, volume_day = excluded.volume_day, holders = excluded.holders, updated_at = excluded.updated_at;
  if not (select r.to_queue from terms.route r) then
    perform terms.refresh_terms(v_terms);
  end if;
end $$;
-- Terms whose analytics by the two paths differ, of those that both have seen on the same day, when both are at rest.
create function path_differences() returns bigint language sql stable as $$
  with pair as (select a, o from terms.term_analytics a join terms.term_analytics_old o on o.term_id = a.term_id and o.day = a.day),
       new_path as (select (a).term_id, (a).price_change_1h, (a).price_change_24h, (a).price_change_7d, (a).volume_day, (a).holders from pair),
       old_path as (select (o).term_id, (o).price_change_1h, (o).price_change_24h, (o).price_change_7d, (o).volume_day, (o).holders from pair)
  select count(*) from ((table new_path except table old_path) union all (table old_path except table new_path)) d
$$;

-- ---- again: the jobs of one term that completed in a time range, as new jobs; returns how many. All terms: millrace.replay_completed ----
create function replay(term_id text, since timestamptz, until timestamptz) returns bigint language plpgsql as $$
begin
  if term_id is null or since is null or until is null or since >= until then
    raise exception using errcode = '22023', message = 'a term and a time range are needed', hint = 'Pass the id of a term, now() - interval ''1 hour'' and now().';
  end if;
  -- Without event_ms: how late they are is nobody's lag.
  return (select count(*)
            from millrace.enqueue_many('term', array(select j.args - 'event_ms' from millrace.jobs j
                                                      where j.queue = 'term_queue' and j.status = 'completed' and j.args ->> 'term_id' = replay.term_id
                                                        and j.finished_at >= replay.since and j.finished_at < replay.until), 'term_queue'));
end $$;
