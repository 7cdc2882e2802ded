-- SPDX-License-Identifier: PostgreSQL
-- doctor with the time as an argument. Each group of checks fails alone: what it could not look at is a note, and the others go on.
-- The groups that read the logs come last and are left out where the logs belong to another cluster.
create or replace function millrace.doctor_at(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  c_checks constant text[] := array['doctor_version', 'doctor_home', 'doctor_settings', 'doctor_memory', 'doctor_checkpoints', 'doctor_archiving',
                                    'doctor_wraparound', 'doctor_sessions', 'doctor_idle', 'doctor_prepared', 'doctor_slots', 'doctor_standbys',
                                    'doctor_connections', 'doctor_locks', 'doctor_roles', 'doctor_functions', 'doctor_sight', 'doctor_bloat',
                                    'doctor_compression', 'doctor_zones'];
  c_logs   constant text[] := array['doctor_upkeep', 'doctor_clock', 'doctor_queues', 'doctor_dead', 'doctor_schedules', 'doctor_payloads'];
  v_check  text;
begin
  foreach v_check in array c_checks || case when millrace.is_home() then c_logs end loop
    begin
      return query
        execute format('select f.topic, f.verdict, f.evidence, case when f.verdict <> ''ok'' then f.remedy end from millrace.%I($1) f', v_check)
          using p_now;
    exception
      when others then
        topic := replace(substr(v_check, length('doctor_') + 1), '_', ' ');
        verdict := 'note';
        evidence := format('could not be looked at: %s (%s)', sqlerrm, sqlstate);
        remedy := 'Run doctor as a user who may see more, or report this.';
        return next;
    end;
  end loop;
end $$;
