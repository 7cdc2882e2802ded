-- SPDX-License-Identifier: PostgreSQL
-- References to objects of the blob store: the form that payload parts have whose bytes are elsewhere (docs/blobs.md). 17 bytes of header (signature, the letter
-- o, the size of the part as it was) and a JSON object: key, size and sha256 of the object; and away where the daemon moved it and brings it back.

-- Whether a part is away. Looks at nothing but the size of a part that is larger than any reference.
create or replace function millrace.is_away(p_part bytea)
returns boolean
language sql
immutable
as $$
  select case
           when octet_length(p_part) between 18 and 2000 then
             substr(p_part, 1, 9) = '\x894d52500d0a1a0a6f'::bytea and position('"away"'::bytea in p_part) > 0
           else false
         end
$$;

-- Whether a part is a reference to any object, away or not.
create or replace function millrace.is_object(p_part bytea)
returns boolean
language sql
immutable
as $$
  select case when octet_length(p_part) between 18 and 2000 then substr(p_part, 1, 9) = '\x894d52500d0a1a0a6f'::bytea else false end
$$;

-- Whether a part is a reference to one object.
create or replace function millrace.names_object(p_part bytea, p_key text)
returns boolean
language sql
immutable
as $$
  select case
           when octet_length(p_part) between 18 and 2000 then
             substr(p_part, 1, 9) = '\x894d52500d0a1a0a6f'::bytea and position(convert_to(p_key, 'UTF8') in p_part) > 0
           else false
         end
$$;

-- The reference in a part; null where it is none.
create or replace function millrace.part_reference(p_part bytea)
returns jsonb
language plpgsql
stable
as $$
begin
  if octet_length(p_part) between 18 and 2000 and substr(p_part, 1, 9) = '\x894d52500d0a1a0a6f'::bytea then
    return convert_from(substr(p_part, 18), 'UTF8')::jsonb;
  end if;
  return null;
exception
  when data_exception then
    return null;
end $$;

-- A part that is away.
create or replace function millrace.part_away(p_part bytea, p_key text, p_sha256 text)
returns bytea
language sql
immutable
as $$
  select '\x894d52500d0a1a0a6f'::bytea
         || case when substr(p_part, 1, 8) = '\x894d52500d0a1a0a'::bytea then substr(p_part, 10, 8) else int8send(octet_length(p_part)) end      -- what is coded says how large it was
         || convert_to(json_build_object('key', p_key, 'size', octet_length(p_part), 'sha256', p_sha256, 'away', true)::text, 'UTF8')
$$;

-- The bytes of a part; null where they cannot be read.
create or replace function millrace.part_bytes(p_part bytea)
returns bytea
language plpgsql
stable
as $$
begin
  return substr(p_part, 1);
exception
  when data_corrupted or internal_error or data_exception then
    return null;
end $$;
