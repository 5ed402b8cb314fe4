"""The status of a program on a device that the host waits for: which check failed first.

A check there is a part of a kernel (`Note`): where nothing has failed yet and the check fails, it
writes its number into the word of the status, and beside it what the error shows. The program goes
on, and its kernels stay inside of their arrays: they clamp computed positions that they read at,
and leave out those that they write at. The last step (`Verdict`) reads the status, the only time
that the host waits for it, and the error is raised then.

Checks are the ops `note`, which judge operands that eager execution refuses, the verdicts of
routines of the library, and assertions of the user. One launch notes several of them in a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, compound, substitute
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import (
    Axis,
    Buffer,
    Expr,
    Index,
    Iota,
    Kernel,
    Store,
    apply,
    as_index,
    const,
    load,
    store,
)
from treadle.ops.control.checks import CHECK, NOTE
from treadle.ops.control.io import ASSERT
from treadle.ops.lowering import dim_expr
from treadle.ops.properties import Refusal
from treadle.runtime.schedule.steps import Finding, Operand, Place
from treadle.runtime.scope import Scope

WORD = dtypes.int32  # of the number of the check that failed first; 0: none did


class Status:
    """The status of a program whose schedule is being built.

    Attributes:
        findings: the checks that the device makes, by number from 1.
        places: the word, and where the elements are kept that the error of a check shows. Checks
            share these places, for only those of the first that fails are kept.
    """

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.places: list[Place] = []

    @property
    def word(self) -> Place:
        """The place of the word."""
        if not self.places:
            self._new(WORD, ())
        return self.places[0]

    def add(self, check: Finding) -> None:
        """Give a check its number, and places to its elements."""
        self.findings.append(check)
        check.number = len(self.findings)
        shared: dict[tuple[DType, tuple[Dim, ...]], list[Place]] = {}
        _, *kept = self.word, *self.places[1:]
        for place in kept:
            shared.setdefault((place.dtype, place.dims), []).append(place)
        used: Counter[tuple[DType, tuple[Dim, ...]]] = Counter()
        for element in check.elements:
            spec = element.value.spec
            key = spec.dtype, tuple(shown_size(d, check.ends) for d in spec.dims)
            free = shared.get(key, ())[used[key] :]
            check.kept.append(free[0] if free else self._new(*key))
            used[key] += bool(free)

    def _new(self, dtype: DType, dims: tuple[Dim, ...]) -> Place:
        place = Place("status", len(self.places), dtype, dims)
        self.places.append(place)
        return place


def finding_of(node: Node, operands: Sequence[Operand]) -> Finding:
    """The check that a node makes, given where its inputs are."""
    holds, *elements = operands
    if node.op is NOTE:
        return Finding(node.attrs["of"], node.attrs["numbers"], holds, elements)
    first = 0 if node.op is CHECK else 1  # an assertion is about its own operands
    numbers = tuple(range(first, first + len(elements)))
    ends = node.attrs["summarize"] if node.op is ASSERT else -1
    return Finding(node.attrs.get("of", node), numbers, holds, elements, ends=ends)


# -- kernels -------------------------------------------------------------------------------------


def shown_size(size: Dim, ends: int) -> Dim:
    """How many elements along an axis are kept: those at its ends, and one that stands for those
    between them."""
    return size if ends < 0 else compound("min", size, 2 * ends + 1)


class KernelOperands:
    """The buffers of a kernel that is being written, and the operands that they stand for."""

    def __init__(self) -> None:
        self.buffers: dict[tuple[Value, Place | None], Buffer] = {}
        self.operands: list[Operand] = []

    def __call__(self, operand: Operand) -> Buffer:
        """The buffer of an operand."""
        value, place = operand.value, operand.place
        if (value, place) not in self.buffers:
            dims = value.spec.dims
            buffer = Buffer(f"x{len(self.buffers)}", value.spec.dtype, dims)
            self.buffers[value, place] = buffer
            self.operands.append(operand)
        return self.buffers[value, place]

    def kernel(self, axes: Sequence[Axis], stores: Sequence[Store]) -> Kernel:
        return Kernel(tuple(axes), tuple(self.buffers.values()), tuple(stores))


def noting(
    checks: Sequence[Finding], word: Operand, kept: Mapping[Place, Operand], now: Operand | None
) -> tuple[Kernel, list[Operand]]:
    """The kernel that notes which of some checks is the first to fail, and its operands.

    Args:
        word: the word of the status.
        kept: the rank-0 places of the status as operands.
        now: gets the number of the check that this kernel notes, or 0.
    """
    given = KernelOperands()
    noted = load(given(word))
    nothing_yet: Expr = apply("eq", noted, const(0, WORD))
    found: Expr = const(0, WORD)
    values: dict[Place, Expr] = {}
    for check in checks:
        holds = load(given(check.holds))
        fails = apply("and", nothing_yet, apply("not", holds))
        nothing_yet = apply("and", nothing_yet, holds)
        found = apply("select", fails, const(check.number, WORD), found)
        for element, place in zip(check.elements, check.kept, strict=True):
            if not place.dims:
                before = values.get(place) or load(given(kept[place]))
                values[place] = apply("select", fails, load(given(element)), before)
    stores = [store(given(kept[place]), value=value) for place, value in values.items()]
    if now is not None:
        stores.append(store(given(now), value=found))
    fails = apply("ne", found, const(0, WORD))
    stores.append(store(given(word), value=apply("select", fails, found, noted)))
    return given.kernel((), stores), given.operands


def keeping(
    checks: Sequence[Finding], kept: Mapping[Place, Operand], now: Operand
) -> tuple[Kernel, list[Operand]] | None:
    """The kernel that keeps the arrays of the check that has just been noted as failed, and its
    operands; None where no error shows an array.

    Args:
        kept: the other places of the status as operands.
        now: the number of the check, or 0.
    """
    given = KernelOperands()
    shown: dict[Place, list[tuple[Expr, Operand]]] = {}
    for check in checks:
        here: Expr = apply("eq", load(given(now)), const(check.number, WORD))
        for element, place in zip(check.elements, check.kept, strict=True):
            if place.dims:
                shown.setdefault(place, []).append((here, element))
    if not shown:
        return None
    axes: list[Axis] = []
    stores: list[Store] = []
    for place, elements in shown.items():
        along = [Axis(f"i{place.number}_{n}", d) for n, d in enumerate(place.dims)]
        axes += along
        value: Expr | None = None
        fails: Expr = const(False, dtypes.bool)
        for here, element in elements:
            dims = element.value.spec.dims
            index = [_from_ends(a, d) for a, d in zip(along, dims, strict=True)]
            taken: Expr = load(given(element), *index, valid=here)
            value = taken if value is None else apply("select", here, taken, value)
            fails = apply("or", fails, here)
        first = apply("select", fails, Iota(along[0]), const(-1, dtypes.int64))
        assert value is not None
        stores.append(store(given(kept[place]), first, *along[1:], value=value, unique=True))
    return given.kernel(axes, stores), given.operands


def _from_ends(axis: Axis, size: Dim) -> Index:
    """Where the elements are that are kept along an axis: the first half at its beginning, the
    others at its end."""
    left_out = size - axis.extent
    if left_out == 0:
        return as_index(axis)
    place: Expr = Iota(axis)
    begins = apply("lt", apply("mul", place, const(2, dtypes.int64)), dim_expr(axis.extent))
    return apply("select", begins, place, apply("add", place, dim_expr(left_out)))


def goes_on(condition: Operand, word: Operand, out: Operand) -> tuple[Kernel, list[Operand]]:
    """The kernel that tells whether a loop goes on: its condition holds and no check has failed."""
    given = KernelOperands()
    nothing_yet = apply("eq", load(given(word)), const(0, WORD))
    value = apply("and", load(given(condition)), nothing_yet)
    stores = [store(given(out), value=value)]
    return given.kernel((), stores), given.operands


# -- the error -----------------------------------------------------------------------------------


def raise_noted(check: Finding, elements: Sequence[Any], symbols: Mapping[str, int]) -> None:
    """Raise the error of a check: run the NumPy implementation of its node on operands that hold
    the elements at their places, and elsewhere numbers that no operation refuses.

    Args:
        elements: the elements of the check as they were kept, or the elements themselves.
        symbols: the sizes that the program knows on entry.
    """
    node, given, inputs = check.node, iter(elements), []
    harmless = 1 if node.op.refuses in (Refusal.DIVISOR, Refusal.EXPONENT) else 0
    for number, value in enumerate(node.inputs):
        shape = tuple(substitute(d, symbols) for d in value.spec.dims)
        dtype = value.spec.dtype.np_dtype
        if number not in check.numbers:
            array = np.broadcast_to(np.zeros((), dtype), shape)  # type: ignore[arg-type]
        else:
            array = np.asarray(next(given))
            if array.ndim < len(shape):
                position = int(array)
                array = np.full(shape, harmless, dtype)  # type: ignore[arg-type]
                array.reshape(-1)[position] = next(given)
            elif array.shape != shape:
                array = _with_ends(array, shape)  # type: ignore[arg-type]
        inputs.append(array)
    from treadle.runtime import interpreter

    interpreter._Interpreter(False).node(node, inputs, Scope(symbols))
    raise errors.InternalError(
        None, node.op, f"{node.op.name} accepts what the check of it refused"
    )


def _with_ends(kept: np.ndarray[Any, Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """An array of a shape with the elements at the ends of its axes that were kept."""
    places = [
        [k if 2 * k < m else k + size - m for k in range(m)]
        for m, size in zip(kept.shape, shape, strict=True)
    ]
    array = np.zeros(shape, kept.dtype)
    array[np.ix_(*places)] = kept
    return array
