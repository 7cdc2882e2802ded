-- SPDX-License-Identifier: PostgreSQL
-- The short way of a completion of a whole claim (complete_all).

-- Its arguments are others now.
do $$
begin
  for i in 0..15 loop
    execute format('drop function if exists millrace.complete_all_%s(timestamptz, int, bigint, uuid)', i);
  end loop;
end $$;
drop function if exists millrace.complete_all(timestamptz, int2, int, bigint, uuid);
