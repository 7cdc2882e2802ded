-- SPDX-License-Identifier: PostgreSQL
-- Compression as the schema sees it: the setting, the policy, what a reader learns of a coded value, and which values writers refuse.
\ir lib/helpers.psql
select no_plan();

-- A coded value: signature, letter, size, body.
create function t.coded(p_letter text, p_size bigint, p_body bytea)
returns bytea
language sql
as $$
  select '\x894d52500d0a1a0a'::bytea || convert_to(p_letter, 'UTF8') || int8send(p_size) || p_body
$$;

create function t.base64(p_part bytea)
returns text
language sql
as $$
  select translate(encode(p_part, 'base64'), E'\n', '')
$$;

create function t.refused(p_sql text, p_message text)
returns setof text
language plpgsql
as $$
declare
  v_state   text := 'none';
  v_message text;
  v_hint    text;
begin
  begin
    execute p_sql;
  exception
    when others then
      get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
  end;
  return next is(v_state, '22023', 'refused: ' || left(p_sql, 100));
  return next ok(v_message ~ p_message, coalesce(v_message, 'no message') || ' is like ' || p_message);
  return next ok(v_hint <> '', 'with a hint');
end $$;

-- The setting and the policy.
select is(millrace.payload_policy('nowhere'), '{"pieces": true, "compress": null, "max_args": 1048576}', 'a queue that is not there has the defaults');
select is((select count(*) from millrace.queue q where q.queue_name = 'nowhere'), 0::bigint, 'and is not made by asking');
select millrace.set_queue('q', '{}');
select is(millrace.payload_policy('q'), '{"pieces": true, "compress": null, "max_args": 1048576}', 'compression is off by default');
select millrace.set_queue('q', '{"compress": 1000}');
select is(millrace.payload_policy('q'), '{"pieces": true, "compress": 1000, "max_args": 1048576}', 'it is on above so many bytes');
select is((select settings -> 'compress' from millrace.queues where queue = 'q'), '1000', 'the view has it');
select millrace.set_queue('q', '{"compress": null}');
select is(millrace.payload_policy('q'), '{"pieces": true, "compress": null, "max_args": 1048576}', 'null turns it off');
select t.refused(format('select millrace.set_queue(%L, %L)', 'q', s), 'compress')
  from (values ('{"compress": 127}'), ('{"compress": 0}'), ('{"compress": 67108865}'), ('{"compress": "much"}'), ('{"compress": true}'), ('{"compress": {}}')) v(s);

select millrace.set_queue('q', '{"compress": 200}');
select millrace.enqueue('k', queue => 'q');
select is((select millrace.payload_policy(null, c.lease) from millrace.claim('q') c limit 1), '{"pieces": true, "compress": 200, "max_args": 1048576}', 'the policy by a lease');
select throws_ok($$select millrace.payload_policy(null, 'x.y')$$, 'MR001', null, 'something that is no lease');
select millrace.set_queue('shared', '{"fair": true, "compress": 300}');
select millrace.enqueue('k', queue => 'shared', tenant => 'a');
select millrace.maintain();
select is(millrace.payload_policy('shared'), '{"pieces": true, "compress": 300, "max_args": 1048576}', 'a fair queue');
select is((select q.compress_above from millrace.queue q where q.tenant_name = 'a'), 300::bigint, 'and its tenants, whose leases name them');

-- Whether the jobs of one call may come in several: not where something is decided for a call as a whole.
select millrace.set_queue(v.queue, v.settings)
  from (values ('limited', '{"depth_limit": 5}'::jsonb), ('routed', '{"route": "other", "route_share": 10}')) v(queue, settings);
select is(millrace.payload_policy(v.queue) ->> 'pieces', v.pieces, v.queue)
  from (values ('limited', 'false'), ('routed', 'false'), ('other', 'true')) v(queue, pieces);
select millrace.set_queue('limited', '{"depth_limit": null}');
select is(millrace.payload_policy('limited') ->> 'pieces', 'true', 'without its limit again');

-- What a reader learns.
select is(array[millrace.part_coding(v.part), millrace.part_size(v.part)::text], v.wanted, 'coding and size of ' || v.what)
  from (values
    ('null',                     null::bytea,                                        array[null, null]),
    ('nothing',                  '',                                                 array['plain', '0']),
    ('bytes',                    'hello',                                            array['plain', '5']),
    ('seven bytes of it',        '\x894d52500d0a1a',                                 array['plain', '7']),
    ('a wrapped one',            t.coded('p', 3, 'abc'),                             array['plain', '3']),
    ('a compressed one',         t.coded('z', 4711, 'frame'),                        array['zstd', '4711']),
    ('the largest',              t.coded('z', 67108864, 'frame'),                    array['zstd', '67108864']),
    ('an object',                t.coded('o', 4711, '{}'),                           array['object', '4711']),
    ('a signature alone',        '\x894d52500d0a1a0a',                               array['damaged', null]),
    ('a header that is cut',     substr(t.coded('z', 1, ''), 1, 16),                 array['damaged', null]),
    ('an unknown coding',        t.coded('y', 1, 'x'),                               array['damaged', null]),
    ('a size beyond the limit',  t.coded('z', 67108865, 'x'),                        array['damaged', null]),
    ('a size of 2^40',           t.coded('z', 1::bigint << 40, 'x'),                 array['damaged', null]),
    ('a negative size',          t.coded('z', -1, 'x'),                              array['damaged', null]),
    ('a wrapped one that lies',  t.coded('p', 4, 'abc'),                             array['damaged', null])
  ) v(what, part, wanted);

-- What is written and read again is not touched.
create temp table given as
  select t.coded('z', 500, 'no frame, and nobody here looks') as state, t.coded('o', 900, '{"key":"k"}') as blob;
select millrace.enqueue('k', queue => 'kept', state => g.state, blob => g.blob) from given g;
select is((select row(c.state, c.blob)::text from millrace.claim('kept') c), (select row(g.state, g.blob)::text from given g), 'a claim has what was stored');

-- A story says what it is.
create temp table told as
  select millrace.job(millrace.enqueue('k', queue => 'told', state => g.state, blob => t.coded('p', 3, 'abc'))) as story from given g;
select is((select story -> 'state' from told),
          (select jsonb_build_object('bytes', 500, 'stored', octet_length(g.state), 'coding', 'zstd', 'format', 'coded', 'cut', false, 'value', t.base64(g.state)) from given g),
          'a compressed part in a story');
select is((select story -> 'blob' from told), '{"bytes": 3, "format": "hex", "value": "616263", "cut": false}', 'a wrapped one is itself');
select is(millrace.payload_face(t.coded('z', 60000000, convert_to(repeat('x', 16400), 'UTF8'))),
          '{"bytes": 60000000, "stored": 16417, "coding": "zstd", "format": "coded", "cut": true}', 'a large one is only described');
select is(millrace.payload_face('\x894d52500d0a1a0a'), '{"bytes": 8, "damaged": true}', 'a damaged one is said to be');

-- Writers refuse what begins like a coded value and is none, and say which.
create temp table bad as
  select unnest(array['\x894d52500d0a1a0a', substr(t.coded('z', 1, ''), 1, 16), t.coded('y', 1, 'x'), t.coded('z', 67108865, 'x'), t.coded('p', 4, 'abc')]) as part;
select t.refused(format('select millrace.enqueue(%L, %s => %L::bytea)', 'k', p.name, b.part), '^' || p.name || ' begins like a coded part')
  from bad b, (values ('state'), ('blob')) p(name);
select t.refused(format('select millrace.enqueue_many(%L, array[%L, %L]::jsonb[], %s => array[%L, %L]::bytea[])', 'k', '{}', '{}', p.name, 'fine', b.part), p.name || ' begins like a coded part')
  from bad b, (values ('state'), ('blob')) p(name);
select t.refused(format('select millrace.enqueue_jobs(%L)', jsonb_build_array('{"kind": "k"}'::jsonb, jsonb_build_object('kind', 'k', p.name, t.base64(b.part)))), '^job 2: ' || p.name || ' begins like a coded part')
  from bad b, (values ('state'), ('blob')) p(name);
select millrace.enqueue('k', queue => 'held');
create temp table held as
  select c.lease, c.id from millrace.claim('held', max_jobs => 10) c;
select t.refused(format('select millrace.fail(%L, %s, %L, state => %L::bytea)', h.lease, h.id, 'why', b.part), '^state begins like a coded part') from held h, bad b;
select t.refused(format('select millrace.requeue(%L, %s, state => %L::bytea)', h.lease, h.id, b.part), '^state begins like a coded part') from held h, bad b;
select t.refused(format('select millrace.requeue(%L, %s, blob => %L::bytea)', h.lease, h.id, b.part), '^blob begins like a coded part') from held h, bad b;
select t.refused(format('select millrace.finish(%L, %L)', h.lease, jsonb_build_array(jsonb_build_object('id', h.id, 'outcome', o, 'error', 'why', 'state', t.base64(b.part)))), '^state begins like a coded part')
  from held h, bad b, (values ('failed'), ('requeued')) w(o);
select is((select millrace.fail(h.lease, h.id, 'why', state => t.coded('z', 500, 'frame')) from held h), 'scheduled', 'a well-formed one is taken');

-- The limits of a queue are about the original of what is compressed, and about what is stored of an object.
select millrace.set_queue('tiny', '{"max_state": 100, "max_blob": 100}');
select t.refused(format('select millrace.enqueue(%L, queue => %L, %s => %L::bytea)', 'k', 'tiny', p.name, t.coded('z', 101, 'x')), p.name || ' is 101 bytes long')
  from (values ('state'), ('blob')) p(name);
select t.refused(format('select millrace.enqueue_many(%L, %L, %L, state => array[%L]::bytea[])', 'k', array['{}'], 'tiny', t.coded('z', 101, 'x')), 'state is 101 bytes long');
select t.refused(format('select millrace.enqueue_jobs(%L)', jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', 'tiny', 'blob', t.base64(t.coded('z', 101, 'x'))))), 'blob is 101 bytes long');
select lives_ok(format('select millrace.enqueue(%L, queue => %L, state => %L::bytea, blob => %L::bytea)', 'k', 'tiny', t.coded('z', 100, 'x'), t.coded('o', 5000, '{}')), 'just within them');
select t.refused(format('select millrace.enqueue(%L, queue => %L, blob => %L::bytea)', 'k', 'tiny', t.coded('o', 10, convert_to(repeat('x', 100), 'UTF8'))), 'blob is 117 bytes long');

select * from finish();
