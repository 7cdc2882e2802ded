-- SPDX-License-Identifier: PostgreSQL
-- The ledger of objects in the blob store.

-- A job names an object from now on. Null: there is none.
create or replace function millrace.object_keep(p_now timestamptz, p_id bigint, p_key text, p_bytes bigint)
returns void
language plpgsql
as $$
begin
  if p_key is not null then
    insert into millrace.blob_object (object_key, job_id, kept_at, look_at, object_bytes)
    values (p_key, p_id, p_now, p_now + interval '1 hour', p_bytes);
  end if;
end $$;

-- The objects that parts of a job name which clients wrote. Those of another database are read, and never removed: they have no place in the ledger.
create or replace function millrace.objects_of(p_state bytea, p_blob bytea)
returns table (object_key text, object_bytes bigint)
language plpgsql
stable
rows 1
as $$
begin
  return query
    select r.ref ->> 'key', case when jsonb_typeof(r.ref -> 'size') = 'number' then least((r.ref ->> 'size')::numeric, 67108881)::bigint else 0 end
      from (select millrace.part_reference(p.part) as ref
              from (values (p_state), (p_blob)) p(part)
             where millrace.is_object(p.part)
               and not millrace.is_away(p.part)
            offset 0) r
     where starts_with(r.ref ->> 'key', millrace.blob_home() || '/');
end $$;

-- A job names from now on what new parts of it refer to: in the transaction that writes its row, so that no sweep takes the objects for orphans. Returns how many. Called where a part is a
-- reference, which nearly none is. One that is named already stays as it is: a retry that keeps its parts, or a caller that says the same twice.
create or replace function millrace.parts_keep(p_now timestamptz, p_id bigint, p_state bytea, p_blob bytea)
returns bigint
language plpgsql
as $$
declare
  v_n bigint;
begin
  insert into millrace.blob_object (object_key, job_id, kept_at, look_at, object_bytes, seg)
  select o.object_key, p_id, p_now, p_now + interval '1 hour', o.object_bytes, pg_sequence_last_value('millrace.seg_seq'::regclass)
    from millrace.objects_of(p_state, p_blob) o
   where not exists (select from millrace.blob_object b where b.object_key = o.object_key and b.job_id = p_id);
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- A job does not name some objects any more.
create or replace function millrace.objects_doom(p_now timestamptz, p_id bigint, p_keys text[])
returns void
language plpgsql
as $$
begin
  with gone as (
    delete from millrace.blob_object o
     where o.job_id = p_id
       and o.object_key = any (p_keys)
    returning o.object_key)
  insert into millrace.blob_doomed (doomed_at, object_key)
  select p_now, g.object_key
    from gone g
   where not exists (select from millrace.blob_object o where o.object_key = g.object_key and o.job_id <> p_id);
end $$;

-- Some jobs are gone, with all they named. Null or no ids: nothing is done.
create or replace function millrace.objects_doom_all(p_now timestamptz, p_ids bigint[])
returns void
language plpgsql
as $$
begin
  if cardinality(p_ids) > 0 then
    with gone as (
      delete from millrace.blob_object o
       where o.job_id = any (p_ids)
      returning o.object_key)
    insert into millrace.blob_doomed (doomed_at, object_key)
    select distinct p_now, g.object_key
      from gone g
     where not exists (select from millrace.blob_object o where o.object_key = g.object_key and o.job_id <> all (p_ids));
  end if;
end $$;

-- Whether some row of a job names an object. One statement, hence one moment: a job that moves meanwhile is seen in one place or the other. The caller holds the lock of upkeep: what is
-- truncated is gone for every snapshot.
create or replace function millrace.object_needed(p_id bigint, p_key text)
returns boolean
language plpgsql
as $$
begin
  return exists (select from millrace.delayed d where d.job_id = p_id and (millrace.names_object(d.payload_state, p_key) or millrace.names_object(d.payload_blob, p_key))
                  union all
                 select from millrace.dead d where d.job_id = p_id and (millrace.names_object(d.payload_state, p_key) or millrace.names_object(d.payload_blob, p_key))
                  union all
                 select from millrace.job_rows(p_id) j where millrace.names_object(j.payload_state, p_key) or millrace.names_object(j.payload_blob, p_key)
                  union all
                 select from millrace.moving m where m.job_id = p_id and not m.copy and (millrace.names_object(m.payload_state, p_key) or millrace.names_object(m.payload_blob, p_key))
                  union all
                 select from millrace.archive a where a.job_id = p_id and (millrace.names_object(a.payload_state, p_key) or millrace.names_object(a.payload_blob, p_key)));
end $$;

-- Dooms objects that their jobs do not name any more, where nobody was there to say so: jobs that were completed, cancelled or expired and whose segment is gone. Objects that clients wrote are
-- looked at when the segment is gone that they came with; others an hour after they were kept, then, as those that are still needed, after as long as they are old, at most a day. Returns how many
-- were doomed. The caller holds the lock of upkeep.
create or replace function millrace.objects_look(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_floor int := coalesce((select min(g.seg) from millrace.segments_live() g), pg_sequence_last_value('millrace.seg_seq'::regclass));
  v_one   record;
  v_n     bigint := 0;
begin
  for v_one in
    select o.object_key, o.job_id, o.kept_at
      from (select o.ctid as place
              from ((select o.ctid
                       from millrace.blob_object o
                      where o.look_at <= p_now
                      order by o.look_at
                      limit p_limit)
                     union
                    (select o.ctid
                       from millrace.blob_object o
                      where o.seg < v_floor
                      order by o.seg
                      limit p_limit)) o
            offset 0) l
      join millrace.blob_object o on o.ctid = l.place
       for update of o skip locked
  loop
    if millrace.object_needed(v_one.job_id, v_one.object_key) then
      update millrace.blob_object o
         set look_at = p_now + least(greatest(p_now - v_one.kept_at, interval '1 hour'), interval '1 day'),
             seg = case when o.seg >= v_floor then o.seg end
       where o.object_key = v_one.object_key
         and o.job_id = v_one.job_id;
    else
      perform millrace.objects_doom(p_now, v_one.job_id, array[v_one.object_key]);
      v_n := v_n + 1;
    end if;
  end loop;
  return v_n;
end $$;

-- Queues with jobs whose payload should have come back half a minute ago, in words, for health.
create or replace function millrace.away_verdicts(p_now timestamptz)
returns table (queue_id int, message text)
language plpgsql
as $$
begin
  return query
    select w.owner, format('%s%s jobs are due and their payload is still in the blob store: is a `millrace serve` with the role maintain and a blob store running, and does the store answer?',
                           case when count(*) >= 1000 then 'at least ' else '' end, count(*))
      from (select millrace.queue_owner(d.lane >> 12) as owner
              from millrace.delayed d
             where d.away_due < p_now - interval '30 seconds'
               and d.due_at <= p_now + interval '2 minutes'
             order by d.due_at
             limit 1000) w
     group by w.owner;
end $$;
