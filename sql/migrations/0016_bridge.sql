-- SPDX-License-Identifier: PostgreSQL
-- Bridges from streams: which entries of a stream have been applied. All below the floor are, and those in the spans above it. docs/bridge.md
-- has the rules.
create table millrace.bridge (
  bridge_id    int not null,
  bridge_name  text not null,
  stream_key   text not null,
  group_key    text not null,
  floor_place  numeric not null default 0,
  floor_set_at timestamptz,
  made_at      timestamptz not null,
  constraint bridge_pkey primary key (bridge_id),
  constraint bridge_once unique (bridge_name, stream_key, group_key)
);
comment on table millrace.bridge is 'bridges, by name, stream and consumer group';
comment on column millrace.bridge.floor_place is 'every entry of the stream below it has been applied; an id MS-SEQ as the number MS * 2^64 + SEQ';

-- The constraint is what makes an effect happen once: of two who apply the same entry at the same time, the second waits for the first one's
-- commit and then finds the entry applied. A number for the bridge is part of each place, because a range has no second column without btree_gist.
create table millrace.bridge_span (
  span    numrange not null,
  made_at timestamptz not null,
  constraint bridge_span_once exclude using gist (span with &&)
);
comment on table millrace.bridge_span is 'entries of streams that have been applied and are not below the floor yet: one row for each run of entries read in a row';
comment on column millrace.bridge_span.span is 'from the first to the last entry, both in it; bridge_id * 2^128 + the place of the entry';
