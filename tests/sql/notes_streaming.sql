-- SPDX-License-Identifier: PostgreSQL
-- The warehouse of examples/notes-streaming: loading twice changes nothing, what differs is seen, alerts are on when they should be. The whole of it, with
-- daemons and kills, is tests/integration/notes_streaming.bats.
\ir lib/helpers.psql
\ir ../../examples/notes-streaming/source.sql
\ir ../../examples/notes-streaming/warehouse.sql
select no_plan();

call osm.ingest(1, 20, 3);
insert into osm.note_comments values (1, 4, 'hidden', 5, now()), (2, 4, 'reopened', null, now());
select is(dwh.load('{1,1,1,1}', '{1,1,2,4}'), 2::bigint, 'actions are loaded, each once; one that is hidden is none');
select is(dwh.load('{1,1,999,null}', '{1,2,1,null}'), 0::bigint, 'again it is nothing new, nor is what is not there');
select is((select sum(rows) > 0 from dwh.differences()), true, 'what is missing is seen');
select is(dwh.run_batch(), 59::bigint, 'the batch run loads what is missing');
select is((select sum(rows) from dwh.differences()), 0::numeric, 'then stream and batch are the same, EXCEPT both ways');
select is(dwh.run_batch(), 0::bigint, 'and the next run has nothing to do');
call osm.ingest(33, 56, 4);
select is(dwh.run_batch(), 96::bigint, 'notes with all four actions');
select results_eq($$select count(*) filter (where f.action = 'reopened'), count(*) filter (where a.name = 'app'), count(*) filter (where f.user_key is null)
                      from dwh.facts f join dwh.dim_application a using (application_key) where f.note_id between 33 and 56$$,
                  $$values (24::bigint, 16::bigint, 3::bigint)$$, 'some are reopened, some come from an app, some from nobody who is known');
select is((select sum(reopened) from dwh.country_mart), 25::numeric, 'a datamart counts what was reopened');
select is((select sum(rows) from dwh.differences()), 0::numeric, 'and all of it is as the batch run has it');
update osm.note_comments_text set body = 'now with https://example.org and @somebody' where note_id = 3 and sequence_action = 1;
select is(dwh.load('{3}', '{1}'), 0::bigint, 'a text that has changed is no new fact');
select is((select (comment_length, has_url, has_mention)::text from dwh.facts where note_id = 3 and sequence_action = 1), '(42,t,t)', 'but a changed one');
select is((select sum(rows) from dwh.differences()), 0::numeric, 'and the datamarts are as they were');
update dwh.user_mart set opened = opened + 1 where user_key = 1;
select is((select array_agg(rows) from dwh.differences()), '{0,0,1,1}', 'a count too many is seen, both ways');

select millrace.capture('osm.note_comments', 'notes', 'comment', condition => $$new.event = 'opened'$$, unique_on => '{note_id,sequence_action}', carry => '{note_id,sequence_action}') \g /dev/null
call osm.ingest(1001, 1101);
select results_eq($$select * from dwh.alerts('notes')$$, $$values ('pending > 100', 101::numeric)$$, 'a hundred and one events wait: an alert');
select results_eq($$select pending, processing, stuck_10min, dead from dwh.health('notes')$$, $$values (101::bigint, 0::bigint, 0::bigint, 0::bigint)$$, 'health says the same');
select c.lease from millrace.claim('notes', max_jobs => 1) c \gset
select count(millrace.fail(:'lease', j.id, 'no such note', retry => false)) from millrace.jobs j where j.queue = 'notes' and j.status = 'running' \g /dev/null
select results_eq($$select * from dwh.alerts('notes')$$, $$values ('failed > 5 %', 100.0)$$, 'one of one has failed: an alert, and not too many wait');

-- Each alert in a queue of its own, by times that are shifted.
create function t.alerts(p_queue text)
returns text
language sql
as $$
  select string_agg(a.alert, ', ') from dwh.alerts(p_queue) a
$$;
select t.put(now(), 'fresh', 100) \g /dev/null
select is(t.alerts('fresh'), null, 'a hundred that came just now: no alert');
select t.put(now() - interval '6 minutes', 'late', 1) \g /dev/null
select is(t.alerts('late'), 'oldest pending > 5 min', 'one that waits for six minutes');
select t.put(now() - interval '11 minutes', 'idle', 2), t.put(now() - interval '11 minutes', 'resumed', 2) \g /dev/null
select millrace.duty(now() - interval '3 minutes', d) from unnest(array['count', 'pulse']) d \g /dev/null
select t.claim('resumed', now() - interval '2 minutes', 'resumed') \g /dev/null
select millrace.complete_at(now() - interval '2 minutes', t.lease('resumed'), null, null) \g /dev/null
select millrace.duty(now() - interval '1 minute', d) from unnest(array['count', 'pulse']) d \g /dev/null
select is(t.alerts('idle'), 'oldest pending > 5 min, nothing processed for 10 min', 'two that wait for eleven, and nobody did anything');
select is(t.alerts('resumed'), 'oldest pending > 5 min', 'where somebody did one of them two minutes ago, only the other waits');
select t.put(now() - interval '11 minutes', 'stuck', 11), t.put(now() - interval '11 minutes', 'busy', 10) \g /dev/null
select t.claim_all(q, now() - interval '11 minutes', q) from unnest(array['stuck', 'busy']) q \g /dev/null
select is(t.alerts('stuck'), 'stuck > 10', 'eleven that somebody has had for eleven minutes');
select is(t.alerts('busy'), null, 'ten: no alert');

-- In each queue one that died p_age ago, and so many that were completed just now.
create procedure t.fail_one(p_queue text, p_done int, p_age interval)
language plpgsql
as $$
declare
  v_died timestamptz := clock_timestamp() - p_age;
begin
  perform t.put(v_died, p_queue, 1);
  commit;
  perform t.claim_all(p_queue || ' dies', v_died, p_queue);
  perform millrace.fail_at(v_died, t.lease(p_queue || ' dies'), (t.ids(p_queue || ' dies'))[1], 'no such note', null, false, null);
  perform t.put(clock_timestamp(), p_queue, p_done);
  commit;
  perform t.claim_all(p_queue || ' ends', clock_timestamp(), p_queue);
  perform millrace.complete_at(clock_timestamp(), l.lease, null, null) from (select distinct g.lease from t.got g where g.tag = p_queue || ' ends') l;
end $$;
call t.fail_one('nineteen', 18, '0');
call t.fail_one('twenty', 19, '0');
call t.fail_one('earlier', 0, '59 minutes');
call t.fail_one('old', 0, '61 minutes');
call t.fail_one('older', 5, '20 days');
select results_eq($$select * from dwh.alerts('nineteen')$$, $$values ('failed > 5 %', 5.3)$$, 'one of nineteen has died: more than a twentieth');
select is(t.alerts('twenty'), null, 'one of twenty: no alert');
select is(t.alerts('earlier'), 'failed > 5 %', 'one that died within the hour');
select is(t.alerts('old'), null, 'one that died before it is silent');
select is(t.alerts('older'), null, 'and stays so, for as long as it is kept');
select results_eq($$select dead, dead_1h from dwh.health('older')$$, $$values (1::bigint, 0::bigint)$$, 'health tells both');
select * from finish();
