-- SPDX-License-Identifier: PostgreSQL
-- What the names of this database's objects in a blob store begin with. That is what it drew when it was made (home.blob_home); a copy of it in the same cluster, which nobody
-- tells that it is one, has another name, made of that one and its own number: two databases never remove each other's objects.
create or replace function millrace.blob_home()
returns text
language sql
stable
as $$
  select case when h.blob_database = d.oid then h.blob_home else left(encode(sha256(convert_to(h.blob_home || '.' || d.oid, 'UTF8')), 'hex'), 16) end
    from millrace.home h
    join pg_database d on d.datname = current_database()
$$;
