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
held = []
for _ in range(clients):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(HEAD + b"%x\r\n" % (len(LINE) * jobs) + LINE * jobs + b"\r\n")
    held.append(s)
time.sleep(1)  # until they are read
for s in held:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
time.sleep(0.5)
open(sent, "w").close()
