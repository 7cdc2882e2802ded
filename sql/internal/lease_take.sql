-- SPDX-License-Identifier: PostgreSQL
-- The claim of a lease, locked: from here on nobody else finishes or rescues it. A lease that is not the live one raises MR001.
-- An expired lease that nobody has rescued yet is still live.
create or replace function millrace.lease_take(p_lease text)
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
   where k.slot = any (array[v_key.slot, (v_key.slot + 1) % 16, -1])
     and k.lane = v_key.lane
     and k.no = v_key.no
     and k.token = v_key.token
     and k.status = 'r'
     for no key update;
  if not found then
    -- Upkeep may have rotated more than once while the claim was taken: before a lease is called lost, every leaf is asked.
    select k.*
      into v_claim
      from millrace.claim k
     where k.lane = v_key.lane
       and k.no = v_key.no
       and k.token = v_key.token
       and k.status = 'r'
       for no key update;
  end if;
  if not found then
    perform millrace.refuse_lease(p_lease);
  end if;
  return v_claim;
end $$;

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
