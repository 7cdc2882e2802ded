-- SPDX-License-Identifier: PostgreSQL
-- What a session of the textbook queue prepares. A claim does not wait for the disk: one that is lost in a crash is only a redelivery.
prepare textbook_async as
  select set_config('synchronous_commit', 'off', true);

prepare textbook_claim (text, int) as
  update textbook.job j
     set state = 'running',
         attempt = j.attempt + 1,
         worker = 'bench',
         claimed_at = now(),
         lease_until = now() + interval '30 seconds'
   where j.id in (select a.id
                    from textbook.job a
                   where a.queue = $1
                     and a.state = 'available'
                   order by a.priority, a.id
                   limit $2
                     for update skip locked)
  returning j.id, j.attempt, j.kind, j.args, j.priority, j.created_at, j.lease_until;

prepare textbook_complete (bigint[]) as
  update textbook.job j
     set state = 'completed',
         finished_at = now()
   where j.id = any ($1)
     and j.state = 'running';

prepare textbook_enqueue (text, jsonb[]) as
  insert into textbook.job (queue, kind, args)
  select $1, 'bench', a
    from unnest($2) a;

prepare textbook_enqueue_one (text, jsonb) as
  insert into textbook.job (queue, kind, args)
  values ($1, 'bench', $2);
