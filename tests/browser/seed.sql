-- SPDX-License-Identifier: PostgreSQL
-- Jobs in every status, hostile texts in every field, schedules and batches, for the tests of the dashboard.
select millrace.set_retry('charge', 3, '1 day', 1, '1 day', 0);
select millrace.set_queue('mail', '{"warn_depth": 50, "critical_depth": 5000}');
select millrace.set_queue('idle', '{}');

-- mail: 120 available, more than two pages
select count(*) from millrace.enqueue_many('send', (select array_agg(jsonb_build_object('no', n)) from generate_series(1, 120) n), 'mail');

-- pay: 67 completed with a result, 53 dead of two errors
select count(*) from millrace.enqueue_many('charge', (select array_agg(jsonb_build_object('invoice', n)) from generate_series(1, 120) n), 'pay');
do $$
declare
  c record;
begin
  for c in select * from millrace.claim('pay', 'pay-1', 120) loop
    if (c.args ->> 'invoice')::int <= 40 then
      perform millrace.fail(c.lease, c.id, format('card declined: invoice %s of "customer %s"', c.args ->> 'invoice', c.id), retry => false);
    elsif (c.args ->> 'invoice')::int <= 53 then
      perform millrace.fail(c.lease, c.id, 'no route to host 10.0.0.' || (c.args ->> 'invoice'), retry => false);
    else
      perform millrace.complete(c.lease, array[c.id], '{"charged": true}');
    end if;
  end loop;
end $$;

-- one of each, found by its ref
select millrace.enqueue('plain', '{"n": 12345678901234567890, "list": [1, 2, 3], "none": null}', 'sorts', ref => 'available');
select millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'scheduled');
select millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'runs');
select millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'cancels');
select millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'pauses');
select millrace.pause_job(millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'paused'));
select millrace.cancel(millrace.enqueue('plain', '{"n": 1}', 'sorts', delay => '1 day', ref => 'cancelled'), 'not wanted any more');
select millrace.enqueue('plain', '{"n": 1}', 'late', expires_in => '1 millisecond', ref => 'expired');
with first as (select millrace.enqueue('plain', '{}', 'sorts', delay => '1 day', ref => 'first') as id)
select millrace.depend(millrace.enqueue('plain', '{}', 'sorts', ref => 'waiting'), array[f.id]) from first f;

-- one that runs, with progress; one that failed and is tried again
select millrace.enqueue('long', '{"pages": 400}', 'busy', ref => 'running');
select millrace.progress(c.lease, c.id, 42.5, 'page 170 of <b>400</b>') from millrace.claim('busy', 'busy-1', 1, '1 hour') c;
select millrace.enqueue('charge', '{"invoice": 7}', 'again', ref => 'retrying');
select millrace.fail(c.lease, c.id, 'bank is closed') from millrace.claim('again', 'again-1', 1) c;

-- hostile
select millrace.enqueue('<script>window.hacked=1</script>',
  '{"<script>window.hacked=1</script>": "<img src=x onerror=window.hacked=1>", "turn": "\u202etxt.exe", "deep": {"a": ["</pre><script>window.hacked=1</script>"]}}',
  '<b>hostile</b>', tenant => '"><script>window.hacked=1</script>', ref => 'javascript:window.hacked=1',
  meta => '{"m": "<iframe src=javascript:window.hacked=1>"}');
select millrace.fail(c.lease, c.id, '<script>window.hacked=1</script><img src=x onerror=window.hacked=1>', retry => false)
  from millrace.claim('<b>hostile</b>', '<i onclick=alert(1)>worker</i>', 1) c;
select millrace.schedule('<script>window.hacked=1</script>', '0 0 1 1 *', '<u>kind</u>', '{}', '<b>hostile</b>');
select millrace.batch_begin(label => '<script>window.hacked=1</script>');

-- payload parts: JSON, text, bytes, and more than is shown
select millrace.enqueue('parts', '{}', 'sorts', ref => 'parts', state => '{"step": 12345678901234567890, "<b>": null}', blob => decode(repeat('00ff41', 10000), 'hex'));
select millrace.enqueue('parts', '{}', 'sorts', ref => 'texts', state => convert_to('<script>window.hacked=1</script> naïve', 'UTF8'), blob => convert_to(repeat('0123456789', 5000), 'UTF8'));

-- large: over a megabyte would be refused, this is cut by the page
select millrace.enqueue('large', jsonb_build_object('text', repeat('0123456789abcdef', 4000)), 'sorts', ref => 'large');

select millrace.schedule('nightly', '0 2 * * *', 'report', '{}', 'reports', 'Europe/Berlin');
select millrace.schedule('off', '*/5 * * * *', 'tick', '{}', 'reports', active => false);
select millrace.schedule('gone-soon', '*/5 * * * *', 'tick', '{}', 'reports', active => false);

create temporary table made as select millrace.batch_begin(label => 'invoices of October') as id;
select count(*) from made m cross join lateral millrace.batch_add(m.id, '[{"kind": "bill", "queue": "bills"}, {"kind": "bill", "queue": "bills"}]');
select millrace.batch_seal(m.id) from made m;
select millrace.complete(c.lease, array[c.id]) from millrace.claim('bills', 'biller', 1) c;
