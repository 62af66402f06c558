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

A batch is a dict of arrays of the shape (batch, ...); `Job.schema` has each
array's dtype and the shape of a row. It is a pure function of the dataset,
the pipeline, the seed, the epoch and the step. `Batches.position` returns the
place in the training, as bytes for a checkpoint.

Every error is a `leat.Error`, and also the built-in exception that fits:
`except ValueError` catches a wrong argument, `except TimeoutError` a call that
took too long. The text names the file, the line or the option.

    help(leat.connect)       # the service: an address, credentials, a private one
    help(leat.Service.job)   # seed, order, last batch, bad samples
    help(leat.Job.batches)   # the iterator
    help(leat.fn.decode)     # an operator; dir(leat.fn) lists all

docs/start/index.md begins with a first batch in five minutes.
"""

_OF_LEAT_DATA = True  # this is not the other project's package `leat`: _library/alone.py

from leat import errors
from leat._graphs.graph import Node
from leat._graphs.mixture import Mixture, mix
from leat._graphs.pipeline import Pipeline, pipeline
from leat._iterators.batches import Batches
from leat._iterators.external import external_source
from leat._library import native as _native
from leat._service.client import Service, connect
from leat._service.facts import Field, Pass, Source
from leat._service.job import Job
from leat._service.why import Document, Draw, Record, Row
from leat.errors import *  # noqa: F403

from leat import fn  # isort: skip (it asks the library for the operators)

# Help, tracebacks and pickles name what users import.
for _public in (
    *(Batches, Document, Draw, Field, Job, Mixture, Node, Pass, Pipeline, Record, Row, Service, Source),
    *(connect, external_source, mix, pipeline),
):
    _public.__module__ = __name__

__version__: str = _native.quick.leat_version().decode()

__all__ = [
    "Batches",
    "Document",
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
