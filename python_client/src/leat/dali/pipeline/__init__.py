# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.pipeline`: the module that scripts for DALI import `Pipeline` and `pipeline_def` from."""

from leat.dali._conditionals import do_not_convert
from leat.dali._definition import pipeline_def
from leat.dali._node import DataNode
from leat.dali._pipeline import Pipeline

__all__ = ["DataNode", "Pipeline", "do_not_convert", "pipeline_def"]
