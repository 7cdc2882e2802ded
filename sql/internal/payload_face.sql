-- SPDX-License-Identifier: PostgreSQL
-- The payload parts state and blob as job shows them.

-- One part: {"bytes", "format", "value", "cut"}. bytes is the size of all of it; of more than 16 KiB the first 16 KiB are shown, and cut is true. format
-- is json (value is that), text, or hex for what is no UTF-8. What cannot be read because it is damaged is said to be (damaged), not raised: the rest of the
-- story can be told. Null: there is none. A coded part has the size of its original as bytes, its own as stored, and its coding (zstd, object); up to
-- 16 KiB its value is all of it, as base64, and its format is coded: a client decodes it.
create or replace function millrace.payload_face(p_part bytea)
returns jsonb
language plpgsql
stable
as $$
declare
  c_bytes constant int := 16384;
  v_bytes int := octet_length(p_part);
  v_cut   boolean := v_bytes > c_bytes;
  v_text  text;
begin
  if p_part is null then
    return null;
  elsif millrace.part_is_coded(p_part) then
    return millrace.coded_face(p_part);
  end if;
  p_part := substr(p_part, 1, c_bytes);
  v_text := millrace.payload_text(p_part, v_cut);
  return jsonb_build_object('bytes', v_bytes, 'cut', v_cut)
         || case
              when v_text is null then jsonb_build_object('format', 'hex', 'value', encode(p_part, 'hex'))
              else coalesce(case when not v_cut then millrace.payload_json(v_text) end, jsonb_build_object('format', 'text', 'value', v_text))
            end;
exception
  when data_corrupted or internal_error or data_exception then
    return jsonb_build_object('bytes', v_bytes, 'damaged', true);
end $$;

-- The same of one that is coded.
create or replace function millrace.coded_face(p_part bytea)
returns jsonb
language sql
stable
as $$
  select case coalesce(r.letter, 'damaged')
           when 'damaged' then jsonb_build_object('bytes', octet_length(p_part), 'damaged', true)
           when 'p' then jsonb_build_object('bytes', r.bytes, 'format', 'hex', 'value', encode(substr(p_part, 18, 16384), 'hex'), 'cut', r.bytes > 16384)
           else jsonb_build_object('bytes', r.bytes, 'stored', octet_length(p_part), 'coding', case r.letter when 'z' then 'zstd' else 'object' end, 'format', 'coded',
                                   'cut', octet_length(p_part) > 16384)
                || case
                     when octet_length(p_part) <= 16384 then jsonb_build_object('value', translate(encode(p_part, 'base64'), E'\n', ''))
                     else '{}'
                   end
         end
    from millrace.part_read(p_part) r
$$;

-- Bytes as text; null where they are none. p_cut: they are the beginning of more, and may end within a character.
create or replace function millrace.payload_text(p_part bytea, p_cut boolean)
returns text
language plpgsql
stable
as $$
begin
  if p_cut then
    -- A character begins with a byte that is no 10xxxxxx. The last one goes, whole or not.
    for i in reverse length(p_part) - 1 .. length(p_part) - 4 loop
      if get_byte(p_part, i) & 192 <> 128 then
        p_part := substr(p_part, 1, i);
        exit;
      end if;
    end loop;
  end if;
  return convert_from(p_part, 'UTF8');
exception
  when character_not_in_repertoire or untranslatable_character then
    return null;
end $$;

-- A text that is JSON, as such; null where it is none, or none that can be stored.
create or replace function millrace.payload_json(p_text text)
returns jsonb
language plpgsql
stable
as $$
begin
  return jsonb_build_object('format', 'json', 'value', p_text::jsonb);
exception
  when data_exception or invalid_text_representation or program_limit_exceeded or statement_too_complex then
    return null;
end $$;

-- state and blob of a job, from where it is now: its letter, the delayed jobs, its newest row in the log, the archive.
create or replace function millrace.job_payload(p_id bigint)
returns jsonb
language plpgsql
as $$
declare
  v_state bytea;
  v_blob  bytea;
begin
  select p.payload_state, p.payload_blob
    into v_state, v_blob
    from (select 1 as rank, 0::bigint as pos, d.payload_state, d.payload_blob
            from millrace.dead d
           where d.job_id = p_id
           union all
          select 2, 0, d.payload_state, d.payload_blob
            from millrace.delayed d
           where d.job_id = p_id
           union all
          select 3, j.pos, j.payload_state, j.payload_blob
            from millrace.job_rows(p_id) j
           union all
          select 4, 0, a.payload_state, a.payload_blob
            from millrace.archive a
           where a.job_id = p_id) p
   order by p.rank, p.pos desc
   limit 1;
  return (select coalesce(jsonb_object_agg(f.name, f.face) filter (where f.face is not null), '{}')
            from (values ('state', millrace.payload_face(v_state)), ('blob', millrace.payload_face(v_blob))) f(name, face));
end $$;
