# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.auto_aug.core`: augmentations of a script's own, and policies made from them.

A graph is traced once and holds operators only, so `select` traces every augmentation of its list and chooses for each
sample: a worker computes all of them for each image. The functions with the policies' names, such as `rand_augment`,
compute only the drawn ones.

Example:
    @augmentation(mag_range=(0, 40), randomly_negate=True)
    def turn(data, angle, fill_value=0):
        return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)

    images = rand_augment.apply_rand_augment([turn, augmentations.invert], images, n=2, m=15)
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from leat._graphs.graph import user_line
from leat.dali import _node, fn, types
from leat.dali._conditionals import chosen
from leat.dali._node import DataNode
from leat.errors import InvalidArgument

__all__ = ["Policy", "augmentation", "select", "signed_bin"]

_MOST_PARAMETERS = 64  # numbers in the parameter of one magnitude: each is a node
_FIRST_ARGUMENTS = 2  # the data and the parameter of an augmentation's function
_UNSET: Any = object()


def refused(text: str) -> InvalidArgument:
    """Returns the error, with the line of the script."""
    return InvalidArgument(f"{text} ({user_line()})")


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns a Python int between two bounds. Raises InvalidArgument for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        expected = f"{least} or more" if most is None else f"from {least} to {most}"
        raise refused(f"{name} = {value!r:.60}; expected a whole number {expected}")
    return value


class SignedBin:
    """A magnitude's bin, and for each sample whether the magnitude is negated. `signed_bin` makes one.

    Attributes:
        bin: the index of the magnitude, an int or a node of int32.
        random_sign: a node: 1 where the magnitude is negated, else 0.
    """

    def __init__(self, bin: int | DataNode, random_sign: DataNode) -> None:
        self.bin: int | DataNode = bin
        self.random_sign: DataNode = random_sign

    @property
    def signed_magnitude_idx(self) -> DataNode:
        """Twice the bin, plus one where the magnitude is negated."""
        return self.random_sign + self.bin * 2

    def __getitem__(self, index: int) -> SignedBin:
        """Returns bin and sign at an index, for bins that were made with a shape."""
        return SignedBin(self.bin if isinstance(self.bin, int) else self.bin[index], self.random_sign[index])


def signed_bin(magnitude_bin: Any, random_sign: Any = None, seed: int | None = None, shape: Any = None) -> SignedBin:
    """Returns the bin with a sign: `random_sign` (nodes of 0 and 1), or a sign drawn for each sample.

    Raises InvalidArgument if `random_sign` is given together with `seed` or `shape`, which control the drawing.
    """
    if not isinstance(magnitude_bin, DataNode):
        whole("signed_bin: magnitude_bin", magnitude_bin, 0)
    if random_sign is None:
        random_sign = fn.random.uniform(values=[0, 1], dtype=types.INT32, seed=seed, shape=shape)
    elif seed is not None or shape is not None:
        raise refused("signed_bin: random_sign is given, and seed or shape; expected one of the two")
    return SignedBin(magnitude_bin, random_sign)


class Augmentation:
    """A function of images and a parameter that depends on a magnitude. `augmentation` makes one.

    Attributes:
        op: the function.
        mag_range: the least and the greatest magnitude, or an array of all; None: it has none, its parameter is None.
        randomly_negate: whether a magnitude's sign is drawn for each sample.
        mag_to_param: returns the parameter for a magnitude.
        param_device: "cpu", "gpu" or "auto", as in the script; it has no effect.
        name: the function's name, unless another was given.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        mag_range: Any = None,
        randomly_negate: bool | None = None,
        mag_to_param: Callable[[Any], Any] | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ) -> None:
        if param_device not in (None, "cpu", "gpu", "auto"):
            raise refused(f'augmentation: param_device = {param_device!r}; expected "cpu", "gpu" or "auto"')
        self.op: Callable[..., Any] = op
        self.mag_range: Any = mag_range
        self.randomly_negate: bool = bool(randomly_negate)
        self.mag_to_param: Callable[[Any], Any] = mag_to_param or np.asarray
        self.param_device: str = param_device or "cpu"
        self.name: str = name or op.__name__
        self._given = {
            "mag_range": mag_range,
            "randomly_negate": randomly_negate,
            "mag_to_param": mag_to_param,
            "param_device": param_device,
            "name": name,
        }
        positional = [each for each in _parameters(op) if each.kind is not each.KEYWORD_ONLY]
        if len(positional) < _FIRST_ARGUMENTS:
            raise refused(
                f"augmentation {self.name}: the function takes {len(positional)} positional arguments; "
                "expected two or more: the data and the parameter"
            )

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self._given.items() if value is not None)
        return f"Augmentation({self.op!r}{given})"

    def augmentation(
        self,
        mag_range: Any = _UNSET,
        randomly_negate: Any = _UNSET,
        mag_to_param: Any = _UNSET,
        param_device: Any = _UNSET,
        name: Any = _UNSET,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """Returns the same function, with the given values replacing this one's."""
        changed = {
            "mag_range": mag_range,
            "randomly_negate": randomly_negate,
            "mag_to_param": mag_to_param,
            "param_device": param_device,
            "name": name,
        }
        changed = {key: value for key, value in changed.items() if value is not _UNSET}
        return (augmentation_cls or type(self))(self.op, **{**self._given, **changed})

    def __call__(
        self, data: DataNode, *, magnitude_bin: Any = None, num_magnitude_bins: int | None = None, **kwargs: Any
    ) -> DataNode:
        """Returns the augmented images.

        Args:
            data: the images.
            magnitude_bin: the index of the magnitude: an int, a node of int32, or a result of `signed_bin`.
            num_magnitude_bins: how many magnitudes mag_range is divided into.
            kwargs: further arguments of the function; those that it does not take are left out.
        """
        names = accepted(self)
        missing = [each.name for each in _further(self.op) if each.default is each.empty and each.name not in kwargs]
        if missing:
            raise refused(f"augmentation {self.name}: it needs {', '.join(missing)}; expected arguments by name")
        parameter = self._parameter(magnitude_bin, num_magnitude_bins)
        return self.op(data, parameter, **{name: value for name, value in kwargs.items() if name in names})

    def parameter_of(self, magnitude: Any) -> np.ndarray:
        """Returns the parameter for one magnitude, as the function takes it."""
        parameter = self.mag_to_param(magnitude)
        if _node.holds_nodes(parameter):
            raise refused(
                f"augmentation {self.name}: mag_to_param gives a node; expected numbers: it is called once, "
                "when the pipeline is defined. The function itself may use operators"
            )
        return np.asarray(parameter)

    def _get_magnitudes(self, count: int | None) -> np.ndarray:
        if isinstance(self.mag_range, np.ndarray):
            if count not in (None, len(self.mag_range)):
                raise refused(
                    f"augmentation {self.name}: num_magnitude_bins = {count}; expected "
                    f"{len(self.mag_range)}, as many as mag_range has"
                )
            return self.mag_range
        if not isinstance(self.mag_range, Sequence) or len(self.mag_range) != 2:
            raise refused(
                f"augmentation {self.name}: mag_range = {self.mag_range!r:.60}; expected the least and the "
                "greatest magnitude, or an array of all"
            )
        number = whole(f"augmentation {self.name}: num_magnitude_bins", count, 1)
        return np.linspace(*self.mag_range, number, dtype=np.float32)

    def _parameter(self, magnitude_bin: Any, count: int | None) -> DataNode | None:
        if self.mag_range is None:
            return None
        magnitudes = self._get_magnitudes(count)
        if magnitude_bin is None:
            raise refused(f"augmentation {self.name}: it has magnitudes, and no magnitude_bin; expected one")
        if self.randomly_negate and not isinstance(magnitude_bin, SignedBin):
            magnitude_bin = signed_bin(magnitude_bin)
        place = magnitude_bin.bin if isinstance(magnitude_bin, SignedBin) else magnitude_bin
        if not isinstance(place, DataNode):
            place = whole(f"augmentation {self.name}: magnitude_bin", place, 0, len(magnitudes) - 1)
            magnitudes = magnitudes[place : place + 1]
        if self.randomly_negate:
            magnitudes = np.stack([magnitudes, -magnitudes], axis=1).reshape(-1)
            place = magnitude_bin.signed_magnitude_idx if isinstance(place, DataNode) else magnitude_bin.random_sign
        elif not isinstance(place, DataNode):
            return _node.constant(_typed(self.parameter_of(magnitudes[0])))
        return _looked_up(self.name, [self.parameter_of(each) for each in magnitudes], place)


# A constant of 64 bits has 32 in DALI.
_CONSTANTS = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def _typed(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(_CONSTANTS.get(numbers.dtype.name, numbers.dtype))


def _looked_up(name: str, parameters: list[np.ndarray], place: DataNode) -> DataNode:
    """Returns the parameter at each sample's index."""
    first = parameters[0]
    for each in parameters:
        if (each.shape, each.dtype) != (first.shape, first.dtype):
            raise refused(
                f"augmentation {name}: mag_to_param gives {first.dtype} of shape {first.shape} for one "
                f"magnitude and {each.dtype} of shape {each.shape} for another; expected one type and shape"
            )
    if not 1 <= first.size <= _MOST_PARAMETERS:
        raise refused(f"augmentation {name}: mag_to_param gives {first.size} numbers; expected 1 to {_MOST_PARAMETERS}")
    place = DataNode(_node.apply("reshape", place, shape=()), sizes=(), dtype=place.dtype)
    chosen = _node.constant(_typed(np.stack(parameters)).reshape(len(parameters), -1))[place]
    return fn.reshape(chosen, shape=list(first.shape))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [each for each in inspect.signature(function).parameters.values() if each.kind in kinds]


def _further(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Returns the arguments after the data and the parameter."""
    found = _parameters(function)
    return [each for i, each in enumerate(found) if i >= _FIRST_ARGUMENTS or each.kind is each.KEYWORD_ONLY]


def accepted(one: Augmentation) -> set[str]:
    """Returns the names of the arguments that it takes besides the data and the parameter."""
    return {each.name for each in _further(one.op)}


def check_arguments(where: str, augmentations: Iterable[Augmentation], given: Mapping[str, Any]) -> None:
    """Raises InvalidArgument if a given argument is taken by no augmentation."""
    unused = sorted(set(given) - {name for each in augmentations for name in accepted(each)})
    if unused:
        raise refused(f"{where}: no augmentation takes {', '.join(unused)}")


def augmentation(
    function: Callable[..., Any] | None = None,
    *,
    mag_range: Any = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[Any], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Makes an Augmentation from a function of images and a parameter; a decorator.

    Args:
        function: takes the images and the parameter, and returns the augmented images.
        mag_range: the least and the greatest magnitude, or an array of all; None: the parameter is None.
        randomly_negate: whether a magnitude's sign is drawn for each sample.
        mag_to_param: returns the parameter for a magnitude, anything that NumPy makes an array of; by default the
            magnitude.
        param_device: has no effect.
        name: replaces the function's name.
    """
    made = augmentation_cls or Augmentation

    def decorated(function: Callable[..., Any]) -> Augmentation:
        if isinstance(function, Augmentation):
            raise refused(
                f"augmentation {function.name}: it is one already; {function.name}.augmentation(…) gives one "
                "with other arguments"
            )
        if not callable(function):
            raise refused(f"augmentation: {function!r:.60} is no function")
        return made(function, mag_range, randomly_negate, mag_to_param, param_device, name)

    return decorated if function is None else decorated(function)


def select(ops: Sequence[Callable[..., Any]], selected_op_idx: DataNode, *args: Any, **kwargs: Any) -> Any:
    """Applies the operation at each sample's index; the index counts from 0."""
    if not ops:
        raise refused("select: no operations; expected one or more")
    if len(ops) == 1:
        return ops[0](*args, **kwargs)
    results = [each(*args, **kwargs) for each in ops]
    result = results[-1]
    for i in reversed(range(len(ops) - 1)):
        result = chosen(selected_op_idx <= i, results[i], result, "select")
    return result


class Policy:
    """Sequences of augmentations; one is drawn for each sample (AutoAugment, https://arxiv.org/abs/1805.09501).

    Attributes:
        name: the policy's name, for people.
        num_magnitude_bins: how many magnitudes an augmentation's range is divided into.
        sub_policies: the sequences; each step is an augmentation, its probability, and its magnitude's bin, or None if
            it has no magnitudes.
    """

    def __init__(self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[Any]]) -> None:
        self.name: str = name
        self.num_magnitude_bins: int = whole("Policy: num_magnitude_bins", num_magnitude_bins, 1)
        if not isinstance(sub_policies, (list, tuple)) or not all(isinstance(e, (list, tuple)) for e in sub_policies):
            raise refused(f"Policy {name}: sub_policies = {sub_policies!r:.60}; expected a list of lists")
        self.sub_policies: tuple[tuple[tuple[Augmentation, float, int | None], ...], ...] = tuple(
            tuple(self._step(each) for each in steps) for steps in sub_policies
        )

    def _step(self, step: Any) -> tuple[Augmentation, float, int | None]:
        where = f"Policy {self.name}"
        if not isinstance(step, (list, tuple)) or len(step) != 3:
            raise refused(f"{where}: a step is {step!r:.80}; expected an augmentation, its probability and its bin")
        one, probability, magnitude = step
        if not isinstance(one, Augmentation):
            raise refused(f"{where}: {one!r:.60} is no augmentation; expected a function decorated by @augmentation")
        if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
            raise refused(f"{where}: the probability of {one.name} is {probability!r:.60}; expected 0 to 1")
        if magnitude is not None:
            whole(f"{where}: the bin of {one.name}", magnitude, 0, self.num_magnitude_bins - 1)
            if one.mag_range is None:
                warnings.warn(f"{where}: {one.name} has no magnitudes, so its bin {magnitude} decides nothing")
        elif one.mag_range is not None:
            raise refused(f"{where}: {one.name} has magnitudes; expected a bin, not None")
        return one, float(probability), magnitude

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """The augmentations of all steps by name; if several have one name, the later ones get a number appended."""
        found: dict[str, Augmentation] = {}
        for one in dict.fromkeys(one for steps in self.sub_policies for one, _, _ in steps):
            name, count = one.name, 1
            while name in found:
                count += 1
                name = f"{one.name}_{count}"
            found[name] = one
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        names = {one: name for name, one in self.augmentations.items()}
        steps = [[(names[one], *rest) for one, *rest in each] for each in self.sub_policies]
        return f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies={steps!r})"


_Augmentation = Augmentation  # DALI's name
