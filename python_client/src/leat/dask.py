# SPDX-License-Identifier: Apache-2.0
"""A worker of Leat alongside each worker of a Dask cluster.

    client = distributed.Client("scheduler:8786")
    client.register_plugin(leat.dask.Workers("cpu", coordinator="head:7411", threads=2, flags=["--allow=/data"]))

Dask decides how many there are: each worker that joins gets one, and it ends with that worker. Workers on PBS, LSF and
SGE are reached through dask-jobqueue. `client.unregister_worker_plugin("leat-cpu")` ends them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import distributed
except ModuleNotFoundError as _error:
    if _error.name != "distributed":
        raise
    raise ImportError("leat.dask needs Dask 2023.9 or later: pip install 'distributed>=2023.9'") from _error

from leat._engines import daemon as _daemon
from leat._graphs.options import whole

__all__ = ["Workers"]


class Workers(distributed.WorkerPlugin):
    """The plugin that starts the workers of Leat.

    Args:
        pool: the pool's name, of 1 to 63 letters, digits, '.', '_' and '-'.
        threads: decode threads of each worker.
        coordinator: "HOST:PORT", as the nodes reach it; None: LEAT_COORDINATOR.
        access_token_file, tls_ca, tls_cert, tls_key: files on the nodes; {host} in a name stands for the node's host
            name. None: LEAT_ACCESS_TOKEN_FILE, LEAT_TLS_CA, ….
        flags: further flags of `leat-worker`. Dask's dashboard may show them.
        grace: seconds that a worker which is ended may take to finish its requests.

    Raises:
        leat.InvalidArgument: a value is wrong; the text names it.
    """

    def __init__(
        self,
        pool: str = "dask",
        *,
        threads: int = 1,
        coordinator: str | None = None,
        access_token_file: str | None = None,
        tls_ca: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        flags: Sequence[str] = (),
        grace: float = 30.0,
    ) -> None:
        files = {"access_token_file": access_token_file, "tls_ca": tls_ca, "tls_cert": tls_cert, "tls_key": tls_key}
        self.name: str = f"leat-{pool}"
        self._grace = float(grace)
        self._config = _daemon.worker_config(pool, whole("threads", threads, 1, 4096), flags, coordinator, **files)

    def setup(self, worker: Any) -> None:
        """Starts the worker of Leat; Dask calls it on each of its workers."""
        host = worker.address.rpartition("://")[2].rpartition(":")[0]
        name = f"{self._config['pool']}.{worker.id.rpartition('-')[2]}"
        self._daemon = _daemon.Daemon(_daemon.worker_flags(self._config, name, host))

    def teardown(self, worker: Any) -> None:
        """Lets the worker of Leat drain."""
        self._daemon.drain(self._grace)
