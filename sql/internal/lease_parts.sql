-- SPDX-License-Identifier: PostgreSQL
-- The parts of a lease: slot of the claim's leaf, lane, number, token. Anything else is a lost lease (MR001).
create or replace function millrace.lease_parts(p_lease text, out slot int2, out lane int, out no bigint, out token uuid)
language plpgsql
as $$
declare
  v_part text[];
begin
  if p_lease is null or length(p_lease) > 80
     or p_lease !~ '^\d{1,2}\.\d{1,10}\.\d{1,18}\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
    perform millrace.refuse_lease(p_lease);
  end if;
  v_part := string_to_array(p_lease, '.');
  if v_part[2]::bigint > 2147483647 then
    perform millrace.refuse_lease(p_lease);
  end if;
  slot := v_part[1];
  lane := v_part[2];
  no := v_part[3];
  token := v_part[4];
end $$;
