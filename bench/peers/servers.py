# SPDX-License-Identifier: PostgreSQL
"""Private servers for one contender each: started in a directory of their own, on a unix socket, stopped by pid."""

import os
import shlex
import shutil
import socket
import subprocess
import time

START_LIMIT_S = 30
STOP_LIMIT_S = 30
SOCKET_PATH_MAX = 100

# As bench/run has them: durable, and no checkpoint falls into a measurement by chance.
POSTGRESQL_SETTINGS = (
    "synchronous_commit=on", "full_page_writes=on", "shared_buffers=1GB", "max_wal_size=16GB",
    "checkpoint_timeout=1h", "max_connections=100", "log_min_messages=warning",
)


def clean_env():
    """The environment without what leads clients to another server."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("PG") and name not in ("MILLRACE_DSN", "DATABASE_URL")}


class Postgresql:
    def __init__(self, directory, quick):
        self.directory = directory
        self.env = clean_env()
        command = ["tools/pgserver", "start", directory]
        for setting in (f"fsync={'off' if quick else 'on'}",) + POSTGRESQL_SETTINGS:
            command += ["-o", setting]
        subprocess.run(command, check=True)
        printed = subprocess.run(["tools/pgserver", "env", directory], check=True, capture_output=True, text=True).stdout
        for line in printed.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            self.env[name] = shlex.split(value)[0] if value else ""
        self.env["PATH"] = self.env["PGBIN"] + ":" + self.env["PATH"]
        self.env["MILLRACE_DSN"] = f"host={self.env['PGHOST']} port={self.env['PGPORT']} user=postgres dbname=postgres"
        self.databases = 0

    def query(self, text, database="postgres"):
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.env).stdout.strip()

    def fresh(self):
        """The environment of a driver with an empty database of its own; the one before is dropped."""
        if self.databases:
            self.query(f"drop database bench_{self.databases} with (force)")
        self.databases += 1
        self.query(f"create database bench_{self.databases}")
        return {**self.env, "PGDATABASE": f"bench_{self.databases}"}

    def another(self):
        """A second database beside the present one."""
        name = f"bench_{self.databases}_second"
        self.query(f"create database {name}")
        return {**self.env, "PGDATABASE": name}

    def hold_snapshot(self, env):
        """A session that keeps vacuum from removing anything; to be ended with release()."""
        holder = subprocess.Popen(["psql", "-X", "-q", "-A", "-t"], env=env, text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdin.write("begin isolation level repeatable read; select pg_current_snapshot();\n")
        holder.stdin.flush()
        if not holder.stdout.readline().strip():
            raise RuntimeError("cannot hold a snapshot")
        return holder

    @staticmethod
    def release(holder):
        holder.stdin.close()
        holder.wait(timeout=STOP_LIMIT_S)
        holder.stdout.close()

    def wal_position(self):
        return int(self.query("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def stop(self):
        subprocess.run(["tools/pgserver", "remove", self.directory], check=False)


class Daemon:
    """Redis or beanstalkd: one process and its directory."""

    def __init__(self, directory, variable, command):
        self.directory = directory
        self.env = clean_env()
        self.socket = os.path.join(directory, "socket")
        if len(self.socket) > SOCKET_PATH_MAX:
            raise RuntimeError("the path of the socket is too long; set MR_BENCH_DIR to a shorter directory")
        self.variable = variable
        self.command = [word.replace("SOCKET", self.socket).replace("DIR", directory) for word in command]
        self.process = None
        self._start()

    def _start(self):
        os.makedirs(self.directory, mode=0o700)
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.env[self.variable] = self.socket
        deadline = time.monotonic() + START_LIMIT_S
        while not self._answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{self.command[0]} does not start")
            time.sleep(0.02)

    def _answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
            except OSError:
                return False
        return True

    def fresh(self):
        """An empty server: beanstalkd has no command for that."""
        self.stop()
        self._start()
        return dict(self.env)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def redis(directory):
    return Daemon(directory, "REDIS_SOCKET", [
        "redis-server", "--port", "0", "--unixsocket", "SOCKET", "--dir", "DIR", "--daemonize", "no",
        "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"])


def beanstalkd(directory):
    return Daemon(directory, "BEANSTALKD_SOCKET", ["beanstalkd", "-b", "DIR", "-l", "unix:SOCKET"])


def start(kind, directory, quick):
    if kind == "postgresql":
        return Postgresql(directory, quick)
    return {"redis": redis, "beanstalkd": beanstalkd}[kind](directory)
