-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a queue; claim, claim_batch and claim_packs read them. Here the usual case: one priority, and no look at parts that others serve.
-- Everything else is claim_search's, claim_limited's where the queue has limits, and claim_fair's where it has tenants.
-- A statement costs ten microseconds and an expression one, each time, a field of a record more than a variable: hence one statement for all that
-- a claim has to know first, what is usual as one answer of it, and the leaf of lane_take_one chosen here. And where the session knows the queue
-- from its last claim, none at all, see queue_remember.
do $do$
begin
  execute format($sql$
create or replace function millrace.claim_take(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                               p_with_state boolean)
returns millrace.taken
language plpgsql
as $$
declare
  -- Any, each time: so the parts of a queue are drained evenly, whatever the number of sessions.
  v_part    int := floor(random() * 32)::int;
  v_id      int;
  v_parts   int;
  v_base    int;
  v_lane    int;
  v_lease   interval;
  v_worker  text := coalesce(p_worker, 'pid ' || pg_backend_pid());
  v_open    int;          -- the open segment
  v_usual   boolean;      -- check_claim would find nothing
  v_upkeep  boolean;
  v_one     boolean;      -- lanes are taken here
  v_many    boolean;      -- the last claim took several
  v_limited boolean;
  v_tenants boolean;
  v_only    boolean;      -- there is one lane
  v_tried   int;
  v_empty   int := 0;     -- lanes, which stay locked
  v_busy    int;          -- a lane that somebody else has
  -- A setting that a session made for the first time in a transaction that was rolled back is empty from then on.
  v_memo    bigint[] := nullif(current_setting('millrace.queue_memo', true), '');
  v_version bigint;
  v_taken   millrace.taken;
  v_held    boolean;
begin
  if v_memo[1] = pg_sequence_last_value('millrace.queue_version'::regclass) and current_setting('millrace.queue_known', true) = p_queue
     and p_max_jobs between 1 and 10000 and p_lease_for is null and coalesce(octet_length(p_worker), 0) <= 200
     and current_setting('transaction_isolation') = 'read committed' and current_setting('transaction_read_only') = 'off'
     -- Who did the last slice of upkeep comes a little before the others, see upkeep_slice.
     and abs(date_part('epoch', p_now) * 1000 - coalesce(pg_sequence_last_value('millrace.upkeep_clock'::regclass), 0))
         < (case when current_setting('millrace.upkeep_hand', true) = pg_sequence_last_value('millrace.upkeep_clock'::regclass)::text then 1000 else 1100 end) then
    v_base := v_memo[2];
    v_parts := v_memo[3];
    v_lease := v_memo[4] * interval '1 us';
    v_lane := v_base + (v_part + 1) %% v_parts;
    v_open := pg_sequence_last_value('millrace.seg_seq'::regclass);
    v_one := true;
    if p_max_jobs > 1 then
      v_many := current_setting('millrace.many', true) = v_base::text;
    end if;
  else
    -- Before the queue is read: what it says may be newer than its version, never older.
    v_version := case when pg_sequence_last_value('millrace.queue_version'::regclass)::text::xid8 < pg_snapshot_xmin(pg_current_snapshot())
                      then pg_sequence_last_value('millrace.queue_version'::regclass) end;
    -- With several parts lanes are taken here unless the last claim found none, or was of another queue (some): a lane that turns out to be empty stays locked, and with it in hand no
    -- other may be waited for.
    select q.queue_id, q.parts_seen, l.base, l.base + (v_part + 1) %% q.parts_seen, coalesce(p_lease_for, q.lease_time),
           pg_sequence_last_value('millrace.seg_seq'::regclass),
           p_max_jobs between 1 and 10000 and p_lease_for is null and coalesce(octet_length(p_worker), 0) <= 200
           and current_setting('transaction_isolation') = 'read committed' and current_setting('transaction_read_only') = 'off'
           and current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text,
           abs(date_part('epoch', p_now) * 1000 - coalesce(pg_sequence_last_value('millrace.upkeep_clock'::regclass), 0))
           >= case when current_setting('millrace.upkeep_hand', true) = pg_sequence_last_value('millrace.upkeep_clock'::regclass)::text then 1000 else 1100 end,
           l.base = l.last and not (q.limited or q.has_tenants)
           and (q.parts_seen = 1 or coalesce(current_setting('millrace.some', true), l.base::text) = l.base::text),
           current_setting('millrace.many', true) = l.base::text and p_max_jobs > 1,
           q.limited, q.has_tenants, l.base = l.last and q.parts_seen = 1
      into v_id, v_parts, v_base, v_lane, v_lease, v_open, v_usual, v_upkeep, v_one, v_many, v_limited, v_tenants, v_only
      from (select q.*, q.concurrency_limit is not null or q.rate_limit is not null or q.key_limit is not null or q.tenant_rate is not null as limited
              from millrace.queue q) q
     cross join lateral (select min(l.lane) as base, max(l.lane) as last
                           from millrace.lane l
                          where l.lane >= q.queue_id << 12
                            and l.lane < (q.queue_id + 1) << 12) l
     where q.queue_name = p_queue
       and q.parent_id is null
       and q.paused_at is null;
    if v_usual is not true or v_upkeep then
      perform millrace.check_claim(p_worker, p_max_jobs, p_lease_for);
      if v_id is null then
        return null;
      elsif v_upkeep then
        perform millrace.upkeep_slice(p_now);
      end if;
    end if;
    if v_one and v_version > 0 and p_lease_for is null then
      perform millrace.queue_remember(p_queue, v_version, v_base, v_parts, v_lease);
    end if;
  end if;
  -- One job is not looked for where the last claim took more, nor where upkeep, or the caller, has written already.
  if v_one and v_many is not true and pg_current_xact_id_if_assigned() is null then
    loop
      if pg_try_advisory_xact_lock(1297219591, v_lane) then
        %s
        if v_taken.n > 0 then
          return v_taken;
        end if;
        -- A part may be empty while others are not; but where many are, to look at all of them at once costs less.
        exit when v_taken.n is null or v_parts = 1 or v_empty = 8;
        v_empty := v_empty + 1;
      else
        v_busy := v_lane;
      end if;
      v_tried := coalesce(v_tried, 1) + 1;
      if v_tried <= v_parts then
        v_lane := v_base + (v_part + v_tried) %% v_parts;
      elsif v_tried = v_parts + 1 and v_empty > 0 and v_busy is not null and millrace.lock_try(1297219591, v_busy, 10) then
        v_lane := v_busy;      -- the last one, and what there is may be in it
      else
        exit;
      end if;
    end loop;
    if v_empty = v_parts then
      perform set_config('millrace.some', '', false), set_config('millrace.queue_memo', '{}', false);
      return null;
    end if;
    v_held := v_empty > 0;
  end if;
  for i in coalesce(v_tried, 1) .. case when v_one then v_parts else 0 end loop
    v_lane := v_base + (v_part + i) %% v_parts;
    continue when not pg_try_advisory_xact_lock(1297219591, v_lane);
    if v_taken.n is null then
      v_taken := millrace.lane_take(p_now, v_lane, p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
      if p_max_jobs > 1 and (coalesce(v_taken.n, 0) > 1) <> (v_many is true) then
        perform set_config('millrace.many', case when v_taken.n > 1 then v_base::text else '' end, false);
      end if;
    end if;
    if v_taken.n > 0 then
      return v_taken;
    elsif v_parts = 1 then
      return null;
    end if;
    perform set_config('millrace.some', '', false), set_config('millrace.queue_memo', '{}', false);
    v_held := true;
    exit;
  end loop;
  if v_limited then
    return millrace.claim_limited(p_now, v_id, v_worker, p_max_jobs, p_lease_for, p_with_state, v_part, case when v_only then v_base end);
  end if;
  if v_tenants then
    return millrace.claim_fair(p_now, v_id, v_worker, p_max_jobs, p_lease_for, p_with_state, v_part);
  end if;
  return millrace.claim_search(p_now, coalesce(v_id, v_base >> 12), v_worker, p_max_jobs, v_lease, p_lease_for is not null, p_with_state, v_part, v_held is true);
end $$
  $sql$, millrace.by_leaf('v_open', 'v_taken := millrace.lane_take_one_%s(p_now, v_open, v_lane, p_max_jobs, v_worker, v_lease, p_lease_for is not null);'));
end $do$;
