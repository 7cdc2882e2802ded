-- SPDX-License-Identifier: PostgreSQL
-- Ids of stream entries (MS-SEQ, both below 2^64) as numbers in their order. Errors: 22023.
create or replace function millrace.stream_place(p_id text)
returns numeric
language plpgsql
immutable
as $$
declare
  c_half constant numeric := 18446744073709551616;      -- 2^64
  v_ms  numeric;
  v_seq numeric;
begin
  if p_id ~ '^[0-9]{1,20}-[0-9]{1,20}$' then
    v_ms := split_part(p_id, '-', 1)::numeric;
    v_seq := split_part(p_id, '-', 2)::numeric;
  end if;
  if v_ms is null or v_ms >= c_half or v_seq >= c_half then
    perform millrace.refuse(format('%s is no id of a stream entry', coalesce(quote_literal(left(p_id, 80)), 'null')),
      'Ids are two numbers with a dash between them, such as 1700000000000-0.');
  end if;
  return v_ms * c_half + v_seq;
end $$;

-- And back.
create or replace function millrace.stream_id(p_place numeric)
returns text
language sql
immutable
as $$
  select div(p_place, 18446744073709551616) || '-' || mod(p_place, 18446744073709551616)
$$;

-- The number from which on the places of a bridge begin.
create or replace function millrace.bridge_base(p_bridge_id int)
returns numeric
language sql
immutable
as $$
  select p_bridge_id * 340282366920938463463374607431768211456::numeric      -- 2^128
$$;
