# SPDX-License-Identifier: Apache-2.0
"""`if` on nodes, for enable_conditionals=True.

The function is rewritten so that both branches are traced. fn.where then chooses, for each sample, what they assigned:

    if flag:            →   the names' values before, both branches as functions of them, then a choice for each name
        x = fn.flip(x)
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat.dali import _args, _branches, _node
from leat.dali._node import DataNode
from leat.errors import PipelineError

_MISSING = object()


def chosen(condition: DataNode, a: Any, b: Any, name: str) -> Any:
    """Returns `a` where the condition is true, else `b`: for nodes, and for containers of nodes."""
    if a is b:
        return _Unset(name) if a is _MISSING else a
    if any(each is _MISSING or isinstance(each, _Unset) for each in (a, b)):
        return _Unset(name)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        values = [chosen(condition, x, y, name) for x, y in zip(a, b)]
        return type(a)(*values) if hasattr(a, "_fields") else type(a)(values)
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: chosen(condition, a[key], b[key], name) for key in a}
    if not isinstance(a, DataNode) and not isinstance(b, DataNode) and np.array_equal(a, b):
        return a
    if inspect.isroutine(a) or inspect.isclass(a):
        return _Unset(name, "is defined by each branch of an `if` on a node for itself")
    try:
        first, second = _node.node_of(a), _node.node_of(b)
    except Exception:
        raise PipelineError(
            f"the branches of an `if` on a node give {name} as {a!r:.60} and {b!r:.60}; expected nodes or numbers"
        ) from None
    flag = _args.scalar(f"the condition of the `if` that gives {name}", condition, "bool")
    sizes = None
    if first.sizes is not None and second.sizes is not None and len(first.sizes) == len(second.sizes):
        sizes = [x if x == y else None for x, y in zip(first.sizes, second.sizes)]
        if any(size is None and None not in both for size, both in zip(sizes, zip(first.sizes, second.sizes))):
            raise PipelineError(
                f"the branches of an `if` on a node give {name} in the shapes {first.sizes} and {second.sizes}; "
                "expected one shape, since workers would repeat an axis of size 1: crop, resize, pad or change colours"
            )
    return DataNode(
        _node.apply("where", flag, first, second),
        layout=first.layout if first.layout == second.layout else "",
        sizes=sizes,
        dtype=first.dtype if first.dtype == second.dtype else None,
        device="gpu" if "gpu" in (first.device, second.device) else "cpu",
    )


class _Unset:
    """A name that only one branch has assigned, or to which both have given functions of their own."""

    def __init__(self, name: str, why: str = "is assigned in one branch only of an `if` on a node") -> None:
        self._name, self._why = name, why

    def _refused(self, *_: Any) -> Any:
        raise UnboundLocalError(f"{self._name} {self._why}, and used after it")

    __getattr__ = __getitem__ = __call__ = __iter__ = __bool__ = __neg__ = __invert__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __and__ = __or__ = _refused


def run_if(
    condition: Any,
    names: tuple[str, ...],
    places: tuple[str, ...],
    before: dict[str, Any],
    then: Callable[..., Any],
    other: Callable[..., Any],
) -> tuple[Any, ...]:
    """Returns the values of `names` after the `if`.

    Args:
        names: those that a branch assigns.
        places: the parts of objects that a branch assigns, such as `x[0]` and `x.y`, as the script has them.
        before: the local variables before the `if`.
        then, other: the branches, as functions of the names' values.
    """
    values = [before.get(name, _MISSING) for name in names]
    if not isinstance(condition, DataNode):
        results = (then if condition else other)(*values)
        return tuple(_Unset(name) if each is _MISSING else each for name, each in zip(names, results))
    if places:
        raise PipelineError(
            f"an `if` on a node assigns {', '.join(places)}: both branches run, and what the last one leaves there "
            f"would be for all samples; expected names (`value = …`), and the assignment to {places[0]} after the `if`"
        )
    return _branches.both(
        lambda: then(*values),
        lambda: other(*values),
        lambda a, b: tuple(chosen(condition, x, y, name) for name, x, y in zip(names, a, b)),
    )


def conjunction(*parts: Callable[[], Any]) -> Any:
    """Implements `and`: for nodes, per sample."""
    result: Any = True
    for part in parts:
        if not isinstance(result, DataNode) and not result:
            return result
        value = part()
        result = _flag(result) & _flag(value) if isinstance(result, DataNode) else value
    return result


def disjunction(*parts: Callable[[], Any]) -> Any:
    """Implements `or`: for nodes, per sample."""
    result: Any = False
    for part in parts:
        if not isinstance(result, DataNode) and result:
            return result
        value = part()
        result = _flag(result) | _flag(value) if isinstance(result, DataNode) else value
    return result


def negation(value: Any) -> Any:
    """Implements `not`: for a node, per sample."""
    return ~_flag(value) if isinstance(value, DataNode) else not value


def selection(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Implements `a if condition else b`."""
    if not isinstance(condition, DataNode):
        return a() if condition else b()
    return _branches.both(a, b, lambda x, y: chosen(condition, x, y, "the expression"))


def _flag(value: Any) -> DataNode:
    node = _node.node_of(value)
    return DataNode(_node.apply("ne", node, 0), sizes=node.sizes, dtype="bool") if node.dtype != "bool" else node


def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Returns the function unchanged: its `if` is Python's own also where a pipeline calls it, since only the
    pipeline's own function is rewritten."""
    return do_not_convert if func is None else func


_PREFIX = "_leat_"


class _Rewriter(ast.NodeTransformer):
    """Rewrites the statements of one function; nested functions stay as they are."""

    def __init__(self) -> None:
        self._count = 0
        self._inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:  # noqa: N802
        if self._inside:
            return node
        self._inside = True
        return self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:  # noqa: N802
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        function = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        return _call(function, [_thunk(each) for each in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        self.generic_visit(node)
        return _call("negation", [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802
        self.generic_visit(node)
        return _call("selection", [node.test, _thunk(node.body), _thunk(node.orelse)])

    def visit_If(self, node: ast.If) -> Any:  # noqa: N802
        self._count += 1
        number = self._count
        if any(isinstance(each, (ast.Return, ast.Break, ast.Continue)) for each in _within(node)):
            return self._left_alone(node)
        names = sorted(_assigned(node.body) | _assigned(node.orelse))
        places = sorted(_parts_assigned(node.body) | _parts_assigned(node.orelse))
        self.generic_visit(node)
        parts = [
            _branch(f"{_PREFIX}then_{number}", names, node.body),
            _branch(f"{_PREFIX}else_{number}", names, node.orelse),
        ]
        call = _call(
            "run_if",
            [
                node.test,
                ast.Tuple([ast.Constant(name) for name in names], ast.Load()),
                ast.Tuple([ast.Constant(place) for place in places], ast.Load()),
                ast.Call(ast.Name("locals", ast.Load()), [], []),
                ast.Name(parts[0].name, ast.Load()),
                ast.Name(parts[1].name, ast.Load()),
            ],
        )
        if names:
            target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            return [*parts, ast.Assign([target], call)]
        return [*parts, ast.Expr(call)]

    def _left_alone(self, node: ast.If) -> ast.If:
        """Keeps an `if` that leaves the function or a loop: its condition cannot be a node."""
        return self.generic_visit(node)  # type: ignore[return-value]


def _call(function: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(f"{_PREFIX}conditionals", ast.Load()), function, ast.Load()), args, [])


def _thunk(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the node and all in it that is of the same function: nothing from inside functions and classes."""
    yield node
    if not isinstance(node, _SCOPES):
        for each in ast.iter_child_nodes(node):
            yield from _within(each)


def _assigned(statements: list[ast.stmt]) -> set[str]:
    """Returns the local variables that the statements assign, import or define."""
    parts = [part for each in statements for part in _within(each)]
    # The variables of a comprehension are its own.
    own = {id(name) for each in parts if isinstance(each, ast.comprehension) for name in ast.walk(each.target)}
    names = set()
    for each in parts:
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and id(each) not in own:
            names.add(each.id)
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(each.name)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in each.names}
        elif isinstance(each, (ast.MatchAs, ast.MatchStar)) and each.name is not None:
            names.add(each.name)
        elif isinstance(each, ast.MatchMapping) and each.rest is not None:
            names.add(each.rest)
    return names


def _parts_assigned(statements: list[ast.stmt]) -> set[str]:
    """Returns the parts of objects that they assign or delete, such as `x[0]`, unless they make the object."""
    made, found = _assigned(statements), set()
    for part in (part for each in statements for part in _within(each)):
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            root: ast.expr = part
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if not isinstance(root, ast.Name) or root.id not in made:
                found.add(ast.unparse(part))
    return found


def _function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """Parses `def name(parameters): body`, so that it has all the fields that this version of Python needs."""
    definition = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = body
    return definition


def _branch(name: str, names: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    result = ast.Return(ast.Tuple([ast.Name(each, ast.Load()) for each in names], ast.Load()))
    return _function(name, names, [*body, result])


def _chooses(tree: ast.AST) -> bool:
    """True if a lambda in it has an expression that is rewritten in functions."""
    parts = [part for each in ast.walk(tree) if isinstance(each, ast.Lambda) for part in ast.walk(each.body)]
    return any(
        isinstance(each, (ast.IfExp, ast.BoolOp)) or isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)
        for each in parts
    )


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with `if`, `and`, `or` and `not` on nodes turned into choices for each sample.

    An `if` that returns, breaks or continues stays as it is: on a node it is an error.

    Raises:
        leat.PipelineError: the function's source is not available.
    """
    if hasattr(function, "__wrapped__"):
        raise PipelineError(
            f"enable_conditionals=True rewrites the source of {function.__name__}, which a decorator has wrapped and "
            "whose work would be lost; expected the decorator around the pipeline, or a function without it"
        )
    try:
        source = inspect.getsource(function)
        # An indented function stays as it is, below a line of its own: its texts of several lines have it in them.
        indented = source[:1].isspace()
        tree = ast.parse(f"if True:\n{source}" if indented else source)
    except (OSError, TypeError, SyntaxError):
        raise PipelineError(
            f"enable_conditionals=True rewrites the function's source, and that of {function!r:.80} cannot be read; "
            "expected a function that a file or a notebook's cell defines"
        ) from None
    definition = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if not isinstance(definition, ast.FunctionDef):
        if function.__name__ == "<lambda>" and not _chooses(tree):
            return function
        raise PipelineError(f"enable_conditionals=True: {function!r:.80} is no function that `def` defines")
    definition.decorator_list = []
    # The function has the values of its defaults already: they are not computed again, where names may be unknown.
    arguments = definition.args
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [each and ast.Constant(None) for each in arguments.kw_defaults]
    free = function.__code__.co_freevars
    rewritten = _Rewriter().visit(definition)
    # An outer function binds the names that the original takes from its enclosing functions.
    body = [rewritten, ast.Return(ast.Name(definition.name, ast.Load()))]
    outer = _function(f"{_PREFIX}outer", [f"{_PREFIX}conditionals", *free], body)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    ast.increment_lineno(module, function.__code__.co_firstlineno - 1 - indented)
    scope: dict[str, Any] = {}
    exec(compile(module, inspect.getsourcefile(function) or "<pipeline>", "exec"), function.__globals__, scope)
    import leat.dali._conditionals as here

    made = scope[f"{_PREFIX}outer"](here, *free)
    # The original's cells, so that a variable of an enclosing function has its value at the time when it is read.
    cells = dict(zip(made.__code__.co_freevars, made.__closure__ or ()))
    cells.update(zip(free, function.__closure__ or ()))
    closure = tuple(cells[name] for name in made.__code__.co_freevars)
    result = types.FunctionType(made.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
    result.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(result)
