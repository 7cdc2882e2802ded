-- SPDX-License-Identifier: PostgreSQL
-- Plans of what pages look at: made on empty tables, they hold with a million jobs, and nobody has analyzed. What a call reads is bounded, whatever it is
-- asked for. A transaction stays open meanwhile: nothing that is gone can be removed.
-- server: own
\ir lib/helpers.psql
select 'held in ' || current_database() as prepared      -- the name is one of the whole server
\gset
select no_plan();
\ir lib/plans.psql

-- Every call there is, once: on empty tables now, on full ones below.
create table t.call (ord int generated always as identity, call text, most jsonb);
insert into t.call (call, most) values
  ('overview()',                                                      '{"job": 300, "claim": 9000, "delayed": 2500, "dead": 2500, "tally": 60, "pulse": 60}'),
  ('metrics()',                                                       '{"job": 300, "claim": 3000, "delayed": 2500, "dead": 2500, "tally": 100, "pulse": 60}'),
  ('history(null, 360)',                                              '{"pulse": 400, "job": 0, "claim": 0}'),
  ('history(''q'', 360)',                                             '{"pulse": 400, "job": 0, "claim": 0}'),
  ('queue_story(''q'')',                                              '{"job": 200, "claim": 3000, "delayed": 10100, "dead": 10100}'),
  ('list_workers()',                                                  '{"job": 0, "claim": 3000}'),
  ('dead_groups()',                                                   '{"dead": 20010}'),
  ('dead_groups(''q'')',                                              '{"dead": 20010}'),
  ('list_dead(''{}'')',                                               '{"dead": 150}'),
  ('list_dead(''{"queue": "q"}'')',                                   '{"dead": 150}'),
  ('list_dead(''{"error": "no such"}'')',                             '{"dead": 20200}'),
  ('list_jobs(''{}'')',                                               '{"job": 1000, "claim": 15000, "delayed": 200, "dead": 200, "archive": 200}'),
  ('list_jobs(''{"queue": "q"}'')',                                   '{"job": 1000, "claim": 15000, "delayed": 41000, "dead": 41000}'),
  ('list_jobs(''{"queue": "small"}'')',                               '{"job": 20, "claim": 200, "delayed": 10, "dead": 10}'),
  ('list_jobs(''{"status": "available"}'')',                          '{"job": 1000, "claim": 200, "delayed": 200}'),
  ('list_jobs(''{"status": "available", "queue": "q"}'')',            '{"job": 1000, "claim": 200, "delayed": 41000}'),
  ('list_jobs(''{"status": "running"}'')',                            '{"job": 200, "claim": 3500}'),
  ('list_jobs(''{"status": "completed"}'')',                          '{"job": 1000, "claim": 15000}'),
  ('list_jobs(''{"status": "completed", "queue": "q"}'')',            '{"job": 1000, "claim": 15000}'),
  ('list_jobs(''{"status": "scheduled"}'')',                          '{"delayed": 200, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "scheduled", "queue": "q"}'')',            '{"delayed": 41000, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "scheduled", "queue": "small"}'')',        '{"delayed": 10, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "paused"}'')',                             '{"delayed": 10, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "waiting"}'')',                            '{"delayed": 10, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "dead"}'')',                               '{"dead": 200, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "dead", "queue": "small"}'')',             '{"dead": 10, "job": 0, "claim": 0}'),
  ('list_jobs(''{"status": "cancelled"}'')',                          '{"job": 50000, "claim": 30000}'),
  ('list_jobs(''{"status": "expired"}'')',                            '{"job": 50000, "claim": 30000}'),
  ('list_jobs(''{"kind": "no such"}'')',                              '{"job": 50000, "claim": 200, "delayed": 21000, "dead": 21000}'),
  ('list_jobs(''{"tenant": "no such"}'')',                            '{"job": 50000, "claim": 200, "delayed": 21000, "dead": 21000}'),
  ('list_jobs(''{"error": "no such"}'')',                             '{"job": 50000, "claim": 200, "delayed": 21000, "dead": 21000}'),
  ('list_jobs(''{"ref": "no such"}'')',                               '{"job": 0, "claim": 0, "delayed": 0, "dead": 0, "archive": 0}'),
  ('list_jobs(''{"ref": "r1"}'')',                                    '{"job": 10, "claim": 200, "delayed": 0, "dead": 0, "archive": 0}'),
  ('list_jobs(''{"id": 1}'')',                                        '{"job": 8, "claim": 200, "delayed": 1, "dead": 1}'),
  ('job(1)',                                                          '{"job": 12, "claim": 400, "delayed": 2, "dead": 2}'),
  ('job_by_ref(''small'', ''r1'')',                                   '{"job": 14, "claim": 400, "delayed": 2, "dead": 2}'),
  ('enqueue_once(''key'', ''{"kind": "k", "queue": "small"}'')',      '{"once": 2, "job": 0}'),
  ('system()',                                                        '{"job": 0, "claim": 200, "tally": 600}');
select millrace.set_queue('q', '{"dead_max": 1000000}'), millrace.set_queue('small', '{}'), millrace.set_queue('busy', '{}'), millrace.enqueue('k', queue => 'small', ref => 'r1')
\gset
create function t.try(p_call text)
returns void
language plpgsql
as $$
begin
  execute 'select millrace.' || p_call;
end $$;
select count(t.try(c.call)) from t.call c where c.call not like 'job(1)' and c.call not like 'enqueue_once%'
\gset

-- ---- a million jobs: half of them taken, most of those completed, in packs and alone; 60,000 delayed ones, 30,000 dead letters; 1,000 open claims ----
create procedure t.many(p_n int, p_size int, p_pad int)
language plpgsql
as $$
begin
  for i in 1 .. p_n loop
    perform count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('i', g, 'pad', repeat('x', p_pad)) from generate_series(1, p_size) g), 'q');
    commit;
  end loop;
end $$;
call t.many(96, 10000, 0);
call t.many(8, 5000, 800);
create procedure t.take(p_queue text, p_claims int, p_size int, p_done boolean)
language plpgsql
as $$
declare
  v_lease text;
begin
  for i in 1 .. p_claims loop
    select c.lease into v_lease from millrace.claim(p_queue, 'w', p_size, '1 hour') c limit 1;
    if p_done then
      perform millrace.complete(v_lease);
    end if;
    commit;
  end loop;
end $$;
call t.take('q', 100, 5000, true);
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[2000]), 'busy')
\gset
call t.take('busy', 1000, 1, false);
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[60000]), 'q', 50, now() + interval '3 days')
\gset
insert into millrace.dead (died_at, job_id, created_at, queue_id, lane, bytes, slot, attempt, lost, attempts_limit, cause, failure, job_kind)
select now() - g * interval '1 second', -32 * g, now(), t.qid('q'), (t.qid('q') << 12) + 1600, 200, (date_part('epoch', now() - g * interval '1 second')::bigint / 86400) % 32, 1, 0, 1, 'failed',
       format('cannot reach "host %s" after %s tries', g % 7, g), 'k' from generate_series(1, 30000) g;
select ok((select sum(coalesce(j.pack_n, 1)) from millrace.job j) > 1000000, 'there are a million');
select is((select coalesce(max(c.reltuples), -1) <= 0 from pg_class c where c.oid = 'millrace.job_1'::regclass), true, 'the planner knows of no rows');
select count(*) from millrace.maintain()
\gset

-- ---- the calls ----
select t.cheap(t.cost('select millrace.' || c.call), c.most || '{"seq": 6, "seq_rows": 60}', c.call) from t.call c order by c.ord;
-- A transaction that stays open, and claims that end meanwhile: lists read what they read before.
begin;
create table t.held (n int);
prepare transaction :'prepared';
call t.take('busy', 500, 1, true);
select t.cheap(t.cost('select millrace.' || c.call), c.most || '{"seq": 6, "seq_rows": 60}', 'again: ' || c.call) from t.call c where c.call like 'list_jobs%' order by c.ord;
-- Every page of a queue, of which each is short: the bounds hold on the way, and nothing is left out.
create function t.walk(p_filter jsonb, out pages int, out jobs int)
language plpgsql
as $$
declare
  v_page jsonb;
begin
  pages := 0;
  jobs := 0;
  loop
    v_page := millrace.list_jobs(p_filter);
    pages := pages + 1;
    jobs := jobs + jsonb_array_length(v_page -> 'jobs');
    exit when v_page ->> 'next' is null or pages > 2000;
    p_filter := p_filter || jsonb_build_object('after', v_page ->> 'next');
  end loop;
end $$;
select is((t.walk('{"queue": "q", "kind": "no such"}')).jobs, 0, 'a walk through a million that finds none comes to its end');
select is((t.walk('{"queue": "busy", "limit": 200}')).jobs, 2000, 'one through two thousand finds them all');
select is((t.walk('{"status": "running", "limit": 200}')).jobs, 1000, 'and one through what runs');
rollback prepared :'prepared';
select * from finish();
