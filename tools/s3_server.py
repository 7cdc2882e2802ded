# SPDX-License-Identifier: PostgreSQL
#
# OpenStack Swift with its S3 interface, the whole of it in one process: s3_server.py DIR [CLOCK], which tools/s3server runs. Objects are files under DIR, so
# that they outlive the process. Its port of 127.0.0.1 is in DIR/port, a later start takes the same one; DIR/ready is there when it answers.
#
#   DIR/users     lines `ACCOUNT USER SECRET [GROUP]`: the access key is ACCOUNT:USER, the group `.admin` may do everything
#   DIR/tls.pem   a certificate and its key: speaks HTTPS
#   DIR/log       what Swift says
#   CLOCK         seconds that its clock is ahead
#
# It checks signatures and the clock of who asks. Styles are path, and host for localhost: http://BUCKET.localhost:PORT.
import os
import sys
import time

folder = os.path.abspath(sys.argv[1])
ahead = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
true_time = time.time
if ahead:
    time.time = lambda: true_time() + ahead  # before anybody else has taken it

import eventlet  # noqa: E402
import eventlet.wsgi  # noqa: E402

eventlet.patcher.monkey_patch(all=False, socket=True, select=True, thread=True)

import logging  # noqa: E402
import ssl  # noqa: E402

from swift.common import utils  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402

PROXY = """
[DEFAULT]
swift_dir = {folder}
log_level = WARNING
[pipeline:main]
pipeline = catch_errors listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
node_timeout = 60
conn_timeout = 10
recoverable_node_timeout = 60
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
storage_domain = localhost
s3_acl = false
max_bucket_listing = 100
multi_delete_concurrency = 8
[filter:slo]
use = egg:swift#slo
[filter:tempauth]
use = egg:swift#tempauth
{users}
"""

STORAGE = """
[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
log_level = WARNING
disable_fallocate = true
[pipeline:main]
pipeline = server
[app:server]
use = egg:swift#{kind}
"""


class Cache:
    """What Swift keeps in memcached."""

    def __init__(self, app):
        self.app = app
        self.values = {}

    def __call__(self, env, start_response):
        env["swift.cache"] = self
        return self.app(env, start_response)

    def get(self, key, raise_on_error=False):
        value, until = self.values.get(key, (None, 0))
        return value if not until or until > true_time() else None

    def set(self, key, value, serialize=True, time=0, min_compress_len=0, raise_on_error=False):
        self.values[key] = (value, true_time() + time if time else 0)

    def delete(self, key, server_key=None):
        self.values.pop(key, None)

    def incr(self, key, delta=1, time=0):
        self.values[key] = (int(self.get(key) or 0) + int(delta), true_time() + time if time else 0)
        return self.values[key][0]


class Log(logging.FileHandler):
    def __init__(self, *args, **kwargs):
        super().__init__(os.path.join(folder, "log"))


def write(name, text):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)
    return path


def listen(port=0):
    return eventlet.listen(("127.0.0.1", port), backlog=1024, reuse_port=False)


def make_ring(kind, port):
    ring = RingBuilder(4, 1, 0)
    ring.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, "ip": "127.0.0.1", "port": port, "device": "d1", "meta": "",
                  "replication_ip": "127.0.0.1", "replication_port": port})
    ring.rebalance()
    ring.get_ring().save(os.path.join(folder, kind + ".ring.gz"))


def serve(sock, app):
    from swift.common.wsgi import SwiftHttpProtocol

    quiet = logging.getLogger("wsgi")
    quiet.disabled = True
    eventlet.spawn(eventlet.wsgi.server, sock, app, log=quiet, log_output=False, protocol=SwiftHttpProtocol, max_size=1024,
                   socket_timeout=60, capitalize_response_headers=False)


def users():
    with open(os.path.join(folder, "users")) as file:
        rows = [line.split() for line in file]
    return "\n".join(f"user_{row[0]}_{row[1]} = {' '.join(row[2:])}" for row in rows)


def last_port():
    try:
        with open(os.path.join(folder, "port")) as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def main():
    utils.ThreadSafeSysLogHandler = Log
    utils.FALLOCATE_RESERVE = 0
    write("swift.conf", "[swift-hash]\nswift_hash_path_suffix = millrace\n[storage-policy:0]\nname = one\ndefault = yes\n")
    os.makedirs(os.path.join(folder, "devices", "d1"), exist_ok=True)
    utils.set_swift_dir(folder)

    from swift.common.storage_policy import reload_storage_policies
    from swift.common.wsgi import loadapp

    reload_storage_policies()
    for kind in ("account", "container", "object"):
        sock = listen()
        make_ring(kind, sock.getsockname()[1])
        serve(sock, loadapp(write(kind + ".conf", STORAGE.format(folder=folder, kind=kind))))
    front = listen(last_port())
    port = front.getsockname()[1]
    if os.path.exists(os.path.join(folder, "tls.pem")):
        front = eventlet.wrap_ssl(front, certfile=os.path.join(folder, "tls.pem"), server_side=True,
                                  ssl_version=ssl.PROTOCOL_TLS_SERVER)
    serve(front, Cache(loadapp(write("proxy.conf", PROXY.format(folder=folder, users=users())))))
    write("port", f"{port}\n")
    write("ready", "")
    while True:
        eventlet.sleep(3600)


main()
