# SPDX-License-Identifier: PostgreSQL
"""The same work on every contender, one after the other, each on a fresh private server.

  bench/run peers                     all of them
  bench/run peers textbook pgq        these, and Millrace only if it is named
  bench/run peers --quick             few jobs: that everything runs, the figures mean nothing
  bench/run peers --write             also writes docs/benchmarks.md and its charts
  bench/run peers --list              their names

  --jobs N      of a bulk enqueue and a drain (1000000)     --repeat N    rounds (3)
  --batch N     jobs a claim, the same for all (500)        --seconds N   of steady state (10)
  --deep N      the deep queue of the peers (500000)        --output FILE (MR_BUILD/bench/peers.json)
  --set NAME=N  any other size; the names are in the results, under "sizes"

A round takes every contender once; the report has the median of the rounds and their spread. A contender
that cannot be run is in the results with the reason. Exit status 0: done, and every target that was measured is
kept (with --quick they are not judged); 1: a target is missed or a contender broke; 2: usage.
"""

import argparse
import dataclasses
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import installed
import servers
from contenders import BY_NAME, CONTENDERS, FIGURES

STEP_LIMIT_S = 3600
SHALLOW = 10000
SLICES = 5
SCOUT_PART = 4       # of the jobs
LARGE_BYTES = 4500


@dataclasses.dataclass
class Sizes:
    """How much of everything."""

    jobs: int = 1000000         # a second's work for the fastest: with fewer the first claim of a session counts
    jobs_node: int = 200000     # ten seconds' work for those behind Node
    batch: int = 500
    chunk: int = 10000
    seconds: int = 10
    single_jobs: int = 60000    # six seconds' work: with a third of them the first claims of 16 sessions are a tenth of it
    single_held_jobs: int = 60000
    single_workers: int = 16
    served_jobs: int = 100000
    memory_jobs: int = 50000
    latencies: int = 200
    latency_seconds: int = 10
    held_jobs: int = 300000
    held_jobs_millrace: int = 1000000
    deep: int = 500000
    deep_millrace: int = 5000000
    shallow: int = SHALLOW
    depth_rounds: int = 5
    warm: int = 1000

    @classmethod
    def quick(cls):
        return cls(jobs=4000, jobs_node=4000, batch=200, chunk=1000, seconds=1, single_jobs=200, single_held_jobs=200, single_workers=4,
                   served_jobs=2000, memory_jobs=1000, latencies=5, latency_seconds=1, held_jobs=4000, held_jobs_millrace=4000,
                   deep=8000, deep_millrace=20000, shallow=2000, depth_rounds=2, warm=200)


def progress(text):
    print(f"# {time.monotonic() - STARTED:7.1f} s  {text}", file=sys.stderr, flush=True)


STARTED = time.monotonic()


class Broken(Exception):
    """A contender failed while it was measured."""


def call(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=False)
    if done.returncode:
        raise Broken((done.stderr.strip().splitlines() or ["no message"])[0][:300])
    return done.stdout


class Peer:
    """A contender behind drive.c or drive.js, on its server."""

    def __init__(self, contender, sizes, server, command):
        self.contender, self.sizes, self.server, self.command = contender, sizes, server, command
        self.jobs = sizes.jobs_node if contender.driver == "node" else sizes.jobs
        self.best = contender.candidates[0]

    def drive(self, env, mode, **settings):
        words = [f"{name}={value}" for name, value in settings.items()]
        return json.loads(call(self.command + [self.contender.name, mode] + words, env))

    def filled(self, jobs, tick):
        env = self.server.fresh()
        self.drive(env, "setup")
        self.fill(env, jobs, tick)
        return env

    def fill(self, env, jobs, tick):
        # PgQ's claim is what lies between two ticks.
        chunk = min(self.sizes.chunk, tick) if self.contender.name == "pgq" else self.sizes.chunk
        return self.drive(env, "enqueue", jobs=jobs, chunk=chunk, tick_jobs=tick)

    def scout(self, candidate):
        jobs = self.jobs // SCOUT_PART
        env = self.filled(jobs, candidate[0])
        return self.drive(env, "drain", jobs=jobs, batch=candidate[0], workers=candidate[1])["rate"]

    # ---- the steps: each returns figures ----

    def step_enqueue(self):
        """Bulk enqueue on a fresh queue, and the drain with what it is best at."""
        jobs, (batch, workers) = self.jobs, self.best
        env = self.server.fresh()
        self.drive(env, "setup")
        written = self.fill(env, jobs, batch)
        drained = self.drive(env, "drain", jobs=jobs, batch=batch, workers=workers)
        return {"enqueue": written["rate"], "drain_best": drained["rate"]}

    def step_drain(self):
        """The drain at the claim size of all."""
        env = self.filled(self.jobs, self.sizes.batch)
        return {"drain": self.drive(env, "drain", jobs=self.jobs, batch=self.sizes.batch)["rate"]}

    def step_wal_bytes(self):
        """WAL of a job's whole life; a few jobs first, so that the catalogue's pages are not in it."""
        sizes = self.sizes
        env = self.filled(sizes.warm, sizes.batch)
        self.drive(env, "drain", jobs=sizes.warm, batch=sizes.batch)
        self.server.query("checkpoint")
        self.fill(env, sizes.warm, sizes.batch)
        self.drive(env, "drain", jobs=sizes.warm, batch=sizes.batch)
        before = self.server.wal_position()
        self.fill(env, self.jobs, sizes.batch)
        self.drive(env, "drain", jobs=self.jobs, batch=sizes.batch)
        return {"wal_bytes": (self.server.wal_position() - before) / self.jobs}

    def step_single(self):
        env = self.filled(self.sizes.single_jobs, 1)
        workers = self.sizes.single_workers
        return {"single": self.drive(env, "drain", jobs=self.sizes.single_jobs, batch=1, workers=workers)["rate"]}

    def held_drain(self, jobs, batch, workers):
        env = self.filled(jobs, batch)
        holder = self.server.hold_snapshot(env)
        drained = self.drive(env, "drain", jobs=jobs, batch=batch, workers=workers, slices=SLICES)
        self.server.release(holder)
        return drained["slice_s"]

    def step_held(self):
        times = self.held_drain(self.sizes.held_jobs, self.sizes.batch, 1)
        return {"held": times[0] / times[-1]}

    def step_single_held(self):
        """The rate of the last fifth."""
        jobs = self.sizes.single_held_jobs
        return {"single_held": jobs / SLICES / self.held_drain(jobs, 1, self.sizes.single_workers)[-1]}

    def step_steady(self):
        sizes = self.sizes
        env = self.server.fresh()
        self.drive(env, "setup")
        ran = self.drive(env, "steady", seconds=sizes.seconds, batch=sizes.batch, chunk=min(1000, sizes.chunk))
        return {"steady": ran["rate"]}

    def step_latency(self):
        env = self.server.fresh()
        self.drive(env, "setup")
        ran = self.drive(env, "latency", jobs=self.sizes.latencies)
        return {"p50_ms": ran["p50_ms"], "p99_ms": ran["p99_ms"]}

    def depth_round(self, env):
        """Takes some jobs and puts them in again; the first slice is not timed."""
        part = self.sizes.shallow // 2
        drained = self.drive(env, "drain", jobs=part, batch=self.sizes.batch, slices=SLICES)
        self.fill(env, drained["jobs"], self.sizes.batch)
        return part / SLICES * (SLICES - 1) / sum(drained["slice_s"][1:])

    def step_depth(self):
        """Rounds on a shallow and a deep queue take turns."""
        if self.contender.server == "postgresql":
            shallow = self.filled(self.sizes.shallow, self.sizes.batch)
            deep = self.server.another()
            self.drive(deep, "setup")
            self.fill(deep, self.sizes.deep, self.sizes.batch)
            pairs = [(self.depth_round(shallow), self.depth_round(deep)) for _ in range(self.sizes.depth_rounds)]
            self.server.query(f"drop database {deep['PGDATABASE']} with (force)")
            rates = [statistics.median(side) for side in zip(*pairs)]
        else:
            rates = []
            for jobs in (self.sizes.shallow, self.sizes.deep):
                env = self.filled(jobs, self.sizes.batch)
                rates.append(statistics.median(self.depth_round(env) for _ in range(self.sizes.depth_rounds)))
        return {"depth": rates[1] / rates[0]}

    def steps(self):
        order = {"enqueue": self.step_enqueue, "drain": self.step_drain, "wal_bytes": self.step_wal_bytes,
                 "single": self.step_single, "single_held": self.step_single_held, "steady": self.step_steady,
                 "latency": self.step_latency, "held": self.step_held, "depth": self.step_depth}
        return {name: step for name, step in order.items() if name not in self.contender.lacks}


class Millrace(Peer):
    """Millrace through its own `bench`, which makes and drops a database for each run; single jobs with drive.c."""

    def __init__(self, contender, sizes, server, build):
        super().__init__(contender, sizes, server, [os.path.join(build, "bench", "peers", "drive")])
        self.program = os.path.join(build, "millrace")
        self.echo = os.path.abspath(os.path.join(build, "bench", "echo"))

    def scout(self, candidate):
        return self.drained(self.jobs // SCOUT_PART, candidate)

    def drained(self, jobs, candidate):
        """With a part for each worker: a part is claimed from by one at a time."""
        return self.bench("drain", jobs=jobs, batch=candidate[0], workers=candidate[1], parts=candidate[1])["rate"]

    def bench(self, mode, **options):
        words = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
        told = json.loads(call([self.program, "bench", mode, "--json"] + words, self.server.env))
        return next(run for run in told["runs"] if run["mode"] == mode and run["contender"] == "millrace")

    def step_enqueue(self):
        written = self.bench("enqueue", jobs=self.jobs, chunk=self.sizes.chunk)
        return {"enqueue": written["rate"], "drain_best": self.drained(self.jobs, self.best)}

    def step_drain(self):
        return {"drain": self.bench("drain", jobs=self.jobs, batch=self.sizes.batch)["rate"]}

    def step_wal_bytes(self):
        return {"wal_bytes": self.bench("wal", jobs=self.jobs, batch=self.sizes.batch)["wal_bytes"]}

    def migrated(self):
        """A fresh database with the schema in it."""
        env = self.server.fresh()
        env["MILLRACE_DSN"] = self.server.env["MILLRACE_DSN"].replace("dbname=postgres", "dbname=" + env["PGDATABASE"])
        call([self.program, "migrate"], env)
        return env

    def filled(self, jobs, tick):
        env = self.migrated()
        self.drive(env, "setup")
        self.fill(env, jobs, tick)
        return env

    def step_served(self):
        """The workers behind one station, which claims for all of them; the time is the whole command's."""
        jobs = self.sizes.served_jobs
        env = self.migrated()
        fill = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "bench/setup.sql",
                "-c", f"call bench.fill('default', {jobs}, 10000, true)"]
        call(fill, env)
        start = time.monotonic()
        call([self.program, "work", "default", "--exec", self.echo, "--concurrency", str(self.sizes.single_workers),
              "--until-empty"], env)
        return {"served": jobs / (time.monotonic() - start)}

    def step_memory(self):
        """The worker's memory with large jobs, and with four times as many of them."""
        most = [self.bench("drain", jobs=jobs, payload=LARGE_BYTES, batch=self.sizes.batch)["memory_bytes"] / 1e6
                for jobs in (self.sizes.memory_jobs, 4 * self.sizes.memory_jobs)]
        return {"memory_mb": most[0], "memory_growth": most[1] / most[0]}

    def step_steady(self):
        return {"steady": self.bench("steady", seconds=self.sizes.seconds, batch=self.sizes.batch)["rate"]}

    def step_latency(self):
        ran = self.bench("latency", seconds=self.sizes.latency_seconds)
        return {name: ran[name] for name in ("p50_ms", "p99_ms", "notify_p50_ms")}

    def step_held(self):
        ran = self.bench("snapshot", jobs=self.sizes.held_jobs_millrace, batch=self.sizes.batch)
        return {"held": ran["last_fifth_rate"] / ran["first_fifth_rate"]}

    def step_depth(self):
        ran = self.bench("depth", depth=self.sizes.deep_millrace, batch=self.sizes.batch)
        return {"depth": ran["deep_rate"] / ran["shallow_rate"]}

    def steps(self):
        return {"enqueue": self.step_enqueue, "drain": self.step_drain, "wal_bytes": self.step_wal_bytes,
                "single": self.step_single, "single_held": self.step_single_held, "served": self.step_served,
                "memory": self.step_memory, "steady": self.step_steady, "latency": self.step_latency, "held": self.step_held,
                "depth": self.step_depth}


class Session:
    """All rounds, and what came of them."""

    def __init__(self, options, sizes, build):
        self.options, self.sizes, self.build = options, sizes, build
        self.output = options.output or os.path.join(build, "bench", "peers.json")
        self.node = installed.Node(build)
        self.entries = {c.name: {"name": c.name, "title": c.title, "version": "", "status": "not run", "reason": "",
                                 "config": list(c.config), "best": None, "runs": []} for c in CONTENDERS}
        self.machine = {"cores": os.cpu_count()}
        self.broken = False

    def check(self):
        """Who can be run."""
        ready = []
        for contender in CONTENDERS:
            entry = self.entries[contender.name]
            if self.options.names and contender.name not in self.options.names:
                entry["reason"] = "not asked for"
                continue
            try:
                entry["version"] = installed.check(contender, self.build, self.node)
                entry["status"] = "ran"
                ready.append(contender)
            except (installed.Missing, subprocess.TimeoutExpired) as why:
                entry["reason"] = str(why)
                progress(f"{contender.name}: not run: {why}")
        return ready

    def subject(self, contender, server):
        if contender.driver == "millrace":
            return Millrace(contender, self.sizes, server, self.build)
        if contender.driver == "node":
            command = [self.node.ensure(), os.path.join(self.node.directory, "drive.js")]
        else:
            command = [os.path.join(self.build, "bench", "peers", "drive")]
        return Peer(contender, self.sizes, server, command)

    def measure(self, contender, base, label):
        """One round of one contender on a server of its own."""
        server = servers.start(contender.server, os.path.join(base, contender.name), self.options.quick)
        figures = {}
        try:
            subject = self.subject(contender, server)
            subject.best = self.find_best(contender, subject, label)
            for name, step in subject.steps().items():
                progress(f"{label} {contender.name}: {name}")
                figures.update(step())
            self.note_machine(contender, subject, server)
        finally:
            server.stop()
        return figures

    def find_best(self, contender, subject, label):
        """Chosen once, before the first round, by drains that are in no figure."""
        entry = self.entries[contender.name]
        if not entry["best"]:
            candidates = contender.candidates[:1] if self.options.quick else contender.candidates
            progress(f"{label} {contender.name}: which claim size is best")
            rates = {candidate: subject.scout(candidate) for candidate in candidates} if len(candidates) > 1 else {}
            entry["best"] = list(max(rates, key=rates.get) if rates else candidates[0])
            entry["tried"] = [{"batch": batch, "workers": workers, "rate": found} for (batch, workers), found in rates.items()]
        return tuple(entry["best"])

    def note_machine(self, contender, subject, server):
        if contender.server == "postgresql" and "server" not in self.machine:
            self.machine["server"] = server.query("show server_version").split()[0]
            self.machine["settings"] = {name: server.query(f"show {name}") for name in (
                "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "wal_level")}
        if contender.driver == "node":
            self.machine["node"] = installed.first_version(installed.output([self.node.program, "--version"]))
        if contender.server == "redis":
            self.machine["redis"] = installed.first_version(installed.output(["redis-server", "--version"]).split("v=")[-1])

    def round(self, number, ready, base):
        for contender in list(ready):
            entry = self.entries[contender.name]
            try:
                entry["runs"].append(self.measure(contender, base, f"{number}/{self.options.repeat}"))
            except (Broken, OSError, RuntimeError, subprocess.SubprocessError, json.JSONDecodeError) as why:
                # The report names no path of this machine.
                entry["status"], entry["reason"] = "not run", "broke: " + re.sub(r"(/[\w.+-]+){2,}", "…", str(why))
                progress(f"{contender.name}: broke: {why}")
                ready.remove(contender)
                self.broken = True
            self.save()

    def run(self):
        ready = self.check()
        base = tempfile.mkdtemp(prefix="mr-peers.", dir=os.environ.get("MR_BENCH_DIR") or os.environ.get("TMPDIR") or "/tmp")
        os.chmod(base, 0o711)   # root's PostgreSQL belongs to another user, who has to get in
        try:
            for number in range(1, self.options.repeat + 1):
                self.round(number, ready, base)
        finally:
            shutil.rmtree(base, ignore_errors=True)

    def results(self):
        for entry in self.entries.values():
            entry["figures"] = summary(entry["runs"])
        return {"quick": self.options.quick, "repeat": self.options.repeat, "sizes": dataclasses.asdict(self.sizes),
                "payload_bytes": 200, "machine": self.machine, "contenders": list(self.entries.values())}

    def save(self):
        """After every contender: what an interrupted run has found is not lost."""
        with open(self.output, "w", encoding="utf-8") as file:
            json.dump(self.results(), file, indent=1)
            file.write("\n")


def summary(runs):
    """Median and spread of each figure over the rounds."""
    figures = {}
    for name, unit in FIGURES.items():
        values = [run[name] for run in runs if name in run]
        if values:
            figures[name] = {"unit": unit, "median": statistics.median(values), "least": min(values),
                             "most": max(values)}
    return figures


def read_options(words):
    parser = argparse.ArgumentParser(prog="bench/run peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for name in ("--quick", "--write", "--list"):
        parser.add_argument(name, action="store_true")
    for name in ("--jobs", "--batch", "--seconds", "--deep"):
        parser.add_argument(name, type=int)
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--output")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=N")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in BY_NAME]
    if unknown:
        parser.error(f"unknown contender: {unknown[0]}; there are {', '.join(BY_NAME)}")
    if any(getattr(options, name) is not None and getattr(options, name) < 1 for name in ("jobs", "batch", "seconds", "deep")):
        parser.error("numbers begin at 1")
    options.repeat = options.repeat or (1 if options.quick else 3)
    return options


def read_sizes(options):
    sizes = Sizes.quick() if options.quick else Sizes()
    for name in ("jobs", "batch", "seconds", "deep"):
        if getattr(options, name) is not None:
            setattr(sizes, name, getattr(options, name))
    for text in options.set:
        name, _, value = text.partition("=")
        if not hasattr(sizes, name) or not value.isdigit() or int(value) < 1:
            sys.exit(f"bench/run peers: --set {text}: not a size and a number")
        setattr(sizes, name, int(value))
    return sizes


def main(words):
    options = read_options(words)
    if options.list:
        print("\n".join(BY_NAME))
        return 0
    # A signal unwinds, so that servers are stopped and directories removed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    build = os.environ.get("MR_BUILD", "build")
    session = Session(options, read_sizes(options), build)
    session.run()
    session.save()
    report = [sys.executable, "-B", "bench/peers/report.py", session.output] + (["--write"] if options.write else [])
    told = subprocess.run(report, check=False)
    return 1 if session.broken else told.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
