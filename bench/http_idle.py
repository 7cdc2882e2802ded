# SPDX-License-Identifier: PostgreSQL
#
# What connections that wait cost the HTTP part: http_idle.py PORT PID [COUNT [TOKEN]]. Opens them, each after one request
# on it, or with a token each listening to the events; prints the growth of the daemon's resident memory, how many of
# those who listen were told something in ten seconds, and whether it still answers.

import resource
import socket
import sys
import time

port, pid = int(sys.argv[1]), int(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
token = sys.argv[4] if len(sys.argv) > 4 else None
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 100), hard))
ASK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LISTEN = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def rss():
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def ask(s, request=ASK):
    begun = time.time()
    s.sendall(request)
    reply = s.recv(4096)
    assert b" 200 " in reply, reply
    return time.time() - begun


def connect(n):
    s = socket.socket()
    s.bind((f"127.0.0.{2 + n // 20000}", 0))  # addresses of the loopback, so that local ports do not run out
    s.connect(("127.0.0.1", port))
    return s


def drain(held, told):
    for s in held:
        s.setblocking(False)
        try:
            while s.recv(1 << 20):
                told.add(s)
            raise SystemExit("a listener was cut off")
        except BlockingIOError:
            pass


before = rss()
held = []
told = set()
for n in range(count):
    s = connect(n)
    ask(s, LISTEN if token else ASK)
    held.append(s)
if token:
    for _ in range(10):
        time.sleep(1)
        drain(held, told)
grown = rss() - before
print(
    f"{count} {f'listeners, {len(told)} of them told what is new' if token else 'idle connections'}: {grown / 1048576:.1f} MiB more, {grown / count / 1024:.1f} KiB each;"
    f" a request now takes {ask(connect(0)) * 1000:.1f} ms"
)
if token and len(told) < count:
    raise SystemExit(f"{count - len(told)} listeners were told nothing")
