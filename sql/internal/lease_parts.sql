-- SPDX-License-Identifier: PostgreSQL
-- The parts of a lease: slot of the claim's leaf, lane, number, token. Anything else is a lost lease (MR001).
-- Looked at before the casts: an exception to catch would cost more than the rest, and so would a pattern.
create or replace function millrace.lease_parts(p_lease text, out slot int2, out lane int, out no bigint, out token uuid)
language plpgsql
as $$
declare
  v_part text[] := string_to_array(left(p_lease, 80), '.');
begin
  if (cardinality(v_part) = 4
      and translate(v_part[1] || v_part[2] || v_part[3], '0123456789', '') = ''
      and length(v_part[1]) between 1 and 2 and length(v_part[2]) between 1 and 10 and length(v_part[3]) between 1 and 18
      and (length(v_part[2]) < 10 or v_part[2] collate "C" <= '2147483647')
      and v_part[4] like '________-____-____-____-____________' and translate(v_part[4], '0123456789abcdef', '') = '----') is not true then
    perform millrace.refuse_lease(p_lease);
  end if;
  slot := v_part[1];
  lane := v_part[2];
  no := v_part[3];
  token := v_part[4];
  if concat_ws('.', slot, lane, no, token) is distinct from p_lease then
    perform millrace.refuse_lease(p_lease);
  end if;
end $$;
