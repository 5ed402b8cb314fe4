"""Plans for the trampoline: calls of jitted functions without any Python in between.

They take plain contiguous arrays, numbers and scalars. Arrays that the function writes must be
writable and share memory with no other; calls with others go through `Jitted.__call__`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.spec import TensorSpec
from treadle.core.tensor import buffer_of
from treadle.jitted import forms
from treadle.jitted.arguments import ARRAY, NUMBER, SCALAR, Bound
from treadle.jitted.plan import Plan
from treadle.jitted.results import OfArgument, OfProgram
from treadle.ops.state import Variable
from treadle.runtime.cpu.dispatch.call_plan import (
    AGAIN,
    BOOL,
    COMPLEX,
    INPUT,
    INT,
    KNOWN,
    LIST_RESULT,
    NUMBER_WORDS,
    PACKED_RESULT,
    PLAIN,
    REAL,
    RESULT,
    SINGLE,
    TUPLE_RESULT,
    VIEW,
    CallPlan,
    Item,
    Output,
    TooLarge,
)
from treadle.runtime.cpu.dispatch.call_plan import SCALAR as SCALAR_FORM
from treadle.runtime.cpu.dispatch.layout import value_offset
from treadle.tracing.native_plans import NoPlan, PlanWriter

_FORMS = {"int64": INT, "float64": REAL, "complex128": COMPLEX, "bool": BOOL}


def native_plan(plan: Plan, bound: Bound, count: int, names: tuple[str, ...]) -> CallPlan | None:
    """A plan for calls like one, or None where there cannot be one.

    Args:
        plan: how the call runs.
        bound: its arguments: `count` were given by position and `names` by keyword.
    """
    try:
        return _Writer(plan, bound, count, names).write()
    except (NoPlan, TooLarge):
        return None


class _Writer(PlanWriter):
    def __init__(self, plan: Plan, bound: Bound, count: int, names: tuple[str, ...]) -> None:
        super().__init__(plan.concrete, count, names)
        self.how, self.bound = plan, bound
        self.places = bound.places(count, names)
        self.numbers = iter(range(len(bound.leaves)))
        self.parameters = {leaf: number for number, leaf in enumerate(plan.order)}
        self.inputs: dict[int, int] = {}  # of the leaves that are arrays
        self.seen: set[tuple[Any, Any]] = set()  # dtypes and shapes of arrays so far

    def write(self) -> CallPlan:
        if self.places is None or self.how.results.changed:
            raise NoPlan
        for place, value in self.places:
            if place is None:
                self.default(value)
            else:
                self.argument(0, place, value)
        if self.how.written:
            for captured in self.concrete.graph.captures:
                if not isinstance(captured, Variable):
                    self.plan.captured(buffer_of(captured))
            for leaf in self.how.written:
                self.plan.written(self.inputs[leaf], self.cells[self.parameters[leaf]])
        self.results()
        return self.plan

    # -- arguments ---------------------------------------------------------------------------

    def leaf(self, base: int, place: Any, value: Any) -> None:
        if nest.is_nested(value):
            raise NoPlan
        number = next(self.numbers)
        kind = self.bound.kinds[number]
        if kind.startswith(ARRAY):
            self.array(base, place, value, number)
        elif kind == NUMBER + "l":
            self.plan.integer(base, place, self.slot(number))
        elif kind.startswith(NUMBER) or kind == SCALAR:
            self.number(base, place, value, number)
        elif type(value) in (bool, int, str, bytes, type(None)):
            self.static(base, place, value)
        elif self.bound.key is None:
            raise NoPlan
        else:
            self.plan.value(base, place, value, by_identity=True)

    def slot(self, leaf: int) -> int:
        """The word of the frame for a leaf."""
        number = self.parameters[leaf]
        return self.cells.get(number, self.slots.get(number, self.unused))

    def array(self, base: int, place: Any, value: Any, number: int) -> None:
        if type(value) is not np.ndarray:
            raise NoPlan
        spec = TensorSpec(value.shape, dtypes.as_dtype(value.dtype))
        same = int(self.bound.kinds[number].removeprefix(ARRAY) or number)
        slot = self.slot(number)
        if same != number:
            self.inputs[number] = self.plan.same(base, place, self.inputs[same], spec, slot)
            return
        self.inputs[number] = self.plan.array(base, place, spec, slot)
        if (spec.dtype, spec.dims) in self.seen:
            self.plan.distinct()
        self.seen.add((spec.dtype, spec.dims))

    def number(self, base: int, place: Any, value: Any, number: int) -> None:
        kind: Any = type(value)
        offset = value_offset(kind)
        if offset is None:
            raise NoPlan
        self.plan.boxed(base, place, kind, offset, self.slot(number))

    def default(self, value: Any) -> None:
        """An argument that was left out: its default never changes."""
        for leaf in nest.flatten(value):
            number = next(self.numbers)
            kind = self.bound.kinds[number]
            if kind.startswith(ARRAY):
                raise NoPlan
            if kind.startswith(NUMBER) or kind == SCALAR:
                held = np.array(leaf, kind.removeprefix(NUMBER) if kind != SCALAR else None)
                self.plan.keep.append(held)
                self.plan.frame[self.slot(number)] = held.ctypes.data

    # -- results -----------------------------------------------------------------------------

    def results(self) -> None:
        specs = self.output_specs()
        leaves = self.how.results.leaves
        kinds = {leaf.place: leaf.kind for leaf in leaves if isinstance(leaf, OfProgram)}
        outputs = [self.output(i, spec, kinds[i]) for i, spec in enumerate(specs)]
        items = self.items(leaves)
        kind = self.form()
        if kind == PACKED_RESULT or any(item.kind == VIEW for item in items):
            self.plan.hold()
        self.hold_variables()
        self.plan.finish(outputs, kind, items=items, packer=self.how.results.structured)

    def output(self, place: int, spec: TensorSpec, kind: str) -> Output:
        slot = self.first_output + place
        if kind == forms.ARRAY:
            return Output(spec, slot, PLAIN)
        form = SCALAR_FORM if kind == forms.SCALAR else _FORMS.get(spec.dtype.name)
        if form is None or spec.rank or spec.dtype.size > 8 * NUMBER_WORDS:
            raise NoPlan
        return Output(spec, slot, form, self.plan.words(NUMBER_WORDS))

    def items(self, leaves: Sequence[Any]) -> list[Item]:
        """The caller's results, leaf by leaf."""
        first: dict[int, int] = {}
        items: list[Item] = []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, OfProgram):
                known = first.setdefault(leaf.place, i)
                items.append(Item(RESULT, leaf.place) if known == i else Item(AGAIN, known))
            elif isinstance(leaf, OfArgument):
                if leaf.number not in self.inputs:
                    raise NoPlan
                number = self.inputs[leaf.number]
                items.append(Item(VIEW, number, leaf.of) if leaf.views else Item(INPUT, number))
            else:
                items.append(Item(KNOWN, 0, leaf.value))
        return items

    def form(self) -> int:
        """The kind of structure that the items are returned in."""
        results = self.how.results
        if results.is_single:
            return SINGLE
        kinds: dict[type, int] = {list: LIST_RESULT, tuple: TUPLE_RESULT}
        kind = kinds.get(type(results.structure), PACKED_RESULT)
        nested = kind == PACKED_RESULT or any(part is not None for part in results.structure)
        return PACKED_RESULT if nested else kind
