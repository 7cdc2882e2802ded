-- SPDX-License-Identifier: PostgreSQL
-- The status of a row of the job log, and who has or had it. Status null: the job goes on elsewhere (a later row, delayed, dead).
create or replace function millrace.job_standing(p_slot int, p_lane int, p_seg int, p_xid xid8, p_pos bigint, out status text, out worker text,
                                                 out claimed_at timestamptz, out finished_at timestamptz, out letter text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_claim millrace.claim;
  v_status text;
  v_mark  "char";
  v_made  timestamptz;
begin
  -- The segment by the leaf: a row written during a rotation may carry the number of the segment before.
  v_claim := millrace.claim_of(p_lane, case when p_slot < 0 then p_seg else v_open - (v_open - p_slot) % 16 end, p_xid, p_pos);
  if v_claim.no is null then
    status := 'available';
    if millrace.marks_exist() then
      select case m.letter when 'w' then null else 'cancelled' end, m.letter, m.made_at
        into v_status, v_mark, v_made
        from millrace.mark m
       where m.lane = p_lane
         and m.pos = p_pos;
      if found then
        status := v_status;
        letter := case v_mark when 'w' then 'w' else 'k' end;
        finished_at := v_made;
      end if;
    end if;
    return;
  end if;
  letter := millrace.claim_letter(v_claim, p_pos);
  status := millrace.letter_status(letter);
  worker := v_claim.holder;
  claimed_at := v_claim.claimed_at;
  finished_at := case when letter = 'o' then null else v_claim.finished_at end;
end $$;

-- How a job of a claim ended, as a letter (see claim.outcome); o: it runs, p: it was purged.
create or replace function millrace.claim_letter(p_claim millrace.claim, p_pos bigint)
returns text
language plpgsql
stable
as $$
declare
  v_letter text := case
                     when p_claim.status = 'p' then 'p'
                     when p_claim.outcome is null then case p_claim.status when 'r' then 'o' else 'c' end
                     else substr(p_claim.outcome, array_position(p_claim.positions, p_pos), 1)
                   end;
begin
  return case when v_letter = 'o' and p_claim.status = 'd' then 'c' else v_letter end;
end $$;

-- The status that a letter means; null: the job goes on elsewhere.
create or replace function millrace.letter_status(p_letter text)
returns text
language sql
immutable
as $$
  select case p_letter when 'o' then 'running' when 'c' then 'completed' when 'x' then 'expired' when 'p' then 'cancelled' when 'k' then 'cancelled' end
$$;
