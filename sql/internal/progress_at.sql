-- SPDX-License-Identifier: PostgreSQL
-- progress with the time as an argument. The claim is looked at, not locked: an end that comes meanwhile does not wait, and makes the
-- report one of a job that has ended, which is harmless.
create or replace function millrace.progress_at(p_now timestamptz, p_lease text, p_id bigint, p_percent double precision, p_note text)
returns void
language plpgsql
as $$
declare
  v_claim    millrace.claim;
  v_ordinals int[];
begin
  perform millrace.check_percent(p_percent);
  perform millrace.check_text('note', p_note);
  v_claim := millrace.lease_look(p_lease);
  v_ordinals := millrace.held_ordinals(v_claim, array[p_id], p_lease);
  perform pg_current_xact_id();      -- before the segment is read: see result_keep
  insert into millrace.report (slot, job_id, pos, reported_at, percent_done, report_note)
  values (pg_sequence_last_value('millrace.seg_seq'::regclass) % 16, p_id, v_claim.positions[v_ordinals[1]], p_now, p_percent, p_note);
end $$;

-- A part of a hundred; nothing else is one, NaN least of all.
create or replace function millrace.check_percent(p_percent double precision)
returns void
language plpgsql
as $$
begin
  if (p_percent >= 0 and p_percent <= 100) is not true then
    perform millrace.refuse(format('percent must be from 0 to 100, not %s', coalesce(p_percent::text, 'null')),
      'Pass how much is done as a number from 0 to 100.');
  end if;
end $$;

-- The newest report of a job's newest attempt; all null: it has made none.
create or replace function millrace.report_newest(p_id bigint, out percent_done real, out report_note text, out reported_at timestamptz)
language plpgsql
stable
as $$
begin
  select r.percent_done, r.report_note, r.reported_at
    into percent_done, report_note, reported_at
    from (select r.*
            from millrace.report r
           where r.job_id = p_id
           order by r.pos desc, r.reported_at desc
           limit 1) r
   where not exists (select from millrace.job_rows(p_id) j where j.pos > r.pos);
end $$;
