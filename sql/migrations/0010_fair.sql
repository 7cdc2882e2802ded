-- SPDX-License-Identifier: PostgreSQL
-- Fair queues: tenants are served in turn. Each tenant of a fair queue is a row of queue of its own, with its own lanes, and so everything that
-- works for a queue works for a tenant. Which of them have jobs is found once a second (see fair_pass) and written down as a round.
alter table millrace.queue
  add column fair boolean not null default false,
  add column has_tenants boolean not null default false,
  add column parent_id int,
  add column tenant_name text,
  add constraint queue_tenant_whole check ((parent_id is null) = (tenant_name is null)),
  add constraint queue_tenant_id check ((parent_id is null) = (queue_id < 65536)),
  drop constraint queue_name_unique;
create unique index queue_name_unique on millrace.queue (queue_name) where parent_id is null;
create index queue_has_tenants on millrace.queue (queue_id) where has_tenants;
create unique index queue_tenant on millrace.queue (parent_id, tenant_name) where parent_id is not null;
comment on column millrace.queue.has_tenants is
  'it is fair or was: some of its jobs may be in the lanes of tenants. It has two sequences of its own: fair_turn_ and fair_at_<queue_id> (see fair_round.sql)';
comment on column millrace.queue.parent_id is 'of a tenant: the fair queue, whose name and settings it has; null: this is a queue';
comment on table millrace.queue is 'a queue and its settings, or a tenant of a fair queue';

-- A lane has 19 bits for its queue: the first 65,535 are queues, the others tenants.
alter sequence millrace.queue_seq maxvalue 65535;
create sequence millrace.tenant_seq as int minvalue 65536 maxvalue 524287;
comment on sequence millrace.tenant_seq is 'ids of tenants';

update millrace.queue_setting s
   set column_name = 'fair',
       default_text = 'false'
 where s.setting_name = 'fair';

-- A round is the list of a fair queue's members with jobs, cut into chunks; a claim takes the one whose turn it is. Only ever appended to, and read
-- newest first. Four leaves, one an hour: the newest round is written again with each new hour.
create table millrace.fair_round (
  slot      int2 not null,
  queue_id  int not null,
  no        bigint not null,
  chunk     int not null,
  made_at   timestamptz not null,
  base_turn bigint not null,
  member_n  int not null,
  members   int[] not null
) partition by list (slot);
comment on table millrace.fair_round is 'which tenants of fair queues have jobs, in turn';
comment on column millrace.fair_round.no is 'from fair_seq: the newest is the one that counts';
comment on column millrace.fair_round.base_turn is 'the turn of its first member';
comment on column millrace.fair_round.members is 'ids of tenants, and of the queue itself for jobs without one; 400 in a chunk, so that a row is not stored out of line';
do $$
begin
  for i in 0..3 loop
    execute format('create table millrace.fair_round_%s partition of millrace.fair_round for values in (%s)
                    with (autovacuum_vacuum_insert_threshold = -1)', i, i);
  end loop;
end $$;
create unique index fair_round_pk on millrace.fair_round (queue_id, no, chunk, slot);
create sequence millrace.fair_seq as bigint;
comment on sequence millrace.fair_seq is 'numbers of rounds; cache must stay 1';

create type millrace.tenant_stats as (
  tenant              text,
  paused              boolean,
  available           bigint,
  running             bigint,
  scheduled           bigint,
  retrying            bigint,
  dead                bigint,
  completed_1h        bigint,
  failed_1h           bigint,
  oldest_seconds      double precision,
  avg_wait_seconds_1h double precision,
  avg_run_seconds_1h  double precision
);
comment on type millrace.tenant_stats is 'what tenant_stats returns for a tenant';

-- Functions that get other parameters.
drop function if exists millrace.claim_search(timestamptz, text, text, int, interval, boolean, boolean, int, boolean);
drop function if exists millrace.pause(text);
drop function if exists millrace.resume(text);
drop function if exists millrace.depth(text);
drop function if exists millrace.purge(text);
drop function if exists millrace.refuse_feature(text);
