#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
#
# A worker with psycopg2 whose effects and completions are one:
#
#   worker.py QUEUE [--batch N] [--lease SECONDS] [--until-empty]
#
# Each job's row in the ledger is committed together with the job's completion, so there is exactly
# one row for each job that completed, whatever dies when. Connects with MILLRACE_DSN, else as
# libpq's environment says. If the connection is lost it ends: what was open is rolled back, and the
# jobs come again when their lease has expired.

import argparse
import os
import sys
import time

import psycopg2
from psycopg2.extras import NamedTupleCursor

LEASE_LOST = "MR001"
POLL_S = 0.1


def charge(cursor, job):
    """What the application does for a job, in the transaction that completes it."""
    amount = job.args["amount"]
    cursor.execute("insert into ledger (job_id, amount) values (%s, %s)", (job.id, amount))
    time.sleep(job.args.get("sleep", 0))
    if amount <= 0:
        raise ValueError(f"amount must be positive, not {amount}")  # takes the row back, too


def run(connection, job):
    # One transaction: committed at the end of the block, rolled back by an exception.
    with connection, connection.cursor() as cursor:
        charge(cursor, job)
        cursor.execute("select millrace.complete(%s, array[%s]::bigint[])", (job.lease, job.id))


def fail(connection, job, error):
    # The transaction of the effect is gone; this is another one.
    with connection, connection.cursor() as cursor:
        text = f"{type(error).__name__}: {error}".strip()
        cursor.execute("select millrace.fail(%s, %s, %s)", (job.lease, job.id, text))


def renew(connection, lease):
    with connection, connection.cursor() as cursor:
        cursor.execute("select millrace.heartbeat(%s)", (lease,))


def claim(connection, options):
    # Committed before the work begins: until then nobody else can claim.
    with connection, connection.cursor() as cursor:
        cursor.execute(
            """select lease, id, args,
                      extract(epoch from lease_until - clock_timestamp())::float8 as seconds
                 from millrace.claim(%s, worker => %s, max_jobs => %s,
                                     lease_for => make_interval(secs => %s))""",
            (options.queue, f"worker.py {os.getpid()}", options.batch, options.lease))
        return cursor.fetchall()


def lease_is_lost(error):
    return getattr(error, "pgcode", None) == LEASE_LOST


def work(connection, jobs):
    """The jobs of one lease. It is renewed between them, when a third of it has passed."""
    renewed = time.monotonic()
    for job in jobs:
        if time.monotonic() - renewed > job.seconds / 3:
            renewed = time.monotonic()
            renew(connection, job.lease)
        try:
            run(connection, job)
        except Exception as error:  # a failure of one job is no reason to leave
            if connection.closed or lease_is_lost(error):
                raise
            fail(connection, job, error)


def main():
    parser = argparse.ArgumentParser(description="Charges the jobs of a queue, each exactly once.")
    parser.add_argument("queue")
    parser.add_argument("--batch", type=int, default=10, help="jobs claimed at once (default 10)")
    parser.add_argument("--lease", type=float, help="seconds (default: the queue's)")
    parser.add_argument("--until-empty", action="store_true", help="end when there is nothing to claim")
    options = parser.parse_args()
    connection = psycopg2.connect(os.environ.get("MILLRACE_DSN", ""), cursor_factory=NamedTupleCursor)
    while True:
        jobs = claim(connection, options)
        if not jobs and options.until_empty:
            return
        if not jobs:
            time.sleep(POLL_S)
            continue
        try:
            work(connection, jobs)
        except psycopg2.Error as error:
            if not lease_is_lost(error):
                raise
            # Rolled back already. The rest of these jobs is somebody else's by now.
            print(f"worker.py: {error.diag.message_primary}", file=sys.stderr)


if __name__ == "__main__":
    main()
