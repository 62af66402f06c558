# SPDX-License-Identifier: Apache-2.0
"""The service that `leat.dali` and `leat.rocal` use: their scripts name none."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import Any

from leat._client import Service, connect
from leat._job import Job
from leat._graph import Pipeline

_lock = threading.Lock()
_service: Service | None = None
_pid = 0


def service() -> Service:
    """This process's connection: to LEAT_COORDINATOR, or to a private service that ends with the process."""
    global _service, _pid
    with _lock:
        if _service is None or _pid != os.getpid():
            _service, _pid = connect(), os.getpid()
        return _service


def job(pipeline: Pipeline, **spec: Any) -> Job:
    """The job of this pipeline and these arguments of `Service.job`: one for all processes that ask for it.

    Its name is a hash of both, so that whoever runs the same script attaches to the same job.
    """
    text = json.dumps([pipeline._graph, spec], sort_keys=True)
    return service().job("shared-" + hashlib.sha256(text.encode()).hexdigest()[:32], pipeline, **spec)
