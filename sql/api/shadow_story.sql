-- SPDX-License-Identifier: PostgreSQL
-- What shadow_check() has found of an origin, in all, and the newest hundred copies that did not match. Errors: MR004 restored schema.
create or replace function millrace.shadow_story(origin text)
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
begin
  perform millrace.at_home();
  return millrace.mirror_facts(millrace.mirror_newest(origin))
         || jsonb_build_object('mismatches', coalesce((select jsonb_agg(jsonb_build_object('what', m.what, 'id', m.job_id, 'copied_id', m.copied_id, 'at', m.found_at))
                                                         from (select m.*
                                                                 from millrace.mirror_mismatch m
                                                                where m.origin_name = shadow_story.origin
                                                                order by m.found_at desc, m.job_id
                                                                limit 100) m), '[]'));
end $$;
comment on function millrace.shadow_story(text) is
  'what came of comparing a shadow, and what did not match';
