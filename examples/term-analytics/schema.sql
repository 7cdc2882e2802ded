-- SPDX-License-Identifier: PostgreSQL
-- Events of an indexer, base tables that triggers maintain, aggregates that the cascade recomputes, analytics per term.
create schema terms;
set search_path = terms;

-- ---- events: one row for each entry of the stream, named by its id ----
create table atom_events (entry text primary key, term_id text not null, creator text not null, at timestamptz not null);
create table triple_events (entry text primary key, term_id text not null, subject text not null, predicate text not null, object text not null, at timestamptz not null);
create table deposited_events (entry text primary key, term_id text not null, curve int not null, account text not null, shares numeric not null, assets numeric not null, at timestamptz not null);
create table redeemed_events (entry text primary key, term_id text not null, curve int not null, account text not null, shares numeric not null, assets numeric not null, at timestamptz not null);
create table share_price_events (entry text primary key, term_id text not null, curve int not null, price numeric not null check (price > 0), at timestamptz not null);
create index share_price_events_by_term on share_price_events (term_id, at);

-- ---- base tables ----
create table atom (term_id text primary key, creator text not null, created_at timestamptz not null);
create table triple (term_id text primary key, subject text not null, predicate text not null, object text not null, created_at timestamptz not null);
create table vault (term_id text not null, curve int not null, total_shares numeric not null default 0, total_assets numeric not null default 0,
                    share_price numeric not null default 1, position_count int not null default 0, primary key (term_id, curve)) with (fillfactor = 70);
create table position (term_id text not null, curve int not null, account text not null, shares numeric not null, primary key (term_id, curve, account)) with (fillfactor = 70);
create table volume (term_id text not null, day date not null, assets numeric not null, primary key (term_id, day)) with (fillfactor = 70);
create table term (term_id text primary key, market_cap numeric not null, holders int not null) with (fillfactor = 70);

-- ---- analytics ----
create table term_analytics (term_id text primary key, price_change_1h numeric, price_change_24h numeric, price_change_7d numeric, volume_day numeric not null,
                             holders int not null, rank bigint not null, updated_at timestamptz not null) with (fillfactor = 70);
create table lag (seconds double precision not null, at timestamptz not null default clock_timestamp());

-- ---- triggers: statements of many rows, in one order, so that two writers do not deadlock ----
create function atoms_made() returns trigger language plpgsql as $$
begin
  insert into terms.atom select n.term_id, n.creator, n.at from new_rows n on conflict do nothing;
  return null;
end $$;
create trigger made after insert on atom_events referencing new table as new_rows for each statement execute function atoms_made();

create function triples_made() returns trigger language plpgsql as $$
begin
  insert into terms.triple select n.term_id, n.subject, n.predicate, n.object, n.at from new_rows n on conflict do nothing;
  return null;
end $$;
create trigger made after insert on triple_events referencing new table as new_rows for each statement execute function triples_made();

-- Shares and assets that came (1) or went (-1), as the trigger's argument says.
create function shares_moved() returns trigger language plpgsql as $$
declare
  v_sign int := tg_argv[0];
begin
  insert into terms.position as p
  select n.term_id, n.curve, n.account, v_sign * sum(n.shares) from new_rows n group by 1, 2, 3 order by 1, 2, 3
      on conflict (term_id, curve, account) do update set shares = p.shares + excluded.shares;
  insert into terms.vault as v (term_id, curve, total_shares, total_assets)
  select n.term_id, n.curve, v_sign * sum(n.shares), v_sign * sum(n.assets) from new_rows n group by 1, 2 order by 1, 2
      on conflict (term_id, curve) do update set total_shares = v.total_shares + excluded.total_shares, total_assets = v.total_assets + excluded.total_assets;
  insert into terms.volume as v
  select n.term_id, (n.at at time zone 'UTC')::date, sum(n.assets) from new_rows n group by 1, 2 order by 1, 2
      on conflict (term_id, day) do update set assets = v.assets + excluded.assets;
  return null;
end $$;
create trigger moved after insert on deposited_events referencing new table as new_rows for each statement execute function shares_moved('1');
create trigger moved after insert on redeemed_events referencing new table as new_rows for each statement execute function shares_moved('-1');

create function prices_changed() returns trigger language plpgsql as $$
begin
  insert into terms.vault as v (term_id, curve, share_price)
  select distinct on (n.term_id, n.curve) n.term_id, n.curve, n.price from new_rows n order by n.term_id, n.curve, n.at desc, n.entry desc
      on conflict (term_id, curve) do update set share_price = excluded.share_price;
  return null;
end $$;
create trigger changed after insert on share_price_events referencing new table as new_rows for each statement execute function prices_changed();

-- ---- the writer: called by the bridge with a batch, in the transaction that remembers its entries ----
-- What is no event that is known becomes a dead letter. One cascade for the terms of the batch is enqueued in the same transaction.
create function ingest_events(entries jsonb[]) returns table (id text, error text) language plpgsql as $$
begin
  create temporary table if not exists batch (entry text, name text, term_id text, args jsonb, at timestamptz) on commit delete rows;
  truncate batch;
  insert into batch
  select e ->> 'id', e -> 'data' ->> 'event_name', e -> 'data' -> 'args' ->> 'term_id', e -> 'data' -> 'args', to_timestamp((e -> 'data' ->> 'block_timestamp')::double precision)
    from unnest(entries) e;
  return query
    select b.entry, format('no event that is known: %s', coalesce(b.name, 'without a name'))
      from batch b
     where b.term_id is null
        or b.name is null
        or b.name not in ('AtomCreated', 'TripleCreated', 'Deposited', 'Redeemed', 'SharePriceChanged');
  -- The cascade updates the same vaults: whoever takes all of them first, in one order, never meets it half way.
  perform from terms.vault v where v.term_id in (select b.term_id from batch b) order by v.term_id, v.curve for update;
  insert into terms.atom_events select b.entry, b.term_id, b.args ->> 'creator', b.at from batch b where b.name = 'AtomCreated';
  insert into terms.triple_events select b.entry, b.term_id, b.args ->> 'subject', b.args ->> 'predicate', b.args ->> 'object', b.at from batch b where b.name = 'TripleCreated';
  insert into terms.deposited_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, b.args ->> 'account', (b.args ->> 'shares')::numeric, (b.args ->> 'assets')::numeric, b.at from batch b where b.name = 'Deposited';
  insert into terms.redeemed_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, b.args ->> 'account', (b.args ->> 'shares')::numeric, (b.args ->> 'assets')::numeric, b.at from batch b where b.name = 'Redeemed';
  insert into terms.share_price_events
  select b.entry, b.term_id, (b.args ->> 'curve')::int, (b.args ->> 'price')::numeric, b.at from batch b where b.name = 'SharePriceChanged';
  perform millrace.enqueue('cascade', jsonb_build_object('terms', t.terms), 'cascade')
     from (select jsonb_object_agg(b.term_id, b.first_ms) as terms
             from (select b.term_id, min(split_part(b.entry, '-', 1)::bigint) as first_ms from batch b where b.name is not null and b.term_id is not null group by 1) b) t
    where t.terms is not null;
end $$;

-- ---- the cascade: a transaction of its own, with the publication of the terms that it touched ----
create function cascade(job jsonb) returns void language plpgsql as $$
declare
  v_terms text[] := array(select k from jsonb_object_keys(job -> 'args' -> 'terms') k order by k);
begin
  perform from terms.vault v where v.term_id = any (v_terms) order by v.term_id, v.curve for update;
  update terms.vault v
     set position_count = c.n
    from (select p.term_id, p.curve, count(*) filter (where p.shares > 0) as n from terms.position p where p.term_id = any (v_terms) group by 1, 2 order by 1, 2) c
   where v.term_id = c.term_id and v.curve = c.curve and v.position_count <> c.n;
  insert into terms.term as t
  select v.term_id, sum(v.total_shares * v.share_price), sum(v.position_count) from terms.vault v where v.term_id = any (v_terms) group by 1 order by 1
      on conflict (term_id) do update set market_cap = excluded.market_cap, holders = excluded.holders;
  perform count(*)
     from millrace.enqueue_many('term', array(select jsonb_build_object('term_id', t, 'event_ms', job -> 'args' -> 'terms' -> t) from unnest(v_terms) t), 'term_queue');
end $$;

-- ---- the analytics worker: many terms in one statement ----
create function refresh_analytics(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into terms.term_analytics as a
  select t.term_id, p.now / nullif(p.hour, 0) - 1, p.now / nullif(p.day, 0) - 1, p.now / nullif(p.week, 0) - 1, coalesce(v.assets, 0), t.holders,
         (select count(*) + 1 from terms.term o where o.market_cap > t.market_cap), clock_timestamp()
    from (select distinct j -> 'args' ->> 'term_id' as term_id from unnest(jobs) j) touched
    join terms.term t using (term_id)
    left join terms.volume v on v.term_id = t.term_id and v.day = (now() at time zone 'UTC')::date
   cross join lateral (select (select s.price from terms.share_price_events s where s.term_id = t.term_id order by s.at desc limit 1) as now,
                              (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= now() - interval '1 hour' order by s.at limit 1) as hour,
                              (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= now() - interval '1 day' order by s.at limit 1) as day,
                              (select s.price from terms.share_price_events s where s.term_id = t.term_id and s.at >= now() - interval '7 days' order by s.at limit 1) as week) p
   order by t.term_id
      on conflict (term_id) do update set price_change_1h = excluded.price_change_1h, price_change_24h = excluded.price_change_24h, price_change_7d = excluded.price_change_7d,
         volume_day = excluded.volume_day, holders = excluded.holders, rank = excluded.rank, updated_at = excluded.updated_at;
  insert into terms.lag (seconds)
  select date_part('epoch', clock_timestamp()) - (j -> 'args' ->> 'event_ms')::double precision / 1000 from unnest(jobs) j;
end $$;
