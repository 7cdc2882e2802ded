-- SPDX-License-Identifier: PostgreSQL
--
-- The statements that are still needed for the four roles to exist and to include each
-- other, in the order in which they have to run; no rows when all is well. This is the
-- one list of roles. No semicolon at the end: roles.sql loops over this query.
with wanted_role (role_order, role_name) as (
    values
        (1, 'millrace_reader'),
        (2, 'millrace_producer'),
        (3, 'millrace_worker'),
        (4, 'millrace_admin')
),
wanted_member (member_order, role_name, member_name) as (
    values
        (1, 'millrace_reader', 'millrace_producer'),
        (2, 'millrace_reader', 'millrace_worker'),
        (3, 'millrace_producer', 'millrace_admin'),
        (4, 'millrace_worker', 'millrace_admin')
),
needed (step_order, item_order, role_statement) as (
    select
        1,
        wanted_role.role_order,
        format('create role %I nologin', wanted_role.role_name)
    from wanted_role
    where not exists (
        select
        from pg_catalog.pg_roles
        where pg_roles.rolname = wanted_role.role_name
    )
    union all
    select
        2,
        wanted_member.member_order,
        format('grant %I to %I', wanted_member.role_name, wanted_member.member_name)
    from wanted_member
    where not exists (
        select
        from pg_catalog.pg_auth_members
        join pg_catalog.pg_roles as granted on granted.oid = pg_auth_members.roleid
        join pg_catalog.pg_roles as member on member.oid = pg_auth_members.member
        where granted.rolname = wanted_member.role_name
        and member.rolname = wanted_member.member_name
    )
)
select needed.role_statement
from needed
order by needed.step_order, needed.item_order
