-- SPDX-License-Identifier: PostgreSQL
-- Payload parts that clients have coded: src/client/part.h has the form. Nothing here decodes.

-- Whether a value begins with the signature.
create or replace function millrace.part_is_coded(p_part bytea)
returns boolean
language sql
immutable
as $$
  select substr(p_part, 1, 8) = '\x894d52500d0a1a0a'::bytea
$$;

-- What the header of a coded value says: its letter, and the size of the original. Both null: the header is not well-formed. At most 64 MiB, as
-- PART_SIZE_MAX.
create or replace function millrace.part_read(p_part bytea, out letter text, out bytes bigint)
language plpgsql
immutable
as $$
declare
  c_most constant bigint := 67108864;
begin
  if octet_length(p_part) < 17 or get_byte(p_part, 8) not in (111, 112, 122) or substr(p_part, 10, 4) <> '\x00000000' then
    return;
  end if;
  bytes := (get_byte(p_part, 13)::bigint << 24) + (get_byte(p_part, 14) << 16) + (get_byte(p_part, 15) << 8) + get_byte(p_part, 16);
  letter := chr(get_byte(p_part, 8));
  if bytes > c_most or (letter = 'p' and bytes <> octet_length(p_part) - 17) then
    letter := null;
    bytes := null;
  end if;
end $$;

-- How many bytes of a part count for the limits of a queue: of a compressed one those of the original, so that it may be written back by a client that
-- does not compress. One that begins with the signature and has no well-formed header is refused (22023).
create or replace function millrace.part_weight(p_what text, p_part bytea)
returns bigint
language plpgsql
strict
as $$
declare
  v_head record;
begin
  if not millrace.part_is_coded(p_part) then
    return octet_length(p_part);
  end if;
  v_head := millrace.part_read(p_part);
  if v_head.letter is null then
    perform millrace.refuse(format('%s begins like a coded part and has no well-formed header', p_what),
      'Bytes that begin with \x894d52500d0a1a0a have to be wrapped: that, then p, then the size of the original as eight bytes, then the original. libmillrace and the HTTP API do it.');
  end if;
  return case v_head.letter when 'o' then octet_length(p_part) else v_head.bytes end;
end $$;

-- The same of a part as base64 text that has been checked.
create or replace function millrace.base64_weight(p_part text)
returns bigint
language sql
stable
as $$
  select case when left(p_part, 10) = 'iU1SUA0KGg' then millrace.part_weight('', decode(p_part, 'base64')) else length(p_part) / 4 * 3 end
$$;
