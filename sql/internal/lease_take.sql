-- SPDX-License-Identifier: PostgreSQL
-- The claim of a lease, locked: from here on nobody else finishes or rescues it. A lease that is not the live one raises MR001.
-- An expired lease that nobody has rescued yet is still live.
do $do$
begin
  execute format($sql$
create or replace function millrace.lease_take(p_lease text)
returns millrace.claim
language plpgsql
as $$
declare
  v_key   record := millrace.lease_parts(p_lease);
  v_slot  int := v_key.slot;
  v_claim millrace.claim;
begin
  perform millrace.at_home();
  if v_slot between 0 and 15 then
    %s
  end if;
  -- Upkeep may have rotated while the claim was taken, or have parked it: before a lease is called lost, every leaf is asked.
  if v_claim.no is null then
    select k.*
      into v_claim
      from millrace.claim k
     where k.lane = v_key.lane
       and k.no = v_key.no
       and k.token = v_key.token
       and k.status = 'r'
       for no key update;
  end if;
  if v_claim.no is null then
    perform millrace.refuse_lease(p_lease);
  end if;
  return v_claim;
end $$
  $sql$,
    millrace.by_leaf('v_slot', $one$
    select k.*
      into v_claim
      from millrace.claim_%s k
     where k.lane = v_key.lane
       and k.no = v_key.no
       and k.token = v_key.token
       and k.status = 'r'
       for no key update;$one$));
end $do$;

-- The claim of a lease as it is, not locked: somebody may finish it meanwhile. A lease that is not the live one raises MR001.
create or replace function millrace.lease_look(p_lease text)
returns millrace.claim
language plpgsql
as $$
declare
  v_key   record := millrace.lease_parts(p_lease);
  v_claim millrace.claim;
begin
  perform millrace.at_home();
  select k.*
    into v_claim
    from millrace.claim k
   where k.lane = v_key.lane
     and k.no = v_key.no
     and k.token = v_key.token
     and k.status = 'r';
  if not found then
    perform millrace.refuse_lease(p_lease);
  end if;
  return v_claim;
end $$;
