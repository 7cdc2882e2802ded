# SPDX-License-Identifier: PostgreSQL
#
# An HTTP server that answers every request with 204 after so many seconds: slow_hooks.py SECONDS
# BASE. Writes its port to BASE.port, and how many requests were under way at most to BASE.most.
import asyncio
import os
import sys

seconds, base = float(sys.argv[1]), sys.argv[2]
now = most = 0


def tell(name, value):
    with open(f"{base}.{name}.new", "w") as file:
        file.write(str(value))
    os.rename(f"{base}.{name}.new", f"{base}.{name}")


async def serve(reader, writer):
    global now, most
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            now += 1
            if now > most:
                most = now
                if most % 100 == 0:
                    tell("most", most)
            await asyncio.sleep(seconds)
            now -= 1
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2000)
    tell("port", server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
