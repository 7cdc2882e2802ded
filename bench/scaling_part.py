# SPDX-License-Identifier: PostgreSQL
#
# What the levers of docs/scaling.md cost and save, on the server of bench/run: `bench/run scaling [payloads] [delivery] [shards] [--workers N]... [--small]`.
#
#   payloads   a job of 4.5 KB inline, compressed, in S3, and both: bytes of WAL and disk, processor, how fast it is drained
#   delivery   8, 64 and 256 workers (or those that --workers says) that claim for themselves, behind one serve, by way of Redis: what they cost PostgreSQL idle, with a steady load,
#              and with a backlog
#   shards     one PostgreSQL and three, on the same machine
#
# Prints one JSON object a figure, and at the end the tables of docs/scaling.md. Bytes and seconds of a processor say little about how busy the machine is; rates do, so that
# tables have them as ratios of the same run. S3 is OpenStack Swift in one process of Python: how fast it is says nothing about another store.

import glob
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(os.environ["MR_BUILD"])
MILLRACE = BUILD + "/millrace"
FEED = BUILD + "/bench/feed"
PLUGIN = BUILD + "/bench/tally.so"
PAYLOAD = 2700 + 1600  # bytes of state and blob of a job of feed's
TICK = os.sysconf("SC_CLK_TCK")
HEADER = struct.Struct("qqqq")  # of a tally: jobs, bytes, first_us, last_us
ROOM = 1 << 20
MOST_WORKERS = 350  # of the server's 400 connections


class Sizes:
    """How much is measured; with --small so little that the figures say nothing."""

    def __init__(self, small):
        self.now = 400 if small else 20000
        self.later = 40 if small else 1000
        self.delay_s = 3 if small else 8  # from enqueuing until due
        self.store_s = 16 if small else 60  # the same where payloads go to the store and back, which takes only what waits for more than 10 s
        self.drain = 400 if small else 50000
        self.fleets = (8,) if small else (8, 64, 256)
        self.steady_s = 2 if small else 20
        self.rate = 100 if small else 400
        self.idle_s = 2 if small else 10
        self.shards = 600 if small else 60000
        self.contents_later = ("json",) if small else ("json", "noise")


def stop(text, hint=None):
    sys.exit(f"bench/run: {text}" + (f"\nhint: {hint}" if hint else ""))


def progress(text):
    print(f"# scaling: {text}", file=sys.stderr, flush=True)


def show(check, **figures):
    print(json.dumps({"check": "scaling." + check, **figures}), flush=True)
    return figures


def wait_for(what, condition, seconds=300):
    deadline = time.time() + seconds
    while not condition():
        if time.time() > deadline:
            stop(f"gave up waiting for {what}")
        time.sleep(0.05)


# ---- processes ----


def stat_fields(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def cpu_of(pid):
    """Seconds on a processor of a process, to the nanosecond where the kernel says so; 0 where it has ended."""
    try:
        with open(f"/proc/{pid}/task/{pid}/schedstat") as f:
            f.read()
        return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat")) / 1e9
    except (OSError, IndexError):
        try:
            fields = stat_fields(pid)
            return (int(fields[11]) + int(fields[12])) / TICK
        except OSError:
            return 0.0


def children_of(parent):
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(path[6:])
        try:
            if int(stat_fields(pid)[1]) == parent:
                yield pid
        except OSError:
            pass


def exported(text):
    """The variables that lines for a shell export."""
    lines = [shlex.split(line) for line in text.splitlines()]
    return dict(word.split("=", 1) for words in lines if words and words[0] == "export" for word in words[1:])


class Server:
    """A PostgreSQL of tools/pgserver."""

    def __init__(self, folder, settings=None):
        self.folder = folder
        self.own = settings is not None
        if self.own:
            subprocess.run(["tools/pgserver", "start", folder] + settings, check=True)
        text = subprocess.run(["tools/pgserver", "env", folder], check=True, capture_output=True, text=True).stdout
        self.env = exported(text)
        with open(folder + "/data/postmaster.pid") as f:
            self.pid = int(f.readline())

    def address(self, database):
        return "host={PGHOST} port={PGPORT} user={PGUSER} dbname={database}".format(database=database, **self.env)

    def settings(self):
        with open(self.folder + "/data/pgserver.conf") as f:
            rows = re.findall(r"^(\w+) = '(.*)'$", f.read(), re.M)
        return [word for name, value in rows for word in ("-o", f"{name}={value}")]

    def ended_cpu(self):
        fields = stat_fields(self.pid)
        return (int(fields[13]) + int(fields[14])) / TICK

    def cpu(self, without=()):
        """Of all its processes, also of those that have ended: again where one ended while it looked."""
        while True:
            ended = self.ended_cpu()
            living = cpu_of(self.pid) + sum(cpu_of(pid) for pid in children_of(self.pid) if pid not in without)
            if self.ended_cpu() == ended:
                return living + ended

    def remove(self):
        if self.own:
            subprocess.run(["tools/pgserver", "remove", self.folder], check=False)


class Session:
    """A psql that stays, so that asking does not cost a connection each time."""

    def __init__(self, server, database):
        self.child = subprocess.Popen(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", server.address(database)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, env=dict(os.environ, PGOPTIONS="-c client_min_messages=warning"))
        self.pid = int(self.ask("select pg_backend_pid()"))

    def ask(self, text):
        self.child.stdin.write(text + ";\n\\echo --end--\n")
        self.child.stdin.flush()
        lines = []
        while True:
            line = self.child.stdout.readline()
            if not line:
                stop(f"the database did not answer: {text}")
            if line == "--end--\n":
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))

    def number(self, text):
        return float(self.ask(text) or 0)

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Daemon:
    def __init__(self, work, name, roles, config, dsn, **env):
        self.log = f"{work.folder}/{name}.log"
        path = f"{work.folder}/{name}.conf"
        with open(path, "w") as f:
            f.write(config)
        with open(self.log, "w") as log:
            self.child = subprocess.Popen([MILLRACE, "serve", "-c", path, "--roles", roles], stderr=log, stdout=log, env=dict(os.environ, MILLRACE_DSN=dsn, **env))
        work.daemons.append(self)
        wait_for(f"the daemon {name}", self.ready, 60)

    def ready(self):
        with open(self.log) as f:
            text = f.read()
        if self.child.poll() is not None:
            stop("a daemon ended: " + text[-2000:])
        return "serve.ready" in text

    def cpu(self):
        return cpu_of(self.child.pid)

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Redis:
    def __init__(self, folder):
        self.folder = folder + "/redis"
        os.mkdir(self.folder)
        self.address = f"unix://{self.folder}/socket"
        self.child = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.folder + "/socket", "--dir", self.folder, "--save", "",
                                       "--appendonly", "yes", "--appendfsync", "everysec", "--logfile", self.folder + "/log"])
        wait_for("Redis", lambda: self.ask("ping") == "PONG", 30)

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-s", self.folder + "/socket", *words], capture_output=True, text=True).stdout.strip()

    def cpu(self):
        return cpu_of(self.child.pid)

    def stop(self):
        self.child.terminate()
        self.child.wait()


class Store:
    """OpenStack Swift with its S3 interface, as in the tests."""

    def __init__(self, folder):
        # in memory, if there is one: it is not what is measured
        self.folder = tempfile.mkdtemp(prefix="millrace-s3.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else folder)
        self.call("start")
        self.env = exported(self.call("env"))

    @staticmethod
    def is_there():
        return subprocess.run(["tools/s3server", "there"], capture_output=True).returncode == 0

    def call(self, verb, *words):
        run = subprocess.run(["tools/s3server", verb, self.folder, *words], capture_output=True, text=True)
        if run.returncode:
            stop(run.stderr.strip())
        return run.stdout

    def bucket(self, name):
        self.call("bucket", name)
        return self.call("address", name + "/bench").strip()

    def stop(self):
        self.call("remove")


class Tally:
    """What the plug-in has counted."""

    def __init__(self, folder):
        self.path = folder + "/tally"
        self.clear()

    def clear(self):
        """In place: the plug-in has it mapped."""
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b") as f:
            f.truncate(HEADER.size + 4 * ROOM)
            f.write(bytes(HEADER.size))

    def read(self):
        with open(self.path, "rb") as f:
            return HEADER.unpack(f.read(HEADER.size))

    def jobs(self):
        return self.read()[0]

    def rate(self):
        jobs, _, first, last = self.read()
        return jobs / max(1, last - first) * 1e6

    def waits_ms(self):
        jobs = self.jobs()
        with open(self.path, "rb") as f:
            f.seek(HEADER.size)
            return sorted(us / 1000 for us in struct.unpack(f"{jobs}i", f.read(4 * jobs)))


def part_of(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Work:
    """A database of its own, and what runs on it."""

    def __init__(self, server, folder, name, settings):
        self.server = server
        self.folder = tempfile.mkdtemp(prefix=name + ".", dir=folder)
        self.daemons = []
        self.database = "bench_scaling"
        admin = Session(server, "postgres")
        admin.ask(f"drop database if exists {self.database} with (force)")
        admin.ask(f"create database {self.database} template bench_template")
        admin.close()
        self.dsn = server.address(self.database)
        self.session = Session(server, self.database)
        self.session.ask(f"select millrace.set_queue('q', '{json.dumps(settings)}')")
        self.session.ask("checkpoint")
        self.tally = Tally(self.folder)
        self.wal_at, self.disk_at, self.cpu_at = self.wal_now(), self.disk_now(), self.cpu_now()

    def wal_now(self):
        return self.session.number("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")

    def disk_now(self):
        return self.session.number("select pg_database_size(current_database())")

    def cpu_now(self):
        return self.server.cpu(without=[self.session.pid])

    def wal(self):
        return self.wal_now() - self.wal_at

    def disk(self):
        return self.disk_now() - self.disk_at

    def cpu(self):
        return self.cpu_now() - self.cpu_at

    def commits(self):
        return self.session.number("select xact_commit from pg_stat_database where datname = current_database()")

    def feed(self, jobs, content, *options):
        run = subprocess.run([FEED, "q", str(jobs), content, *options], capture_output=True, text=True, env=dict(os.environ, MILLRACE_DSN=self.dsn))
        if run.returncode:
            stop("feed: " + run.stderr)
        return json.loads(run.stdout)

    def daemon(self, name, roles, config, **env):
        return Daemon(self, name, roles, config, self.dsn, MR_TALLY=self.tally.path, **env)

    def done(self):
        return self.session.number("select available + running + scheduled + retrying from millrace.stats('q')") == 0

    def drained(self, jobs):
        """Until the workers have had all, and then until PostgreSQL knows."""
        wait_for(f"{jobs} jobs", lambda: self.tally.jobs() >= jobs)
        wait_for("the last outcomes", self.done)
        if self.tally.jobs() != jobs:
            stop(f"{self.tally.jobs()} jobs were done, and {jobs} were put in")

    def end(self):
        for daemon in self.daemons:
            daemon.stop()
        self.session.close()


# ---- payloads ----

KEPT = {
    "inline": {},
    "compressed": {"compress": 200},
    "S3": {"offload_delay": "10 seconds"},
    "compressed, S3": {"compress": 200, "offload_delay": "10 seconds"},
}


def due_in(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(time.time() + seconds))


def wait_out(work, kept, jobs, due_at):
    """Delayed jobs until all of them are in the log. Returns figures of the time in which they wait; None: the store was too slow."""
    figures = {}
    if "S3" in kept:
        away = "select count(*) from millrace.delayed where away_due is not null"
        while work.session.number(away) < jobs:
            if time.time() > due_at - 6:  # from then on they come back
                return None
            time.sleep(0.2)
    figures["peak"] = work.disk() / jobs
    work.session.ask("vacuum millrace.delayed")
    figures["disk"] = work.disk() / jobs
    wait_for("jobs that are due", lambda: work.session.number("select available from millrace.stats('q')") == jobs, 600)
    return figures


def payload_once(server, folder, sizes, content, kept, later, store, delay_s):
    jobs = sizes.later if later else sizes.now
    work = Work(server, folder, "payload", KEPT[kept])
    try:
        config = f'blobs = "{store.bucket("bench%d" % time.time_ns())}"\n' if "S3" in kept else ""
        work.daemon("upkeep", "maintain", config, **(store.env if store else {}))
        options = ["--run-at", due_in(delay_s)] if later else []
        due_at = time.time() + delay_s
        fed = work.feed(jobs, content, *options)
        enqueue = work.wal()
        if later:
            figures = wait_out(work, kept, jobs, due_at)
            if figures is None:
                return None
        else:
            figures = {"disk": work.disk() / jobs}
        before = work.cpu_now()
        daemon = work.daemon("worker", "work", f'worker w {{ queue = "q" plugin = "{PLUGIN}" concurrency = 2 batch = 500 }}\n')
        work.drained(jobs)
        if work.tally.read()[1] != jobs * PAYLOAD:
            stop("a payload did not come back whole")
        return dict(figures, wal_enqueue=enqueue / jobs, wal=work.wal() / jobs, server_cpu=work.cpu() / jobs * 1000,
                    drain_cpu=(work.cpu_now() - before) / jobs * 1000, client_cpu=(fed["cpu_s"] + daemon.cpu()) / jobs * 1000, rate=work.tally.rate())
    finally:
        work.end()


def payload(server, folder, sizes, content, kept, later, store):
    """A store that is too slow for the delay gets twice the time, from then on."""
    while True:
        delay_s = sizes.store_s if "S3" in kept else sizes.delay_s
        progress(f"payloads: {content}, {kept}, {'delayed by %d s' % delay_s if later else 'at once'}")
        figures = payload_once(server, folder, sizes, content, kept, later, store, delay_s)
        if figures:
            return show("payload", content=content, kept=kept, jobs="delayed" if later else "at once", **{k: round(v, 3) for k, v in figures.items()})
        sizes.store_s *= 2


def payloads(server, folder, sizes):
    store = Store(folder) if Store.is_there() else None
    if not store:
        progress("payloads: without S3, because OpenStack Swift is missing: tools/deps bench")
    rows = []
    try:
        for content in ("json", "noise"):
            for later in (False, True) if content in sizes.contents_later else (False,):
                for kept in KEPT:
                    if "S3" not in kept or (later and store):
                        rows.append((content, later, kept, payload(server, folder, sizes, content, kept, later, store)))
    finally:
        if store:
            store.stop()
    return payload_table(rows)


def payload_table(rows):
    lines = ["| content | jobs | kept | WAL, enqueue | WAL, whole life | disk while it waits | before vacuum | server CPU a 1,000 | client CPU a 1,000 | drain rate |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    inline = {(content, later): f for content, later, kept, f in rows if kept == "inline"}
    for content, later, kept, f in rows:
        lines.append("| %s | %s | %s | %s | %s | %s | %s | %.2f s | %.2f s | %.2f |" % (
            content, "delayed" if later else "at once", kept, bytes_of(f["wal_enqueue"]), bytes_of(f["wal"]), bytes_of(f["disk"]),
            bytes_of(f.get("peak", f["disk"])), f["server_cpu"], f["client_cpu"], f["rate"] / inline[content, later]["rate"]))
    return lines


def bytes_of(number):
    return f"{round(number / 10) * 10:,} B"


# ---- delivery ----

WAYS = ("direct", "direct, parts = 8", "one serve", "Redis")


def section(name, keys):
    return f'worker {name} {{ queue = "q" plugin = "{PLUGIN}" {keys} }}\n'


def start_fleet(work, way, workers, redis, sleep_us):
    """Returns what the clients have used of the processor, as a function."""
    daemons, env = [], {"MR_TALLY_SLEEP_US": str(sleep_us)}
    if way == "one serve":
        daemons.append(work.daemon("workers", "work", section("w", f"concurrency = {workers}"), **env))
    elif way == "Redis":
        relay = f'relay r {{ queue = "q" redis = "{redis.address}" }}\n'
        daemons.append(work.daemon("relay", "relay", relay))
        config = "".join(section(f"w{i}", f'redis = "{redis.address}" concurrency = 1') for i in range(workers))
        daemons += [redis, work.daemon("workers", "work", config, **env)]
    else:
        daemons.append(work.daemon("workers", "work", "".join(section(f"w{i}", "concurrency = 1") for i in range(workers)), **env))
    return lambda: sum(daemon.cpu() for daemon in daemons)


def settings_of(way):
    return {"direct, parts = 8": {"parts": 8}, "Redis": {"transport": "redis"}}.get(way, {})


def with_fleet(server, folder, way, workers, sleep_us, measure):
    work = Work(server, folder, "fleet", settings_of(way))
    redis = Redis(work.folder) if way == "Redis" else None
    try:
        work.daemon("upkeep", "maintain", "")
        cpu = start_fleet(work, way, workers, redis, sleep_us)
        return measure(work, cpu)
    finally:
        work.end()
        if redis:
            redis.stop()


def connections(work):
    return work.session.number("select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'") - 1


def warm(work, workers):
    """Every worker has had something: plans and caches are made."""
    jobs = workers * 20
    work.feed(jobs, "small", "--chunk", "100")
    work.drained(jobs)
    work.tally.clear()


def drain(work, cpu, workers, jobs):
    warm(work, workers)
    work.session.ask("select millrace.pause('q')")
    work.feed(jobs, "small")
    work.session.ask("checkpoint")
    server, clients = work.cpu_now(), cpu()
    work.session.ask("select millrace.resume('q')")
    work.drained(jobs)
    return {"drain_rate": work.tally.rate(), "drain_cpu": (work.cpu_now() - server) / jobs * 1000, "drain_client_cpu": (cpu() - clients) / jobs * 1000}


def idle(work, seconds):
    time.sleep(1.5)  # the server's statistics are a second late
    commits, server, begun = work.commits(), work.cpu_now(), time.time()
    time.sleep(seconds)
    length = time.time() - begun
    return {"idle_transactions": (work.commits() - commits) / length, "idle_cpu": (work.cpu_now() - server) / length}


def steady(work, cpu, sizes, workers):
    """Jobs come ten a transaction, and each takes 5 ms."""
    jobs = sizes.rate * sizes.steady_s
    warm(work, workers)
    figures = dict(idle(work, sizes.idle_s), connections=connections(work))
    commits, server, clients = work.commits(), work.cpu_now(), cpu()
    work.feed(jobs, "small", "--rate", str(sizes.rate), "--chunk", "10")
    work.drained(jobs)
    figures.update(steady_cpu=(work.cpu_now() - server) / jobs * 1000, steady_client_cpu=(cpu() - clients) / jobs * 1000)
    time.sleep(1.5)
    waits = work.tally.waits_ms()
    figures.update(steady_transactions=(work.commits() - commits) / jobs * 1000, p50_ms=part_of(waits, 0.5), p99_ms=part_of(waits, 0.99))
    return figures


def enqueue_alone(server, folder, sizes):
    """What of a steady load is the producer's, with nobody to take the jobs."""
    jobs = sizes.rate * sizes.steady_s
    work = Work(server, folder, "alone", {})
    try:
        work.daemon("upkeep", "maintain", "")
        work.feed(100, "small", "--chunk", "10")
        before = work.cpu_now()
        work.feed(jobs, "small", "--rate", str(sizes.rate), "--chunk", "10")
        return {"steady_cpu": (work.cpu_now() - before) / jobs * 1000}
    finally:
        work.end()


def delivery(server, folder, sizes):
    if not shutil.which("redis-server"):
        stop("redis-server is missing", "run tools/deps bench, or leave it out: bench/run scaling payloads shards")
    alone = show("delivery", way="enqueue alone", workers=0, rate=sizes.rate, **enqueue_alone(server, folder, sizes))
    rows = []
    for workers in sizes.fleets:
        for way in WAYS:
            progress(f"delivery: {workers} workers, {way}")
            figures = with_fleet(server, folder, way, workers, 5000, lambda work, cpu: steady(work, cpu, sizes, workers))
            figures.update(with_fleet(server, folder, way, workers, 0, lambda work, cpu: drain(work, cpu, workers, sizes.drain)))
            rows.append((workers, way, show("delivery", way=way, workers=workers, rate=sizes.rate, **{k: round(v, 3) for k, v in figures.items()})))
    return delivery_table(rows, alone, sizes)


def delivery_table(rows, alone, sizes):
    lines = ["| workers | way | connections | idle, transactions a second | idle, server CPU | steady, transactions a 1,000 jobs | steady, server CPU a 1,000 | steady, clients and Redis | wait, p50 / p99 | backlog, server CPU a 1,000 | backlog, rate |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    direct = {workers: f for workers, way, f in rows if way == "direct"}
    for workers, way, f in rows:
        lines.append("| %d | %s | %d | %.1f | %.1f %% | %d | %.2f s | %.2f s | %.0f / %.0f ms | %.3f s | %.2f |" % (
            workers, way, f["connections"], f["idle_transactions"], f["idle_cpu"] * 100, f["steady_transactions"], f["steady_cpu"], f["steady_client_cpu"],
            f["p50_ms"], f["p99_ms"], f["drain_cpu"], f["drain_rate"] / direct[workers]["drain_rate"]))
    return lines + ["", f"Of the steady load, {sizes.rate} jobs a second, enqueuing alone is {alone['steady_cpu']:.2f} s of the server's processor for 1,000 jobs."]


# ---- shards ----


def shards_once(servers, folder, sizes, count):
    """The same jobs through the same client, by tenant."""
    addresses = []
    for server in servers[:count]:
        session = Session(server, "postgres")
        session.ask("drop database if exists bench_shard with (force)")
        session.ask("create database bench_shard")
        session.close()
        addresses.append(server.address("bench_shard"))
        subprocess.run([MILLRACE, "migrate"], check=True, capture_output=True, env=dict(os.environ, MILLRACE_DSN=addresses[-1]))
    dsn = " ; ".join(addresses)
    env = dict(os.environ, MILLRACE_DSN=dsn)
    if count > 1:
        subprocess.run([MILLRACE, "shard", "add"], check=True, capture_output=True, env=env)
    return shards_measure(servers[:count], tempfile.mkdtemp(prefix="shards.", dir=folder), sizes.shards, dsn)


class Set:
    """What Daemon needs to know, without a database of its own."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []


def shards_drain(place, tally, dsn, jobs):
    """By a daemon whose outcomes are written when it has ended."""
    daemon = Daemon(place, "worker", "work", f'worker w {{ queue = "q" plugin = "{PLUGIN}" concurrency = 2 batch = 500 }}\n', dsn, MR_TALLY=tally.path)
    wait_for(f"{jobs} jobs", lambda: tally.jobs() >= jobs)
    daemon.stop()
    if tally.jobs() != jobs:
        stop(f"{tally.jobs()} jobs were done, and {jobs} were put in")


def shards_feed(dsn, jobs):
    run = subprocess.run([FEED, "q", str(jobs), "small"], check=True, capture_output=True, text=True, env=dict(os.environ, MILLRACE_DSN=dsn))
    return json.loads(run.stdout)["seconds"]


def shards_measure(servers, folder, jobs, dsn):
    tally, place, warming = Tally(folder), Set(folder), jobs // 10
    cpu = lambda: sum(server.cpu() for server in servers)
    try:
        shards_feed(dsn, warming)
        shards_drain(place, tally, dsn, warming)
        tally.clear()
        for server in servers:
            session = Session(server, "postgres")
            session.ask("checkpoint")
            session.close()
        begun = cpu()
        seconds = shards_feed(dsn, jobs)
        enqueued = cpu()
        shards_drain(place, tally, dsn, jobs)
        return {"enqueue_rate": jobs / seconds, "enqueue_cpu": (enqueued - begun) / jobs * 1000, "drain_rate": tally.rate(),
                "drain_cpu": (cpu() - enqueued) / jobs * 1000, "share": [round(share, 2) for share in shares(servers, jobs + warming)]}
    finally:
        for daemon in place.daemons:
            if daemon.child.poll() is None:
                daemon.stop()


def shares(servers, jobs):
    """Which part of the jobs each has had."""
    for server in servers:
        session = Session(server, "bench_shard")
        yield session.number("select count(*) from millrace.jobs where queue = 'q' and status = 'completed'") / jobs
        session.close()


def shards(server, folder, sizes):
    servers = [server]
    rows = []
    try:
        for i in (1, 2):
            servers.append(Server(f"{folder}/shard{i}", server.settings()))
        for count in (1, 3):
            progress(f"shards: {count}")
            figures = shards_once(servers, folder, sizes, count)
            if abs(sum(figures["share"]) - 1) > 0.02:
                stop(f"the shards have completed {figures['share']} of the jobs")
            rows.append((count, show("shards", shards=count, **{k: v if k == "share" else round(v, 3) for k, v in figures.items()})))
    finally:
        for other in servers[1:]:
            other.remove()
    return shards_table(rows)


def shards_table(rows):
    lines = ["| servers | share of the jobs | enqueue, server CPU a 1,000 | drain, server CPU a 1,000 | enqueue rate | drain rate |", "|---|---|---|---|---|---|"]
    one = rows[0][1]
    for count, f in rows:
        lines.append("| %d | %s | %.3f s | %.3f s | %.2f | %.2f |" % (count, " / ".join("%.2f" % share for share in f["share"]), f["enqueue_cpu"], f["drain_cpu"],
                                                                   f["enqueue_rate"] / one["enqueue_rate"], f["drain_rate"] / one["drain_rate"]))
    return lines


PARTS = {"payloads": payloads, "delivery": delivery, "shards": shards}


def main():
    base, folder, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    names, fleets, sizes = [], [], Sizes("--small" in words)
    while words:
        word = words.pop(0)
        if word in PARTS:
            names.append(word)
        elif word == "--workers" and words and words[0].isdigit() and 0 < int(words[0]) <= MOST_WORKERS:
            fleets.append(int(words.pop(0)))
        elif word != "--small":
            stop(f"usage: bench/run scaling [payloads] [delivery] [shards] [--workers 1..{MOST_WORKERS}]... [--small]")
    sizes.fleets = fleets or sizes.fleets
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    server, tables = Server(folder), []
    for name, part in PARTS.items():
        if not names or name in names:
            tables += ["", f"### {name}", ""] + part(server, base, sizes)
    print("\n".join(tables))


main()
