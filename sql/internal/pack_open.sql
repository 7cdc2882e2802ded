-- SPDX-License-Identifier: PostgreSQL
-- Makes rows of their own of the jobs in a leaf's packs: of every pack that holds one of p_ids. Nothing else changes, xid and positions stay, so
-- for cursors and counts they are the same jobs. For those who move single jobs off a leaf that is about to go.
create or replace function millrace.pack_open(p_slot int, p_ids bigint[])
returns void
language plpgsql
as $$
declare
  -- First the packs, each by the index on ids: a delete with this condition would be planned for an empty leaf.
  v_packs bigint[] := array(select r.job_id
                              from (select distinct u & ~31 as first_id
                                      from unnest(p_ids) u) b
                             cross join lateral (select j.job_id
                                                   from millrace.job j
                                                  where j.slot = p_slot
                                                    and j.job_id >= b.first_id
                                                    and j.job_id <= b.first_id + 31
                                                    and j.pack_n is not null
                                                  order by j.job_id
                                                  limit 1) r);
begin
  with gone as (
    delete from millrace.job j
     where j.slot = p_slot
       and j.job_id = any (v_packs)
       and j.pack_n is not null
    returning j.*)
  insert into millrace.job (xid, pos, job_id, created_at, seg, lane, slot, attempt, lost, attempts_limit, job_kind, payload_args, job_source)
  select g.xid, g.pos - g.pack_n + p.ord, g.pos - g.pack_n + p.ord, g.created_at, g.seg, g.lane, g.slot, g.attempt, g.lost,
         g.attempts_limit, g.job_kind, p.args, g.job_source
    from gone g
   cross join lateral unnest(g.pack) with ordinality p(args, ord);
end $$;
