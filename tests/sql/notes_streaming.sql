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
select * from finish();
