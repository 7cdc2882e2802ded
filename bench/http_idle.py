# SPDX-License-Identifier: PostgreSQL
#
# What idle connections cost the HTTP part: http_idle.py PORT PID [COUNT]. Opens them, each after one request
# on it, and prints the growth of the daemon's resident memory, and whether it still answers.

import resource
import socket
import sys
import time

port, pid = int(sys.argv[1]), int(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
ASK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def rss():
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def ask(s):
    begun = time.time()
    s.sendall(ASK)
    reply = s.recv(4096)
    assert b" 200 " in reply, reply
    return time.time() - begun


before = rss()
held = []
for n in range(count):
    # addresses of the loopback, so that local ports do not run out
    s = socket.socket()
    s.bind((f"127.0.0.{2 + n // 20000}", 0))
    s.connect(("127.0.0.1", port))
    ask(s)
    held.append(s)
grown = rss() - before
last = socket.create_connection(("127.0.0.1", port)) if count < 9990 else held[0]
print(f"{count} idle connections: {grown / 1048576:.1f} MiB more, {grown / count / 1024:.1f} KiB each; a request now takes {ask(last) * 1000:.1f} ms")
