# SPDX-License-Identifier: PostgreSQL
#
# Requests of every kind while the server is killed and started again: api_outage.py URL PGSERVER DIR. Each request gets one answer, 2xx or
# 503 with the error object, within a time; jobs that were said to be enqueued are there, no job is there twice, and none that was not sent.

import http.client
import json
import subprocess
import sys
import threading
import time

url, pgserver, folder = sys.argv[1:4]
port = int(url.rsplit(":", 1)[1])
HEAD = {"Authorization": "Bearer admin-token", "Content-Type": "application/json"}
lock, over = threading.Lock(), threading.Event()
told, maybe, wrong, seen, under_way = [], set(), [], {}, {}
KINDS = ("enqueue", "claim", "look")


def count(counts, key, change):
    with lock:
        counts[key] = counts.get(key, 0) + change


def ask(kind, method, path, body, type_="application/json"):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=40)
    count(under_way, kind, 1)
    try:
        c.request(method, path, body, dict(HEAD, **{"Content-Type": type_}))
        reply = c.getresponse()
        text = reply.read()
    except OSError as e:
        wrong.append(f"{kind}: no answer: {e!r}")
        return None
    finally:
        c.close()
        count(under_way, kind, -1)
    count(seen, (kind, reply.status), 1)
    answer = json.loads(text)
    if reply.status not in (200, 201, 503) or (reply.status == 503 and not answer["error"]["message"]):
        wrong.append(f"{kind}: {reply.status} {text[:200]}")
    return answer if reply.status < 300 else None


def enqueue(n):
    i = 0
    while not over.is_set():
        ref, i = f"{n}-{i}", i + 1
        with lock:
            maybe.add(ref)
        if ask("enqueue", "POST", "/api/v1/jobs", json.dumps({"kind": "k", "queue": "in", "ref": ref})):
            with lock:
                told.append(ref)
        time.sleep(0.01)


def stream(n):
    i = 0
    while not over.is_set():
        refs = [f"s{n}-{i}-{k}" for k in range(1500)]
        i += 1
        with lock:
            maybe.update(refs)
        if ask("stream", "POST", "/api/v1/jobs", "".join(json.dumps({"kind": "k", "queue": "in", "ref": r}) + "\n" for r in refs), "application/x-ndjson"):
            with lock:
                told.extend(refs)
        time.sleep(0.05)


def wait_for_jobs(n):
    while not over.is_set():
        ask("claim", "POST", "/api/v1/queues/none/claim", json.dumps({"wait_ms": 3000}))
        time.sleep(0.01)


def look(n):
    while not over.is_set():
        ask("look", "GET", "/api/v1/queues", None)
        time.sleep(0.02)


def until(true):
    deadline = time.monotonic() + 60
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def happens(good):
    """Waits until each kind of request was answered once more, or refused; a minute without is an error."""
    def counts():
        with lock:
            return [sum(n for (kind, status), n in seen.items() if kind == k and (status < 300) == good) for k in KINDS]
    before = counts()
    if not until(lambda: all(now > was for now, was in zip(counts(), before))):
        wrong.append(f"{'answered' if good else 'refused'} were, of {KINDS}: {before}, a minute later {counts()}")


def in_the_middle():
    """Waits until a stream and claims that wait are under way."""
    if not until(lambda: under_way.get("stream", 0) > 0 and under_way.get("claim", 0) > 0):
        wrong.append(f"under way are, after a minute, only {under_way}")


threads = [threading.Thread(target=f, args=(n,)) for f, count in ((enqueue, 6), (stream, 2), (wait_for_jobs, 4), (look, 2)) for n in range(count)]
for thread in threads:
    thread.start()
for _ in range(2):
    happens(True)
    in_the_middle()
    subprocess.run([pgserver, "crash", folder], check=True)
    happens(False)
    subprocess.run([pgserver, "restart", folder], check=True)
happens(True)
over.set()
for thread in threads:
    thread.join()
rows = subprocess.run(["psql", "-XqAtc", "select ref from millrace.jobs where queue = 'in'"], check=True, capture_output=True, text=True).stdout.split()
if len(rows) != len(set(rows)):
    wrong.append(f"{len(rows) - len(set(rows))} jobs are there twice")
if set(told) - set(rows):
    wrong.append(f"{len(set(told) - set(rows))} of {len(told)} jobs that were said to be enqueued are not there")
if set(rows) - maybe:
    wrong.append("jobs that nobody sent")
print({f"{kind} {status}": count for (kind, status), count in sorted(seen.items())}, len(told), "told", len(rows), "there")
for kind in KINDS:
    if not any(k == kind and s == 503 for k, s in seen) or not any(k == kind and s < 300 for k, s in seen):
        wrong.append(f"{kind}: was not both answered and refused: nothing was tested")
if wrong:
    sys.exit("\n".join(wrong[:20]))
