"""The caller's result of a jitted function, made of the program's results.

An argument that is returned is the caller's own array, a view of one a view of it; other arrays are
new. Numbers are Python's where plain NumPy code would have Python's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, Scalar
from treadle.jitted.forms import ARRAY, NUMBER, SCALAR
from treadle.jitted.grown_lists import readable
from treadle.jitted.iteration import Counted
from treadle.jitted.left import Left
from treadle.jitted.records import has_records, together
from treadle.jitted.storage import Storage
from treadle.jitted.views import Key, Permuted, Reshaped, View, is_constant
from treadle.ops.control.marks import with_values
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import SymbolicNumber


class OfProgram(NamedTuple):
    """A leaf that the program computes: `place` among its results, ARRAY, SCALAR or NUMBER."""

    place: int
    kind: str

    def made(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        value = found[self.place]
        if self.kind == ARRAY:
            return value
        return value[()] if self.kind == SCALAR else value.item()

    def tensor(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        return found[self.place]


class OfArgument(NamedTuple):
    """A leaf that is an argument, by its number, or a view of one."""

    number: int
    views: tuple[View, ...]

    def made(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        return self.of(leaves[self.number])

    def of(self, array: Any) -> Any:
        """The view of the argument."""
        for view in self.views:
            array = _shown(array, view)
        return array

    def tensor(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        tensor = convert_to_tensor(leaves[self.number])
        for view in self.views:
            tensor = view.read(tensor)
        return tensor


class Known(NamedTuple):
    """A leaf that is the same in every call."""

    value: Any

    def made(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        return set(self.value) if type(self.value) is set else self.value  # the caller's own

    def tensor(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        return self.value


class OfTexts(NamedTuple):
    """A text with values that the program computes: `parts` are texts, and the leaves of values
    with their formats."""

    parts: tuple[str | tuple[OfProgram | OfArgument | Known, str], ...]

    def made(self, found: Sequence[Any], leaves: Sequence[Any]) -> str:
        return "".join(
            p if isinstance(p, str) else format(p[0].made(found, leaves), p[1]) for p in self.parts
        )

    def tensor(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        return self.made(found, leaves)


Leaf = OfProgram | OfArgument | Known | OfTexts


class Results:
    """How a result is made.

    Attributes:
        structure: its structure, with None for every leaf.
        leaves: where they come from.
        is_single: whether it is one leaf.
        changed: where in the arguments the lists and dicts are that the function changes. Where
            there are any, the result is a pair: what the function returns, and what these hold.
    """

    def __init__(
        self, structure: Any, leaves: list[Leaf], changed: Sequence[Sequence[Any]] = ()
    ) -> None:
        self.structure = nest.map_structure(lambda _: None, structure)
        self.leaves = leaves
        self.is_single = not nest.is_nested(structure)
        self.has_records = has_records(structure)
        self.changed = changed

    def pack(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result, of the arrays that the program gives and the leaves of the arguments."""
        if self.is_single:
            return self.leaves[0].made(found, leaves)
        return self.structured([leaf.made(found, leaves) for leaf in self.leaves])

    def structured(self, made: Sequence[Any]) -> Any:
        """The result, of its leaves."""
        found = nest.pack(self.structure, list(made))
        return together(found) if self.has_records else found

    def tensors(self, found: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result with tensors in place of arrays, scalars and numbers."""
        return nest.pack(self.structure, [leaf.tensor(found, leaves) for leaf in self.leaves])


def collect(
    result: Any,
    arguments: dict[Storage, int],
    changed: Sequence[tuple[Sequence[Any], Any]] = (),
    shown: Sequence[Any] = (),
) -> tuple[Results, list[Tensor]]:
    """How to make `result`, and the tensors that the program gives for it.

    Args:
        shown: the values that texts in the result have marks for.
        changed: lists and dicts among the arguments that hold something else now, with their paths.

    Raises:
        TypeError: a value that only has a meaning while the function is traced.
    """
    if changed:
        result = result, [holder for _, holder in changed]
    found, result = _Collected(arguments, shown), readable(result)
    leaves = [found.leaf(v) for v in nest.flatten(result)]
    return Results(result, leaves, [path for path, _ in changed]), found.tensors


class _Collected:
    """The tensors that a result needs of the program, each once."""

    def __init__(self, arguments: dict[Storage, int], shown: Sequence[Any]) -> None:
        self.arguments, self.shown = arguments, shown
        self.tensors: list[Tensor] = []
        self.arrays: dict[Any, OfProgram] = {}

    def add(self, tensor: Tensor, kind: str) -> OfProgram:
        self.tensors.append(tensor)
        return OfProgram(len(self.tensors) - 1, kind)

    def leaf(self, value: Any) -> Leaf:
        if isinstance(value, Array):
            return self.array(value)
        if isinstance(value, Scalar):
            return self.add(value.tensor, SCALAR)
        if type(value) is SymbolicNumber:
            return self.add(value.tensor(), NUMBER)
        if isinstance(value, Tensor):
            return self.add(value, ARRAY)
        if isinstance(value, Left):
            value.fail()
        if isinstance(value, Counted):
            raise TypeError(
                f"a jitted function cannot return an iterator or range{at(user_origin())}"
            )
        parts = None
        if self.shown and isinstance(value, str):
            parts = with_values(value, self.shown, lambda v, spec: (self.leaf(v), spec))
        return Known(value) if parts is None else OfTexts(tuple(parts))

    def array(self, value: Array) -> Leaf:
        source = self.arguments.get(value.storage)
        if source is not None and all(is_constant(v) for v in value.views):
            return OfArgument(source, value.views)
        key = value.storage, value.views
        if key not in self.arrays:
            self.arrays[key] = self.add(value.tensor, ARRAY)
        return self.arrays[key]


def _shown(array: Any, view: View) -> Any:
    """A view of the caller's array."""
    if isinstance(view, Key):
        return array[view.key]
    if isinstance(view, Permuted):
        return array.transpose(view.perm)
    assert isinstance(view, Reshaped)
    return array.reshape(view.dims)
