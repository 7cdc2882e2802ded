-- SPDX-License-Identifier: PostgreSQL
-- The story of the newest job of a queue with the caller's own id. Errors: MR003 unknown queue or ref.
create or replace function millrace.job_by_ref(queue text,
  ref text)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_id  int;
  v_ids int[];      -- its tenants' included
  v_job bigint;
begin
  perform millrace.at_home();
  v_id := (millrace.queue_known(queue)).queue_id;
  v_ids := array(select millrace.family(v_id));
  v_job := (select max(u.job_id)
              from (select j.job_id from millrace.job j where j.job_ref = ref and j.lane >> 12 = any (v_ids)
                     union all
                    select d.job_id from millrace.delayed d where d.job_ref = ref and d.lane >> 12 = any (v_ids)
                     union all
                    select d.job_id from millrace.dead d where d.job_ref = ref and d.queue_id = v_id
                     union all
                    select a.job_id from millrace.archive a where a.job_ref = ref and a.queue_id = v_id
                     union all
                    select m.job_id from millrace.moved m where m.job_ref = ref and m.lane >> 12 = any (v_ids)) u);
  if v_job is null then
    perform millrace.refuse_unknown(format('queue %s has no job with ref %s', quote_literal(queue), coalesce(quote_literal(left(ref, 200)), 'null')),
      'It was never enqueued there, or its retention is over.');
  end if;
  return millrace.job_story(v_job);
end $$;
comment on function millrace.job_by_ref(text, text) is
  'the story of the job with the caller''s own id';
