# SPDX-License-Identifier: Apache-2.0
"""The service that `leat.dali` and `leat.rocal` use, since their scripts name none."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import warnings
from typing import Any

from leat._graphs.pipeline import Pipeline
from leat._service.client import Service, connect
from leat._service.job import Job
from leat.errors import DatasetChanged, one_line

_lock = threading.Lock()
_service: Service | None = None
_pid = 0


def service() -> Service:
    """Returns this process's connection: to LEAT_COORDINATOR, or to a private service that ends with the process."""
    global _service, _pid
    with _lock:
        if _service is None or _pid != os.getpid():
            _service, _pid = connect(), os.getpid()
        return _service


def job(pipeline: Pipeline, **spec: Any) -> Job:
    """Returns the job of this pipeline and these arguments of `Service.job`, the same for all processes that call it.

    Its name is a hash of both, so that every process of the same script attaches to the same job. If the dataset of
    that job has changed and no consumer reads it any more, the next number is appended to the name. So all processes of
    a new run use the same job, made from the current data, and those of a run in progress keep theirs.
    """
    text = json.dumps([pipeline._graph, spec], sort_keys=True)
    base = "shared-" + hashlib.sha256(text.encode()).hexdigest()[:32]
    for number in itertools.count(1):
        name = base if number == 1 else f"{base}-{number}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DatasetChanged)
            found = service().job(name, pipeline, **spec)
        if not found.dataset_changed:
            return found
        if found._consumers:
            warnings.warn(
                f"this run shares the listing of its dataset with processes that read it, and the dataset has changed"
                f" since ({one_line(found.dataset_changed)})",
                DatasetChanged,
                stacklevel=3,
            )
            return found
    raise AssertionError("unreachable")
