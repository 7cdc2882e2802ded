-- SPDX-License-Identifier: PostgreSQL
--
-- Creates the roles that are missing.
--   $1  the query of role_statements.sql
-- Roles belong to the whole cluster: a migration of another database may create them at
-- the same moment, and then its work is as good as ours.
do $roles$
declare
    role_statement text;
begin
    for role_statement in
$1
    loop
        begin
            execute role_statement;
        exception
            when duplicate_object or unique_violation then
                null;
        end;
    end loop;
end
$roles$;
