# SPDX-License-Identifier: Apache-2.0
"""Explanations of a row: where its sample is stored, and what was drawn for it."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Document:
    """A document that has elements in a packed row (`leat.fn.pack`).

        for document in job.record(17).documents:
            print(document.path, document.index, document.begin, document.elements)

    Attributes:
        number: its number among the samples of the dataset that is packed.
        root, file, key, offset, size, index: where it is stored, as in `leat.Record`.
        begin: how many of its elements are before the first one that is in the row.
        elements: how many of its elements are in the row.
        row_begin: how many elements of the row are before them.
        document_elements: how many elements the whole document has.
    """

    number: int
    root: str
    file: str
    key: str | None
    offset: int | None
    size: int | None
    index: int | None
    begin: int
    elements: int
    row_begin: int
    document_elements: int

    @property
    def path(self) -> str:
        """Root and file together."""
        return f"{self.root.rstrip('/')}/{self.file}"


@dataclasses.dataclass(frozen=True)
class Record:
    """The place where a sample is stored, from the dataset's index.

    Attributes:
        sample: the sample's number, 0 … num_samples-1.
        root: the folder that the reader was given, or "s3://bucket".
        file: the file's path below the root.
        key: the record's own name in its file (COCO: the image's id); None: the index has none.
        offset: where its bytes begin in the file; None: they are the whole file, or the index does not say.
        size: how many bytes it has; None: the index does not say.
        index: the record's number in its file, from 0; None: it is the only one.
        shard: the shard that it belongs to.
        index_in_shard: its number in the shard, from 0.
        source: the name of the mixture's source that it is of; None: the job is no mixture.
        class_name: its class, as `Pipeline.select(weights=...)` names it; None: the listing has no classes.
        num_documents: how many documents a packed row has; 0: the sample is no packed row. The place of a packed row is
            that of its first document.
        documents: the documents of a packed row, or a part of them, in the row's order.
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
    source: str | None = None
    class_name: str | None = None
    num_documents: int = 0
    documents: tuple[Document, ...] = ()

    @property
    def path(self) -> str:
        """Root and file together."""
        return f"{self.root.rstrip('/')}/{self.file}"


@dataclasses.dataclass(frozen=True)
class Draw:
    """A value that a random operator drew for a row.

    Attributes:
        node: the node of the job's pipeline, as `leat describe job` numbers them.
        op: the operator.
        name: the name of the output, or of the argument that the value is passed to, as "flip.horizontal"; else "".
        value: a number (a flag is 0.0 or 1.0); for a window (y, x, height, width) in pixels; names of operations as a
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
    """The contents of a row of a step.

    Attributes:
        row: the row's number in the batch.
        record: the record of its sample; None: the row holds none (last_batch="partial").
        padding: the row only fills the step (last_batch="mask").
        partner_row: the row that it is mixed with (mixup, cutmix); None: the pipeline mixes no rows.
        partner: the record of that row.
        draws: the row's draws, in the order of the pipeline's nodes.
    """

    row: int
    record: Record | None
    padding: bool
    partner_row: int | None
    partner: Record | None
    draws: tuple[Draw, ...]


def record(message: dict[str, Any]) -> Record:
    """Makes a Record from leat.v1.StoredRecord."""
    documents = message.get("documents") or {}
    return Record(
        sample=message["sample"],
        **_place(message),
        shard=message["shard"],
        index_in_shard=message["index_in_shard"],
        source=message.get("source") or None,
        class_name=message.get("class_name") or None,
        num_documents=documents.get("count", 0),
        documents=tuple(_document(each) for each in documents.get("listed", [])),
    )


def _place(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that say where a record or a document is stored."""
    return {
        "root": message["root"],
        "file": message["file"],
        "key": message.get("key") or None,
        "offset": message.get("offset"),
        "size": message.get("size"),
        "index": message.get("index"),
    }


def _document(message: dict[str, Any]) -> Document:
    return Document(
        number=message["document"],
        **_place(message),
        begin=message["begin"],
        elements=message["elements"],
        row_begin=message["row_begin"],
        document_elements=message["document_elements"],
    )


def _draw(message: dict[str, Any]) -> Draw:
    values = [float(value) for value in message.get("values", [])]  # 1.0 is 1 in JSON
    value: float | tuple[float, ...] | str | None = message.get("text") or None
    if values:
        value = values[0] if len(values) == 1 else tuple(values)
    return Draw(message["node"], message["op"], message["name"], value, message.get("unknown", ""))


def row(message: dict[str, Any]) -> Row:
    """Makes a Row from leat.v1.ExplainedRow."""
    return Row(
        row=message["row"],
        record=record(message["record"]) if "record" in message else None,
        padding=message.get("padding", False),
        partner_row=message.get("partner_row"),
        partner=record(message["partner"]) if "partner" in message else None,
        draws=tuple(_draw(each) for each in message.get("draws", [])),
    )
