-- SPDX-License-Identifier: PostgreSQL
-- The toolbox: cache, rate limiter, locks with a lease. Nothing here is updated in place: entries, spendings and leases are appended and
-- read newest first, and whole leaves are truncated, so that what a call reads does not grow beside a snapshot that is held.
-- docs/architecture.md has the rules.

-- ---- cache: two leaves, one of which is written at a time ----
create sequence millrace.cache_turn minvalue 0;
select setval('millrace.cache_turn', 0);
comment on sequence millrace.cache_turn is 'the leaf of the cache that is written: cache_0 while it is even, cache_1 while it is odd';
create sequence millrace.cache_no;
comment on sequence millrace.cache_no is 'numbers of entries: of two for a key the larger one counts';
create sequence millrace.cache_clock minvalue 0;
comment on sequence millrace.cache_clock is 'when upkeep last looked how much of the cache is old, in milliseconds since 1970';
create sequence millrace.cache_turned minvalue 0;
comment on sequence millrace.cache_turned is 'when the leaves last changed places, in milliseconds since 1970';
do $$
begin
  for i in 0..1 loop
    execute format('create table millrace.cache_%s (
                      key_id      uuid not null,
                      entry_no    bigint not null,
                      good_until  timestamptz not null,
                      key_text    text not null,
                      entry_value jsonb
                    )', i);
    execute format('create index cache_%s_key on millrace.cache_%s (key_id, entry_no)', i, i);
    execute format('comment on table millrace.cache_%s is ''entries of the cache; the newest of a key counts, in whichever leaf it is''', i);
    execute format('comment on column millrace.cache_%s.entry_value is ''null: the key was deleted''', i);
  end loop;
end $$;
create table millrace.cache_pass (
  turn     bigint not null,
  upto     uuid not null,
  finished boolean not null
);
create index cache_pass_newest on millrace.cache_pass (turn, upto);
comment on table millrace.cache_pass is 'how far the leaf that is not written has been copied into the other one, a row for each round';

create type millrace.cache_entry as (
  key   text,
  value jsonb
);
comment on type millrace.cache_entry is 'a key of the cache and its value';
create type millrace.cache_figures as (
  total   bigint,
  valid   bigint,
  expired bigint,
  bytes   bigint,
  exact   boolean
);
comment on type millrace.cache_figures is 'figures of the cache; exact: counted, not estimated';

-- ---- rate limiter: what was spent, a row for each call that was allowed; leaves by time, three for each length of period ----
do $$
declare
  v_class text;
begin
  foreach v_class in array array['hour', 'day', 'month'] loop
    execute format('create table millrace.spent_%s (
                      slot        int2 not null,
                      key_id      uuid not null,
                      spent_at    timestamptz not null,
                      spent_total bigint not null,
                      spent_n     int not null
                    ) partition by list (slot)', v_class);
    for i in 0..2 loop
      execute format('create table millrace.spent_%s_%s partition of millrace.spent_%s for values in (%s)', v_class, i, v_class, i);
    end loop;
    execute format('create index spent_%s_key on millrace.spent_%s (key_id, spent_at, spent_total)', v_class, v_class);
    execute format('comment on table millrace.spent_%s is ''what rate_limit allowed, for periods up to a %s; the running total makes any period the difference of two rows''', v_class, v_class);
  end loop;
end $$;

create type millrace.rate_answer as (
  allowed   boolean,
  remaining int,
  resets_at timestamptz
);
comment on type millrace.rate_answer is 'what rate_limit says';

-- ---- locks with a lease: a row for each time one was taken, renewed or given back; three leaves, one an hour ----
create sequence millrace.fence_seq;
comment on sequence millrace.fence_seq is 'fencing numbers of lock_lease';
create sequence millrace.lock_no;
comment on sequence millrace.lock_no is 'numbers of rows of lock_held: of two for a name the larger one counts';
create table millrace.lock_held (
  slot       int2 not null,
  lock_id    uuid not null,
  lock_no    bigint not null,
  lock_name  text not null,
  holder     text not null,
  fence      bigint not null,
  held_until timestamptz not null
) partition by list (slot);
comment on table millrace.lock_held is 'locks with a lease; the newest row of a name counts';
comment on column millrace.lock_held.held_until is '-infinity: given back';
do $$
begin
  for i in 0..2 loop
    execute format('create table millrace.lock_held_%s partition of millrace.lock_held for values in (%s)', i, i);
  end loop;
end $$;
create index lock_held_newest on millrace.lock_held (lock_id, lock_no);
