-- SPDX-License-Identifier: PostgreSQL
-- Checks of doctor that look at who may do what.

create or replace function millrace.doctor_roles(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'roles', case when r.lost <> '{}' or r.unlinked <> '{}' or r.refused <> '{}' then 'critical' when r.users = 0 then 'note' else 'ok' end,
         case
           when r.lost <> '{}' then 'missing: ' || millrace.some_of(r.lost)
           when r.unlinked <> '{}' then 'not members as they should be: ' || millrace.some_of(r.unlinked)
           when r.refused <> '{}' then 'without their grants: ' || millrace.some_of(r.refused)
           when r.users = 0 then 'no user has one of the four: only the owner and superusers can call anything'
           else format('%s users have one', r.users)
         end,
         case when r.lost = '{}' and r.unlinked = '{}' and r.refused = '{}' then 'grant millrace_producer to shop; grant millrace_worker to mailer -- the users of your programs'
              else 'Run `millrace migrate --again` as a user who may make roles; it prints what a DBA has to run.' end
    from (select array(select n.name
                         from unnest(array['millrace_reader', 'millrace_producer', 'millrace_worker', 'millrace_admin']) n(name)
                        where to_regrole(n.name) is null) as lost,
                 array(select c.member || ' of ' || c.role
                         from (values ('millrace_producer', 'millrace_reader'), ('millrace_worker', 'millrace_reader'),
                                      ('millrace_admin', 'millrace_producer'), ('millrace_admin', 'millrace_worker')) c(member, role)
                        where to_regrole(c.member) is not null
                          and to_regrole(c.role) is not null
                          and not pg_has_role(to_regrole(c.member), to_regrole(c.role), 'usage')) as unlinked,
                 array(select c.role
                         from (values ('millrace_reader', 'health'), ('millrace_producer', 'enqueue'), ('millrace_worker', 'claim'), ('millrace_admin', 'set_queue')) c(role, function_name)
                         join pg_proc f on f.proname = c.function_name and f.pronamespace = 'millrace'::regnamespace
                        where to_regrole(c.role) is not null
                          and not (has_function_privilege(to_regrole(c.role), f.oid, 'execute') and has_schema_privilege(to_regrole(c.role), 'millrace', 'usage'))) as refused,
                 (select count(*)
                    from pg_roles u
                   where u.rolcanlogin
                     and not u.rolsuper
                     and to_regrole('millrace_reader') is not null
                     and pg_has_role(u.oid, to_regrole('millrace_reader'), 'member')) as users) r
$$;

-- Public functions run with their owner's rights: one owner, nobody else's search_path, nothing open to everybody.
create or replace function millrace.doctor_functions(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'functions', case when f.open <> '{}' or f.loose <> '{}' then 'critical' when f.strange <> '{}' then 'warning' when f.super then 'note' else 'ok' end,
         case
           when f.open <> '{}' then 'everybody may call: ' || millrace.some_of(f.open)
           when f.loose <> '{}' then 'security definer without a pinned search_path: ' || millrace.some_of(f.loose)
           when f.strange <> '{}' then 'not owned by the owner of the schema: ' || millrace.some_of(f.strange)
           else format('%s, owned by %s%s', f.n, f.owner, case when f.super then ', a superuser' else '' end)
         end,
         case
           when f.open = '{}' and f.loose = '{}' and f.strange = '{}' then 'Fine on a server of its own. Elsewhere let an ordinary user own the schema: run `millrace migrate` as that user.'
           when f.open = '{}' and f.loose = '{}' then format('alter function %s owner to %s', f.strange[1], f.owner)
           else 'Run `millrace migrate --again` as the owner of the schema; drop functions that are not of Millrace.'
         end
    from (select count(*) as n, min(n.nspowner::regrole::text) as owner, bool_or(o.rolsuper) as super,
                 coalesce(array_agg(p.oid::regprocedure::text order by 1) filter (where has_function_privilege('public', p.oid, 'execute')), '{}') as open,
                 coalesce(array_agg(p.oid::regprocedure::text order by 1) filter (where p.prosecdef and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)), '{}') as loose,
                 coalesce(array_agg(p.oid::regprocedure::text order by 1) filter (where p.proowner <> n.nspowner), '{}') as strange
            from pg_proc p
            join pg_namespace n on n.oid = p.pronamespace and n.nspname = 'millrace'
            join pg_roles o on o.oid = n.nspowner) f
$$;

-- What other users' sessions do is seen by members of pg_read_all_stats only, and that is asked of the owner, who runs this.
create or replace function millrace.doctor_sight(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'sight', case when s.sees then 'ok' else 'note' end,
         format('%s %s of other users', current_user, case when s.sees then 'sees the sessions' else 'does not see the times and states of sessions' end),
         format('grant pg_read_all_stats to %I', current_user)
    from (select pg_has_role('pg_read_all_stats', 'member') as sees) s
$$;
