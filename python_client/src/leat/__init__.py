# SPDX-License-Identifier: Apache-2.0
"""Leat: a data service that delivers batches to training hosts.

    import leat
    from leat import fn

    @leat.pipeline
    def train():
        encoded, label = fn.readers.image_folder("/data/train")
        image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
        return {"image": image, "label": label}

    with leat.connect() as service:
        job = service.job("train", train, batch=64, seed=7)
        for batch in job.batches(epochs=1):
            ...  # {"image": uint8 (64, 224, 224, 3), "label": int32 (64,)}

Without an address a private service starts in the background and stops with
the script. `leat.jax` and `leat.torch` give the batches to those frameworks;
this module needs NumPy only.
"""

_OF_LEAT_DATA = True  # this is not the other project's package `leat`: _library/alone.py

from leat import errors
from leat._graphs.graph import Node, Pipeline, pipeline
from leat._graphs.mixture import Mixture, mix
from leat._iterators.batches import Batches
from leat._iterators.external import external_source
from leat._library import native as _native
from leat._service.client import Service, connect
from leat._service.facts import Field, Pass, Source
from leat._service.job import Job
from leat._service.why import Draw, Record, Row
from leat.errors import *  # noqa: F403

from leat import fn  # isort: skip (it asks the library for the operators)

# Help, tracebacks and pickles name what users import.
for _public in (
    *(Batches, Draw, Field, Job, Mixture, Node, Pass, Pipeline, Record, Row, Service, Source),
    *(connect, external_source, mix, pipeline),
):
    _public.__module__ = __name__

__version__: str = _native.quick.leat_version().decode()

__all__ = [
    "Batches",
    "Draw",
    "Field",
    "Job",
    "Mixture",
    "Node",
    "Pass",
    "Pipeline",
    "Record",
    "Row",
    "Service",
    "Source",
    "connect",
    "external_source",
    "fn",
    "mix",
    "pipeline",
    *errors.__all__,
]
