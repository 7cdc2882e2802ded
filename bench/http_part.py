# SPDX-License-Identifier: PostgreSQL
#
# What the HTTP part does on this machine, on the server of bench/run: `bench/run http [enqueue] [waits] [--seconds N]`.
#
#   enqueue   single jobs over 16, 32, 64 and 128 connections with wrk: requests/s, p99, and how many jobs share a commit
#   waits     claims that wait: from enqueue to the answer, the claims that one job costs, and transactions/s of 100 that
#             wait in vain, for one queue and for a hundred
#
# Prints one JSON object a figure. MR_HTTP_BIN measures another program, for before and after.

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

binary = os.environ.get("MR_HTTP_BIN") or os.environ["MR_BUILD"] + "/millrace"
TOKEN = "bench-token"
HEAD = {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"}
JOB = {"kind": "k", "queue": "q", "args": {"a": "x" * 190}}
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer %s"
wrk.body = '%s'
done = function(summary, latency, requests)
    io.write(string.format("figures %%d %%d %%.3f %%.3f %%d\\n", summary.requests, summary.duration, latency:percentile(50) / 1000,
                           latency:percentile(99) / 1000, summary.errors.status))
end
"""


def sql(text):
    return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", text], check=True, capture_output=True, text=True).stdout.strip()


def show(check, **figures):
    print(json.dumps({"check": check, **figures}), flush=True)


class Daemon:
    """A daemon that serves HTTP and nothing else, so that what the database does is done for it."""

    def __init__(self, folder):
        made = subprocess.run([binary, "token", "--hash"], input=TOKEN + "\n", check=True, capture_output=True, text=True)
        with open(folder + "/conf", "w") as f:
            f.write('http { listen = "127.0.0.1:0"  token b { role = "admin"  hash = "%s" } }\n' % made.stdout.strip())
        self.log = folder + "/log"
        with open(self.log, "w") as log:
            self.child = subprocess.Popen([binary, "serve", "-c", folder + "/conf", "--roles", "http"], stderr=log)
        deadline = time.time() + 20
        while "serve.ready" not in open(self.log).read():
            if time.time() > deadline or self.child.poll() is not None:
                sys.exit("bench/http_part.py: the daemon does not get ready: " + open(self.log).read())
            time.sleep(0.05)
        self.port = int(re.search(r"http.listening.*port=(\d+)", open(self.log).read())[1])

    def ask(self, method, path, body=None, connection=None):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        c.request(method, path, json.dumps(body) if body is not None else None, HEAD)
        reply = c.getresponse()
        text = reply.read()
        assert reply.status < 300, (reply.status, text)
        return json.loads(text)

    def stop(self):
        self.child.terminate()
        self.child.wait()


def commits():
    return int(sql("select sum(xact_commit) from pg_stat_database where datname = current_database()"))


def enqueue(daemon, folder, seconds):
    with open(folder + "/post.lua", "w") as f:
        f.write(SCRIPT % (TOKEN, json.dumps(JOB)))
    for connections in (16, 32, 64, 128):
        before = commits()
        run = subprocess.run(["wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s", "-s", folder + "/post.lua",
                              f"http://127.0.0.1:{daemon.port}/api/v1/jobs"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"figures (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)", run)
        requests, micros, p50, p99, errors = (float(x) for x in found.groups())
        time.sleep(1.5)  # the server's statistics are a second late
        show("http.enqueue", connections=connections, per_second=round(requests / micros * 1e6), p50_ms=p50, p99_ms=p99, errors=int(errors),
             jobs_per_commit=round(requests / max(1, commits() - before), 1))


class Waiter(threading.Thread):
    def __init__(self, daemon, queue, wait_ms):
        super().__init__(daemon=True)
        self.at, self.jobs = None, []
        self.arguments = (daemon, queue, wait_ms)
        self.start()

    def run(self):
        daemon, queue, wait_ms = self.arguments
        reply = daemon.ask("POST", f"/api/v1/queues/{queue}/claim", {"wait_ms": wait_ms})
        self.at, self.jobs = time.time(), reply["jobs"]


def latency(daemon, waiters, rounds):
    """Of jobs that come one by one: from the moment that enqueue is called to that of the claim's answer, and what of it is not the
    enqueue's own."""
    times, behind = [], []
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    held = [Waiter(daemon, "latency", 60000) for _ in range(waiters)]
    time.sleep(1)
    for n in range(rounds):
        begun = time.time()
        daemon.ask("POST", "/api/v1/jobs", dict(JOB, queue="latency"), connection)
        enqueued = time.time()
        while not any(w.jobs for w in held):
            time.sleep(0.0005)
        got = next(w for w in held if w.jobs)
        times.append((got.at - begun) * 1000)
        behind.append(max(0, got.at - enqueued) * 1000)
        held.remove(got)
        held.append(Waiter(daemon, "latency", 60000))
        time.sleep(0.15 + n % 10 * 0.01)
    daemon.ask("POST", "/api/v1/jobs", [dict(JOB, queue="latency")] * waiters, connection)
    for w in held:
        w.join()
    times.sort()
    behind.sort()
    show("http.wait", waiters=waiters, jobs=rounds, p50_ms=round(statistics.median(times), 2), p95_ms=round(times[int(len(times) * 0.95)], 2),
         max_ms=round(times[-1], 2), behind_p50_ms=round(statistics.median(behind), 2), behind_p95_ms=round(behind[int(len(behind) * 0.95)], 2),
         behind_max_ms=round(behind[-1], 2))


def idle(daemon, waiters, queues, seconds):
    held = [Waiter(daemon, f"idle{n % queues}", 60000) for n in range(waiters)]
    time.sleep(3)
    before, begun = commits(), time.time()
    time.sleep(seconds)
    show("http.idle", waiters=waiters, queues=queues, transactions_per_second=round((commits() - before) / (time.time() - begun), 1))
    for n in range(queues):
        daemon.ask("POST", "/api/v1/jobs", [dict(JOB, queue=f"idle{n}")] * (waiters // queues))
    for w in held:
        w.join()


def main():
    seconds, parts = 10, []
    words = sys.argv[1:]
    while words:
        word = words.pop(0)
        if word == "--seconds" and words:
            seconds = int(words.pop(0))
        elif word in ("enqueue", "waits"):
            parts.append(word)
        else:
            sys.exit("usage: bench/run http [enqueue] [waits] [--seconds N]")
    if (not parts or "enqueue" in parts) and not shutil.which("wrk"):
        sys.exit("bench/run: wrk is missing, which sends the single jobs\nhint: run tools/deps bench, or leave them out with bench/run http waits")
    sql("create database bench_http template bench_template")
    os.environ["PGDATABASE"] = "bench_http"
    os.environ["MILLRACE_DSN"] = "dbname=bench_http"
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder)
        try:
            if not parts or "enqueue" in parts:
                enqueue(daemon, folder, seconds)
            if not parts or "waits" in parts:
                latency(daemon, 1, 50)
                latency(daemon, 100, 50)
                idle(daemon, 100, 1, seconds)
                idle(daemon, 100, 100, seconds)
        finally:
            daemon.stop()


main()
