# SPDX-License-Identifier: Apache-2.0
"""mix: several pipelines whose rows one job deals out in shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from leat._graphs.options import chosen, positive_number, whole
from leat._graphs.pipeline import Pipeline, spec_of
from leat.errors import Error, InvalidArgument, PipelineError

_ENDS = {"first": "MIX_END_FIRST", "all": "MIX_END_ALL"}

Weights = Mapping[str, float]
Schedule = Sequence[tuple[int, Weights]]


class Mixture:
    """Pipelines and their shares, for `Service.job`; `leat.mix` makes it.

    It pickles as its pipelines do.
    """

    def __init__(
        self,
        sources: dict[str, Pipeline],
        shares: list[tuple[int, dict[str, float]]],
        ends: Literal["first", "all"] | None,
        source_field: str | None,
    ) -> None:
        self._sources = sources
        self._shares = shares
        self._ends = ends
        self._field = source_field

    def __repr__(self) -> str:
        shares = self._shares[0][1]
        total = sum(shares.values()) or 1.0
        names = ", ".join(f"{name} {shares[name] / total:.1%}" for name in list(self._sources)[:4])
        return f"<leat.mix of {len(self._sources)}: {names}{', …' if len(self._sources) > 4 else ''}>"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the arrays of a batch."""
        first = next(iter(self._sources.values()))
        return first.outputs + ((self._field,) if self._field else ())

    def _spec(self) -> dict[str, Any]:
        """Returns the fields of a leat.v1.JobSpec that describe it."""
        spec: dict[str, Any] = {
            "sources": [{"name": name, **spec_of(each)} for name, each in self._sources.items()],
            "shares": [
                {"from_step": str(step), "weights": [weights[name] for name in self._sources]}
                for step, weights in self._shares
            ],
            "mix_end": _ENDS[self._ends] if self._ends else "MIX_END_STREAM",
        }
        if self._field:
            spec["source_field"] = self._field
        return spec

    def _explain(self, error: Error) -> Error:
        """Returns the same error, with the script's lines of the source that its text names."""
        for name, pipeline in self._sources.items():
            if f'source "{name}"' in str(error):
                return pipeline.explain(error)
        return error


def _segment(where: str, weights: Any, names: Sequence[str]) -> dict[str, float]:
    """Returns the weights of one segment, with every source."""
    if not isinstance(weights, Mapping):
        raise InvalidArgument(f"{where} = {weights!r:.80}; expected a dict from names of sources to weights")
    for name in weights:
        if name not in names:
            raise InvalidArgument(f"{where} has {name!r:.80}; sources are {', '.join(names)}")
    for name in names:
        if name not in weights:
            raise InvalidArgument(f"{where} has no {name!r:.80}; sources are {', '.join(names)}")
    return {name: positive_number(f"{where}[{name!r}]", weights[name]) for name in names}


def _shares(weights: Any, names: Sequence[str]) -> list[tuple[int, dict[str, float]]]:
    if isinstance(weights, Mapping):
        return [(0, _segment("weights", weights, names))]
    if not isinstance(weights, (list, tuple)) or not weights:
        raise InvalidArgument(
            f"weights = {weights!r:.80}; expected a dict from names to weights, or a list of (step, dict)"
        )
    shares = []
    for i, each in enumerate(weights):
        if not isinstance(each, (list, tuple)) or len(each) != 2:
            raise InvalidArgument(f"weights[{i}] = {each!r:.80}; expected (step, dict from names to weights)")
        shares.append((whole(f"weights[{i}][0]", each[0], 0, 2**40 - 1), _segment(f"weights[{i}][1]", each[1], names)))
    return shares


def mix(
    sources: Mapping[str, Pipeline],
    weights: Union[Weights, Schedule],
    *,
    ends: Literal["first", "all"] | None = None,
    source_field: str | None = None,
) -> Mixture:
    """Mixes the rows of several pipelines in shares that hold at every step.

        mixed = leat.mix({"web": web, "books": books}, weights={"web": 0.8, "books": 0.2})
        job = service.job("pretrain", mixed, batch=1024, seed=7)

    After any step each source is within two rows of its share. In any batch, and in any host's part of it that is a
    multiple of 64 rows, it is within four. A source that ends begins its next pass. Its rows are those of a job of its
    own. All of this follows from the step, so a training resumes exactly, on any number of hosts.

    The weights can change while a training runs. Make a new job with one more entry in `weights`, which begins at a
    later step, and continue from the old position. A source may be added at the end in the same way.

        shares = [(0, {"web": 0.8, "books": 0.2}), (10_000, {"web": 0.5, "books": 0.5})]
        later = leat.mix({"web": web, "books": books}, shares)

    Args:
        sources: 2 to 1,000 pipelines by name, with equal outputs: names, dtypes and row shapes. They may read any data.
        weights: the sources' weights, of any sum; or a list of (step, weights), where each entry is in force from
            its step on. Steps are counted over all epochs, and the first is 0. A weight of 0 leaves a source out.
        ends: None: the job is one epoch without an end. "first": an epoch ends before a source begins its second pass.
            "all": it ends when every source has ended its first pass.
        source_field: the name of an int32 array of the batch with the number of each row's source; None: no array.

    Returns:
        A `leat.Mixture` for `Service.job`.

    Raises:
        leat.InvalidArgument: a value is wrong; the text names it and what was expected.
    """
    if not isinstance(sources, Mapping):
        raise InvalidArgument(f"sources = {sources!r:.80}; expected a dict from names to pipelines")
    named: dict[str, Pipeline] = {}
    for name, pipeline in sources.items():
        if not isinstance(name, str):
            raise InvalidArgument(f"sources has the name {name!r:.80}; expected a str")
        if isinstance(pipeline, Mixture):
            raise InvalidArgument(f"sources[{name!r}] is a mixture; expected a pipeline (multiply its weights instead)")
        if not isinstance(pipeline, Pipeline):
            raise PipelineError(
                f"sources[{name!r}] = {pipeline!r:.80}; expected a function with @leat.pipeline"
                + (", called with its arguments" if callable(pipeline) else "")
            )
        named[name] = pipeline
    if len(named) < 2:
        raise InvalidArgument(f"sources has {len(named)}; expected 2 to 1,000 pipelines")
    if ends is not None:
        chosen("ends", ends, _ENDS)
    if source_field is not None and not (isinstance(source_field, str) and source_field):
        raise InvalidArgument(f"source_field = {source_field!r:.40}; expected a name, or None")
    return Mixture(named, _shares(weights, list(named)), ends, source_field)
