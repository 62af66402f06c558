# SPDX-License-Identifier: Apache-2.0
"""A `leat-worker` as a child of an engine's process, which it never outlives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from leat._library import native
from leat._service import credentials
from leat.errors import InvalidArgument

# A worker that ends sooner has failed at its start; the next one is started only after this time.
SHORTEST_LIFE_S = 20.0
# Arguments of a pool that name files, and the flags of Leat's programs for them.
_FILES = {
    "access_token_file": "--access-token-file",
    "tls_ca": "--tls-ca",
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
}


def service(coordinator: str | None, **files: str | None) -> dict[str, str]:
    """Returns the service's address and credential files; LEAT_COORDINATOR and its like supply what is not given.

    The values go to programs on other nodes, and engines display them publicly. So the access token is not among them,
    only the name of its file.
    """
    found = {}
    address = coordinator or credentials.variable("LEAT_COORDINATOR")
    if not address:
        raise InvalidArgument("coordinator is missing; expected HOST:PORT, or LEAT_COORDINATOR")
    found["coordinator"] = address
    for name in _FILES:
        value = files.get(name) or credentials.variable(f"LEAT_{name.upper()}")
        if value:
            found[name] = value
    if "access_token_file" not in found and credentials.variable("LEAT_ACCESS_TOKEN"):
        raise InvalidArgument(
            "LEAT_ACCESS_TOKEN is set, and the engine would show it to everybody; expected access_token_file, a file "
            "that every node can read"
        )
    return found


def worker_config(
    pool: str, threads: int, flags: Sequence[str], coordinator: str | None, **files: str | None
) -> dict[str, Any]:
    """Returns the `config` of `worker_flags`, from an engine's arguments. Raises InvalidArgument."""
    if isinstance(flags, str):
        raise InvalidArgument(f"flags = {flags!r:.80}; expected a list of texts")
    return {"pool": pool, "service": service(coordinator, **files), "threads": threads, "flags": list(flags)}


def service_flags(found: dict[str, str]) -> list[str]:
    """Returns the flags of Leat's programs for `found`; {host} in a file's name becomes this host's name."""
    host = socket.gethostname()
    flags = ["--coordinator", found["coordinator"]]
    for name, flag in _FILES.items():
        if name in found:
            flags += [flag, found[name].replace("{host}", host)]
    return flags


def program(name: str) -> str:
    """Returns the path of one of this package's programs on this machine."""
    return str(native._find() / name)


class Daemon:
    """A running `leat-worker`. When this process ends, however it ends, the worker ends too."""

    def __init__(self, flags: Sequence[str]) -> None:
        self._lifeline: int | None
        read, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [program("leat-worker"), *flags, "--lifeline-fd", str(read)], pass_fds=(read,), start_new_session=True
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(read)
        self._started = time.monotonic()

    @property
    def pid(self) -> int:
        """The process id of the worker."""
        return self._process.pid

    def wait(self) -> int:
        """Waits for its end and returns its exit status; after a failure, no sooner than SHORTEST_LIFE_S after its
        start."""
        status = self._process.wait()
        rest = self._started + SHORTEST_LIFE_S - time.monotonic()
        if status != 0 and rest > 0:
            time.sleep(rest)
        return status

    def drain(self, grace_s: float) -> int:
        """Lets it finish its requests, kills it after `grace_s` seconds, and returns its exit status."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            lifeline, self._lifeline = self._lifeline, None
            if lifeline is not None:
                os.close(lifeline)


def worker_flags(config: dict[str, Any], name: str, host: str) -> list[str]:
    """Returns the flags of a worker of a pool.

    Args:
        config: what `worker_config` returned.
        name: the worker's name, unique.
        host: where clients reach this node.
    """
    return [
        *service_flags(config["service"]),
        *("--pool", config["pool"], "--name", name, "--listen", f"{host}:0", "--threads", str(config["threads"])),
        *config["flags"],
    ]
