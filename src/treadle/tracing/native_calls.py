"""Plans for the trampoline (`treadle.runtime.dispatch`): the fastest path of a call.

They accept what the generated Python plans (`tracing.calls`) accept, or less: a call that none of
them takes goes to those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.spec import TensorSpec, is_static
from treadle.ops.state import Variable
from treadle.runtime.dispatch.plans import (
    DICT,
    DICT_RESULT,
    LIST,
    LIST_RESULT,
    NOTHING,
    SINGLE,
    TUPLE,
    TUPLE_RESULT,
    CallPlan,
    Output,
    TooLarge,
)
from treadle.runtime.native import NativeExecutable
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.programs import SharedExecutable
from treadle.tracing.signature import is_tensor_leaf
from treadle.tracing.trace import _Result
from treadle.tracing.tracebacks import show_user_frames


class _NoPlan(Exception):
    """The call needs more than the trampoline does."""


def native_plan(
    concrete: ConcreteFunction, args: Sequence[Any], order: Sequence[int]
) -> CallPlan | None:
    """A plan for positional calls like this one, or None where there cannot be one.

    Args:
        args: the values of a call.
        order: the places in `args` in the order of the function's parameters.
    """
    try:
        return _Writer(concrete, len(args)).write(args, order)
    except (_NoPlan, TooLarge):
        return None


class _Writer:
    def __init__(self, concrete: ConcreteFunction, count: int) -> None:
        self.concrete = concrete
        native, self.sizes = _native(concrete.executable)
        program = native.program
        if concrete.changed or program.needs_frame or program.signature.cells or not program.run:
            raise _NoPlan
        self.signature = program.signature
        self.slots = {number: i for i, number in enumerate(self.signature.arguments)}
        frame = self._frame()
        self.unused = len(frame)  # where the addresses of arguments go that nobody reads
        self.plan = CallPlan(
            count, program.run, native.state_address, [*frame, 0],
            program.releases_gil or program.callbacks is not None, _failure(program),
        )  # fmt: skip
        self.plan.keep.append(native)
        self.numbers = iter(range(len(concrete.graph.arguments)))

    def _frame(self) -> list[int]:
        """The frame with the addresses of captured arrays and the sizes that symbols stand for."""
        graph, signature = self.concrete.graph, self.signature
        first = len(graph.params) - len(graph.captures)
        frame = []
        for number in signature.arguments:
            captured = None if number < first else graph.captures[number - first]
            if getattr(captured, "is_symbolic", False):
                raise _NoPlan
            frame.append(0 if captured is None else captured._array.ctypes.data)
        frame += [0] * len(signature.outputs)
        for source in signature.symbols:
            size = self.sizes.get(source.name)
            if not isinstance(size, int):
                raise _NoPlan
            frame.append(size)
        return frame

    def write(self, args: Sequence[Any], order: Sequence[int]) -> CallPlan:
        for place in order:
            self.argument(0, place, args[place])
        if next(self.numbers, None) is not None or len(order) != len(args):
            raise _NoPlan  # a tensor that a default filled in
        if self.plan.fields["hold"]:
            for captured in self.concrete.variables:
                self.plan.held(captured, _array_offset())
        self._results()
        return self.plan

    # -- arguments ---------------------------------------------------------------------------

    def argument(self, base: int, place: Any, value: Any) -> None:
        """Checks for the item at `place` of a base, which now is `value`."""
        kind = type(value)
        if isinstance(value, Variable):
            raise _NoPlan
        if is_tensor_leaf(value):
            self.tensor(base, place)
        elif kind in (list, tuple):
            inner = self.plan.container(base, place, LIST if kind is list else TUPLE, len(value))
            for i, item in enumerate(value):
                self.argument(inner, i, item)
        elif kind is dict:
            self.mapping(base, place, value)
        elif value is None or kind is bool:
            self.plan.value(base, place, value, by_identity=True)
        elif kind in (int, str, bytes):
            self.plan.value(base, place, value, by_identity=False)
        elif kind is float:
            self.plan.float(base, place, value)
        else:
            raise _NoPlan  # known by identity: an address may come to belong to another object

    def mapping(self, base: int, place: Any, value: dict[Any, Any]) -> None:
        if not all(type(key) is str for key in value):
            raise _NoPlan
        inner = self.plan.container(base, place, DICT, len(value))
        for key in sorted(value):
            self.argument(inner, key, value[key])

    def tensor(self, base: int, place: Any) -> None:
        number = next(self.numbers, None)
        if number is None:
            raise _NoPlan
        spec = self.concrete.graph.arguments[number].spec
        if not isinstance(spec, TensorSpec) or not is_static(spec):
            raise _NoPlan
        self.plan.tensor(base, place, spec, self.slots.get(number, self.unused))

    # -- results -----------------------------------------------------------------------------

    def _results(self) -> None:
        specs = self.concrete.outputs
        if self.signature.outputs != list(range(len(specs))):
            raise _NoPlan
        if not all(isinstance(spec, TensorSpec) and is_static(spec) for spec in specs):
            raise _NoPlan
        kind, order, keys = _form(self.concrete.result_structure)
        if sorted(order) != list(range(len(specs))):
            raise _NoPlan
        first = len(self.signature.arguments)
        outputs = [Output(specs[i], first + i) for i in order]  # type: ignore[arg-type]
        self.plan.finish(outputs, kind, keys)


def _form(structure: Any) -> tuple[int, list[int], list[str]]:
    """How results are returned: the kind, their numbers in order, and a dict's keys."""
    if structure is None:
        return NOTHING, [], []
    if isinstance(structure, _Result):
        return SINGLE, [structure.index], []
    keys: list[str] = []
    if type(structure) is dict and all(type(k) is str for k in structure):
        kind, items, keys = DICT_RESULT, list(structure.values()), list(structure)
    elif type(structure) in (list, tuple):
        kind = LIST_RESULT if type(structure) is list else TUPLE_RESULT
        items = list(structure)
    else:
        raise _NoPlan
    if not items or not all(isinstance(x, _Result) for x in items):
        raise _NoPlan
    return kind, [x.index for x in items], keys


def _native(executable: Any) -> tuple[NativeExecutable, dict[str, Any]]:
    """The compiled program behind an executable, and what its symbols are."""
    sizes: dict[str, Any] = {}
    if isinstance(executable, SharedExecutable):
        executable, sizes = executable.program.executable, executable.sizes
    if not isinstance(executable, NativeExecutable):
        raise _NoPlan
    return executable, sizes


def _failure(program: Any) -> Callable[[], Any]:
    """Raises the exception with which a callback ended the program."""

    def failed() -> None:
        error = program.callbacks.take_failure()
        show_user_frames(error)
        raise error

    return failed


def _array_offset() -> int:
    from treadle.runtime.dispatch.layout import slot_offset

    return slot_offset(Variable, "_array")
