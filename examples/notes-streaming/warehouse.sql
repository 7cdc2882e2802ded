-- SPDX-License-Identifier: PostgreSQL
-- The warehouse: dimensions, facts, datamarts, and the one function that loads facts, whoever calls it. Loading something again changes nothing.
create schema dwh;

create table dwh.dim_user (user_key int generated always as identity primary key, id_user int not null unique);
create table dwh.dim_country (country_key int generated always as identity primary key, id_country int not null unique);
create table dwh.dim_application (application_key int generated always as identity primary key, name text not null unique);
create table dwh.dim_date (date_key int primary key, day date not null unique);

create table dwh.facts (
  note_id         bigint not null,
  sequence_action int not null,
  action          text not null,
  action_at       timestamptz not null,
  date_key        int not null references dwh.dim_date,
  opened_date_key int not null references dwh.dim_date,
  user_key        int references dwh.dim_user,
  country_key     int not null references dwh.dim_country,
  application_key int not null references dwh.dim_application,
  comment_length  int not null,
  has_url         boolean not null,
  has_mention     boolean not null,
  loaded_at       timestamptz not null default clock_timestamp(),
  primary key (note_id, sequence_action)
);
create table dwh.country_mart (
  country_key int primary key references dwh.dim_country,
  opened bigint not null, closed bigint not null, reopened bigint not null, commented bigint not null
) with (fillfactor = 50);
create table dwh.user_mart (
  user_key int primary key references dwh.dim_user,
  opened bigint not null, closed bigint not null, reopened bigint not null, commented bigint not null
) with (fillfactor = 50);

-- What the facts of some actions are, by the keys of the source. The batch run and the comparison read it, too.
create view dwh.source_facts as
select c.note_id, c.sequence_action, c.event as action, c.created_at as action_at, n.created_at as opened_at, c.id_user, n.id_country,
       case when t.body ~ '^\[app\]' then 'app' else 'web' end as application, coalesce(length(t.body), 0) as comment_length,
       coalesce(t.body ~ 'https?://', false) as has_url, coalesce(t.body ~ '@\w', false) as has_mention
  from osm.note_comments c
  join osm.notes n on n.note_id = c.note_id
  left join osm.note_comments_text t on t.note_id = c.note_id and t.sequence_action = c.sequence_action
 where c.event in ('opened', 'closed', 'reopened', 'commented');

-- Loads the facts of some actions and returns how many are new. Rows that several sessions write are written in one order, so that they do not wait in a
-- circle; datamarts count only what is new, so that a repeated event counts once. They come last: everybody wants their rows, and whoever has them
-- keeps the others waiting until the commit.
create type dwh.loaded_fact as (action text, user_key int, country_key int);
create function dwh.load(p_notes bigint[], p_sequences int[])
returns bigint
language plpgsql
as $$
declare
  v_loading dwh.source_facts[];
  v_new     dwh.loaded_fact[];
begin
  -- Each key by the indexes (offset 0), whatever is known of tables that are being filled.
  v_loading := array(select s.f
                       from (select distinct k.note_id, k.sequence_action from unnest(p_notes, p_sequences) k(note_id, sequence_action)) k
                      cross join lateral (select f from dwh.source_facts f where f.note_id = k.note_id and f.sequence_action = k.sequence_action offset 0) s);
  insert into dwh.dim_date select distinct to_char(d.at, 'YYYYMMDD')::int, d.at::date
    from unnest(v_loading) l cross join lateral (values (l.action_at), (l.opened_at)) d(at)
   where not exists (select from dwh.dim_date x where x.date_key = to_char(d.at, 'YYYYMMDD')::int) order by 1 on conflict do nothing;
  insert into dwh.dim_user (id_user) select distinct l.id_user from unnest(v_loading) l
   where l.id_user is not null and not exists (select from dwh.dim_user u where u.id_user = l.id_user) order by 1 on conflict do nothing;
  insert into dwh.dim_country (id_country) select distinct l.id_country from unnest(v_loading) l
   where not exists (select from dwh.dim_country c where c.id_country = l.id_country) order by 1 on conflict do nothing;
  insert into dwh.dim_application (name) select distinct l.application from unnest(v_loading) l
   where not exists (select from dwh.dim_application a where a.name = l.application) order by 1 on conflict do nothing;
  with fact as (
    insert into dwh.facts (note_id, sequence_action, action, action_at, date_key, opened_date_key, user_key, country_key, application_key, comment_length,
                           has_url, has_mention)
    select l.note_id, l.sequence_action, l.action, l.action_at, to_char(l.action_at, 'YYYYMMDD')::int, to_char(l.opened_at, 'YYYYMMDD')::int, u.user_key, c.country_key,
           a.application_key, l.comment_length, l.has_url, l.has_mention
      from unnest(v_loading) l
      left join dwh.dim_user u on u.id_user = l.id_user
      join dwh.dim_country c on c.id_country = l.id_country
      join dwh.dim_application a on a.name = l.application
     order by l.note_id, l.sequence_action
        on conflict (note_id, sequence_action) do update
       set comment_length = excluded.comment_length,
           has_url = excluded.has_url,
           has_mention = excluded.has_mention
     where (facts.comment_length, facts.has_url, facts.has_mention) is distinct from (excluded.comment_length, excluded.has_url, excluded.has_mention)
    returning action, user_key, country_key, xmax = 0 as is_new)
  select coalesce(array_agg(row(f.action, f.user_key, f.country_key)::dwh.loaded_fact) filter (where f.is_new), '{}')
    into v_new
    from fact f;
  insert into dwh.country_mart
  select f.country_key, count(*) filter (where f.action = 'opened'), count(*) filter (where f.action = 'closed'), count(*) filter (where f.action = 'reopened'),
         count(*) filter (where f.action = 'commented')
    from unnest(v_new) f group by 1 order by 1
      on conflict (country_key) do update
     set opened = country_mart.opened + excluded.opened, closed = country_mart.closed + excluded.closed, reopened = country_mart.reopened + excluded.reopened,
         commented = country_mart.commented + excluded.commented;
  insert into dwh.user_mart
  select f.user_key, count(*) filter (where f.action = 'opened'), count(*) filter (where f.action = 'closed'), count(*) filter (where f.action = 'reopened'),
         count(*) filter (where f.action = 'commented')
    from unnest(v_new) f where f.user_key is not null group by 1 order by 1
      on conflict (user_key) do update
     set opened = user_mart.opened + excluded.opened, closed = user_mart.closed + excluded.closed, reopened = user_mart.reopened + excluded.reopened,
         commented = user_mart.commented + excluded.commented;
  return cardinality(v_new);
end $$;

-- The processors. One event, and a whole claim at once.
create function dwh.process_comment(job jsonb)
returns void
language sql
as $$
  select dwh.load(array[(job #>> '{args,new,note_id}')::bigint], array[(job #>> '{args,new,sequence_action}')::int])
$$;
create function dwh.process_comments(jobs jsonb[])
returns table (id bigint, error text)
language plpgsql
as $$
begin
  perform dwh.load(array(select (j #>> '{args,new,note_id}')::bigint from unnest(jobs) j), array(select (j #>> '{args,new,sequence_action}')::int from unnest(jobs) j));
end $$;

-- The batch run: every action without a fact. Every 15 minutes it is the safety net beside the stream; once, it is how the warehouse was filled before.
create function dwh.run_batch()
returns bigint
language plpgsql
as $$
begin
  return (select dwh.load(array_agg(s.note_id), array_agg(s.sequence_action))
            from dwh.source_facts s
           where not exists (select from dwh.facts f where f.note_id = s.note_id and f.sequence_action = s.sequence_action));
end $$;
create function dwh.batch_job(job jsonb) returns jsonb language sql as $$ select jsonb_build_object('loaded', dwh.run_batch()) $$;

-- What differs between the warehouse and what a batch run from scratch would make of the source: nothing, when all is well.
create function dwh.differences()
returns table (what text, rows bigint)
language sql
as $$
  with streamed as (
    select f.note_id, f.sequence_action, f.action, f.action_at, f.date_key, f.opened_date_key, u.id_user, c.id_country, a.name as application, f.comment_length, f.has_url, f.has_mention
      from dwh.facts f
      left join dwh.dim_user u using (user_key)
      join dwh.dim_country c using (country_key)
      join dwh.dim_application a using (application_key)),
  batch as (
    select s.note_id, s.sequence_action, s.action, s.action_at, to_char(s.action_at, 'YYYYMMDD')::int, to_char(s.opened_at, 'YYYYMMDD')::int, s.id_user, s.id_country, s.application,
           s.comment_length, s.has_url, s.has_mention
      from dwh.source_facts s),
  marts as (
    select 'country' as mart, c.id_country as id, m.opened, m.closed, m.reopened, m.commented from dwh.country_mart m join dwh.dim_country c using (country_key)
     union all
    select 'user', u.id_user, m.opened, m.closed, m.reopened, m.commented from dwh.user_mart m join dwh.dim_user u using (user_key)),
  expected_marts as (
    select k.mart, k.id, count(*) filter (where s.action = 'opened'), count(*) filter (where s.action = 'closed'), count(*) filter (where s.action = 'reopened'),
           count(*) filter (where s.action = 'commented')
      from dwh.source_facts s
     cross join lateral (values ('country', s.id_country), ('user', s.id_user)) k(mart, id)
     where k.id is not null
     group by 1, 2)
  select 'facts that the batch has not', count(*) from (table streamed except all table batch) d
   union all
  select 'facts that the stream has not', count(*) from (table batch except all table streamed) d
   union all
  select 'marts that the batch has not', count(*) from (table marts except all table expected_marts) d
   union all
  select 'marts that the stream has not', count(*) from (table expected_marts except all table marts) d
$$;

-- Health of a queue. What was processed is known as of maintain's last pulse, some seconds ago. Dead letters are kept for 30 days: what fails now is
-- told by those of the last hour.
create function dwh.health(p_queue text)
returns table (pending bigint, processing bigint, processed_5min bigint, processed_10min bigint, stuck_10min bigint, dead bigint, dead_1h bigint, completed_1h bigint, oldest_seconds double precision)
language sql
as $$
  select s.available, s.running, p.last_5, p.last_10, w.stuck, s.dead, d.dead_1h, s.completed_1h, s.oldest_seconds
    from millrace.stats(p_queue) s
   cross join (select coalesce(sum(w.jobs_running), 0)::bigint as stuck
                 from millrace.workers w where w.queue = p_queue and w.last_claim_at < now() - interval '10 minutes') w
   cross join (select count(*) as dead_1h from millrace.dead_letters d where d.queue = p_queue and d.died_at > now() - interval '1 hour') d
   cross join lateral (select coalesce(round(sum(n) filter (where at > now() - interval '5 minutes')), 0)::bigint as last_5, coalesce(round(sum(n)), 0)::bigint as last_10
                         from (select (p ->> 'at')::timestamptz as at, (p ->> 'completed')::numeric * (h ->> 'step_seconds')::numeric as n
                                 from millrace.history(p_queue, 10) h cross join lateral jsonb_array_elements(h -> 'points') p) p) p
$$;

-- Alerts, for whoever is called at night: no row is good news.
create function dwh.alerts(p_queue text)
returns table (alert text, value numeric)
language sql
as $$
  select a.alert, a.value
    from dwh.health(p_queue) h
   cross join lateral (values
      ('pending > 100', h.pending::numeric, h.pending > 100),
      ('failed > 5 %', round(100.0 * h.dead_1h / greatest(h.completed_1h + h.dead_1h, 1), 1), h.dead_1h > 0.05 * (h.completed_1h + h.dead_1h)),
      ('oldest pending > 5 min', round(h.oldest_seconds::numeric), h.oldest_seconds > 300),
      ('stuck > 10', h.stuck_10min::numeric, h.stuck_10min > 10),
      ('nothing processed for 10 min', h.pending::numeric, h.pending > 0 and h.oldest_seconds > 600 and h.processed_10min = 0)) a(alert, value, is_on)
   where a.is_on
$$;
