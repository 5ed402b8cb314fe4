"""The verifier of bounds for single operands: their memory, and positions that are data.

A position that an update does not check itself (`CHECKED`) was compared with its axis before, in
the update itself or in a read at the same place, or loops count it; counts are proved anew here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from treadle.core.shapes import Dim, product
from treadle.graph.integers import Integers
from treadle.graph.ir import Node, Value
from treadle.ops.control.checks import ANY, GOOD
from treadle.ops.elementwise.casting import CAST
from treadle.ops.lowering import ListAction
from treadle.runtime.bounds import BoundsError, Sizes, covers
from treadle.runtime.reach import is_checked_before
from treadle.runtime.roles import literal
from treadle.runtime.schedule.lists import ElementDims, Ragged, list_form
from treadle.runtime.schedule.steps import Check, Finding, ListStep, Operand, Position, Update


def expect_elements(operand: Operand, elements: Dim, sizes: Sizes) -> None:
    """The memory of an operand must have so many elements."""
    place, spec = operand.place, operand.value.spec
    if place is not None and place.dtype is not spec.dtype:
        return  # workspace, which is counted in bytes
    if not covers(() if place is None else place.dims, elements, sizes):
        raise BoundsError(f"{operand.value} has not the {elements} elements that are expected")


@dataclass
class Positions:
    """The positions that checks have found to be inside axes of some sizes."""

    found: set[tuple[Value, Dim]] = field(default_factory=set)
    noted: set[Node] = field(default_factory=set)  # whose positions notes are about

    def copy(self) -> Positions:
        return Positions(set(self.found), set(self.noted))

    def note(self, check: Finding) -> None:
        """Remember what a check compares that a note is about."""
        self.noted.add(check.node)
        self._compared(check.holds)

    def add(self, step: Check | Position) -> None:
        """Remember the sizes that a step compares."""
        if isinstance(step, Position):
            self.found.add((step.value, step.size))
        else:
            self._compared(step.holds)

    def _compared(self, holds: Operand) -> None:
        node = holds.value.node
        while node is not None and node.op in (GOOD, ANY):
            node = node.inputs[0].node
        kind = None if node is None else node.attrs.get("kind")
        if node is not None and kind in ("outside", "wrapping"):
            self.found.add((_plain(node.inputs[0]), node.attrs["size"]))

    def expect(self, step: Update, integers: Integers, sizes: Sizes) -> None:
        """The positions of an update must be inside.

        Raises:
            BoundsError: one was neither compared nor is it proved to be.
        """
        for value, size in _positions(step.node):
            if not self._is_inside(value, size, integers, sizes):
                raise BoundsError(
                    f"{step.node} writes at {value}, which nothing keeps in an axis of {size}"
                )

    def _is_inside(self, value: Value, size: Dim, integers: Integers, sizes: Sizes) -> bool:
        plain = _plain(value)
        least = 0 if value.spec.dtype.is_unsigned else -size  # those do not count from the end
        known = literal(plain)
        if known is not None and isinstance(size, int) and isinstance(least, int):
            return bool(least <= int(known) < size)
        wanted = sizes.canonical(size)
        if any(v is plain and sizes.canonical(s) == wanted for v, s in self.found):
            return True
        return integers.lies_inside(plain, least, size)


def _positions(node: Node) -> Iterator[tuple[Value, Dim]]:
    """The positions that an update does not check itself, each with the extent of its axis."""
    if not is_checked_before(node) or "begin" in node.attrs:
        return
    dims = node.inputs[0].spec.dims
    if "axis" in node.attrs:
        yield node.inputs[1], dims[node.attrs["axis"]]
    else:
        yield from zip(node.inputs[1:-1], dims, strict=True)


def _plain(value: Value) -> Value:
    """A position before conversions to other integers."""
    node = value.node
    while node is not None and node.op is CAST and node.inputs[0].spec.dtype.is_integer:
        value = node.inputs[0]
        node = value.node
    return value


def verify_list(step: ListStep, known: Mapping[Value, ElementDims], sizes: Sizes) -> None:
    """Arrays that go into a list, or come out of it, have the size of its elements. Positions in
    lists are compared with their lengths by the code of every op.

    Raises:
        BoundsError: the sizes are not proved to be equal.
    """
    items = next((o for o in (*step.inputs, *step.outputs) if o.value in known), None)
    dims = None if items is None else known[items.value]
    if dims is None or isinstance(dims, Ragged):
        return  # sizes are kept beside such elements
    element = product(dims)
    form = list_form(step.node)
    match None if form is None else form.action:
        case ListAction.PUSH | ListAction.SET:
            stored = product(step.inputs[-1].value.spec.dims)
            expect_elements(step.inputs[-1], stored, sizes)
            if not covers((element,), stored, sizes):
                raise BoundsError(f"{step.node} puts {stored} elements where there are {element}")
        case ListAction.GET:
            if step.outputs[0].place is not None and step.outputs[0].place.kind != "element":
                expect_elements(step.outputs[0], element, sizes)
        case ListAction.UNSTACK:
            count = step.inputs[0].value.spec.dims[0]
            expect_elements(step.inputs[0], count * element, sizes)
