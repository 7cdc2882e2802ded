-- SPDX-License-Identifier: PostgreSQL
-- Filters and cursors of the functions that list things page by page.

-- Checks the filter of a page: an object of known keys, each a text, but for id and limit, which are numbers or texts of digits. Refuses anything else
-- (22023). Returns it with limit set, and numbers as numbers.
create or replace function millrace.page_filter(p_filter jsonb, p_keys text[])
returns jsonb
language plpgsql
as $$
declare
  c_limit constant int := 50;
  c_most  constant int := 200;
  v_one   record;
begin
  if p_filter is null or jsonb_typeof(p_filter) <> 'object' then
    perform millrace.refuse(format('filter must be an object, not %s', coalesce(jsonb_typeof(p_filter), 'null')),
      format('Pass {} for everything, or any of %s.', array_to_string(p_keys, ', ')));
  end if;
  for v_one in select f.key, f.value, f.value #>> '{}' as word from jsonb_each(p_filter) f order by f.key loop
    if v_one.key <> all (p_keys) then
      perform millrace.refuse(format('filter has the unknown key %s', quote_literal(left(v_one.key, 80))),
        format('Keys are %s.', array_to_string(p_keys, ', ')));
    elsif v_one.key in ('id', 'limit') then
      if jsonb_typeof(v_one.value) not in ('number', 'string') or v_one.word !~ '^[0-9]{1,18}$' then
        perform millrace.refuse(format('%s of the filter must be a whole number, not %s', v_one.key, left(v_one.value::text, 80)), 'Pass a number such as 50.');
      end if;
      p_filter := p_filter || jsonb_build_object(v_one.key, v_one.word::bigint);
    elsif jsonb_typeof(v_one.value) <> 'string' then
      perform millrace.refuse(format('%s of the filter must be a text, not %s', v_one.key, jsonb_typeof(v_one.value)), 'Leave out what is not to be filtered by.');
    elsif length(v_one.word) > 2000 then
      perform millrace.refuse(format('%s of the filter is %s characters long, the limit is 2000', v_one.key, length(v_one.word)), 'Pass a shorter text.');
    end if;
  end loop;
  p_filter := jsonb_build_object('limit', c_limit) || p_filter;
  perform millrace.check_number('limit', (p_filter ->> 'limit')::bigint, 1, c_most);
  return p_filter;
end $$;

-- What a filter asks for, in short: a cursor is good for that alone, whatever the size of the page.
create or replace function millrace.page_asked(p_filter jsonb)
returns text
language sql
immutable
as $$
  select left(encode(sha256(convert_to((p_filter - 'after' - 'limit')::text, 'UTF8')), 'hex'), 16)
$$;

-- A cursor as text, for users who need not know what is in it: the place to go on, and what it was asked for.
create or replace function millrace.page_cursor(p_filter jsonb, p_place jsonb)
returns text
language sql
stable
as $$
  select case when p_place is not null then
           translate(encode(convert_to(jsonb_build_array(1, millrace.page_asked(p_filter), p_place)::text, 'UTF8'), 'base64'), E'+/=\n', '-_')
         end
$$;

-- The place in a cursor that page_cursor made for the same filter; null: there is none, from the beginning. Any other text is refused (22023).
create or replace function millrace.page_place(p_filter jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_text text := translate(p_filter ->> 'after', '-_', '+/');
  v_all  jsonb;
begin
  if v_text is null then
    return null;
  end if;
  begin
    v_all := convert_from(decode(v_text || repeat('=', -length(v_text) & 3), 'base64'), 'UTF8')::jsonb;
  exception
    when data_exception or invalid_text_representation or untranslatable_character or program_limit_exceeded then
      v_all := null;
  end;
  if jsonb_typeof(v_all) = 'array' and v_all ->> 0 = '1' and v_all ->> 1 = millrace.page_asked(p_filter) and jsonb_typeof(v_all -> 2) = 'object' then
    return v_all -> 2;
  end if;
  perform millrace.refuse_cursor();
end $$;

-- A number of a cursor's place; null where it has none. Somebody who makes up a cursor gets no further than to an error.
create or replace function millrace.place_number(p_place jsonb, p_name text)
returns bigint
language plpgsql
as $$
begin
  if p_place ->> p_name is null then
    return null;
  elsif jsonb_typeof(p_place -> p_name) = 'number' and p_place ->> p_name ~ '^-?[0-9]{1,18}$' then
    return p_place ->> p_name;
  end if;
  perform millrace.refuse_cursor();
end $$;

-- A text that is no cursor, or one of another filter (22023).
create or replace function millrace.refuse_cursor()
returns void
language plpgsql
as $$
begin
  perform millrace.refuse('after is not a cursor of this filter', 'Pass next of the page before, with the same filter, or leave it out for the first page.');
end $$;
