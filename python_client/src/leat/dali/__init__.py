# SPDX-License-Identifier: Apache-2.0
"""DALI's Python interface over Leat: in a script, write `leat.dali` for `nvidia.dali`.

    from leat.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=64)
    def photos():
        encoded, labels = fn.readers.file(file_root="/photos", random_shuffle=True, name="reader")
        return fn.random_resized_crop(fn.decoders.image(encoded), size=224), labels

    images, labels = photos().run()

Workers of the service that LEAT_COORDINATOR names, or of a private one, compute the graph.
docs/guide/move-from-dali.md says what is supported, and how it differs.
"""

from leat.dali import _absent, data_node, fn, math, ops, pipeline, tensors, tfrecord, types
from leat.dali._definition import pipeline_def
from leat.dali._indexing import NewAxis
from leat.dali._node import DataNode
from leat.dali._pipeline import Pipeline
from leat.dali._tensors import TensorList

_absent.install()
newaxis: NewAxis = NewAxis()

__all__ = [
    "DataNode",
    "Pipeline",
    "TensorList",
    "data_node",
    "fn",
    "math",
    "newaxis",
    "ops",
    "pipeline",
    "pipeline_def",
    "tensors",
    "tfrecord",
    "types",
]
