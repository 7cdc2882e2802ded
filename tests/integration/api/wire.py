# SPDX-License-Identifier: PostgreSQL
#
# What a library would not send: wire.py PORT CASE. Ends with 0 when the server did what it should.

import json
import os
import socket
import sys
import time

port = int(sys.argv[1])
TOKEN = "Authorization: Bearer admin-token\r\n"
HOST = "Host: 127.0.0.1\r\n"


def connect():
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(20)
    return s


def answer(s):
    """The first reply: status, headers, body; 0 when the connection was closed without one."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            part = s.recv(65536)
            if not part:
                break
            data += part
        if not data:
            return 0, {}, b""
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            part = s.recv(65536)
            if not part:
                break
            body += part
        return int(lines[0].split()[1]), headers, body
    except ConnectionResetError:
        return 0, {}, b""


def ask(text):
    with connect() as s:
        s.sendall(text.encode("latin-1") if isinstance(text, str) else text)
        return answer(s)


def expect(what, got, *wanted):
    if got not in wanted:
        sys.exit(f"{what}: expected {wanted}, got {got}")


def closed(s):
    """Whether the other end hangs up within a while."""
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except socket.timeout:
        return False


def post(headers, body=""):
    return f"POST /api/v1/jobs HTTP/1.1\r\n{HOST}{TOKEN}Content-Type: application/json\r\n{headers}\r\n{body}"


def case_smuggling():
    job = '{"kind":"smuggled"}'
    tail = f"POST /api/v1/jobs HTTP/1.1\r\n{HOST}{TOKEN}Content-Type: application/json\r\nContent-Length: {len(job)}\r\n\r\n{job}"
    for name, headers in [
        ("two lengths", "Content-Length: 2\r\nContent-Length: 200\r\n"),
        ("the same length twice", "Content-Length: 2\r\nContent-Length: 2\r\n"),
        ("a length and chunked", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
        ("chunked and a length", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
        ("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("an unknown encoding", "Transfer-Encoding: xchunked\r\n"),
        ("chunked in a list", "Transfer-Encoding: gzip, chunked\r\n"),
        ("a list of lengths", "Content-Length: 2, 2\r\n"),
        ("a negative length", "Content-Length: -2\r\n"),
        ("a length with a sign", "Content-Length: +2\r\n"),
        ("a hexadecimal length", "Content-Length: 0x2\r\n"),
        ("an endless length", "Content-Length: 99999999999999999999999\r\n"),
    ]:
        with connect() as s:
            s.sendall((post(headers, "{}" + tail)).encode())
            status, _, _ = answer(s)
            expect(name, status, 400, 413, 0)
            # nothing that follows on the connection is read as a request
            expect(name + ": closed", closed(s), True)
    for name, headers in [
        ("a space before the colon", "Content-Length : 2\r\n"),
        ("a tab before the colon", "Transfer-Encoding\t: chunked\r\n"),
        ("a folded encoding", "Transfer-Encoding:\r\n chunked\r\n"),
        ("a folded length", "Content-Length:\r\n\t2\r\n"),
        ("a folded header", "X: a\r\n b c\r\n"),
        ("no name of a header", "(a): b\r\n"),
    ]:
        with connect() as s:
            s.sendall(post(f"Content-Length: {len(job)}\r\n{headers}", job + tail).encode())
            status, _, body = answer(s)
            expect(name, (status, json.loads(body)["error"]["code"]), (400, "bad_request"))
            expect(name + ": closed", closed(s), True)
    for name, text in [
        ("a bare line feed", f"GET /healthz HTTP/1.1\n{HOST}\n"),
        ("a zero byte in the head", f"GET /healthz\0 HTTP/1.1\r\n{HOST}\r\n"),
        ("a folded header", f"GET /api/v1/jobs/1 HTTP/1.1\r\n{HOST}X: a\r\n b\r\n\r\n"),
    ]:
        status, _, _ = ask(text)
        if status == 201:
            sys.exit(f"{name}: enqueued")


def case_hosts():
    for host, wanted in [("127.0.0.1", 200), (f"127.0.0.1:{port}", 200), ("localhost", 200), ("[::1]:80", 200), ("evil.example", 403),
                         ("localhost.evil.example", 403), ("", 403), ("127.0.0.1@evil", 403), ("known.example", 200), ("KNOWN.example:1", 200)]:
        status, _, body = ask(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n")
        expect("Host: " + host, status, wanted)
    status, _, body = ask("GET /healthz HTTP/1.1\r\n\r\n")
    expect("no host", (status, json.loads(body)["error"]["code"]), (400, "bad_request"))
    expect("two hosts", ask(f"GET /healthz HTTP/1.1\r\n{HOST}{HOST}\r\n")[0], 400)
    for origin, wanted in [("http://127.0.0.1", 200), ("https://127.0.0.1", 200), ("http://evil.example", 403), ("null", 403),
                           ("http://127.0.0.1.evil.example", 403), ("file://", 403), ("http://127.0.0.1:1", 403)]:
        status, headers, _ = ask(f"GET /healthz HTTP/1.1\r\n{HOST}Origin: {origin}\r\n\r\n")
        expect("Origin: " + origin, status, wanted)
        expect("no CORS", [h for h in headers if h.startswith("access-control")], [])
        expect("no cookie", "set-cookie" in headers, False)


def case_paths():
    for path, wanted in [("/", 200), ("/api/v1/jobs/%31", 404), ("//healthz", 400), ("/healthz/", 400), ("/%2e%2e/etc/passwd", 400),
                         ("/../healthz", 400), ("/vendor/..%2fopenapi.json", 404), ("/vendor/%2e%2e", 400), ("/vendor/a/b", 404), ("/healthz%00", 400),
                         ("/healthz%", 400), ("/healthz%2", 400), ("/healthz%zz", 400), ("/%ff", 400), ("/%c0%af", 400), ("/%ed%a0%80", 400),
                         ("/a/b/c/d/e/f/g/h/i", 400), ("http://127.0.0.1/healthz", 400), ("*", 400), ("/Healthz", 404), ("/healthz?x=%00", 400),
                         ("/api/v1/jobs?limit=1&limit=2", 400), ("/" + "a" * 8000, 404), ("/" + "a" * 9000, 400),
                         ("/api/v1/queues/" + "%C3%A4" * 20, 404)]:
        status, _, _ = ask(f"GET {path} HTTP/1.1\r\n{HOST}{TOKEN}\r\n")
        expect(path[:60], status, wanted, *([404, 503] if wanted == 404 else []), *([414, 431, 0] if len(path) > 8192 else []))


def case_methods():
    for method, path, allow in [("PUT", "/api/v1/jobs", "POST, GET"), ("DELETE", "/healthz", "GET"), ("OPTIONS", "/api/v1/jobs/1", "GET, DELETE"),
                                ("PATCH", "/api/v1/dead/replay", "POST"), ("BREW", "/api/v1/queues", "GET")]:
        status, headers, _ = ask(f"{method} {path} HTTP/1.1\r\n{HOST}{TOKEN}\r\n")
        expect(method + " " + path, status, 405)
        expect("Allow", headers.get("allow"), allow)
    status, headers, body = ask(f"HEAD /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
    expect("HEAD", status, 200)


def case_tokens():
    for value in ["", "Bearer", "Bearer ", "Bearer a b", "Bearer " + "x" * 600, "Bearer \xe4", "Token admin-token", "admin-token", "Bearer admin-token2",
                  "Bearer admin-toke", "Bearer ADMIN-TOKEN"]:
        status, headers, _ = ask(f"GET /api/v1/jobs/1 HTTP/1.1\r\n{HOST}Authorization: {value}\r\n\r\n")
        expect("Authorization: " + value[:30], status, 401)
        expect("challenge", headers.get("www-authenticate"), 'Bearer realm="millrace"')
    expect("two tokens", ask(f"GET /api/v1/jobs/1 HTTP/1.1\r\n{HOST}{TOKEN}{TOKEN}\r\n")[0], 401)
    expect("in the query", ask(f"GET /api/v1/jobs/1?token=admin-token HTTP/1.1\r\n{HOST}\r\n")[0], 401)
    expect("lower case", ask(f"GET /api/v1/jobs/1 HTTP/1.1\r\n{HOST}authorization: bearer admin-token\r\n\r\n")[0], 404)


def case_bodies():
    def status_of(body, type_="application/json"):
        data = body if isinstance(body, bytes) else body.encode()
        head = f"POST /api/v1/jobs HTTP/1.1\r\n{HOST}{TOKEN}Content-Type: {type_}\r\nContent-Length: {len(data)}\r\n\r\n"
        return ask(head.encode() + data)[0]
    for name, body, wanted in [
        ("a job", '{"kind":"a"}', 201), ("blanks around it", ' \n{"kind":"a"} ', 201), ("nothing", "", 400), ("no JSON", "kind=a", 400),
        ("a text", '"a"', 400), ("a number", "1", 400), ("null", "null", 400), ("no kind", "{}", 400), ("two values", '{"kind":"a"}{"kind":"b"}', 400),
        ("a list that is not one", '{"kind":"a"},{"kind":"b"}', 400), ("not UTF-8", b'{"kind":"\xff"}', 400), ("a zero byte", b'{"kind":"a\0"}', 400),
        ("an escaped zero", '{"kind":"a","args":{"x":"\\u0000"}}', 400), ("half a surrogate", '{"kind":"a","args":{"x":"\\ud800"}}', 400),
        ("an unknown option", '{"kind":"a","quue":"b"}', 400), ("a wrong type", '{"kind":"a","priority":"high"}', 400),
        ("too deep", '{"kind":"a","args":' + "[" * 1100 + "]" * 1100 + "}", 400), ("deep enough", '{"kind":"a","args":' + "[" * 500 + "]" * 500 + "}", 201),
        ("a large number", '{"kind":"a","args":1e999}', 201), ("an empty array", "[]", 201), ("an array", '[{"kind":"a"},{"kind":"b"}]', 201),
        ("an array of anything", '[{"kind":"a"},1]', 400), ("a comma too many", '[{"kind":"a"},]', 400),
    ]:
        expect(name, status_of(body), wanted)
    expect("a form", status_of("kind=a", "application/x-www-form-urlencoded"), 415)
    expect("a text", status_of('{"kind":"a"}', "text/plain"), 415)
    expect("JSON's cousin", status_of('{"kind":"a"}', "application/jsonx"), 415)
    for charset, wanted in [("utf-8", 201), ('"UTF-8"', 201), ("utf-8; x=1", 201), ("latin1", 415), ("utf-8x", 415), ("", 415)]:
        expect(f"with the charset {charset}", status_of('{"kind":"a"}', f"application/json; charset={charset}"), wanted)
    expect("no type", ask(f"POST /api/v1/jobs HTTP/1.1\r\n{HOST}{TOKEN}Content-Length: 12\r\n\r\n" + '{"kind":"a"}')[0], 415)
    body = '{"kind":"a"}'
    typed = f"{HOST}{TOKEN}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    for name, headers, wanted in [
        ("compressed", "Content-Encoding: gzip\r\n", 415), ("not compressed", "Content-Encoding: identity\r\n", 201),
        ("one key", "Idempotency-Key: a\r\n", 201), ("two keys", "Idempotency-Key: b\r\nIdempotency-Key: c\r\n", 400),
    ]:
        expect(name, ask(f"POST /api/v1/jobs HTTP/1.1\r\n{typed}{headers}\r\n{body}")[0], wanted)
    expect("chunked", ask(post("Transfer-Encoding: chunked\r\n", "5\r\n{\"kin\r\n7\r\nd\":\"a\"}\r\n0\r\n\r\n"))[0], 201)
    expect("a chunk that is none", ask(post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"))[0], 400, 0)


def case_large():
    """max_body is 100,000 here."""
    expect("declared", ask(post("Content-Length: 20000000\r\n"))[0], 413)
    big = '{"kind":"a","args":"' + "x" * 150000 + '"}'
    expect("sent", ask(post(f"Content-Length: {len(big)}\r\n", big))[0], 413)
    chunk = f"{len(big):x}\r\n{big}\r\n0\r\n\r\n"
    expect("chunked", ask(post("Transfer-Encoding: chunked\r\n", chunk))[0], 413)
    expect("a large head", ask(f"GET /healthz HTTP/1.1\r\n{HOST}X: {'x' * 30000}\r\n\r\n")[0], 400, 413, 431, 0)
    line = f"POST /api/v1/jobs HTTP/1.1\r\n{HOST}{TOKEN}Content-Type: application/x-ndjson\r\nContent-Length: {len(big) + 1}\r\n\r\n{big}\n"
    expect("a long line", ask(line)[0], 413)


def cut_off(begin, more):
    """Whether the server ends a request that goes on piece by piece and never comes to its end."""
    with connect() as s:
        begun = time.time()
        s.sendall(begin)
        s.settimeout(0.3)
        while time.time() - begun < 15:
            try:
                s.sendall(more)
                if not s.recv(100):
                    return True
            except socket.timeout:
                pass
            except OSError:
                return True
    return False


def case_slow():
    """idle is 2 s here: the head of a request has to be there by then, whatever trickles in."""
    expect("a slow head", cut_off(b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n"), True)
    with connect() as s:
        s.settimeout(15)
        expect("silence", closed(s), True)
    expect("a slow body", cut_off(post("Content-Length: 1000\r\n", "{").encode(), b" "), True)
    # a reply that is taken byte by byte: the rest is not kept for ever
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    s.connect(("127.0.0.1", port))
    s.settimeout(20)
    for _ in range(40):  # more than the system's own buffers take
        s.sendall(f"GET /openapi.json HTTP/1.1\r\n{HOST}\r\n".encode())
    begun, taken = time.time(), 0
    while time.time() - begun < 6:
        taken += len(s.recv(16))
        time.sleep(0.3)
    rest = 0
    try:
        while part := s.recv(1 << 20):
            rest += len(part)
    except ConnectionResetError:
        pass
    size = len(ask(f"GET /openapi.json HTTP/1.1\r\n{HOST}\r\n")[2])
    if taken + rest > 39 * size:
        sys.exit(f"a slow reader got everything: {taken} + {rest} of {40 * size}")
    s.close()


def memory(pid):
    if pid == 0:
        return 0
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd")) if pid else 0


def push(head, block, count):
    """Sends until the other end has had enough; how many bytes it took, and the status it said, 0 for none."""
    with connect() as s:
        sent = 0
        try:
            s.sendall(head)
            for _ in range(count):
                s.sendall(block)
                sent += len(block)
        except OSError:
            pass
        return sent, answer(s)[0]


def case_huge():
    """wire.py PORT huge PID: what is far too large costs no memory, and is not read to its end."""
    pid = int(sys.argv[3])
    mega = b"x" * 1048576
    # what it keeps for good is there before it is measured
    ask(post("Content-Length: 12\r\n", '{"kind":"a"}'))
    before = memory(pid)
    sent, status = push(f"GET /healthz HTTP/1.1\r\n{HOST}X: ".encode(), mega, 10)
    expect("a head of 10 MB", status, 400, 413, 431, 0)
    if sent > 8 << 20:
        sys.exit(f"{sent} bytes of a head were read")
    sent, status = push(post("Content-Length: 1073741824\r\n").encode(), mega, 1024)
    expect("a body of 1 GB", status, 413, 0)
    if sent > 64 << 20:
        sys.exit(f"{sent} bytes of a body that was refused were read")
    sent, status = push(post("Transfer-Encoding: chunked\r\n").encode() + b"40000000\r\n", mega, 1024)
    expect("a chunked body of 1 GB", status, 413)
    if sent > 128 << 20:
        sys.exit(f"{sent} bytes of a chunked body were read")
    line = post("Content-Length: 104857600\r\n").replace("application/json", "application/x-ndjson").encode()
    sent, status = push(line, mega, 100)
    expect("a line of 100 MB", status, 413)
    grown = memory(pid) - before
    if grown > 80 << 20:
        sys.exit(f"the daemon has grown by {grown >> 20} MiB")
    # a stream of any length: thirty chunks and more, and the memory of a few
    before = memory(pid)
    job = b'{"kind":"a","queue":"stream","args":"' + b"x" * 980 + b'"}\n'
    with connect() as s:
        s.settimeout(120)
        s.sendall(post(f"Content-Length: {len(job) * 30000}\r\n").replace("application/json", "application/x-ndjson").encode())
        for _ in range(300):
            s.sendall(job * 100)
        status, _, body = answer(s)
    expect("a long stream", (status, body), (201, b'{"enqueued":30000}'))
    grown = memory(pid) - before
    if grown > 16 << 20:
        sys.exit(f"a stream of 30 MB made the daemon grow by {grown >> 20} MiB")


def case_crowd():
    """wire.py PORT crowd PID: connections that do nothing, half of them closed on one side; whoever comes is answered."""
    pid = int(sys.argv[3])
    before, held = memory(pid), []
    for n in range(2000):
        s = connect()
        if n % 2:
            s.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        held.append(s)
    for s in held[1::2]:
        expect("one of many", answer(s)[0], 200)
    grown = memory(pid) - before
    if grown > 2000 * 40960:
        sys.exit(f"{grown // 2000} bytes for each connection")
    expect("one more", ask(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n")[0], 200)
    for s in held[::4]:
        s.shutdown(socket.SHUT_WR)
        expect("closed on one side", closed(s), True)
    expect("and still", ask(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n")[0], 200)


def case_events():
    """wire.py PORT events PID: 200 that listen to an overview of 200 queues, which is some 100 KB."""
    pid = int(sys.argv[3])

    def whole_event(s):
        data = b""
        while b"event: overview" not in data or b"\n\n" not in data[data.index(b"event: overview"):]:
            data += s.recv(1 << 20)
        return len(data)

    def listen():
        s = connect()
        s.settimeout(60)
        s.sendall(f"GET /api/v1/events HTTP/1.1\r\n{HOST}{TOKEN}\r\n".encode())
        return s
    with listen() as s:
        size = whole_event(s)
    if size < 60000:
        sys.exit(f"an event of {size} bytes tests nothing")
    before, descriptors_before = memory(pid), descriptors(pid)
    held = [listen() for _ in range(200)]
    for s in held:
        whole_event(s)
    # one each, and some that the daemon may have opened meanwhile
    if descriptors(pid) - descriptors_before > 220:
        sys.exit(f"{descriptors(pid) - descriptors_before} descriptors for 200 that listen")
    # what a connection has, and a little for listening
    grown = memory(pid) - before
    if grown > 200 * 30 * 1024:
        sys.exit(f"{grown // 200} bytes for each that listens")


def case_pipelined():
    """Several requests at once on one connection are answered in order."""
    with connect() as s:
        job = '{"kind":"p"}'
        one = post(f"Content-Length: {len(job)}\r\n", job)
        s.sendall((one * 5).encode())
        data = b""
        while data.count(b'"ids"') < 5:
            part = s.recv(65536)
            if not part:
                sys.exit("closed early")
            data += part
        expect("all enqueued", data.count(b"HTTP/1.1 201"), 5)
    # behind a claim that waits, and one that listens: HEAD of the events has an end
    with connect() as s:
        body = '{"wait_ms":300}'
        s.sendall((f"POST /api/v1/queues/nothing/claim HTTP/1.1\r\n{HOST}{TOKEN}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                   f"HEAD /api/v1/events HTTP/1.1\r\n{HOST}{TOKEN}\r\nGET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n").encode())
        data = b""
        while part := s.recv(65536):
            data += part
        expect("three answers", data.count(b"HTTP/1.1 200"), 3)
        expect("in their order", data.index(b'"lease"') < data.index(b"text/event-stream") < data.index(b'"alive"'), True)


globals()["case_" + sys.argv[2]]()
