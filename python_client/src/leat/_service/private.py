# SPDX-License-Identifier: Apache-2.0
"""The private service of `connect`: its options, and the log lines about it."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from leat._graphs.options import whole
from leat.errors import InvalidArgument

Size = int | str
Devices = str | int | Sequence[int] | None

logger = logging.getLogger("leat")

_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9,
          "TB": 10**12}
_MAX_BYTES = 2**60
_MIN_DISK_CACHE = 2**26
_MAX_DEVICES = 64


def size(name: str, value: Any, least: int = 1) -> int:
    """Returns a number of bytes from 8589934592 or "8GiB"."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) ?([A-Za-z]*)", value)
        if match is None or match[2] not in _UNITS:
            raise InvalidArgument(f"{name} = {value!r}; expected bytes, or a text such as '8GiB'")
        value = int(float(match[1]) * _UNITS[match[2]])
    return whole(name, value, least, _MAX_BYTES)


def devices(value: Devices) -> str:
    """Returns the value for `leat-worker --devices`; None: LEAT_PRIVATE_DEVICES, else none."""
    name = "devices"
    if value is None:
        name, value = "LEAT_PRIVATE_DEVICES", os.environ.get("LEAT_PRIVATE_DEVICES") or "none"
        if re.fullmatch(r"\d{1,3}(,\d{1,3})*", value):
            value = [int(each) for each in value.split(",")]
    if isinstance(value, str):
        if value in ("all", "none"):
            return value
    elif isinstance(value, Sequence):
        numbers = [whole(name, each, 0, _MAX_DEVICES - 1) for each in value]
        if len(set(numbers)) == len(numbers):
            return ",".join(map(str, numbers)) or "none"
    else:
        return str(whole(name, value, 0, _MAX_DEVICES - 1))
    raise InvalidArgument(f"{name} = {value!r}; expected 'all', 'none', or different GPUs as [0, 1]")


def options(
    workers: int | None,
    threads: int | None,
    cache: Size | None,
    disk_cache: tuple[str | os.PathLike[str], Size] | None,
    which: Devices,
) -> dict[str, Any]:
    """Returns the library's options; those that are None are left out."""
    result: dict[str, Any] = {"embedded_devices": devices(which)}
    if workers is not None:
        result["embedded_workers"] = whole("workers", workers, 1, 64)
    if threads is not None:
        result["embedded_threads"] = whole("threads", threads, 1, 1024)
    if cache is not None:
        # The library takes 0 for its default; a cache of one byte keeps nothing.
        result["embedded_cache_bytes"] = size("cache", cache, 0) or 1
    if disk_cache is not None:
        if not isinstance(disk_cache, tuple) or len(disk_cache) != 2:
            raise InvalidArgument(f"disk_cache = {disk_cache!r}; expected a folder and its bound, ('/data', '64GiB')")
        bound = size("disk_cache", disk_cache[1])
        if bound < _MIN_DISK_CACHE * (workers or 1):
            raise InvalidArgument(f"disk_cache = {disk_cache!r}; expected at least 64MiB for each worker")
        result["embedded_disk_cache"] = os.path.abspath(os.fspath(disk_cache[0]))
        result["embedded_disk_cache_bytes"] = bound
    return result


def _number(environment: Mapping[str, str], *names: str) -> int:
    """Returns the first variable that is set; 1: none is, or it is not a number."""
    for name in names:
        if name in environment:
            return int(environment[name]) if environment[name].isdecimal() else 1
    return 1


def several_machines(environment: Mapping[str, str]) -> str | None:
    """Returns why this process seems to be part of a run on several machines; None: it does not."""
    if "TORCHELASTIC_RUN_ID" in environment:
        world, local = _number(environment, "WORLD_SIZE"), _number(environment, "LOCAL_WORLD_SIZE")
        if world > local:
            return f"torchrun started {world} processes, only {local} of them on this machine"
    if "SLURM_PROCID" in environment:
        tasks = _number(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
        nodes = _number(environment, "SLURM_STEP_NUM_NODES", "SLURM_NNODES")
        if tasks > 1 and nodes > 1:
            return f"Slurm started {tasks} processes on {nodes} machines"
    # Only if jax.distributed.initialize was called: jax itself is not asked, since that would start its devices.
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    processes, address = getattr(state, "num_processes", None), getattr(state, "coordinator_address", None)
    if isinstance(processes, int) and processes > 1 and isinstance(address, str):
        host = address.rpartition(":")[0].strip("[]")
        if host != "localhost" and host != "::1" and not host.startswith("127."):
            return f"jax.distributed has {processes} processes, whose coordinator is at {address}"
    return None


def tell(info: Any) -> None:
    """Logs which service was started or joined, and why. `info`: the library's description of it."""
    if not isinstance(info, dict) or "pid" not in info:
        return
    verb = "started" if info.get("started") else f"joined, as one of {info.get('lessees')} processes,"
    logger.info(
        "%s the private service of process %s (%s), since neither an address nor LEAT_COORDINATOR is given",
        verb, info["pid"], info.get("options"),
    )
    why = several_machines(os.environ)
    if why is not None:
        logger.warning(
            "a private service serves the processes of one machine, but %s: each machine makes a global batch of its "
            "own; start one leat-coordinator, with leat-worker on the machines, and set LEAT_COORDINATOR", why,
        )
