-- SPDX-License-Identifier: PostgreSQL
-- Workers that hold a lease or were among the newest hundred claims of a lane.
create or replace function millrace.worker_list()
returns table (worker text, queue text, claims_open bigint, jobs_running bigint, last_claim_at timestamptz, lease_until timestamptz)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return query
    select w.*
      from millrace.workers_in(array(select l from millrace.lanes_all() l)) w;
end $$;

-- The same for some lanes.
create or replace function millrace.workers_in(p_lanes int[])
returns table (worker text, queue text, claims_open bigint, jobs_running bigint, last_claim_at timestamptz, lease_until timestamptz)
language plpgsql
stable
as $$
begin
  return query
    select c.holder, q.queue_name, count(*) filter (where c.status = 'r'), coalesce(sum(c.open_n), 0)::bigint, max(c.claimed_at),
           max(c.leased_till) filter (where c.status = 'r')
      from unnest(p_lanes) l
     cross join lateral (select o.no, o.holder, o.status, o.open_n, o.claimed_at, o.leased_till
                           from millrace.lane_open_claims(l, millrace.lane_tally(l)) o
                          union
                         (select k.no, k.holder, k.status, k.open_n, k.claimed_at, k.leased_till
                            from millrace.claim k
                           where k.slot = pg_sequence_last_value('millrace.seg_seq'::regclass) % 16
                             and k.lane = l
                           order by k.no desc
                           limit 100)) c
      join millrace.queue q on q.queue_id = l >> 12
     where c.holder is not null
     group by c.holder, q.queue_name;
end $$;
