-- SPDX-License-Identifier: PostgreSQL
-- Whole milliseconds since 1970, the form in which times are kept in sequences.
create or replace function millrace.epoch_ms(p_at timestamptz)
returns bigint
language sql
stable
as $$
  select (extract(epoch from p_at) * 1000)::bigint
$$;

-- The number a sequence holds, 0 when it was never set.
create or replace function millrace.hint(p_sequence regclass)
returns bigint
language sql
volatile
as $$
  select coalesce(pg_sequence_last_value(p_sequence), 0)
$$;

-- Seconds as an interval; more than a thousand years are cut, so that no arithmetic overflows.
create or replace function millrace.seconds(p_seconds double precision)
returns interval
language sql
immutable
as $$
  select make_interval(secs => least(p_seconds, 3.2e10))
$$;

-- Whether a clock kept in a sequence was set p_every milliseconds ago or more; a clock that went backwards counts as due.
create or replace function millrace.due(p_clock regclass, p_now timestamptz, p_every int)
returns boolean
language sql
volatile
as $$
  select millrace.epoch_ms(p_now) not between millrace.hint(p_clock) and millrace.hint(p_clock) + p_every - 1
$$;

-- Whole microseconds since 1970, for cursors of lists: nothing is lost.
create or replace function millrace.epoch_us(p_at timestamptz)
returns bigint
language sql
stable
as $$
  select (extract(epoch from p_at) * 1000000)::bigint
$$;
