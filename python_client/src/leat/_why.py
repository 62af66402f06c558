# SPDX-License-Identifier: Apache-2.0
"""What stood in a row, and why: where a sample is stored, and what was drawn for it."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Record:
    """Where a sample is stored, as the dataset's index says.

    Attributes:
        sample: its number, 0 … num_samples-1.
        root: the folder that the reader was given, or "s3://bucket".
        file: below the root.
        key: the record's own name in its file (COCO: the image's id); None: the index has none.
        offset: where its bytes begin in the file; None: they are the whole file, or the index does not say.
        size: how many bytes they are; None: the index does not say.
        index: which record of its file it is, from 0; None: the only one.
        shard: the shard that it belongs to.
        index_in_shard: its place there, from 0.
    """

    sample: int
    root: str
    file: str
    key: str | None
    offset: int | None
    size: int | None
    index: int | None
    shard: int
    index_in_shard: int

    @property
    def path(self) -> str:
        """Root and file together."""
        return f"{self.root.rstrip('/')}/{self.file}"


@dataclasses.dataclass(frozen=True)
class Draw:
    """What a random operator drew for a row.

    Attributes:
        node: of the job's pipeline, as `leat describe job` numbers them.
        op: the operator.
        name: the output that it is, or else the argument that it is given to, as "flip.horizontal"; else "".
        value: a number (a flag is 0.0 or 1.0); of a window (y, x, height, width) in pixels; names of operations as a
            text; None: it is not known.
        unknown: why there is no value, else "".
    """

    node: int
    op: str
    name: str
    value: float | tuple[float, ...] | str | None
    unknown: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """What stands in a row of a step.

    Attributes:
        row: of the batch.
        record: of its sample; None: the row holds none (last_batch="partial").
        padding: the row only fills the step (last_batch="mask").
        partner_row: the row that it is mixed with (mixup, cutmix); None: the pipeline mixes none.
        partner: the record there.
        draws: of the row, in the order of the pipeline's nodes.
    """

    row: int
    record: Record | None
    padding: bool
    partner_row: int | None
    partner: Record | None
    draws: tuple[Draw, ...]


def record(message: dict[str, Any]) -> Record:
    """Of leat.v1.StoredRecord."""
    return Record(
        sample=message["sample"],
        root=message["root"],
        file=message["file"],
        key=message.get("key") or None,
        offset=message.get("offset"),
        size=message.get("size"),
        index=message.get("index"),
        shard=message["shard"],
        index_in_shard=message["index_in_shard"],
    )


def _draw(message: dict[str, Any]) -> Draw:
    values = [float(value) for value in message.get("values", [])]  # 1.0 is 1 in JSON
    value: float | tuple[float, ...] | str | None = message.get("text") or None
    if values:
        value = values[0] if len(values) == 1 else tuple(values)
    return Draw(message["node"], message["op"], message["name"], value, message.get("unknown", ""))


def row(message: dict[str, Any]) -> Row:
    """Of leat.v1.ExplainedRow."""
    return Row(
        row=message["row"],
        record=record(message["record"]) if "record" in message else None,
        padding=message.get("padding", False),
        partner_row=message.get("partner_row"),
        partner=record(message["partner"]) if "partner" in message else None,
        draws=tuple(_draw(each) for each in message.get("draws", [])),
    )
