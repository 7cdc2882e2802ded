-- SPDX-License-Identifier: PostgreSQL
-- Several databases behind one client. A database that is one of a set has a number, and its positions, which are the ids of its jobs, begin at number << 48: every
-- id says where its job is, in SQL as everywhere else. A database without a row here is on its own.
create table millrace.shard_place (
  only_row     boolean not null default true,
  set_uuid     uuid not null,
  shard_no     int not null,
  shard_status text not null default 'active',
  member_nos   int[] not null,
  joined_at    timestamptz not null default now(),
  constraint shard_place_pk primary key (only_row),
  constraint shard_place_only_row check (only_row),
  constraint shard_place_no check (shard_no between 0 and 31),
  constraint shard_place_status check (shard_status in ('joining', 'active', 'draining')),
  constraint shard_place_members check (shard_no = any (member_nos))
);
comment on table millrace.shard_place is 'what this database is in its set of shards; empty: it is none';
comment on column millrace.shard_place.set_uuid is 'the set: the same in all of its databases';
comment on column millrace.shard_place.shard_no is 'its number, the top bits of the ids of its jobs; below 32, so that ids are whole numbers in a double, too';
comment on column millrace.shard_place.shard_status is 'joining: keys of its jobs may be held elsewhere; draining: gets no new jobs';
comment on column millrace.shard_place.member_nos is 'the numbers of all databases of the set, as of the last change';

create type millrace.shard_face as (
  set_id    uuid,
  number    int,
  status    text,
  numbers   int[],
  read_only boolean
);
comment on type millrace.shard_face is 'what shard returns';
