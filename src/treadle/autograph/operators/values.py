"""Telling values of the graph from Python's."""

from __future__ import annotations

import linecache
import re
import sys
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import dim_symbols
from treadle.core.spec import ListSpec, Spec
from treadle.core.tensor import SymbolicTensor, Tensor, lacks_rank
from treadle.ops.collections.lists import list_new
from treadle.ops.control.control_flow import check_predicate
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.numbers.python_numbers import apply, is_symbolic_number
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.reshaping import reshape, reshape_to
from treadle.ops.shaping.unknown_rank import of_parts
from treadle.ops.state import Variable


class GraphIteration:
    """An object that a loop of the graph iterates; Python cannot."""

    def __iter__(self) -> Any:
        raise TypeError(
            "This depends on a tensor whose length is only known when the graph runs: a converted "
            f"`for`, list(), sum() and the like take it, nothing else{at(user_origin())}"
        )


class Staged(GraphIteration):
    """Something to iterate by position, whose length is only known when the graph runs.

    Attributes:
        length: a scalar integer tensor.
        item: gives the element at a (symbolic) position.
        size: the length, where it is known already.
    """

    def __init__(self, length: Any, item: Any, size: int | None = None) -> None:
        self.length = length
        self.item = item
        self.size = size


def is_staged(value: Any) -> bool:
    """True for values of the graph being traced: no Python value can be had from them."""
    return (
        isinstance(value, SymbolicTensor | GraphIteration)
        or is_symbolic_number(value)
        or (isinstance(value, Variable) and context.recorder is not None)
    )


def truth(value: Any, what: str = "if") -> Tensor:
    """Python's ``bool(value)`` for a symbolic tensor of one element, as a bool scalar.

    Raises:
        TypeError: it has more elements, or a dtype without a truth value.
    """
    if is_symbolic_number(value):
        value = apply(bool, value)
    tensor = convert_to_tensor(value)
    if lacks_rank(tensor):
        tensor = reshape(tensor, ())
    if tensor.ndim and all(d == 1 for d in tensor.dims):
        tensor = reshape_to(tensor, ())
    if tensor.ndim == 0 and tensor.dtype is not dtypes.bool and tensor.dtype.is_numeric:
        tensor = not_equal(tensor, zeros((), tensor.dtype))
    check_predicate(tensor, what)
    return tensor


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.ndarray | np.generic)


def is_tensor_like(value: Any) -> bool:
    """True for values that can become graph values: tensors, arrays, numbers, strings."""
    return isinstance(value, Tensor | Variable | str | bytes) or is_number(value)


def holds_tensors(value: Any) -> bool:
    """Whether `value` can become a graph value, or is a structure of such values."""
    return all(map(is_tensor_like, nest.flatten(value)))


def same(a: Any, b: Any) -> bool:
    """Whether two Python values are one, so that no graph value is needed for them."""
    if a is b:
        return True
    if isinstance(a, Tensor | Variable | np.ndarray) or isinstance(
        b, Tensor | Variable | np.ndarray
    ):
        return False
    if nest.is_nested(a) and nest.is_nested(b):  # tensors inside must not be compared by ==
        parts = [nest.children(x) or [] for x in (a, b)]
        pairs = zip(*parts, strict=False)
        return (
            type(a) is type(b)
            and nest.static_part(a) == nest.static_part(b)
            and len(parts[0]) == len(parts[1])
            and all(k == m and same(x, y) for (k, x), (m, y) in pairs)
        )
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a user's __eq__
        return False


def target_names() -> list[str]:
    """The names that the operator's statement assigns, read from the generated line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and "<autograph of " not in frame.f_code.co_filename:
        frame = frame.f_back
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    found = re.match(r"\s*([\w, ]+?) = ag__", line)
    if found is None:
        return []
    return [name.strip() for name in found.group(1).split(",")]


def describe(value: Any) -> str:
    """A value's type for messages: ``float32 tensor of shape (2, 3)``."""
    if isinstance(value, Tensor | Variable):
        article = "an" if value.dtype.name[0] == "i" else "a"
        return f"{article} {value.dtype.name} tensor of shape {value.shape}"
    if nest.is_nested(value):
        return (
            f"a {type(value).__name__} of {len(value)}"
            if hasattr(value, "__len__")
            else "a structure"
        )
    return f"{value!r} ({type(value).__name__})"


def dims_known_to(builder: Any, spec: Spec) -> list[Any]:
    """The dims, with 0 for those that only the loop's body knows: they differ from one iteration
    to the next, and are left open."""
    if not spec.symbols():
        return list(spec.dims)
    known: set[str] = set()
    while builder is not None:
        values = [*builder.region.params, *(v for n in builder.region.nodes for v in n.outputs)]
        known.update(s for v in values for s in v.spec.symbols())
        builder = builder.parent
    return [d if dim_symbols(d) <= known else 0 for d in spec.dims]


def filler(builder: Any, spec: Spec) -> Tensor:
    """What stands for a variable without a value: zeros, or a list without elements."""
    if isinstance(spec, ListSpec):
        return list_new(spec)
    if not spec.has_rank:
        return of_parts(zeros([0], spec.dtype), zeros([1], dtypes.int64))  # type: ignore[no-any-return]
    return zeros(dims_known_to(builder, spec), spec.dtype)
