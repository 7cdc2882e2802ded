# SPDX-License-Identifier: PostgreSQL
"""Who is compared, and how each is set up.

The one list of contenders: run.py measures them, report.py has a row for each of them. `candidates` are the
claim sizes and workers that are tried, on a quarter of the jobs, before the first round; with the fastest of them
the best drain is measured in every round.
"""

from dataclasses import dataclass, field

# What every contender's measurement may be called, in the order of the report.
FIGURES = {
    "enqueue": "jobs/s",
    "drain": "jobs/s",
    "drain_best": "jobs/s",
    "single": "jobs/s",
    "single_held": "jobs/s",
    "served": "jobs/s",
    "memory_mb": "MB",
    "memory_growth": "ratio",
    "steady": "jobs/s",
    "wal_bytes": "B/job",
    "p50_ms": "ms",
    "p99_ms": "ms",
    "notify_p50_ms": "ms",
    "held": "ratio",
    "depth": "ratio",
}


@dataclass(frozen=True)
class Contender:
    name: str
    title: str
    driver: str                 # c, node, millrace
    server: str                 # postgresql, redis, beanstalkd
    candidates: tuple           # (jobs a claim, workers)
    config: tuple               # lines for the report
    package: str = ""           # what has to be installed
    lacks: frozenset = field(default_factory=frozenset)     # steps that it has nothing for


ROWS = ((500, 1), (1000, 1), (2000, 1), (5000, 1), (1000, 2), (2000, 2), (5000, 2))
ONE_LOOP = ((500, 1), (1000, 1), (2000, 1), (5000, 1))

CONTENDERS = (
    Contender(
        "millrace", "Millrace", "millrace", "postgresql", ROWS,
        ("`millrace bench`, the library's worker with its defaults but for the claim size; bulk enqueue with "
         "`enqueue_many`; idle workers woken by NOTIFY; the best drain with a part for each worker",
         "one by one: `claim` and `complete` on a queue of 8 parts, with the textbook's C driver; served: `millrace work --exec` with "
         "16 jobs at once, which claims for all of them, and a handler in another process"),
    ),
    Contender(
        "textbook", "textbook table", "c", "postgresql", ROWS,
        ("`bench/TEXTBOOK.sql`: a row a job, partial index, `SKIP LOCKED`, two updates; driven from C with prepared "
         "statements and pipelining: a completion and the next claim share a round trip; a claim does not wait for the "
         "disk, a completion does",
         "bulk enqueue: one `insert … select from unnest` with a binary array; idle worker woken by NOTIFY in the "
         "producer's transaction"),
    ),
    Contender(
        "visibility", "pgmq-like, read and delete", "c", "postgresql", ROWS,
        ("`bench/peers/POPPED.sql`, a table as pgmq makes it: a read is an update of the visibility time under "
         "`SKIP LOCKED`, then a delete by id; the same C driver as the textbook's",),
        lacks=frozenset({"single_held"}),
    ),
    Contender(
        "delete-returning", "pgmq-like, delete returning", "c", "postgresql", ROWS,
        ("the same table read with one `delete … returning` a batch under `SKIP LOCKED`, as pgmq's `pop`: at most once, "
         "a worker that dies loses its jobs; two statements under way in the pipeline",),
        lacks=frozenset({"single_held"}),
    ),
    Contender(
        "pgq", "PgQ (event log)", "c", "postgresql", ((1000, 1), (2000, 1), (5000, 1), (20000, 1)),
        ("bulk enqueue: COPY into the table that `pgq.current_event_table` names; one consumer with `next_batch`, "
         "`get_batch_events`, `finish_batch` in a pipeline; no job has a state, a retry or a lease of its own",
         "a batch is what lies between two ticks; the driver calls `pgq.ticker()`: after so many jobs while a queue is "
         "filled, every 10 ms in steady state and when idle (`ticker_max_count` 1, `ticker_max_lag` 1 ms); the consumer "
         "polls every ms"),
        package="postgresql-15-pgq3", lacks=frozenset({"single", "single_held"}),
    ),
    Contender(
        "graphile-worker", "graphile-worker", "node", "postgresql", ONE_LOOP,
        ("`localQueue: { size: <claim size> }`, `completeJobBatchDelay: 0`, `failJobBatchDelay: 0`, `concurrentJobs: 24`, "
         "`maxPoolSize: 25`, as its page on performance has it; bulk enqueue with `addJobs`",
         "one by one: no local queue, no batches, `concurrentJobs: 16`"),
        package="graphile-worker", lacks=frozenset({"single_held"}),
    ),
    Contender(
        "pg-boss", "pg-boss", "node", "postgresql", ROWS,
        ("bulk enqueue with `insert`; `fetch` with `batchSize`, `complete` with all ids; `supervise: false`, "
         "`schedule: false`; idle worker: `useListenNotify` and `notify: true` on the queue",),
        package="pg-boss", lacks=frozenset({"single_held"}),
    ),
    Contender(
        "bullmq", "BullMQ on Redis", "node", "redis", ((50, 1),),
        ("`addBulk`; one worker with `concurrency: 50` (it has no claims of many jobs), one by one 16; "
         "`removeOnComplete: true`",
         "Redis over a unix socket: `appendonly yes`, `appendfsync everysec` (a crash may lose a second), "
         "`maxmemory-policy noeviction`, as its guide for production has it"),
        package="bullmq", lacks=frozenset({"drain", "single_held", "held", "wal_bytes"}),
    ),
    Contender(
        "beanstalkd", "beanstalkd", "c", "beanstalkd", ((100, 1), (500, 1), (2000, 1), (500, 2)),
        ("over a unix socket, binlog on (`-b`) with its default of an fsync every 50 ms (a crash may lose those); "
         "commands sent ahead: a chunk of `put`, a batch of `reserve-with-timeout 0`, a batch of `delete`",),
        package="beanstalkd", lacks=frozenset({"single_held", "held", "wal_bytes"}),
    ),
)

BY_NAME = {contender.name: contender for contender in CONTENDERS}
