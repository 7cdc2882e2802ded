-- SPDX-License-Identifier: PostgreSQL
-- What pages look at: overview, history, lists, stories of queues, the system, metrics; and enqueue_once and claim_json.
\ir lib/helpers.psql
select no_plan();

-- The ids of a page, in order; and of all pages, with how many there were.
create function t.page(p_now timestamptz, p_filter jsonb)
returns bigint[]
language sql
as $$
  select array(select (j.job ->> 'id')::bigint from jsonb_array_elements(millrace.list_jobs_page(p_now, p_filter) -> 'jobs') with ordinality j(job, ord) order by j.ord)
$$;
create function t.pages(p_now timestamptz, p_filter jsonb, out ids bigint[], out n int)
language plpgsql
as $$
declare
  v_page jsonb;
begin
  ids := '{}';
  n := 0;
  loop
    v_page := millrace.list_jobs_page(p_now, p_filter);
    n := n + 1;
    ids := ids || array(select (j.job ->> 'id')::bigint from jsonb_array_elements(v_page -> 'jobs') with ordinality j(job, ord) order by j.ord);
    if (v_page ->> 'next' is null) <> (v_page ->> 'complete')::boolean then
      raise exception 'next and complete do not agree: %', v_page;
    end if;
    exit when v_page ->> 'next' is null;
    if n > 1000 then
      raise exception 'no end of pages';
    end if;
    p_filter := p_filter || jsonb_build_object('after', v_page ->> 'next');
  end loop;
end $$;
-- What the view says, newest position first: the order of lists.
create function t.view_ids(p_where text)
returns bigint[]
language plpgsql
as $$
declare
  v_ids bigint[];
begin
  execute format('select coalesce(array_agg(j.id order by j.id), ''{}'') from millrace.jobs j where %s', p_where) into v_ids;
  return v_ids;
end $$;
create function t.sorted(p_ids bigint[])
returns bigint[]
language sql
as $$
  select array(select i from unnest(p_ids) i order by i)
$$;

-- ---- nothing there ----
select is(millrace.overview_at(t.at('0')) -> 'queues', '[]', 'overview of no queues');
select is(millrace.list_jobs_page(t.at('0'), '{}'), '{"jobs": [], "next": null, "complete": true}', 'a page of no jobs');
select is(millrace.list_dead('{}'), '{"jobs": [], "next": null, "complete": true}', 'a page of no dead letters');
select is(millrace.dead_groups(), '{"groups": [], "complete": true}', 'groups of no dead letters');
select is(millrace.list_batches('{}'), '{"next": null, "batches": [], "complete": true}', 'a page of no batches');
select is(millrace.list_workers(), '{"workers": []}', 'no workers');
select is(millrace.list_schedules(), '{"schedules": []}', 'no schedules');
select is(jsonb_array_length(millrace.history_at(t.at('0'), null, 60) -> 'points'), 180, 'history of nothing has its points');
select is(millrace.claim_json('nowhere'), '{"jobs": [], "lease": null, "lease_until": null}', 'a claim of nothing');

-- ---- jobs of every status ----
select t.put(t.at('0'), 'mail', 70) as mail
\gset
select millrace.set_retry('k', 2, '1 hour', 1, '1 hour', 0);
select t.claim('done', t.at('1 second'), 'mail', 20);
select millrace.complete_at(t.at('3 seconds'), t.lease('done'), null, null);
select t.claim('mixed', t.at('4 seconds'), 'mail', 10, '1 day');
select millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[1], 'no host "a" on port 17', null, false, null),
       millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[2], 'no host "b" on port 18', null, false, null),
       millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[3], 'try again', '1 hour', true, null),
       millrace.complete_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[4:5], null);
select millrace.cancel_at(t.at('7 seconds'), (:'mail'::bigint[])[70], 'no need'), millrace.pause_job_at(t.at('7 seconds'), (:'mail'::bigint[])[69]);
select millrace.enqueue_at(t.at('8 seconds'), 'late', '{"n": 1}', 'mail', 50, t.at('1 day'), null, null, null, 't1', 'r1', null, null, null, null, null, null, null) as late
\gset
select millrace.enqueue_at(t.at('8 seconds'), 'tenant', '{"n": 1}', 'other', 10, null, null, null, null, 't1', 'r2', null, null, null, null, null, null, null) as tenant
\gset
select is(t.sorted((t.pages(t.at('9 seconds'), '{}')).ids), t.view_ids('true'), 'all jobs are listed, each once');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"limit": 7}')).ids), t.view_ids('true'), 'in small pages, too');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"limit": 1}')).ids), t.view_ids('true'), 'and one by one');
select is(t.sorted((t.pages(t.at('9 seconds'), jsonb_build_object('status', s, 'limit', 3))).ids), t.view_ids(format('j.status = %L', s)), format('those that are %s', s))
  from unnest('{scheduled,paused,waiting,available,running,completed,cancelled,expired,dead}'::text[]) s;
select is(t.sorted((t.pages(t.at('9 seconds'), jsonb_build_object('queue', 'mail', 'status', s, 'limit', 3))).ids), t.view_ids(format('j.queue = %L and j.status = %L', 'mail', s)), format('those of a queue that are %s', s))
  from unnest('{scheduled,paused,waiting,available,running,completed,cancelled,expired,dead}'::text[]) s;
select is((t.pages(t.at('9 seconds'), '{"queue": "other"}')).ids, array[:tenant]::bigint[], 'a queue');
select is((t.pages(t.at('9 seconds'), '{"tenant": "t1"}')).ids, array[:tenant, :late]::bigint[], 'a tenant');
select is((t.pages(t.at('9 seconds'), '{"kind": "late"}')).ids, array[:late]::bigint[], 'a kind');
select is((t.pages(t.at('9 seconds'), '{"ref": "r2"}')).ids, array[:tenant]::bigint[], 'a ref in the log');
select is((t.pages(t.at('9 seconds'), '{"ref": "r1"}')).ids, array[:late]::bigint[], 'a ref of a delayed job');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"error": "host"}')).ids), (t.ids('mixed'))[1:2], 'a part of an error');
select is((t.pages(t.at('9 seconds'), '{"error": "again"}')).ids, (t.ids('mixed'))[3:3], 'an error of a job that is tried again');
select is((t.pages(t.at('9 seconds'), '{"id": 1}')).ids, '{1}', 'an id');
select is((t.pages(t.at('9 seconds'), '{"id": "1", "status": "dead"}')).ids, '{}', 'an id that is not dead');
select is(millrace.list_jobs_page(t.at('9 seconds'), jsonb_build_object('id', j.id)) -> 'jobs' -> 0,
          (select f.job from jsonb_array_elements(millrace.list_jobs_page(t.at('9 seconds'), '{"limit": 200}') -> 'jobs') f(job) where (f.job ->> 'id')::bigint = j.id),
          format('job %s (%s) looks the same by id and in the list', j.id, j.status))
  from millrace.jobs j
 where j.status <> 'cancelled';
-- Newest first.
select is((t.page(t.at('9 seconds'), '{"limit": 2}')), array[:tenant, :late]::bigint[], 'the newest come first');
select is((t.page(t.at('9 seconds'), '{"queue": "mail", "status": "completed", "limit": 3}')), array[(t.ids('mixed'))[5], (t.ids('mixed'))[4], (t.ids('done'))[20]], 'of a status, too');

select * from finish();
