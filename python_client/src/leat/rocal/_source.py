# SPDX-License-Identifier: Apache-2.0
"""The data of a pipeline, and its part: readers name the data, decoders may add to that, the first use fixes it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from leat._graphs.graph import Node
from leat._graphs.options import whole
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import check_hint
from leat.rocal._tensor import Tensor, constant_of


@dataclasses.dataclass(frozen=True)
class Sharding:
    """A pipeline's share of the samples, and the order within an epoch.

    Attributes:
        shard_id: the part, of num_shards: samples ⌊N·shard_id/n⌋ … ⌊N·(shard_id+1)/n⌋ - 1.
        random_shuffle: a new order of the part in every epoch.
        policy: for the samples that fill no batch.
        pad: LAST_BATCH_FILL repeats the last sample; otherwise it continues with the part's first ones.
        stick: every epoch reads this part; otherwise the next epoch reads the next part.
        shard_size: samples of an epoch; -1: the whole part.
    """

    shard_id: int = 0
    num_shards: int = 1
    random_shuffle: bool = False
    policy: types.LastBatchPolicy = types.LAST_BATCH_FILL
    pad: bool = True
    stick: bool = True
    shard_size: int = -1

    @classmethod
    def of(
        cls,
        where: str,
        *,
        shard_id: Any = 0,
        num_shards: Any = 1,
        random_shuffle: Any = False,
        last_batch_policy: Any = types.LAST_BATCH_FILL,
        pad_last_batch: Any = True,
        stick_to_shard: Any = True,
        shard_size: Any = -1,
    ) -> Sharding:
        """Makes one from a reader's or a decoder's arguments. Raises InvalidArgument."""
        shards = whole(f"{where}: num_shards", num_shards, 1, 2**20)
        for name, value in (
            ("random_shuffle", random_shuffle),
            ("pad_last_batch", pad_last_batch),
            ("stick_to_shard", stick_to_shard),
        ):
            check_hint(f"{where}: {name}", value, True)
        if whole(f"{where}: shard_size", shard_size, -1, 2**48) == 0:
            raise InvalidArgument(f"{where}: shard_size = 0; expected the samples of an epoch, or -1: all of the shard")
        policy = constant_of(f"{where}: last_batch_policy", last_batch_policy, types.LastBatchPolicy)
        if policy is types.LAST_BATCH_MASK and not pad_last_batch:
            raise InvalidArgument(
                f"{where}: last_batch_policy = LAST_BATCH_MASK with pad_last_batch = False; expected True: rows that "
                "fill a batch repeat the shard's last sample"
            )
        return cls(
            shard_id=whole(f"{where}: shard_id, of {shards} shards,", shard_id, 0, shards - 1),
            num_shards=shards,
            random_shuffle=bool(random_shuffle),
            policy=policy,
            pad=bool(pad_last_batch),
            stick=bool(stick_to_shard),
            shard_size=int(shard_size),
        )

    def spec(self, batch_size: int) -> dict[str, Any]:
        """Returns the arguments of `Service.job`: the pipeline of shard k requests block k of the batch's rows."""
        last_batch = {
            types.LAST_BATCH_DROP: "drop",
            types.LAST_BATCH_PARTIAL: "partial",
            types.LAST_BATCH_MASK: "mask",
        }.get(self.policy)
        spec: dict[str, Any] = {
            "batch": batch_size * self.num_shards,
            "num_parts": self.num_shards,
            "shuffle": "global" if self.random_shuffle else "sequential",
            "last_batch": last_batch or ("pad" if self.pad else "fill"),
        }
        if not self.stick and self.num_shards > 1:
            spec["rotate_parts"] = True
        return spec


# The arguments of readers and decoders about shards, with their defaults.
SHARDING: dict[str, Any] = {
    each.name: each.default
    for each in inspect.signature(Sharding.of).parameters.values()
    if each.kind is each.KEYWORD_ONLY
}


class Source:
    """A pipeline's only reader.

    Attributes:
        name: the reader's name in rocAL's iterators.
        has_labels: True if it gives a class with each sample.
    """

    def __init__(self, where: str, name: str, make: Callable[..., tuple[Node, Node | None]], **arguments: Any) -> None:
        self.where = where
        self.name = name
        self.has_labels = True
        self._make = make
        self._arguments = arguments
        self._made: tuple[Node, Node | None] | None = None
        self._raw = False
        self._sharding: Sharding | None = None

    @property
    def sharding(self) -> Sharding:
        """The sharding that was set; by default everything, in order."""
        return self._sharding or Sharding()

    def shard(self, where: str, sharding: Sharding) -> None:
        """Sets the part that is read. Raises InvalidArgument if another was set."""
        if self._sharding is not None and self._sharding != sharding:
            raise InvalidArgument(
                f"{where}: {sharding}, but before it was {self._sharding}; a pipeline's only reader reads one part"
            )
        self._sharding = sharding

    def update(self, where: str, **arguments: Any) -> None:
        """Takes a decoder's arguments about the source. Raises InvalidArgument if they differ from the reader's."""
        for name, value in arguments.items():
            if not value or str(self._arguments.get(name)).rstrip("/") == str(value).rstrip("/"):
                continue
            if self._arguments.get(name) or self._made is not None:
                raise InvalidArgument(
                    f"{where}: {name} = {value!r}, but {self.where} has {self._arguments.get(name)!r}"
                )
            self._arguments[name] = value

    def _outputs(self, raw: bool = False) -> tuple[Node, Node | None]:
        if self._made is None:
            self._raw = raw
            self._made = self._make(raw=raw, **self._arguments) if raw else self._make(**self._arguments)
        return self._made

    def encoded(self) -> Node:
        """Returns the encoded images."""
        image, _ = self._outputs()
        if self._raw:
            raise InvalidArgument(f"{self.where} was decoded by fn.decoders.image_raw: its samples are pixels")
        return image

    def raw(self, where: str) -> Node:
        """Returns the images' bytes."""
        if self.name != "TFRecordReaderClassification":
            raise Unimplemented(f"{where} is for fn.readers.tfrecord, not for {self.where}")
        image, _ = self._outputs(raw=True)
        if not self._raw:
            raise InvalidArgument(f"{self.where} was decoded as images before; expected one kind of decoder")
        return image

    def label(self) -> Node:
        """Returns the classes."""
        _, label = self._outputs()
        if label is None:
            raise InvalidArgument(f"{self.where} gives no labels")
        return label


class Encoded:
    """Images that have not been decoded."""

    def __init__(self, source: Source) -> None:
        self.source = source

    decoded = False

    def __repr__(self) -> str:
        return f"<encoded images of {self.source.where}>"


class Label(Tensor):
    """The classes of a source; its node is made on first use, since a decoder may come before."""

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source
        self._planar = None
        self.dtype = None
        self.layout = None

    def __repr__(self) -> str:
        return f"<labels of {self._source.where}>"

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The classes, one per sample."""
        return self._source.label()
