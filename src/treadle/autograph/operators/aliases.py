"""Variables that share a tensor's elements, as NumPy's arrays and views do.

``x[k] = v`` gives `x` a new tensor. Where NumPy would change another variable too, which is read
later, going on would silently give another result: that is an error.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.autograph import config
from treadle.autograph.analysis.frames import live_after, outer_target, stored_after
from treadle.autograph.errors import SharedElementsError, StagingTypeError
from treadle.core import nest
from treadle.core.context import context
from treadle.core.origin import at, is_internal, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import SymbolicTensor, Tensor, lacks_rank, may_share
from treadle.graph.trip_count import trip_count
from treadle.ops.control.control_flow import COND
from treadle.ops.operators import in_place
from treadle.ops.shaping.slicing import STRIDED_SLICE

_LIMIT = 1000  # elements looked at in one structure

# For the builder of a loop's body: its variables -> their values in the first iteration.
_carried: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def carry(inside: Sequence[Any], outside: Sequence[Any]) -> None:
    """Note that the loop variables `inside` begin as `outside`."""
    for inner, outer in zip(inside, outside, strict=True):
        if isinstance(inner, SymbolicTensor) and not lacks_rank(inner):
            _carried.setdefault(inner.recorder, {})[inner.value] = outer


class _Assigned(threading.local):
    """How often a part of a tensor was assigned in this thread."""

    times: int = 0


_assigned = _Assigned()


class Assignments:
    """Whether parts of tensors were assigned since this was made."""

    def __init__(self) -> None:
        self._before = _assigned.times

    def __bool__(self) -> bool:
        return _assigned.times > self._before


def share_elements(values: Sequence[Any]) -> bool:
    """Whether two of some values are or may be one tensor, or parts of one."""
    tensors = [_Storage(v) for v in values if isinstance(v, SymbolicTensor) and _has_parts(v)]
    return any(a.shares(b.tensor) for a, b in combinations(tensors, 2))


def _has_parts(value: Any) -> bool:
    """Whether parts of it may be assigned: its rank must be known for that."""
    return isinstance(value, Tensor) and not lacks_rank(value) and bool(value.ndim)


def share_with_others(values: Sequence[Any]) -> frozenset[tuple[int, int]]:
    """Which values of the body being traced share elements: the numbers of two of them, or the
    number of one and the identity of a tensor from outside the body."""
    body: Any = context.recorder
    tensors = [(k, _Storage(v)) for k, v in enumerate(values) if _has_parts(v)]
    found: set[tuple[int, int]] = set()
    for k, storage in tensors:
        found |= {(k, n) for n, other in tensors if n > k and storage.shares(other.tensor)}
        if getattr(storage.tensor, "recorder", None) is not body:
            found.add((k, id(storage.tensor)))
        captured = body.captured.values()
        found |= {(k, id(outer)) for outer, inner in captured if inner.value in storage.bases}
    return frozenset(found)


class Owner:
    """The variable or attribute whose tensor is assigned a part, and which gets the new tensor.

    Attributes:
        container, key: where it is.
        root: the variable's value that the container is in.
    """

    def __init__(self, container: Any, key: Any, root: Any) -> None:
        self.container, self.key, self.root = container, key, root

    def is_at(self, container: Any, key: Any) -> bool:
        if container is not self.container:
            return False
        negative = isinstance(self.key, int) and self.key < 0 and isinstance(container, list)
        return bool(key == (self.key + len(container) if negative else self.key))


def check_aliases(target: Any, owner: Owner | None = None) -> None:
    """SharedElementsError if a variable that is still read shares the elements of `target`."""
    _assigned.times += 1
    own = _Storage(target)
    own.note_arguments("a part of it is assigned", goes_on=False)
    for name, value in _held(owner):
        if own.shares(value):
            raise SharedElementsError(
                f"This assigns to a part of a tensor that {name!r} shares and that is read later. "
                "NumPy would change both; here a tensor never changes, and only the variable that "
                f"is assigned gets the new values. Make {name!r} a copy first, with td.identity, "
                "or take it again from the result; td.jit has NumPy's meaning"
                f"{at(user_origin())}"
            )


def note_operator(target: Any, frame: types.FrameType) -> None:
    """``target += value`` in a frame. Of an array that is an argument, or of one that another
    variable holds too, NumPy would change the elements for all.

    Raises:
        StagingTypeError: the array is not an argument, and another variable that is still read
            holds it too.
    """
    code, offset = frame.f_code, frame.f_lasti
    if is_internal(code.co_filename):
        return
    own = _Storage(target)
    name, goes_on = stored_after(code, offset)
    if isinstance(target, SymbolicTensor):
        if own.arguments():
            others = any(own.shares(v) for other, v in _held(None, frame) if other != name)
            how = f"an operator such as += changes {name!r}" if name else "an operator changes it"
            own.note_arguments(how, goes_on and not others)
        return
    for other, value in _held(None, frame):
        if other != name and own.shares(value):
            raise StagingTypeError(
                f"This changes an array in place that {other!r} holds too and that is read later. "
                f"NumPy would change it for both; here {name!r} becomes a tensor, which never "
                f"changes. Make {other!r} a copy first; td.jit has NumPy's meaning"
                f"{at(user_origin())}"
            )


def _held(owner: Owner | None, first: types.FrameType | None = None) -> Iterator[tuple[str, Any]]:
    """The tensors and arrays in variables that converted functions on the stack, and the frame
    `first`, still read."""
    frame: types.FrameType | None = sys._getframe(1) if first is None else first
    if owner is not None:
        yield from (("its container", leaf) for leaf in _leaves(owner.root, owner, None))
        for attribute, held in _attributes(owner.root):
            if not owner.is_at(owner.root, attribute):
                yield from ((f".{attribute}", leaf) for leaf in _leaves(held, owner, None))
    assigned: str | None = None  # the target itself, where the functions around share it
    innermost = True
    while frame is not None:
        code = frame.f_code
        if frame is first or code.co_filename.startswith("<autograph of "):
            if innermost:
                assigned = outer_target(code, frame.f_lasti)
                innermost = False
            live = live_after(code, frame.f_lasti) - {assigned}
            for name in live:
                value = frame.f_locals.get(name, frame.f_globals.get(name))
                yield from ((name, leaf) for leaf in _leaves(value, owner, assigned))
                for attribute, held in _attributes(value):
                    if f".{attribute}" in live and (
                        owner is None or not owner.is_at(value, attribute)
                    ):
                        leaves = _leaves(held, owner, None)
                        yield from ((f"{name}.{attribute}", leaf) for leaf in leaves)
        elif not is_internal(code.co_filename) and not config.is_library_module(
            frame.f_globals.get("__name__")
        ):
            return  # the caller of the converted code has values of its own
        frame = frame.f_back


def _leaves(value: Any, owner: Owner | None, assigned: str | None) -> Iterator[Any]:
    """The tensors and arrays in a structure, or in the closure of a function."""
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from (c for n, cell in cells if n != assigned for c in _content(cell))
        return
    parts = nest.children(value)
    if parts is None:
        if isinstance(value, Tensor | np.ndarray):
            yield value
    elif len(parts) <= _LIMIT:
        for key, child in parts:
            if owner is None or not owner.is_at(value, key):
                yield from _leaves(child, owner, assigned)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object of the user's."""
    named = types.ModuleType | types.FunctionType | type
    if hasattr(value, "__dict__") and not nest.is_nested(value) and not isinstance(value, named):
        yield from list(vars(value).items())


def _content(cell: Any) -> list[Any]:
    try:
        found = cell.cell_contents
    except ValueError:  # not assigned yet
        return []
    return [found] if isinstance(found, Tensor | np.ndarray) else []


class _Storage:
    """Whose elements a tensor has: the tensors that it is or may be a view of."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        # Each base (a graph value, or an object) -> the view of it on the way to the tensor.
        self.bases: dict[Any, Any] = {}
        if isinstance(tensor, SymbolicTensor):
            self._walk(tensor)

    def arguments(self) -> list[Any]:
        """The arguments of the function being traced that have these elements."""
        if not isinstance(self.tensor, SymbolicTensor):
            return []
        params = self.tensor.recorder.graph.arguments
        return [p for p in params if p in self.bases and type(p.spec) is TensorSpec and p.spec.rank]

    def note_arguments(self, how: str, goes_on: bool) -> None:
        """Note that the function changes the arguments in place. A refused change is kept."""
        for param in self.arguments():
            changed = self.tensor.recorder.changed
            if changed.get(param, ("", "", True))[2]:
                changed[param] = how, at(user_origin()), goes_on

    def shares(self, value: Any) -> bool:
        if value is self.tensor:
            return True
        if isinstance(value, SymbolicTensor) and isinstance(self.tensor, SymbolicTensor):
            return self._overlaps(_Storage(value))
        if isinstance(value, SymbolicTensor) or isinstance(self.tensor, SymbolicTensor):
            return False
        if isinstance(value, Tensor) and value.shape == self.tensor.shape:
            return False  # eager copies keep the elements: tensors do not change
        return may_share(self.tensor, value)

    def _overlaps(self, other: _Storage) -> bool:
        if self.tensor.value in other.bases or other.tensor.value in self.bases:
            return True
        common = (b for b in self.bases if b in other.bases)
        return any(not _apart(self.bases[b], other.bases[b]) for b in common)

    def _walk(self, tensor: SymbolicTensor) -> None:
        operands: dict[Any, Any] = {}  # of finished regions: parameter -> operand
        todo = [(tensor.value, tensor.recorder, None)]
        while todo:
            value, builder, view = todo.pop()
            if value in self.bases:
                continue
            self.bases[value] = view
            node = value.node
            if node is None and value in operands:
                todo.append((operands[value], builder, view))
            elif node is None:
                todo += [(*where, view) for where in self._outside(value, builder, view)]
            elif "numpy_view" in node.op.tags and tensor.ndim:
                todo.append((node.inputs[0], builder, node))
            elif "control_flow" in node.op.tags:
                todo += [(v, builder, view) for v in _results(node, value.index, operands)]

    def _outside(self, value: Any, builder: Any, view: Any) -> list[tuple[Any, Any]]:
        """The outer values that a parameter of a region being traced stands for."""
        found = [o for o, inner in builder.captured.values() if inner.value is value]
        found += [o for v, o in _carried.get(builder, {}).items() if v is value]
        for other in found:
            if not isinstance(other, SymbolicTensor):
                self.bases[id(other)] = view
        return [(o.value, o.recorder) for o in found if isinstance(o, SymbolicTensor)]


def _results(node: Any, index: int, operands: dict[Any, Any]) -> list[Any]:
    """The values that an output of a cond or while node may be."""
    bodies = node.regions if node.op is COND else node.regions[1:]
    for region in bodies:
        operands.update(zip(region.params, node.region_inputs, strict=True))
    found = [region.results[index] for region in bodies]
    if node.op is COND or trip_count(node):
        return found
    return [*found, node.inputs[index]]  # after no iteration


def _apart(a: Any, b: Any) -> bool:
    """Whether two views of one tensor have no element in common, or are one view."""
    if a is None or b is None:
        return False
    if a is b:
        return True  # compared at the view itself, which is a common base too
    if a.op is not STRIDED_SLICE or b.op is not STRIDED_SLICE:
        return False
    return any(
        _apart_on_axis(*parts)
        for parts in zip(*(n.attrs[k] for n in (a, b) for k in ("begin", "size", "strides")),
                         strict=True)
    )  # fmt: skip


def _apart_on_axis(
    begin: Any, size: Any, stride: int, other_begin: Any, other_size: Any, other_stride: int
) -> bool:
    if not all(isinstance(n, int) for n in (begin, size, other_begin, other_size)):
        return False
    if stride == other_stride and (begin - other_begin) % stride != 0:
        return True
    ends = sorted((begin, begin + (size - 1) * stride))
    others = sorted((other_begin, other_begin + (other_size - 1) * other_stride))
    return bool(ends[1] < others[0] or others[1] < ends[0])


in_place.note = note_operator
