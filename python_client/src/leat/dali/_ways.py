# SPDX-License-Identifier: Apache-2.0
"""The three ways in which a script runs a pipeline; one that mixes them loses batches, so DALI refuses it."""

from __future__ import annotations

from leat.dali.types import PipelineAPIType


class Ways:
    """Remembers which way a pipeline is run, so that two ways are not mixed. Use it from one thread at a time."""

    def __init__(self) -> None:
        self._used: PipelineAPIType | None = None
        self._checks = True

    def enable_check(self, enable: bool) -> None:
        """Sets whether a second way is refused from here on."""
        self._checks = bool(enable)

    def use(self, way: PipelineAPIType) -> None:
        """Raises RuntimeError if another way was used before."""
        if self._used is None:
            self._used = way
        if self._checks and self._used is not way:
            raise RuntimeError(
                f"Mixing pipeline API type. Currently used: {self._used}, but trying to use {way}: batches that one "
                "takes are missing in the other. Pipeline.enable_api_check(False) allows it"
            )
