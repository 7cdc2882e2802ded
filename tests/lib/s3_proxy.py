# SPDX-License-Identifier: PostgreSQL
#
# Stands in front of an S3 server and makes trouble: s3_proxy.py BASE PORT, where PORT is the server's. Writes its own port of
# 127.0.0.1 to BASE.port and, for each request, a line `METHOD PATH` to BASE.log.
#
# BASE.faults has lines of JSON; the first that fits a request and is not used up counts, and none is the server's own answer. It is read
# again when it has changed, and then all counts start anew.
#
#   method, path   what it is for: a method, a part of the path with its query; left out: any
#   skip           so many that fit are let through first
#   times          how often; left out: always
#   do             answer   `status`, `headers`, `body` instead of the server's
#                  half     the server's, whose connection ends in the midst of the body
#                  stall    the same, but the connection stays
#                  hang     nothing, for as long as who asks likes to wait
#                  close    nothing, and the connection ends
#                  flip     the server's, with another first byte of the body
#                  cut      the server's, with the first half of the body only, and a head that fits
#                  chunked  the server's, without saying its size
#                  strip    the server's, without the `headers`
import asyncio
import json
import os
import sys

base, server_port = sys.argv[1], int(sys.argv[2])
log = open(f"{base}.log", "a", buffering=1)


class Faults:
    def __init__(self):
        self.stamp, self.rules = None, []

    def load(self):
        try:
            stat = os.stat(f"{base}.faults")
        except FileNotFoundError:
            self.stamp, self.rules = None, []
            return
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if stamp != self.stamp:
            with open(f"{base}.faults") as file:
                self.rules = [json.loads(line) for line in file if line.strip()]
            self.stamp = stamp

    def find(self, method, path):
        self.load()
        for rule in self.rules:
            if rule.get("method", method) != method or rule.get("path", "") not in path:
                continue
            if rule.get("skip", 0) > 0:
                rule["skip"] -= 1
            elif rule.get("times", 1) > 0:
                if "times" in rule:
                    rule["times"] -= 1
                return rule
        return {"do": "pass"}


faults = Faults()


async def read_head(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    return first, [tuple(part.strip() for part in line.split(":", 1)) for line in lines]


def value_of(headers, name, default=None):
    return next((value for key, value in headers if key.lower() == name), default)


def without(headers, *names):
    return [(key, value) for key, value in headers if key.lower() not in names]


def head_of(first, headers):
    return "\r\n".join([first, *(f"{key}: {value}" for key, value in headers), "", ""]).encode("latin-1")


async def read_body(reader, headers):
    if value_of(headers, "transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        return body
    size = value_of(headers, "content-length")
    return await reader.readexactly(int(size)) if size else await reader.read()


async def ask_server(first, headers, body):
    reader, writer = await asyncio.open_connection("127.0.0.1", server_port)
    try:
        writer.write(head_of(first, without(headers, "connection", "expect") + [("Connection", "close")]) + body)
        await writer.drain()
        first, headers = await read_head(reader)
        body = await read_body(reader, headers)
    finally:
        writer.close()
    return first, without(headers, "connection", "content-length", "transfer-encoding"), body


async def respond(rule, request, reader, writer):
    """Whether the connection goes on."""
    what = rule["do"]
    if what == "hang":
        await reader.read()
        return False
    if what == "close":
        return False
    if what == "answer":
        body = rule.get("body", "").encode()
        headers = [*rule.get("headers", {}).items(), ("Content-Length", str(len(body)))]
        writer.write(head_of(f"HTTP/1.1 {rule['status']} Said", headers) + body)
        return True
    first, headers, body = await ask_server(*request)
    whole = len(body)
    if what == "flip":
        body = bytes([body[0] ^ 1]) + body[1:]
    elif what == "cut":
        body = body[: whole // 2]
        whole = len(body)
    elif what == "strip":
        headers = without(headers, *(name.lower() for name in rule["headers"]))
    if what == "chunked":
        writer.write(head_of(first, headers + [("Transfer-Encoding", "chunked")]))
        for at in range(0, len(body), 65536):
            piece = body[at : at + 65536]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        writer.write(b"0\r\n\r\n")
        return True
    writer.write(head_of(first, headers + [("Content-Length", str(whole))]))
    writer.write(body[: whole // 2] if what in ("half", "stall") else body)
    if what == "stall":
        await writer.drain()
        await reader.read()
    return what not in ("half", "stall")


async def serve(reader, writer):
    try:
        while True:
            first, headers = await read_head(reader)
            method, path, _ = first.split(" ")
            if value_of(headers, "expect"):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
            body = await reader.readexactly(int(value_of(headers, "content-length", "0")))
            log.write(f"{method} {path}\n")
            if not await respond(faults.find(method, path), (first, headers, body), reader, writer):
                break
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    with open(f"{base}.port.new", "w") as file:
        file.write(f"{server.sockets[0].getsockname()[1]}\n")
    os.rename(f"{base}.port.new", f"{base}.port")
    await server.serve_forever()


asyncio.run(main())
