-- SPDX-License-Identifier: PostgreSQL
-- Marks a row of the log (see mark). The hint is set before the row is written and taken back only by marks_forget, which waits for
-- nobody but needs that no transaction is about to make one: hence the shared lock, to the end of this one.
create or replace function millrace.mark_make(p_now timestamptz, p_lane int, p_pos bigint, p_id bigint, p_letter "char", p_text text)
returns void
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock_shared(1297219595, 0);
  perform setval('millrace.mark_hint', 1);
  insert into millrace.mark (lane, pos, job_id, letter, made_at, mark_text)
  values (p_lane, p_pos, p_id, p_letter, p_now, p_text)
      on conflict on constraint mark_pk do nothing;
end $$;

-- Whether there may be marks.
create or replace function millrace.marks_exist()
returns boolean
language sql
volatile
as $$
  select coalesce(pg_sequence_last_value('millrace.mark_hint'::regclass), 0) > 0
$$;

-- The positions of a claim whose jobs were cancelled while they ran, or between being taken and the claim's commit. Null: none.
create or replace function millrace.marks_of(p_claim millrace.claim)
returns bigint[]
language plpgsql
as $$
begin
  if millrace.marks_exist() then
    return (select array_agg(m.pos)
              from millrace.mark m
             where m.lane = p_claim.lane
               and m.pos = any (p_claim.positions)
               and m.letter in ('a', 'k'));
  end if;
  return null;
end $$;

-- Ends the marks of some positions of a lane: a reason is kept as the result of its job, the marks go.
create or replace function millrace.marks_end(p_now timestamptz, p_lane int, p_positions bigint[])
returns void
language plpgsql
as $$
begin
  perform pg_current_xact_id();
  with gone as (
    delete from millrace.mark m
     where m.lane = p_lane
       and m.pos = any (p_positions)
    returning m.job_id, m.pos, m.letter, m.mark_text)
  insert into millrace.result (slot, job_id, pos, finished_at, payload_result)
  select pg_sequence_last_value('millrace.seg_seq'::regclass) % 16, g.job_id, g.pos, p_now, jsonb_build_object('reason', g.mark_text)
    from gone g
   where g.letter in ('a', 'k')
     and g.mark_text is not null;
end $$;

-- Removes marks that have nothing to say any more: of jobs that completed although they were asked to stop, of rows that are gone. Takes
-- the hint back when none is left. Returns how many went.
create or replace function millrace.marks_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_some constant int := 1000;
  v_n    bigint;
begin
  if not millrace.marks_exist() then
    return 0;
  end if;
  delete from millrace.mark m
   using (select m.lane, m.pos, m.job_id
            from ((select m.* from millrace.mark m where m.letter = 'a' order by m.made_at limit c_some)
                  union
                  (select m.* from millrace.mark m where m.made_at < p_now - interval '10 seconds' order by m.lane, m.pos limit c_some)) m) o
   where m.lane = o.lane
     and m.pos = o.pos
     and not exists (select
                       from millrace.job_rows(o.job_id) j
                      cross join lateral millrace.job_standing(j.slot, j.lane, j.seg, j.xid, j.pos) s
                      where j.lane = o.lane
                        and j.pos = o.pos
                        and (s.claimed_at is null or s.letter = 'o'));
  get diagnostics v_n = row_count;
  -- A sequence is not rolled back: not in the transaction that deleted the last ones. And the look comes after the lock, in a statement of its own.
  if v_n = 0 and pg_try_advisory_xact_lock(1297219595, 0) then
    if not exists (select from millrace.mark) then
      perform setval('millrace.mark_hint', 0);
    end if;
  end if;
  return v_n;
end $$;
