-- SPDX-License-Identifier: PostgreSQL
-- A bounded slice of promotion, schedules, rescue, turns, rounds, batches and dependencies, at most once a second in the whole database: with it delays, schedules and lost
-- workers are taken care of where no daemon runs. Only at the start of a transaction: what is promoted becomes visible at its commit.
-- A session that does it stays the one who does: its looks at whole rings take a thousand locks, for which PostgreSQL makes a table in the session that is walked
-- through at the end of each transaction from then on, 35,000 instructions each time. So it is one session's, while that one claims: upkeep_hand has the
-- clock as the session set it, and is worth something while the clock says so.
-- upkeep_clock holds when it was last done, as an even number; a round of maintain sets it a second ahead, as an odd one (see rounds_face).
create or replace function millrace.upkeep_slice(p_now timestamptz)
returns void
language plpgsql
as $$
begin
  if pg_current_xact_id_if_assigned() is not null
     or not pg_try_advisory_xact_lock(1297219594, 0) then
    return;
  end if;
  perform setval('millrace.upkeep_clock', millrace.epoch_ms(p_now) & ~1), set_config('millrace.upkeep_hand', (millrace.epoch_ms(p_now) & ~1)::text, false);
  perform millrace.promote(p_now, 1000);
  perform millrace.schedule_due(p_now, 10);
  perform millrace.rescue(p_now, 1000);
  perform millrace.batches_fold(p_now, 10000), millrace.depends_look(p_now, 200);
  perform millrace.turns_settle(p_now, 100), millrace.fair_passes(p_now);
end $$;
