# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for modules that DALI's tests import and that are not installed: nose, nose2, and the parts of leat.dali
that DALI keeps to itself or that Leat refuses.

Without these a file could not be imported because of one name in it, and none of its cases would be run. A stand-in
raises when a case calls it. Functions about processes of DALI's own, which do not exist here, do nothing.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
import unittest
from collections.abc import Callable
from itertools import product
from typing import Any

# Modules of nvidia.dali that leat.dali lacks, or must refuse by name.
_MISSING = (
    "_autograph _utils _utils.hacks auto_aug.core._args auto_aug.core._select auto_aug.core._utils "
    "auto_aug.core.augmentation auto_aug.core.policy backend backend_impl experimental "
    "experimental.dynamic plugin.jax.iterator plugin.mxnet plugin.numba plugin.numba.experimental plugin.numba.fn "
    "plugin.numba.fn.experimental plugin.paddle plugin.pytorch.experimental plugin.pytorch.loader_evaluator plugin.tf "
    "plugin.triton plugin.video plugin_manager python_function_plugin ops.transforms fn.transforms fn.experimental "
    "fn.segmentation ops.experimental ops.segmentation ops._registry _multiproc _multiproc.pool"
).split()


class Missing:
    """A name that does not exist; neither do its attributes."""

    def __init__(self, name: str, why: str = "") -> None:
        self._name, self._why = name, why

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}", self._why)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"MISSING {self._name} {self._why}")

    def __repr__(self) -> str:
        return f"<missing {self._name}>"


class _Module(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


def _make_decorator(function: Any) -> Callable[[Any], Any]:
    def decorate(new: Any) -> Any:
        new = functools.update_wrapper(new, function)
        return new

    return decorate


def _attr(*words: str, **values: Any) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for word in words:
            setattr(function, word, True)
        for name, value in values.items():
            setattr(function, name, value)
        return function

    return decorate


def _with_setup(setup: Any = None, teardown: Any = None) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        function.setup, function.teardown = setup, teardown
        return function

    return decorate


def _nottest(function: Any) -> Any:
    function.__test__ = False
    return function


def _params(*sets: Any) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        function.paramList = list(sets)
        return function

    return decorate


def _cartesian_params(*axes: Any) -> Callable[[Any], Any]:
    return _params(*product(*axes))


def _nose() -> dict[str, dict[str, Any]]:
    case = unittest.TestCase()
    tools = {
        "assert_raises": case.assertRaises,
        "assert_raises_regex": case.assertRaisesRegex,
        "assert_warns": case.assertWarns,
        "assert_warns_regex": case.assertWarnsRegex,
        "make_decorator": _make_decorator,
        "nottest": _nottest,
    }
    return {
        "nose": {"SkipTest": unittest.SkipTest, "with_setup": _with_setup},
        "nose.case": {},
        "nose.inspector": {},
        "nose.loader": {},
        "nose.suite": {},
        "nose.tools": tools,
        "nose.plugins": {},
        "nose.plugins.attrib": {"attr": _attr},
        "nose2": {},
        "nose2.tools": {"params": _params, "cartesian_params": _cartesian_params},
    }


def _put(name: str, values: dict[str, Any], kind: type[types.ModuleType] = types.ModuleType) -> Any:
    module = kind(name)
    module.__path__ = []
    vars(module).update(values)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)
    return module


def _of_plugin(module: str, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module(module), name)


class _TensorGPU:
    """A type without values."""


class _TensorListGPU:
    """A type without values."""


def _in_place_of_missing(module: Any) -> None:
    """Adds names that the module lacks, which raise when they are called."""
    asked = getattr(module, "__getattr__", None)

    def found(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            if asked is not None:
                return asked(name)
        except Exception as error:
            return Missing(f"{module.__name__}.{name}", str(error))
        return Missing(f"{module.__name__}.{name}")

    module.__getattr__ = found


def _without_gpu(pipeline: Any) -> None:
    """Makes all pipelines run on the CPU. Decorators of DALI's read the constructor's arguments."""
    construct = pipeline.__init__
    signature = inspect.signature(construct)

    @functools.wraps(construct)
    def without_gpu(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.arguments["device_id"] = None
        construct(*given.args, **given.kwargs)

    pipeline.__init__ = without_gpu


def install(library: str) -> None:
    """Puts the modules where imports find them."""
    for name, values in _nose().items():
        _put(name, values)
    root = importlib.import_module(library)
    if library != "leat.dali":
        _without_gpu(root.Pipeline)
        return
    tensors = importlib.import_module(f"{library}.tensors")
    gpu = {"TensorGPU": _TensorGPU, "TensorListGPU": _TensorListGPU}
    cpu = {"TensorCPU": tensors.TensorCPU, "TensorListCPU": tensors.TensorListCPU}
    for name in _MISSING:
        _put(f"{library}.{name}", {**cpu, **gpu} if name.startswith("backend") else {}, _Module)
    tensors.TensorGPU, tensors.TensorListGPU = _TensorGPU, _TensorListGPU
    for name in ("fn", "fn.decoders", "fn.readers", "fn.random", "fn.noise", "ops", "ops.decoders", "ops.readers",
                 "ops.random", "ops.noise", "types", "math"):  # fmt: skip
        _in_place_of_missing(importlib.import_module(f"{library}.{name}"))
    iterator = sys.modules[f"{library}.plugin.jax.iterator"]
    iterator.__getattr__ = functools.partial(_of_plugin, f"{library}.plugin.jax")
    # DALI's AutoGraph rewrites no function.
    sys.modules[f"{library}._autograph"].is_autograph_artifact = lambda value: False
    # Sources are asked in this process, so there is no pool of processes whose end the tests could wait for.
    root.Pipeline._py_pool = types.SimpleNamespace(close=lambda: None, pids=list)
    pools = {"capture_processes": lambda pool: None, "setup_function": None, "teardown_function": None}
    _put("test_pool_utils", pools)
