# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.pipeline.experimental`: conditionals were here before they became an argument of `pipeline_def`."""

from leat.dali._definition import pipeline_def

__all__ = ["pipeline_def"]
