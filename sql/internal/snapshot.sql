-- SPDX-License-Identifier: PostgreSQL
-- The current snapshot with the caller's own transaction among the running ones.
-- pg_current_snapshot() leaves the own xid out, so a transaction that claims and then enqueues would
-- count its own, still uncommitted job as already seen and nobody would ever get it.
create or replace function millrace.snapshot()
returns pg_snapshot
language plpgsql
stable
as $$
declare
  v_snap pg_snapshot := pg_current_snapshot();
  v_own  xid8 := pg_current_xact_id_if_assigned();
begin
  if v_own is null or v_own >= pg_snapshot_xmax(v_snap) then
    return v_snap;
  end if;
  return (select format('%s:%s:%s', least(v_own, pg_snapshot_xmin(v_snap)), pg_snapshot_xmax(v_snap),
                        string_agg(u.x::text, ',' order by u.x))::pg_snapshot
            from (select x
                    from pg_snapshot_xip(v_snap) t(x)
                   union
                  select v_own) u(x));
end $$;
