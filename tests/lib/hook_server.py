# SPDX-License-Identifier: PostgreSQL
#
# An HTTP server whose answer is in the path that is called: hook_server.py BASE. Writes its port
# to BASE.port and, for each request, a line of JSON to BASE.log: path, headers (names in lower
# case), body, connection (a number).
#
#   /status/N        answers N, with a short text
#   /after/N/VALUE   the same with Retry-After: VALUE (underscores are blanks)
#   /later/N/SECONDS the same with Retry-After: the date in so many seconds
#   /answer/N/TYPE   N with what args.answer says, as application/TYPE
#   /moved           302 to /status/204
#   /slow/SECONDS    204 after a while
#   /endless         200 and a body without an end
#   /drip            200 and a byte of it now and then
#   /gone            closes the connection without an answer
#   /bytes/N         N with a text that is not UTF-8
#   /signed/SECRET   204, or 401 when the signature is wrong
import asyncio
import email.utils
import hashlib
import hmac
import json
import os
import sys
import time

base = sys.argv[1]
log = open(f"{base}.log", "a", buffering=1)
connections = 0


def answer(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def signed(secret, headers, body):
    fields = dict(part.split("=", 1) for part in headers["millrace-signature"].split(","))
    wanted = hmac.new(secret.encode(), fields["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, fields["v1"]) and abs(time.time() - int(fields["t"])) < 60


async def respond(path, headers, body, writer):
    word, *rest = path.split("?")[0].strip("/").split("/")
    if word == "status":
        writer.write(answer(int(rest[0]), b"" if rest[0] == "204" else f"status {rest[0]}\nsecond line".encode()))
    elif word == "after":
        writer.write(answer(int(rest[0]), b"", "Retry-After: " + rest[1].replace("_", " ")))
    elif word == "later":
        date = email.utils.formatdate(time.time() + int(rest[1]), usegmt=True)
        writer.write(answer(int(rest[0]), b"", f"Retry-After: {date}"))
    elif word == "answer":
        said = json.dumps(json.loads(body)["args"].get("answer")).encode()
        writer.write(answer(int(rest[0]), said, f"Content-Type: application/{rest[1]}; charset=utf-8"))
    elif word == "moved":
        writer.write(answer(302, b"", "Location: /status/204"))
    elif word == "slow":
        await asyncio.sleep(float(rest[0]))
        writer.write(answer(204))
    elif word in ("endless", "drip"):
        writer.write(b"HTTP/1.1 200 Said\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            piece = b" " * (1 if word == "drip" else 65536)
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0.05 if word == "drip" else 0)
    elif word == "bytes":
        writer.write(answer(int(rest[0]), b"caf\xe9 \x00\x01 closed"))
    elif word == "signed":
        writer.write(answer(204 if signed(rest[0], headers, body) else 401))
    else:
        raise ConnectionError
    await writer.drain()


async def serve(reader, writer):
    global connections
    connections += 1
    number = connections
    try:
        while True:
            first = await reader.readexactly(1)
            if first == b"\x16":  # TLS, which is not spoken here
                raise ConnectionError
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            path = head[0].split(" ")[1]
            headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            log.write(json.dumps({"path": path, "headers": headers, "body": body.decode(), "connection": number}) + "\n")
            await respond(path, headers, body, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000)
    with open(f"{base}.port.new", "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(f"{base}.port.new", f"{base}.port")
    await server.serve_forever()


asyncio.run(main())
