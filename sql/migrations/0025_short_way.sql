-- SPDX-License-Identifier: PostgreSQL
-- The short way of a claim of one job (lane_take_one) reads the cursor and the next job with one statement. For that the cursor's row has
-- to have the ends of its window at hand, also where the window itself is in another row.

alter table millrace.claim
  add column win_min xid8,
  add column win_max xid8,
  add column win_sure boolean;
comment on column millrace.claim.win_min is 'the oldest xid that ran at the window''s end; null where late commits are still to be read, or nobody has noted it';
comment on column millrace.claim.win_max is 'the first xid behind the window; with win_min';
comment on column millrace.claim.win_sure is 'the segment before this one was closed before the window''s end';

-- Its arguments are others now.
do $$
begin
  for i in 0..15 loop
    execute format('drop function if exists millrace.complete_all_%s(timestamptz, int, bigint, uuid)', i);
  end loop;
end $$;
drop function if exists millrace.complete_all(timestamptz, int2, int, bigint, uuid);
