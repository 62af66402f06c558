# SPDX-License-Identifier: Apache-2.0
"""OpenStack Swift with its S3 API (Debian's packages), in one folder, without root's services."""

import datetime
import hashlib
import hmac
import http.client
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.parse

from ports import free_port, free_ports

KEY_ID, SECRET, REGION = "test:tester", "testing", "eu-test-1"
PROGRAMS = ("swift-proxy-server", "swift-account-server", "swift-container-server", "swift-object-server",
            "swift-ring-builder", "memcached")
START_S = 120
# On a busy machine a proxy must not give up on its only store, or avoid it, as it would by default after half a second
# and ten errors.
_PATIENCE = "conn_timeout = 30\nnode_timeout = 60\nerror_suppression_limit = 1000000"
_STORE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {etc}
devices = {devices}
mount_check = false
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
"""
_PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {etc}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
{patience}
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:s3api]
use = egg:swift#s3api
location = {region}
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
"""


def missing():
    """Returns what keeps Swift from running here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return (f"not installed: {', '.join(absent)} "
                "(Debian: swift-proxy swift-account swift-container swift-object memcached)")
    return None if pathlib.Path("/etc/swift/swift.conf").exists() else "no /etc/swift/swift.conf"


class Swift:
    """Four servers and memcached below `folder`: `start` runs them, and `close` ends them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.etc = self.folder / "etc"
        self.etc.mkdir(parents=True)
        (self.folder / "srv" / "d1").mkdir(parents=True)
        self.user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.processes, self.ports = {}, {}

    def start(self):
        self.port, memcached = free_ports(2)
        self.ports["memcached"] = memcached
        self._start("memcached", ["memcached", "-l", "127.0.0.1", "-p", str(memcached), "-m", "16", "-u", self.user])
        for name in ("account", "container", "object"):
            self._store(name)
        (self.etc / "proxy.conf").write_text(_PROXY.format(
            port=self.port, user=self.user, etc=self.etc, memcached=memcached, region=REGION, secret=SECRET,
            patience=_PATIENCE))
        for name, port in self.ports.items():
            self._await(name, lambda port=port: socket.create_connection(("127.0.0.1", port), timeout=5).close())
        self.start_proxy()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def _store(self, name):
        port = self.ports[name] = free_port()
        builder = str(self.etc / f"{name}.builder")
        for step in (["create", "4", "1", "1"],
                     ["add", "--region", "1", "--zone", "1", "--ip", "127.0.0.1", "--port", str(port), "--device", "d1",
                      "--weight", "1"], ["rebalance"]):
            subprocess.run(["swift-ring-builder", builder, *step], capture_output=True, check=step[0] != "rebalance")
        conf = self.etc / f"{name}.conf"
        conf.write_text(_STORE.format(name=name, port=port, user=self.user, etc=self.etc, devices=self.folder / "srv"))
        self._start(name, [f"swift-{name}-server", str(conf)])

    def _await(self, name, reach):
        """Returns once `reach` raises no OSError."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                return reach()
            except OSError as error:
                if time.monotonic() > deadline or self.processes[name].poll() is not None:
                    said = (self.folder / f"{name}.log").read_text()[-2000:]
                    raise RuntimeError(f"{name} does not serve: {error}; its log ends: {said}") from None
            time.sleep(0.1)

    def start_proxy(self):
        self._start("proxy", ["swift-proxy-server", str(self.etc / "proxy.conf")])
        self._await("proxy", self._healthy)

    def _healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthcheck")
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            raise ConnectionError(f"/healthcheck: {error!r}") from None
        finally:
            connection.close()
        if status != 200:
            raise ConnectionError(f"/healthcheck: {status}")

    def kill_proxy(self):
        process = self.processes.pop("proxy")
        process.kill()
        process.wait()

    def close(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def put(self, path, body=b""):
        """Does a PUT, signed by this second implementation of signature version 4."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        host, scope = f"127.0.0.1:{self.port}", f"{date[:8]}/{REGION}/s3/aws4_request"
        escaped = urllib.parse.quote(path, safe="/-_.~")
        digest = hashlib.sha256(body).hexdigest()
        names = "host;x-amz-content-sha256;x-amz-date"
        canonical = (f"PUT\n{escaped}\n\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{date}\n\n{names}\n"
                     f"{digest}")
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for part in (*scope.split("/"), text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("PUT", escaped, body, {
            "x-amz-date": date, "x-amz-content-sha256": digest,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={names}, "
                             f"Signature={key.hex()}"})
        response = connection.getresponse()
        said = response.read()
        connection.close()
        if response.status != 200:
            raise RuntimeError(f"PUT {path}: {response.status} {said[:500]}")
