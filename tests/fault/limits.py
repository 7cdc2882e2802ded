# SPDX-License-Identifier: PostgreSQL
#
# Claimers against a limit, killed with SIGKILL at random: limits.py concurrency|rate|keys|tenants LIMIT CLAIMERS SECONDS LEASE
#
# concurrency: each job notes when it is started and when it has ended, by the machine's own clock; a job whose claimer was killed
# has ended by the time the claimer is known to be dead. Prints the most that ran at once and how long it took, when all were killed
# at one moment, until as many run again. rate: LIMIT jobs a second, judged by the server's claimed_at.
# keys, tenants: the same for each word that a job has in its args; then what is left is worked off, and every job has completed.
# Fails when a limit was exceeded, and when it was never reached: then nothing was shown.
import os
import random
import signal
import sys
import time

import psycopg2

QUEUE = "limited"
KILL_EVERY = 0.3  # seconds, on average


def note(log, *words):
    os.write(log, (" ".join(str(w) for w in (time.monotonic_ns(), os.getpid(), *words)) + "\n").encode())


def work(log, lease, most, seconds):
    db = psycopg2.connect("")
    db.autocommit = True
    cursor = db.cursor()
    while True:
        cursor.execute("select lease, id, attempt, coalesce(args ->> 'of', '-') from millrace.claim(%s, %s, %s, %s)",
                       (QUEUE, f"claimer {os.getpid()}", random.randint(1, most), lease))
        rows = cursor.fetchall()
        for _, job, attempt, of in rows:
            note(log, "start", job, attempt, of)
        time.sleep(random.uniform(seconds / 2, seconds) if rows else random.uniform(0.005, 0.02))
        for _, job, attempt, of in rows:
            note(log, "end", job, attempt, of)
        if rows:
            cursor.execute("select millrace.complete(%s)", (rows[0][0],))


class Fleet:
    def __init__(self, log, count, *args):
        self.log, self.args = log, args
        self.pids = []
        self.kills = 0
        for _ in range(count):
            self.start()

    def start(self):
        pid = os.fork()
        if pid == 0:
            try:
                random.seed()
                work(self.log, *self.args)
            finally:
                os._exit(1)
        self.pids.append(pid)

    def kill(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            _, status = os.waitpid(pid, 0)
            if not os.WIFSIGNALED(status):
                sys.exit(f"claimer {pid} ended by itself: status {status}")
            self.pids.remove(pid)
            note(self.log, "killed", pid)
            self.kills += 1

    def trouble(self, seconds, path=None):
        """Kills one after the other; where path is the log, every second one is somebody with a job in hand, and it goes on
        until it has met one: on a busy machine claimers may be killed before they have begun."""
        until = time.monotonic() + seconds
        last = until + 10 * seconds
        while time.monotonic() < until or (path and time.monotonic() < last and not read(path)[1]):
            time.sleep(random.uniform(0, 2 * KILL_EVERY))
            holders = [p for p in self.pids if str(p) in read(path)[2]] if path and self.kills % 2 else []
            self.kill([random.choice(holders or self.pids)])
            self.start()


def read(path):
    """Of each job that was started: when, when it had ended, and whose it is; how many ended with their claimer; who has one now."""
    killed, starts, spans = {}, {}, []
    with open(path, encoding="ascii") as lines:
        for line in lines:
            at, pid, word, *rest = line.split()
            if word == "killed":
                killed[rest[0]] = int(at)
            elif word == "start":
                starts[pid, *rest] = int(at)
            else:
                spans.append((starts.pop((pid, *rest)), int(at), rest[2]))
    lost = sum(1 for key in starts if key[0] in killed)
    spans += [(at, killed.get(key[0], 1 << 62), key[3]) for key, at in starts.items()]
    return spans, lost, {key[0] for key in starts if key[0] not in killed}


def overlap(spans):
    """The most at once, and when there were so many for the first time."""
    most, now, when = 0, 0, 0
    for at, change in sorted([(s[0], 1) for s in spans] + [(s[1], -1) for s in spans]):
        now += change
        if now > most:
            most, when = now, at
    return most, when


def overlap_of_one(spans):
    """The same for those who have most at once."""
    return max((overlap([s for s in spans if s[2] == of]) for of in {s[2] for s in spans}), key=lambda o: (o[0], -o[1]), default=(0, 0))


def open_log():
    path = os.path.join(os.environ["MR_SCRATCH"], "starts")
    return path, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)


def taken_back(cursor):
    cursor.execute("select max(k.finished_at - k.leased_till)::text from millrace.claim k where k.status = 'l'")
    return cursor.fetchone()[0]


def work_off(cursor, fleet, claimers):
    """Lets the claimers alone until nothing is left; tells how many jobs completed, and how many did not."""
    for _ in range(claimers - len(fleet.pids)):
        fleet.start()
    deadline = time.monotonic() + 120
    left = 1
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        cursor.execute("select available + running + scheduled + retrying from millrace.stats(%s)", (QUEUE,))
        left = cursor.fetchone()[0]
    fleet.kill(list(fleet.pids))
    cursor.execute("select count(*) filter (where status = 'completed'), count(*) filter (where status <> 'completed') from millrace.jobs where queue = %s",
                   (QUEUE,))
    return cursor.fetchone()


def full_again(fleet, path, claimers, limit, measure):
    """Starts the claimers anew; how many seconds it takes until as many jobs run at once as the limit says, 0 where they do not within a minute."""
    killed_at = time.monotonic_ns()
    for _ in range(claimers):
        fleet.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        most, when = measure([s for s in read(path)[0] if s[0] > killed_at])
        if most == limit:
            return (when - killed_at) / 1e9
    return 0


def keys(limit, claimers, seconds, lease):
    path, log = open_log()
    db = psycopg2.connect("")
    db.autocommit = True
    cursor = db.cursor()
    fleet = Fleet(log, claimers, lease, 3, 0.05)
    fleet.trouble(seconds, path)
    fleet.kill(list(fleet.pids))
    spans, lost, _ = read(path)
    after = full_again(fleet, path, claimers, limit, overlap_of_one)
    done, undone = work_off(cursor, fleet, claimers)
    most, _ = overlap_of_one(read(path)[0])
    late = taken_back(cursor)
    back = f"{after:.2f} s" if after else "never"
    print(f"{claimers} claimers, {len({s[2] for s in spans})} keys, limit {limit} for each: {len(spans)} jobs under fire, {fleet.kills} claimers killed, "
          f"{lost} jobs in their hands, most of one key at once {most}, overshoot {most - limit}; leases of {lease} taken back at most {late} after their end, "
          f"a key at its limit again {back} after all claimers were killed; {done} completed, {undone} not")
    return most == limit and lost > 0 and after > 0 and undone == 0


def tenants(limit, claimers, seconds, lease):
    log = os.open(os.devnull, os.O_WRONLY)
    db = psycopg2.connect("")
    db.autocommit = True
    cursor = db.cursor()
    fleet = Fleet(log, claimers, lease, 5, 0.001)
    fleet.trouble(seconds)
    done, undone = work_off(cursor, fleet, claimers)
    cursor.execute("select max(w.n)::int, count(*)::int, count(distinct w.job_tenant)::int, date_part('epoch', max(w.claimed_at) - min(w.claimed_at)) from (select j.job_tenant, k.claimed_at,"
                   " count(*) over (partition by j.job_tenant order by k.claimed_at range between interval '0.999999 s' preceding and current row) as n"
                   " from millrace.claim k join millrace.queue q on q.queue_id = k.lane >> 12"
                   " cross join lateral unnest(coalesce(k.job_ids, k.positions), k.positions) with ordinality p(id, pos, ord)"
                   " join millrace.job j on j.job_id = p.id and j.pos = p.pos"
                   " where q.queue_name = %s and (k.outcome is null or substr(k.outcome, p.ord::int, 1) not in ('w', 'k', 'x'))) w", (QUEUE,))
    most, started, count, took = cursor.fetchone()
    print(f"{claimers} claimers, {count} tenants, rate {limit}/s for each: {started} jobs started in {took:.1f} s, {fleet.kills} claimers killed, "
          f"most of one tenant in a second {most}, overshoot {most - limit}; {done} completed, {undone} not")
    return most == limit and undone == 0


def concurrency(limit, claimers, seconds, lease):
    path, log = open_log()
    fleet = Fleet(log, claimers, lease, 3, 0.05)
    fleet.trouble(seconds, path)
    fleet.kill(list(fleet.pids))
    spans, lost, _ = read(path)
    most, _ = overlap(spans)
    after = full_again(fleet, path, claimers, limit, overlap)
    fleet.kill(list(fleet.pids))
    last, _ = overlap(read(path)[0])
    db = psycopg2.connect("")
    late = taken_back(db.cursor())
    back = f"{after:.2f} s" if after else "never"
    print(f"{claimers} claimers, limit {limit}: {len(spans)} jobs, {fleet.kills} claimers killed, {lost} jobs in their hands, "
          f"most at once {max(most, last)}, overshoot {max(most, last) - limit}; leases of {lease} taken back at most {late} after their end, "
          f"all slots in use again {back} after all claimers were killed")
    return max(most, last) == limit and lost > 0 and after > 0


def rate(limit, claimers, seconds, lease):
    log = os.open(os.devnull, os.O_WRONLY)
    db = psycopg2.connect("")
    db.autocommit = True
    fleet = Fleet(log, claimers, lease, 5, 0.001)
    fleet.trouble(seconds)
    fleet.kill(list(fleet.pids))
    cursor = db.cursor()
    cursor.execute("select max(w.n)::int, sum(w.one)::int, date_part('epoch', max(w.claimed_at) - min(w.claimed_at)) from (select k.claimed_at, k.n as one,"
                   " sum(k.n) over (order by k.claimed_at range between interval '0.999999 s' preceding and current row) as n"
                   " from millrace.claim k join millrace.queue q on q.queue_id = k.lane >> 12 where q.queue_name = %s and k.status <> 't') w", (QUEUE,))
    most, started, took = cursor.fetchone()
    print(f"{claimers} claimers, rate {limit}/s: {started} jobs started in {took:.1f} s, {fleet.kills} claimers killed, "
          f"most in a second {most}, overshoot {most - limit}")
    return most == limit


if __name__ == "__main__":
    mode, limit, claimers, seconds, lease = sys.argv[1:]
    good = {"concurrency": concurrency, "rate": rate, "keys": keys, "tenants": tenants}[mode](int(limit), int(claimers), float(seconds), lease)
    sys.exit(0 if good else 1)
