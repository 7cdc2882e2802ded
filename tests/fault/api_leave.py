# SPDX-License-Identifier: PostgreSQL
#
# Clients that wait for jobs and leave: api_leave.py URL HOW JOBS. HOW: politely (ends its side, and reads
# whether an answer was under way) or abruptly (resets the connection). Completes what it was given. Prints
# how many jobs were completed, and how many clients left with nothing.

import json
import random
import socket
import struct
import sys
import threading
import time
import urllib.request

url, how, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
port = int(url.rsplit(":", 1)[1])
lease_s = 300 if how == "politely" else 4
HEAD = "Host: 127.0.0.1\r\nAuthorization: Bearer admin-token\r\nContent-Type: application/json\r\n"
lock = threading.Lock()
done, left, over = [], [0], threading.Event()


def post(path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), method="POST",
                                     headers={"Authorization": "Bearer admin-token", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def complete(data):
    claim = json.loads(data.partition(b"\r\n\r\n")[2])
    if claim["lease"]:
        post("/api/v1/leases/" + claim["lease"] + "/complete", {})
        with lock:
            done.extend(job["id"] for job in claim["jobs"])


def wait_and_leave(rng):
    body = json.dumps({"worker": "w", "max_jobs": 3, "wait_ms": 20000, "lease_s": lease_s})
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(f"POST /api/v1/queues/q/claim HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    s.settimeout(rng.random() * 0.15)
    data = b""
    try:
        data = s.recv(1 << 20)
    except socket.timeout:
        pass
    s.settimeout(20)
    if not data and how == "abruptly":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif not data:
        s.shutdown(socket.SHUT_WR)
        data = s.recv(1 << 20)
    while data and b"\r\n\r\n" in data and not data.endswith(b"}"):
        data += s.recv(1 << 20)
    s.close()
    if data:
        complete(data)
    else:
        with lock:
            left[0] += 1


def client(seed):
    rng = random.Random(seed)
    while not over.is_set():
        wait_and_leave(rng)


threads = [threading.Thread(target=client, args=(n,)) for n in range(12)]
for thread in threads:
    thread.start()
made = []
rng = random.Random(4711)
while len(made) < total:
    made += post("/api/v1/jobs", [{"kind": "k", "queue": "q"} for _ in range(rng.randint(1, 4))])["ids"]
    time.sleep(rng.random() * 0.03)
over.set()
for thread in threads:
    thread.join()
# what is left belongs to nobody: a patient client gets all of it, at once or after the lease
deadline = time.time() + 60
while len(done) < len(made) and time.time() < deadline:
    claim = post("/api/v1/queues/q/claim", {"max_jobs": 100, "wait_ms": 500})
    if claim["lease"]:
        post("/api/v1/leases/" + claim["lease"] + "/complete", {})
        done += [job["id"] for job in claim["jobs"]]
    elif how == "politely":
        break
if sorted(done) != sorted(made):
    sys.exit(f"{len(made)} enqueued, {len(done)} completed, {len(set(done))} of them different")
if left[0] < 20:
    sys.exit(f"only {left[0]} clients left while waiting: nothing was tested")
print(f"{len(done)} completed, {left[0]} left")
