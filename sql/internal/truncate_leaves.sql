-- SPDX-License-Identifier: PostgreSQL
-- Truncates leaves if each lock can be had within p_wait; else the next round tries again. Truncating a leaf locks the leaf alone:
-- a producer never waits for it. p_if_empty: only when nothing is visible in them once they are locked.
create or replace function millrace.truncate_leaves(p_leaves text[], p_if_empty boolean, p_wait text)
returns boolean
language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
  v_leaf   text;
  v_full   boolean;
begin
  perform set_config('lock_timeout', p_wait, true);
  foreach v_leaf in array p_leaves loop
    execute format('lock table millrace.%I in access exclusive mode', v_leaf);
    if p_if_empty then
      execute format('select exists (select from millrace.%I)', v_leaf) into v_full;
      if v_full then
        perform set_config('lock_timeout', v_before, true);
        return false;
      end if;
    end if;
  end loop;
  foreach v_leaf in array p_leaves loop
    execute format('truncate millrace.%I', v_leaf);
  end loop;
  perform set_config('lock_timeout', v_before, true);
  return true;
exception
  when lock_not_available or deadlock_detected then
    perform set_config('lock_timeout', v_before, true);
    return false;
end $$;

-- Locks leaves against everybody if each lock can be had within p_wait; they stay locked to the end of the transaction.
create or replace function millrace.lock_leaves(p_leaves text[], p_wait text)
returns boolean
language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
  v_leaf   text;
begin
  perform set_config('lock_timeout', p_wait, true);
  foreach v_leaf in array p_leaves loop
    execute format('lock table millrace.%I in access exclusive mode', v_leaf);
  end loop;
  perform set_config('lock_timeout', v_before, true);
  return true;
exception
  when lock_not_available or deadlock_detected then
    perform set_config('lock_timeout', v_before, true);
    return false;
end $$;
