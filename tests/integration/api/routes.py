# SPDX-License-Identifier: PostgreSQL
#
# Every route of the API once well and once or more badly, with the answers held against /openapi.json:
# routes.py URL. Fails when a route of the description was not asked for.

import base64
import json
import sys
import urllib.error
import urllib.request

import jsonschema

url = sys.argv[1]
asked = set()


def fetch(method, path, body=None, token="admin-token", headers=None):
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method)
    if token:
        request.add_header("Authorization", "Bearer " + token)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


api = json.loads(fetch("GET", "/openapi.json", token=None)[2])


def as_json_schema(node):
    """OpenAPI 3.0 says nullable where JSON Schema has a type null."""
    if isinstance(node, list):
        return [as_json_schema(n) for n in node]
    if not isinstance(node, dict):
        return node
    out = {k: as_json_schema(v) for k, v in node.items() if k != "nullable"}
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") else out


root = as_json_schema(api)


def find(method, path):
    parts = path.split("?")[0].split("/")
    found = None
    for pattern, methods in api["paths"].items():
        wanted = pattern.split("/")
        if method.lower() in methods and len(wanted) == len(parts) and all(w == p or w.startswith("{") for w, p in zip(wanted, parts)):
            if found is None or "{" not in pattern:
                found = pattern
    return found


def check(method, path, status, body, headers):
    """The body is what the description says about this status."""
    pattern = find(method, path)
    responses = root["paths"][pattern][method.lower()]["responses"]
    content = (responses.get(str(status)) or responses["default"])["content"]
    kind = headers.get("Content-Type", "").split(";")[0]
    if kind not in content and "application/octet-stream" not in content:
        sys.exit(f"{method} {path}: {status} with {kind}, described: {list(content)}")
    if kind == "application/json":
        schema = dict(content[kind]["schema"], components=root["components"])
        try:
            jsonschema.validate(json.loads(body), schema)
        except jsonschema.ValidationError as error:
            sys.exit(f"{method} {path}: {status} {body[:300]}: {error.message}")
    return pattern


def do(method, path, body=None, status=200, code=None, **more):
    got, headers, data = fetch(method, path, body, **more)
    if got != status:
        sys.exit(f"{method} {path} {body}: expected {status}, got {got}: {data[:500]}")
    pattern = check(method, path, got, data, headers)
    for header in ("X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy"):
        if header not in headers:
            sys.exit(f"{method} {path}: no {header}")
    if status < 400:
        asked.add((method, pattern))
    answer = json.loads(data) if headers["Content-Type"].startswith("application/json") else data.decode()
    if code and answer["error"]["code"] != code:
        sys.exit(f"{method} {path}: expected {code}, got {answer}")
    return answer


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: expected {wanted!r}, got {got!r}")


J = "/api/v1/jobs"


def looking_after():
    do("GET", "/healthz", token=None)
    do("GET", "/readyz", token=None)
    do("GET", "/openapi.json", token=None)
    for path in ("/", "/app.js", "/app.css"):
        do("GET", path, token=None)
    got, headers, _ = fetch("GET", "/app.js", token=None)
    expect("known tag", fetch("GET", "/app.js", token=None, headers={"If-None-Match": headers["ETag"]})[0], 304)
    for folder, name in (("core", "api.js"), ("parts", "table.js"), ("pages", "jobs.js"), ("vendor", "preact.js")):
        expect(folder, fetch("GET", f"/{folder}/{name}", token=None)[0], 200)
        do("GET", f"/{folder}/nothing.js", token=None, status=404, code="not_found")
        asked.add(("GET", f"/{folder}/{{file}}"))
    do("GET", "/metrics", token="reader-token")


def jobs():
    one = do("POST", J, {"kind": "a", "queue": "q1", "args": {"n": 1}, "tenant": "t", "ref": "r1"}, 201)
    many = do("POST", J, [{"kind": "a", "queue": "q1"}, {"kind": "b", "queue": "q1", "delay": "1 hour"}], 201)
    expect("ids of two", len(many["ids"]), 2)
    expect("ids of none", do("POST", J, [], 201), {"ids": []})
    do("POST", J, [{"kind": "a"}, {"knid": "b"}], 400, "bad_request")
    do("POST", J, {"kind": ""}, 400, "bad_request")
    page = do("GET", J + "?queue=q1&limit=2")
    expect("jobs of a page", len(page["jobs"]), 2)
    rest = do("GET", J + "?queue=q1&limit=2&after=" + urllib.request.quote(page["next"], safe=""))
    expect("jobs of all pages", len({j["id"] for j in page["jobs"] + rest["jobs"]}), 3)
    expect("by ref", [j["id"] for j in do("GET", J + "?queue=q1&ref=r1")["jobs"]], [one["id"]])
    do("GET", J + "?color=red", status=400, code="bad_request")
    do("GET", J + "?limit=0", status=400, code="bad_request")
    do("GET", J + "?limit=many", status=400, code="bad_request")
    story = do("GET", f"{J}/{one['id']}")
    expect("story", (story["kind"], story["status"]), ("a", "available"))
    parts = do("POST", J, {"kind": "a", "queue": "parts", "state": base64.b64encode(b'{"step": 3}').decode(), "blob": base64.b64encode(b"\0\xff" * 20000).decode()}, 201)
    story = do("GET", f"{J}/{parts['id']}", token="reader-token")
    expect("state", story["state"], {"bytes": 11, "cut": False, "format": "json", "value": {"step": 3}})
    expect("blob", (story["blob"]["bytes"], story["blob"]["cut"], story["blob"]["format"], story["blob"]["value"][:8], len(story["blob"]["value"])), (40000, True, "hex", "00ff00ff", 32768))
    expect("looked at", do("GET", J + "?kind=none")["looked_at"] > 0, True)
    do("GET", J + "/99999999999", status=404, code="not_found")
    do("GET", J + "/99999999999999999999999", status=400, code="bad_request")
    delayed = many["ids"][1]
    do("POST", f"{J}/{delayed}/change", {"priority": 10})
    do("POST", f"{J}/{delayed}/change", {"color": 1}, 400, "bad_request")
    do("POST", f"{J}/{delayed}/pause")
    expect("paused", do("GET", f"{J}/{delayed}")["status"], "paused")
    do("POST", f"{J}/{delayed}/resume")
    do("POST", f"{J}/{delayed}/run")
    do("POST", f"{J}/47119999/pause", status=404, code="not_found")
    expect("cancel", do("DELETE", f"{J}/{delayed}?reason=why%20not"), {"status": "cancelled"})
    expect("outcome", do("GET", f"{J}/{delayed}/outcome?wait_ms=5000")["status"], "cancelled")
    do("GET", f"{J}/{one['id']}/outcome")
    do("GET", f"{J}/{one['id']}/outcome?wait_ms=60001", status=400, code="bad_request")
    do("GET", f"{J}/{one['id']}/outcome?color=red", status=400, code="bad_request")
    do("DELETE", J + "/99999999999", status=404, code="not_found")


def idempotent():
    key = {"Idempotency-Key": "order-1"}
    first = do("POST", J, {"kind": "a", "queue": "once"}, 201, headers=key)
    second = do("POST", J, {"kind": "a", "queue": "once"}, 201, headers=key)
    expect("the same id", (second["id"], second["again"]), (first["id"], True))
    do("POST", J, {"kind": "other", "queue": "once"}, 409, "conflict", headers=key)
    do("POST", J, {"kind": "a"}, 400, "bad_request", headers={"Idempotency-Key": "x" * 300})
    do("POST", J, b'{"kind":"a"}\n', 400, "bad_request", headers={"Idempotency-Key": "y", "Content-Type": "application/x-ndjson"})


def traces():
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for job, wanted in [
        ({"kind": "a"}, {"traceparent": parent}),
        ({"kind": "a", "meta": {}}, {"traceparent": parent}),
        ({"kind": "a", "meta": {"x": 1}}, {"traceparent": parent, "x": 1}),
        ({"kind": "a", "meta": {"traceparent": "mine"}}, {"traceparent": "mine"}),
    ]:
        ids = do("POST", J, job, 201, headers={"traceparent": parent})["ids"] + do("POST", J, [job], 201, headers={"traceparent": parent})["ids"]
        for id in ids:
            expect(f"meta of {job}", do("GET", f"{J}/{id}")["meta"], wanted)
    id = do("POST", J, {"kind": "a"}, 201, headers={"traceparent": "nonsense\""})["id"]
    expect("no trace", do("GET", f"{J}/{id}").get("meta"), None)


def streams():
    def stream(text, status=201):
        return do("POST", J, text.encode(), status, headers={"Content-Type": "application/x-ndjson"})
    expect("a stream", stream("".join('{"kind":"s","queue":"stream"}\n' for _ in range(2500))), {"enqueued": 2500})
    expect("without a last line break", stream('{"kind":"s","queue":"stream"}\n\n \r\n{"kind":"s","queue":"stream"}'), {"enqueued": 2})
    expect("nothing", stream(""), {"enqueued": 0})
    bad = stream("".join('{"kind":"s","queue":"stream"}\n' for _ in range(1500)) + "{oops}\n" + '{"kind":"s"}\n', 400)
    expect("a bad line", ("line 1501" in bad["error"]["message"], bad["enqueued"]), (True, 1000))
    bad = stream('{"kind":"s","queue":"stream"}\n{"kind":"s","priority":1000}\n', 400)
    expect("a refused chunk", ("lines 1 to 2" in bad["error"]["message"], bad["enqueued"]), (True, 0))


def queues():
    do("GET", "/api/v1/overview")
    do("GET", "/api/v1/history?queue=q1&minutes=10")
    do("GET", "/api/v1/history")
    do("GET", "/api/v1/history?minutes=-1", status=400, code="bad_request")
    names = [q["queue"] for q in do("GET", "/api/v1/queues")["queues"]]
    expect("queues", "q1" in names and "stream" in names, True)
    do("GET", "/api/v1/queues/q1")
    do("GET", "/api/v1/queues/nowhere", status=404, code="not_found")
    do("PATCH", "/api/v1/queues/q1", {"paused": True, "settings": {"warn_depth": 7}})
    story = do("GET", "/api/v1/queues/q1")
    expect("paused", (story["paused"], story["settings"]["warn_depth"]), (True, 7))
    do("PATCH", "/api/v1/queues/q1", {"paused": False})
    do("PATCH", "/api/v1/queues/q1", {"paused": "yes"}, 400, "bad_request")
    do("PATCH", "/api/v1/queues/q1", {"settings": {"color": 1}}, 400, "bad_request")
    do("PATCH", "/api/v1/queues/q1", {"pause": True}, 400, "bad_request")
    do("PATCH", "/api/v1/queues/q1", b'{"paused":true,"paused":false}', 400, "bad_request")
    do("PATCH", "/api/v1/queues/nowhere", {"paused": True}, 404, "not_found")
    # a setting that is refused leaves the rest as it was
    do("PATCH", "/api/v1/queues/q1", {"paused": True, "settings": {"color": 1}}, 400)
    expect("not paused", do("GET", "/api/v1/queues/q1")["paused"], False)
    odd = urllib.request.quote("ä/b c", safe="")
    do("PATCH", "/api/v1/queues/" + odd, {"settings": {}})
    expect("an odd name", do("GET", "/api/v1/queues/" + odd)["queue"], "ä/b c")
    expect("purge", do("POST", "/api/v1/queues/stream/purge"), {"purged": 3502})
    do("POST", J, {"kind": "k", "queue": "ä/b c"}, 201)
    lease = do("POST", "/api/v1/queues/" + odd + "/claim", {})["lease"]
    do("DELETE", "/api/v1/queues/" + odd, status=409, code="conflict")  # a job of it runs
    do("POST", "/api/v1/leases/" + lease + "/complete", {})
    do("DELETE", "/api/v1/queues/" + odd)
    do("DELETE", "/api/v1/queues/" + odd, status=404, code="not_found")
    full = "/api/v1/queues/full"
    do("PATCH", full, {"settings": {"depth_limit": 1}})
    do("POST", J, {"kind": "a", "queue": "full"}, 201)
    got, headers, data = fetch("POST", J, {"kind": "a", "queue": "full"})
    expect("full", (got, json.loads(data)["error"]["code"], headers["Retry-After"]), (429, "queue_full", "1"))


def working():
    ids = do("POST", J, [{"kind": "w", "queue": "w", "state": base64.b64encode(b"\0state").decode()} for _ in range(8)], 201)["ids"]
    claim = do("POST", "/api/v1/queues/w/claim", {"worker": "me", "max_jobs": 8, "lease_s": 60, "wait_ms": 1000}, token="worker-token")
    expect("claimed", [j["id"] for j in claim["jobs"]], ids)
    expect("state", base64.b64decode(claim["jobs"][0]["state"]), b"\0state")
    lease = "/api/v1/leases/" + claim["lease"]
    beat = do("POST", lease + "/heartbeat", {"extend_s": 120.5}, token="worker-token")
    expect("none cancelled", beat["cancelled"], [])
    do("POST", lease + "/heartbeat")
    do("POST", lease + "/progress", {"id": ids[0], "percent": 12.5, "note": "on\nits way"})
    do("POST", lease + "/progress", {"id": ids[0], "percent": 200}, 400, "bad_request")
    expect("one completed", do("POST", lease + "/complete", {"ids": [ids[0]], "result": {"n": 12345678901234567890.5}}), {"completed": 1})
    expect("failed", do("POST", lease + "/fail", {"id": ids[1], "error": "no \"way\"\n\u00e4", "retry_in_s": 0.5, "state": base64.b64encode(b"new").decode()})["status"], "scheduled")
    expect("dead", do("POST", lease + "/fail", {"id": ids[2], "error": "never", "retry": False})["status"], "dead")
    do("POST", lease + "/fail", {"id": ids[3]}, 400, "bad_request")
    do("POST", lease + "/fail", {"id": ids[3], "error": 5}, 400, "bad_request")
    do("POST", lease + "/fail", {"id": ids[3], "error": "x", "state": "!!"}, 400, "bad_request")
    do("POST", lease + "/fail", b'{"id": 1, "error": "a\\u0000b"}', 400, "bad_request")
    do("POST", lease + "/requeue", {"id": ids[3], "changes": {"priority": 3}, "clear": ["state"]})
    do("POST", lease + "/requeue", {"id": ids[4], "clear": "state"}, 400, "bad_request")
    expect("finish", do("POST", lease + "/finish", {"outcomes": [{"id": ids[4], "outcome": "completed"}]}), {"finished": 1})
    expect("released", do("POST", lease + "/release", {"ids": [ids[5]]}), {"released": 1})
    expect("the rest", do("POST", lease + "/complete"), {"completed": 2})
    do("POST", lease + "/complete", {}, 409, "lease_lost")
    do("POST", lease + "/complete", {"ids": ["1"]}, 400, "bad_request")
    do("POST", "/api/v1/leases/nonsense/complete", {}, 409, "lease_lost")
    do("POST", "/api/v1/queues/w/claim", {"wait_ms": 60001}, 400, "bad_request")
    do("POST", "/api/v1/queues/w/claim", {"max_jobs": 0}, 400, "bad_request")
    empty = do("POST", "/api/v1/queues/nobody/claim")
    expect("nothing", (empty["lease"], empty["jobs"]), (None, []))
    do("POST", "/api/v1/queues/w/claim", {}, 403, "forbidden", token="producer-token")
    return ids[2]


def dead(id):
    page = do("GET", "/api/v1/dead?queue=w")
    expect("dead letters", len(page["jobs"]), 1)
    expect("groups", do("GET", "/api/v1/dead/groups?queue=w")["groups"][0]["jobs"], 1)
    do("GET", "/api/v1/dead/groups")
    do("GET", "/api/v1/dead?limit=1000", status=400, code="bad_request")
    do("POST", "/api/v1/dead/replay", {}, 400, "bad_request")
    do("POST", "/api/v1/dead/replay", {"id": id, "queue": "w"}, 400, "bad_request")
    do("POST", "/api/v1/dead/replay", {"id": 4711}, 404, "not_found")
    do("POST", "/api/v1/dead/replay", {"ids": "all"}, 400, "bad_request")
    expect("none", do("POST", "/api/v1/dead/replay", {"ids": []}), {"replayed": 0})
    expect("one of two", do("POST", "/api/v1/dead/replay", {"ids": [id, 4711]}), {"replayed": 1})
    expect("all", do("POST", "/api/v1/dead/replay", {"queue": "w", "kind": "w"}), {"replayed": 0})
    do("POST", "/api/v1/dead/replay", {"queue": "nowhere"}, 404, "not_found")
    expect("purged", do("POST", "/api/v1/dead/purge", {"queue": "w", "older_than_s": 5}), {"purged": 0})
    do("POST", "/api/v1/dead/purge", {}, 400, "bad_request")
    do("POST", "/api/v1/dead/purge", {"queue": "w", "older_than_s": "5"}, 400, "bad_request")


def schedules():
    path = "/api/v1/schedules/nightly"
    do("PUT", path, {"cron": "0 2 * * *", "kind": "report", "args": {"n": 1}, "timezone": "Europe/Berlin", "catch_up": "none"})
    do("PUT", path, {"cron": "0 2 * *", "kind": "report"}, 400, "bad_request")
    do("PUT", path, {"kind": "report"}, 400, "bad_request")
    listed = do("GET", "/api/v1/schedules")["schedules"]
    expect("schedules", len(listed), 1)
    story = do("GET", path, token="reader-token")
    expect("schedule", (story["cron"], story["args"], story["catch_up"], len(story["next"])), ("0 2 * * *", {"n": 1}, "none", 5))
    do("PUT", path, {"cron": "0 3 * * *", "kind": "report", "args": {"n": 2}, "active": False, "priority": 7})
    story = do("GET", path)
    expect("changed", (story["cron"], story["args"], story["timezone"], story["active"], story["priority"], story["next"]), ("0 3 * * *", {"n": 2}, "UTC", False, 7, []))
    do("GET", "/api/v1/schedules/nowhere", status=404, code="not_found")
    do("PUT", path, {"cron": "0 3 * * *", "kind": "report"}, 403, "forbidden", token="reader-token")
    next = do("GET", "/api/v1/cron/next?cron=0+9+*+*+MON&timezone=Europe/Berlin&after=2030-01-01T00:00:00Z&times=2", token="reader-token")
    expect("next", next["next"], ["2030-01-07T08:00:00+00:00", "2030-01-14T08:00:00+00:00"])
    expect("next five", len(do("GET", "/api/v1/cron/next?cron=@daily")["next"]), 5)
    for query in ("", "?cron=", "?cron=0+9", "?cron=@daily&timezone=Nowhere", "?cron=@daily&times=0", "?cron=@daily&times=101", "?cron=@daily&times=x", "?cron=@daily&after=noon", "?cron=@daily&colour=red"):
        do("GET", "/api/v1/cron/next" + query, status=400, code="bad_request")
    do("POST", path + "/run")
    do("POST", path + "/disable")
    do("POST", path + "/enable")
    do("DELETE", path)
    do("POST", path + "/run", status=404, code="not_found")


def batches():
    id = do("POST", "/api/v1/batches", {"label": "x", "on_end": {"kind": "done"}}, 201)["id"]
    path = f"/api/v1/batches/{id}"
    expect("members", len(do("POST", path + "/jobs", [{"kind": "m"}, {"kind": "m"}], 201)["ids"]), 2)
    do("POST", path + "/seal")
    do("POST", path + "/jobs", [{"kind": "m"}], 400, "bad_request")
    do("GET", path)
    expect("batches", len(do("GET", "/api/v1/batches")["batches"]), 1)
    do("GET", "/api/v1/batches/999999", status=404, code="not_found")


def whole():
    do("GET", "/api/v1/workers")
    do("GET", "/api/v1/system")
    expect("doctor", "roles" in {check["topic"] for check in do("GET", "/api/v1/doctor")["checks"]}, True)


def events():
    request = urllib.request.Request(url + "/api/v1/events", headers={"Authorization": "Bearer reader-token"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        expect("type", reply.headers["Content-Type"], "text/event-stream")
        seen = 0
        for line in reply:
            if line.startswith(b"data: "):
                seen += "queues" in json.loads(line[6:])
            if seen == 2:
                break
    asked.add(("GET", "/api/v1/events"))


looking_after()
jobs()
idempotent()
traces()
streams()
queues()
dead(working())
schedules()
batches()
whole()
events()
missed = {(m.upper(), p) for p, ms in api["paths"].items() for m in ms} - asked
if missed:
    sys.exit(f"not asked for: {sorted(missed)}")
