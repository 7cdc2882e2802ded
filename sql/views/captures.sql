-- SPDX-License-Identifier: PostgreSQL
-- The tables that are captured, and what was missed.
drop view if exists millrace.captures;
create view millrace.captures as
select c.source, c.queue, c.kind, c.events, c.condition, c.columns, c.carry, c.unique_on, c.on_conflict, c.notify, c.strict, c.enabled, c.owner, c.missed,
       c.missed_at, c.missed_code
  from millrace.capture_list() c;
comment on view millrace.captures is 'captured tables, where their changes go, and how many were missed';
