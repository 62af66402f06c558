# SPDX-License-Identifier: Apache-2.0
"""Leat's workers as actors of a Ray cluster: as many as the trainings need.

    ray.init("auto")
    pool = leat.ray.Pool("cpu", coordinator="head:7411", max=16, cpus=4, flags=["--allow=/data"])
    pool.up()       # detached: it outlives this process
    ...
    pool.down()

Ray places the actors, and its autoscaler adds nodes for those that find no room. Leat decides how many there are, and
which ones end (`leat get pools`). The package must be installed on the nodes. docs/run/ray.md has the details.
"""

from __future__ import annotations

import concurrent.futures
import json
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

try:
    import ray
except ModuleNotFoundError as _error:
    if _error.name != "ray":
        raise
    raise ImportError("leat.ray needs Ray 2.9 or later: pip install 'ray>=2.9'") from _error

from leat._engines import daemon as _daemon
from leat._graphs.options import whole
from leat.errors import AlreadyExists, FailedPrecondition, InvalidArgument, Unavailable

__all__ = ["Pool"]

_NAMESPACE = "leat"
_MIN_PAUSE_S = 1.0
_MAX_PAUSE_S = 30.0
# Workers that ended by themselves longer ago than this are no reason to start fewer.
_STEADY_S = 60.0
_COMMAND_S = 60.0


class Pool:
    """A pool of workers in the Ray cluster that this process is connected to.

    Args:
        name: the pool's name, of 1 to 63 letters, digits, '.', '_' and '-'.
        min, max: bounds for the number of workers; `leat pool set` changes them later.
        cpus, gpus: the resources of each worker, as Ray counts them. A worker has as many decode threads as `cpus`.
        resources: further Ray resources that a worker takes, {"leat": 1}, so that they run on some nodes only.
        coordinator: "HOST:PORT", as the nodes reach it; None: LEAT_COORDINATOR.
        access_token_file, tls_ca, tls_cert, tls_key: files on the nodes; {host} in a name stands for the node's host
            name. None: LEAT_ACCESS_TOKEN_FILE, LEAT_TLS_CA, ….
        flags: further flags of `leat-worker`, ["--cache=8GiB"]. Ray displays them publicly.
        grace: seconds that a worker which is ended may take to finish its requests.

    Raises:
        leat.InvalidArgument: a value is wrong; the text names it.
    """

    def __init__(
        self,
        name: str = "ray",
        *,
        max: int,
        min: int = 0,
        cpus: int = 1,
        gpus: int = 0,
        resources: Mapping[str, float] | None = None,
        coordinator: str | None = None,
        access_token_file: str | None = None,
        tls_ca: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        flags: Sequence[str] = (),
        grace: float = 120.0,
    ) -> None:
        self.name = name
        self._bounds = (whole("min", min, 0, 10**6), whole("max", max, 1, 10**6))
        if self._bounds[0] > self._bounds[1]:
            raise InvalidArgument(f"min = {min}, max = {max}; expected min at most max")
        files = {"access_token_file": access_token_file, "tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
        self._config = {
            **_daemon.worker_config(name, whole("cpus", cpus, 1, 4096), flags, coordinator, **files),
            "gpus": whole("gpus", gpus, 0, 64),
            "resources": dict(resources or {}),
            "grace": float(grace),
        }
        if gpus:
            self._config["flags"] = ["--devices", "all", *flags]

    def __repr__(self) -> str:
        return f"leat.ray.Pool({self.name!r}, min={self._bounds[0]}, max={self._bounds[1]})"

    def __enter__(self) -> Pool:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """Sets the bounds, and starts the actor that follows the pool, unless it is there already.

        Raises:
            leat.FailedPrecondition: this process is not connected to a Ray cluster.
            leat.AlreadyExists: the pool is up, with other arguments.
            leat.Unavailable: the coordinator does not answer, or refuses; the text has its message.
        """
        _need_ray()
        self._set(*self._bounds)
        actor = _Supervisor.options(
            name=_supervisor_name(self.name),
            namespace=_NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=4,
        ).remote(self._config)
        running = ray.get(actor.config.remote())
        if running != self._config:
            different = sorted(key for key in self._config if running.get(key) != self._config[key])
            raise AlreadyExists(f"{self!r} is up with other {', '.join(different)}; expected the same, or down() first")

    def status(self) -> dict[str, Any]:
        """Returns {"desired": 3, "reason": "…", "workers": {NAME: "waits", "runs" or "drains"}}.

            running = [name for name, state in pool.status()["workers"].items() if state == "runs"]

        A worker waits until the cluster has room for it.
        """
        return ray.get(_supervisor(self.name).status.remote())

    def down(self) -> None:
        """Removes the bounds, lets all workers drain, and ends the actor. Does nothing if the pool is not up."""
        _need_ray()
        try:
            actor = ray.get_actor(_supervisor_name(self.name), namespace=_NAMESPACE)
        except ValueError:
            return
        try:
            self._set(0, 0)
        finally:
            try:
                ray.get(actor.stop.remote())
            finally:
                ray.kill(actor)

    def _set(self, least: int, most: int) -> None:
        command = ["pool", "set", self.name, "--min", str(least), "--max", str(most)]
        done = subprocess.run(_command(self._config, command), capture_output=True, text=True, timeout=_COMMAND_S)
        if done.returncode != 0:
            raise Unavailable(f"leat {' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-500:]}")


def _need_ray() -> None:
    if not ray.is_initialized():
        raise FailedPrecondition("this process is not connected to a Ray cluster; expected ray.init() before")


def _supervisor_name(pool: str) -> str:
    return f"leat-pool-{pool}"


def _supervisor(pool: str) -> Any:
    _need_ray()
    try:
        return ray.get_actor(_supervisor_name(pool), namespace=_NAMESPACE)
    except ValueError:
        raise FailedPrecondition(f"pool {pool!r} is not up in this Ray cluster") from None


def _command(config: Mapping[str, Any], command: Sequence[str]) -> list[str]:
    return [_daemon.program("leat"), *_daemon.service_flags(config["service"]), *command]


@ray.remote
class _Worker:
    """One `leat-worker`, which ends with this actor."""

    def __init__(self, config: dict[str, Any], name: str) -> None:
        self._grace = config["grace"]
        self._daemon = _daemon.Daemon(_daemon.worker_flags(config, name, ray.util.get_node_ip_address()))

    def pid(self) -> int:
        return self._daemon.pid

    def wait(self) -> int:
        return self._daemon.wait()

    def drain(self) -> int:
        return self._daemon.drain(self._grace)


class _Member:
    """A worker of the pool, as the supervisor sees it."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.state = "waits"  # for room in the cluster; then "runs", "drains"


class _Pace:
    """Decides how many workers may be started: all that are missing, until some end by themselves; from then on one at
    a time, after pauses that grow while workers keep ending. Not thread-safe."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._failed_at = self._next_at = float("-inf")
        self._tried = False  # whether one was started since the last pause was chosen

    def failed(self, now: float) -> None:
        """Reports that a worker has ended without being told to."""
        if now - self._failed_at >= _STEADY_S:
            self._pause_s = 0.0
        self._failed_at = now
        if self._tried or not self._pause_s:  # workers that end together count once
            self._tried = False
            self._pause_s = min(_MAX_PAUSE_S, max(_MIN_PAUSE_S, 2 * self._pause_s))
            self._next_at = now + self._pause_s

    def take(self, missing: int, now: float) -> int:
        """Returns how many of the missing workers to start now."""
        if now - self._failed_at >= _STEADY_S:
            return missing
        if missing < 1 or now < self._next_at:
            return 0
        self._next_at, self._tried = now + self._pause_s, True
        return 1

    def wait_s(self, now: float) -> float:
        """Returns how long until `take` may give more than it has given."""
        return max(0.0, min(self._next_at, self._failed_at + _STEADY_S) - now)


@ray.remote
class _Supervisor:
    """Makes the pool as the coordinator wants it.

    It holds no state that cannot be obtained again: the coordinator sends the whole wish with each change, and the
    workers are named actors, which are found after a restart.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._prefix = f"leat-worker-{config['pool']}."
        self._mutex = threading.Lock()
        self._wish: dict[str, Any] = {}
        self._members: dict[str, _Member] = {}
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._pace = _Pace()
        self._missing = 0  # workers to start later
        self._watch: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        for each in ray.util.list_named_actors(all_namespaces=True):
            if each["namespace"] == _NAMESPACE and each["name"].startswith(self._prefix):
                self._attach(each["name"][len("leat-worker-") :], ray.get_actor(each["name"], namespace=_NAMESPACE))
        threading.Thread(target=self._follow, daemon=True).start()
        threading.Thread(target=self._work, daemon=True).start()

    def config(self) -> dict[str, Any]:
        return self._config

    def status(self) -> dict[str, Any]:
        with self._mutex:
            return {
                "desired": self._wish.get("desired"),
                "reason": self._wish.get("reason", ""),
                "workers": {name: each.state for name, each in self._members.items()},
            }

    def stop(self) -> None:
        """Ends all workers, and returns when they have ended."""
        with self._mutex:
            self._stopping.set()
            members, watch = dict(self._members), self._watch
        self._news.put(("stop", None))
        if watch is not None:  # first, since it would outlive this process, which may be killed from here on
            watch.terminate()
        running = [
            each.actor.drain.remote() if each.state == "runs" else each.actor.wait.remote()  # a second signal ends it
            for each in members.values()
            if each.state != "waits"
        ]
        if running:
            ray.wait(running, num_returns=len(running), timeout=self._config["grace"] + 10)
        for each in members.values():
            ray.kill(each.actor)

    def _follow(self) -> None:
        """Applies what the coordinator wants, as reported by `leat pool watch`."""
        pause = _MIN_PAUSE_S
        while not self._stopping.is_set():
            command = _command(self._config, ["pool", "watch", self._config["pool"], "-o", "jsonl"])
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
                assert watch.stdout is not None
                with self._mutex:
                    self._watch = watch
                    if self._stopping.is_set():
                        watch.terminate()
                for line in watch.stdout:
                    pause = _MIN_PAUSE_S
                    self._news.put(("wish", json.loads(line)))
            self._stopping.wait(pause)
            pause = min(_MAX_PAUSE_S, pause * 2)

    def _work(self) -> None:
        while True:
            try:
                kind, what = self._news.get(timeout=self._pace.wait_s(time.monotonic()) if self._missing else None)
            except queue.Empty:
                kind, what = "due", None
            with self._mutex:
                if self._stopping.is_set():
                    return
                if kind == "wish":
                    self._wish = what
                elif kind == "runs":
                    if what in self._members and self._members[what].state == "waits":
                        self._members[what].state = "runs"
                elif kind == "ended" and what in self._members:
                    member = self._members.pop(what)
                    ray.kill(member.actor)
                    if member.state != "drains":
                        self._pace.failed(time.monotonic())
                self._reconcile()

    def _reconcile(self) -> None:
        """REQUIRES: _mutex is held."""
        self._missing = 0
        if not self._wish.get("max"):
            return
        for name in self._wish.get("drain", ()):
            member = self._members.get(name)
            if member is not None and member.state == "runs":
                member.state = "drains"
                self._tell("ended", name, member.actor.drain.remote())
        staying = [name for name, each in self._members.items() if each.state != "drains"]
        desired = int(self._wish.get("desired", 0))
        # The coordinator says which of the running workers end. Workers that still wait for room may simply be killed.
        waiting = [name for name in staying if self._members[name].state == "waits"]
        for name in reversed(waiting[-max(0, len(staying) - desired) :] if len(staying) > desired else []):
            ray.kill(self._members.pop(name).actor)
        missing = max(0, desired - len(staying))
        now = self._pace.take(missing, time.monotonic())
        for _ in range(now):
            self._start()
        self._missing = missing - now

    def _start(self) -> None:
        name = f"{self._config['pool']}.{uuid.uuid4().hex[:8]}"
        actor = _Worker.options(
            name=f"leat-worker-{name}",
            namespace=_NAMESPACE,
            lifetime="detached",
            num_cpus=self._config["threads"],
            num_gpus=self._config["gpus"],
            resources=self._config["resources"],
            scheduling_strategy="SPREAD",
            max_concurrency=4,
        ).remote(self._config, name)
        self._attach(name, actor)

    def _attach(self, name: str, actor: Any) -> None:
        self._members[name] = _Member(actor)
        self._tell("runs", name, actor.pid.remote())
        self._tell("ended", name, actor.wait.remote())

    def _tell(self, kind: str, name: str, result: Any) -> None:
        """Queues `kind` for the worker when the call has returned, or "ended" if the call fails."""

        def done(future: concurrent.futures.Future[Any]) -> None:
            self._news.put((kind if future.exception() is None else "ended", name))

        result.future().add_done_callback(done)
