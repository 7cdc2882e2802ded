-- SPDX-License-Identifier: PostgreSQL
-- Takes the keys of the jobs of enqueue_jobs: ids has the id of each job in their order, old whether that is a job that was there before or comes before
-- it in the same call, said the place of the job whose args and time it gets, where a later one of the same call replaces them. Keys are taken in their
-- own order, so that two calls with the same keys wait for each other and not in a circle; ids are given in the order of the jobs, so that they are
-- delivered in it. Keys are of the queue that was named (asked), also where its route takes the job.
create or replace function millrace.unique_take_many(p_now timestamptz, p_jobs jsonb, out ids bigint[], out old boolean[], out said int[])
language plpgsql
as $$
declare
  v_queue int;
  v_key   text;
  v_held  bigint;      -- the job that has the key, and its place in this call if it is made here
  v_place int;
  v_fresh bigint[];    -- the jobs whose keys were nobody's
  v_one   record;
  v_told  int[] := '{}';
begin
  ids := array(select nextval('millrace.pos_seq') from generate_series(1, jsonb_array_length(p_jobs)));
  old := array_fill(false, array[jsonb_array_length(p_jobs)]);
  said := array(select generate_series(1, jsonb_array_length(p_jobs)));
  select millrace.unique_take_fresh(array_agg(k.queue_id), array_agg(k.unique_key), array_agg(ids[k.ord]), array_agg(k.unique_for))
    into v_fresh
    from (select distinct on (q.queue_id, r.unique_key collate "C") q.queue_id, r.unique_key, r.ord, r.unique_for
            from (select row_number() over () as ord, r.*
                    from jsonb_to_recordset(p_jobs) as r(queue text, asked text, unique_key text, unique_for interval)) r
            join millrace.queue q on q.queue_name = coalesce(r.asked, r.queue, 'default') and q.parent_id is null
           where r.unique_key is not null
           order by q.queue_id, r.unique_key collate "C", r.ord) k;
  for v_one in
    select r.ord::int as ord, r.queue_id, r.unique_key, r.on_conflict, r.unique_for, r.fresh
      from (select r.*, q.queue_id, f.id is not null as fresh, count(*) over (partition by q.queue_id, r.unique_key) as same
              from (select row_number() over () as ord, r.*
                      from jsonb_to_recordset(p_jobs) as r(queue text, asked text, unique_key text, on_conflict text, unique_for interval)) r
              join millrace.queue q on q.queue_name = coalesce(r.asked, r.queue, 'default') and q.parent_id is null
              left join unnest(v_fresh) f(id) on f.id = ids[r.ord]
             where r.unique_key is not null) r
     where not r.fresh
        or r.same > 1
     order by r.queue_id, r.unique_key collate "C", r.ord
  loop
    if (v_queue, v_key) = (v_one.queue_id, v_one.unique_key) is not true then
      v_held := case when not v_one.fresh then millrace.unique_take(p_now, v_one.queue_id, v_one.unique_key, ids[v_one.ord], v_one.unique_for) end;
      v_queue := v_one.queue_id;
      v_key := v_one.unique_key;
      v_place := case when v_held is null then v_one.ord end;
      continue when v_held is null;
    end if;
    ids[v_one.ord] := coalesce(v_held, ids[v_place]);
    old[v_one.ord] := true;
    if v_one.on_conflict = 'replace' then
      if v_place is not null then
        said[v_place] := v_one.ord;
      else
        v_told := v_told || v_one.ord;
      end if;
    end if;
  end loop;
  -- The jobs that are there, by their lanes: two calls come to the lanes' locks in one order.
  perform millrace.unique_replace(p_now, t.id, t.args, t.due)
     from (select ids[r.ord] as id, coalesce(r.args, '{}') as args, coalesce(r.run_at, p_now + r.delay) as due
             from (select row_number() over () as ord, r.*
                     from jsonb_to_recordset(p_jobs) as r(args jsonb, run_at timestamptz, delay interval)) r
            cross join lateral millrace.job_newest(ids[r.ord]) n
            where r.ord = any (v_told)
            order by (n.job).lane, ids[r.ord], r.ord) t;
end $$;

-- Takes keys that are nobody's and were not for a while, each given once, for new jobs, and returns those jobs. The others are for unique_take.
create or replace function millrace.unique_take_fresh(p_queue_ids int[], p_keys text[], p_ids bigint[], p_quiet interval[])
returns bigint[]
language plpgsql
as $$
declare
  v_taken bigint[];
begin
  with taken as (
    insert into millrace.unique_key (queue_id, unique_name, use_no, job_id, quiet_time)
    select n.queue_id, n.key, 1, n.id, n.quiet
      from unnest(p_queue_ids, p_keys, p_ids, p_quiet) n(queue_id, key, id, quiet)
     where (select u.use_no
              from millrace.unique_key u
             where u.queue_id = n.queue_id
               and u.unique_name = n.key
             order by u.use_no desc
             limit 1) is null
     order by n.queue_id, n.key collate "C"
        on conflict on constraint unique_key_pk do nothing
    returning job_id)
  select coalesce(array_agg(t.job_id), '{}')
    into v_taken
    from taken t;
  return v_taken;
end $$;
