-- SPDX-License-Identifier: PostgreSQL
-- Map notes as an ingesting program writes them, and a generator in its place. Nothing here knows of Millrace.
create schema osm;

create table osm.notes (
  note_id    bigint primary key,
  created_at timestamptz not null,
  id_user    int,
  id_country int not null,
  latitude   numeric(9, 6) not null,
  longitude  numeric(9, 6) not null,
  status     text not null
);
create table osm.note_comments (
  note_id         bigint not null references osm.notes,
  sequence_action int not null,
  event           text not null,
  id_user         int,
  created_at      timestamptz not null,
  primary key (note_id, sequence_action)
);
create table osm.note_comments_text (
  note_id         bigint not null,
  sequence_action int not null,
  body            text not null,
  primary key (note_id, sequence_action)
);

-- Notes p_first to p_last, each with as many actions as p_actions (1 to 4), in one transaction: comments by one statement. created_at is the moment of
-- writing, so that the time to the fact can be told. Every eighth note is opened by nobody who is known, every sixth is written with an app. Who imports
-- many says so when they are there.
create procedure osm.ingest(p_first bigint, p_last bigint, p_actions int = 1)
language plpgsql
as $$
begin
  insert into osm.notes (note_id, created_at, id_user, id_country, latitude, longitude, status)
  select n, clock_timestamp(), case when n % 8 <> 3 then (n + 1) % 997 end, n % 23, n % 90, n % 180, case p_actions when 3 then 'closed' else 'open' end
    from generate_series(p_first, p_last) n;
  insert into osm.note_comments_text (note_id, sequence_action, body)
  select n, s, case n % 6 when 2 then '[app] ' else '' end || repeat('word ', 1 + (n % 7)::int) || case n % 5 when 0 then 'see https://example.org/' || n when 1 then 'ask @mapper' else '' end
    from generate_series(p_first, p_last) n, generate_series(1, p_actions) s;
  insert into osm.note_comments (note_id, sequence_action, event, id_user, created_at)
  select n, s, (array['opened', 'commented', 'closed', 'reopened'])[s], case when s > 1 or n % 8 <> 3 then (n + s) % 997 end, clock_timestamp()
    from generate_series(p_first, p_last) n, generate_series(1, p_actions) s;
  if p_last - p_first >= 500 then
    perform pg_notify('bulk_import_completed', jsonb_build_object('first', p_first, 'last', p_last)::text);
  end if;
end $$;
