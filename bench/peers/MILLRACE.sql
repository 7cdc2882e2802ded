-- SPDX-License-Identifier: PostgreSQL
-- Millrace's own functions for the driver of the textbook's queue, so that claims of single jobs are compared under one driver. The
-- driver runs this file at the start of each of its sessions.
prepare millrace_claim (text, int) as
  select c.lease, c.id, c.attempt, c.kind, c.args, c.priority, c.created_at, c.lease_until
    from millrace.claim($1, 'bench' || pg_backend_pid(), $2) c;

prepare millrace_complete (text) as
  select millrace.complete($1);

prepare millrace_enqueue (text, jsonb[]) as
  select count(*)
    from millrace.enqueue_many('bench', $2, $1);
