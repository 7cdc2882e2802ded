-- SPDX-License-Identifier: PostgreSQL
-- Reports: how far a running job says it is. A row each, never changed: the newest of an attempt is the one that is shown. They lie on the
-- ring of the logs, in the leaf of the segment that was open, and go with it.
create table millrace.report (
  slot         int2 not null,
  job_id       bigint not null,
  pos          bigint not null,
  reported_at  timestamptz not null,
  percent_done real not null,
  report_note  text
) partition by list (slot);
comment on table millrace.report is 'how far running jobs said they were, on the ring of the logs';
comment on column millrace.report.pos is 'of the job''s row in the log, which tells the attempt';
do $$
begin
  for i in 0..15 loop
    -- See the other leaves of the ring: they are truncated, vacuum would only be in the way.
    execute format('create table millrace.report_%s partition of millrace.report for values in (%s)
                    with (autovacuum_vacuum_threshold = 2147483647, autovacuum_vacuum_insert_threshold = -1,
                          toast.autovacuum_vacuum_threshold = 2147483647, toast.autovacuum_vacuum_insert_threshold = -1)', i, i);
  end loop;
end $$;
create index report_lookup on millrace.report (job_id, pos, reported_at);

create type millrace.job_outcome as (
  status        text,
  result        jsonb,
  failure       text,
  finished_at   timestamptz,
  progress      real,
  progress_note text
);
comment on type millrace.job_outcome is 'what outcome returns: how a job stands, and what came of it';
