# SPDX-License-Identifier: Apache-2.0
"""The parts of a job's description, as the library gives it in JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leat._library import dtypes

_DTYPES = {f"D_TYPE_{name.upper()}": name for name in dtypes.NAMES}


class Field(NamedTuple):
    """One array of a batch: its dtype and the shape of one row."""

    dtype: np.dtype
    shape: tuple[int, ...]


class Source(NamedTuple):
    """One source of a mixture (`leat.mix`)."""

    name: str
    samples: int  # of its dataset
    first: int  # the number of its first sample among the job's


class Pass(NamedTuple):
    """Where a source of a mixture, or a class, is: its pass over its data, from 0, and the done fraction of it."""

    number: int
    done: float


def get(message: dict[str, Any], name: str, default: Any) -> Any:
    """Returns a field of a message in JSON form, which may use either spelling and omits zeros."""
    head, *rest = name.split("_")
    return message.get(name, message.get(head + "".join(word.capitalize() for word in rest), default))


def samples_of(dataset: dict[str, Any]) -> int:
    """Returns how many samples a leat.v1.Dataset has."""
    return int(get(dataset.get("shards", {}), "num_samples", 0))


def sources_of(spec: dict[str, Any], datasets: list[dict[str, Any]]) -> tuple[Source, ...]:
    """Returns the sources of a mixture; empty: the job is none."""
    sources, first = [], 0
    for source, dataset in zip(spec.get("sources", ()), datasets):
        sources.append(Source(source["name"], samples_of(dataset), first))
        first += sources[-1].samples
    return tuple(sources)


def dealt_of(job: dict[str, Any], sources: tuple[Source, ...]) -> list[tuple[str, int]]:
    """Returns the names and samples of what a job's shares are of: sources, or else classes; empty: it has none."""
    if sources or not job["spec"].get("selection"):
        return [(source.name, source.samples) for source in sources]
    return [(get(group, "name", ""), int(get(group, "samples", 0))) for group in job["dataset"].get("groups", ())]


def pass_at(rows: int, samples: int) -> Pass:
    """Returns the pass after so many rows of so many samples."""
    return Pass(rows // samples, rows % samples / samples) if samples else Pass(0, 0.0)


def schema_of(job: dict[str, Any]) -> dict[str, Field]:
    """Returns the arrays of a batch by name."""
    return {
        field["name"]: Field(dtypes.of(_DTYPES[field["dtype"]]), tuple(int(size) for size in field.get("shape", ())))
        for field in job["schema"]
    }
