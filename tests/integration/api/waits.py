# SPDX-License-Identifier: PostgreSQL
#
# Clients that wait for jobs: waits.py PORT QUEUE CLIENTS WAIT_MS. Each prints a line when it is answered: its status, the seconds since it
# asked, and the ids of its jobs.

import http.client
import json
import sys
import threading
import time

port, queue, clients, wait_ms = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
lock = threading.Lock()


def client():
    begun = time.time()
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    c.request("POST", f"/api/v1/queues/{queue}/claim", json.dumps({"wait_ms": wait_ms}),
              {"Authorization": "Bearer admin-token", "Content-Type": "application/json"})
    reply = c.getresponse()
    body = json.loads(reply.read())
    with lock:
        print(reply.status, f"{time.time() - begun:.2f}", *[job["id"] for job in body.get("jobs", [])], flush=True)


threads = [threading.Thread(target=client) for _ in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
