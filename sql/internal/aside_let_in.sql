-- SPDX-License-Identifier: PostgreSQL
-- Appends jobs that were set aside, given by the ctids of their rows in delayed, to the log again: in part p_part, or where their keys or positions fall. Returns their
-- ids: without those that somebody else is at, and one that cannot be read, which is buried.
create or replace function millrace.aside_let_in(p_now timestamptz, p_places tid[], p_part int)
returns bigint[]
language plpgsql
as $$
declare
  v_ids bigint[];
begin
  perform pg_current_xact_id();
  with found as (
    select d.ctid as place
      from millrace.delayed d
     where d.slot = 56
       and d.ctid = any (p_places)
       for update skip locked),
  gone as (
    delete from millrace.delayed d
     where d.slot = 56
       and d.ctid = any (array(select f.place from found f))
    returning d.*),
  put as (
    insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at,
                              run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail,
                              order_key, unique_name, batch_id)
    select o.pos, o.job_id, o.created_at, (o.lane & ~31) + coalesce(p_part, millrace.part_of(case when o.ordered or o.why = 'o' then o.order_key end, o.pos, o.part_count)),
           o.attempt, o.lost, o.attempts_limit, o.job_kind, o.payload_args, p_now, o.stale_at, o.run_limit, o.payload_meta, o.payload_state,
           o.payload_blob, o.job_tenant, o.job_ref, o.job_source, o.trail, o.order_key, o.unique_name, o.batch_id
      from (select nextval('millrace.pos_seq') as pos, s.*
              from (select g.*, q.ordered, q.part_count
                      from gone g
                      join millrace.queue q on q.queue_id = g.lane >> 12
                     order by g.aside_pos) s) o
    returning job_id)
  select array_agg(p.job_id)
    into v_ids
    from put p;
  return v_ids;
exception
  when data_corrupted or internal_error or data_exception then
    if cardinality(p_places) = 1 then
      perform millrace.job_bury_damaged(p_now, 56, (select d.job_id from millrace.delayed d where d.slot = 56 and d.ctid = p_places[1]), null);
      return null;
    end if;
    for i in 1 .. cardinality(p_places) loop
      v_ids := v_ids || millrace.aside_let_in(p_now, p_places[i:i], p_part);
    end loop;
    return v_ids;
end $$;
