# SPDX-License-Identifier: PostgreSQL
#
# Clients that send a chunk of a stream, and no end, and are cut off: api_cut.py PORT JOBS CLIENTS FILE. The file is made when all have gone.

import socket
import struct
import sys
import time

port, jobs, clients, sent = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
HEAD = (b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer admin-token\r\n"
        b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
LINE = b'{"kind": "k", "queue": "q"}\n'
held, ours = [], set()


def connections():
    """Of the kernel's table: whose end it is, the port of the other end, bytes that were not taken there and not read here."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [row.split() for row in list(table)[1:]]
    return [[int(end.rpartition(":")[2], 16) for end in row[1:3]] + [int(n, 16) for n in row[4].split(":")] for row in rows]


def unread():
    return sum(read for here, there, _, read in connections() if here == port and there in ours) + \
        sum(sent for here, _, sent, _ in connections() if here in ours)


def left():
    return sum(1 for here, there, _, _ in connections() if here == port and there in ours)


def until_none(count, what):
    deadline = time.monotonic() + 20
    while count() > 0:
        if time.monotonic() > deadline:
            sys.exit(f"{count()} {what}")
        time.sleep(0.01)


for _ in range(clients):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(HEAD + b"%x\r\n" % (len(LINE) * jobs) + LINE * jobs + b"\r\n")
    held.append(s)
    ours.add(s.getsockname()[1])
until_none(unread, "bytes were not read")
for s in held:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
until_none(left, "connections were not cut off")
open(sent, "w").close()
