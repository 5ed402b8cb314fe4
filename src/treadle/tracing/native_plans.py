"""Plans for the trampoline (`treadle.runtime.cpu.dispatch`): the fastest path of a call.

They accept what the generated Python plans (`tracing.calls`) accept, or less: a call that none of
them takes goes to those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.spec import TensorSpec, is_static
from treadle.core.tensor import buffer_of
from treadle.ops.state import Variable
from treadle.runtime.cpu.dispatch.call_plan import (
    DICT,
    DICT_RESULT,
    LIST,
    LIST_RESULT,
    NOTHING,
    PACKED_RESULT,
    RESULT,
    SINGLE,
    TUPLE,
    TUPLE_RESULT,
    CallPlan,
    Item,
    Output,
    TooLarge,
)
from treadle.runtime.cpu.dispatch.layout import slot_offset
from treadle.runtime.cpu.native import NativeExecutable
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.programs import SharedExecutable
from treadle.tracing.python_plans import packer
from treadle.tracing.signature import is_tensor_leaf
from treadle.tracing.trace import _Result
from treadle.tracing.tracebacks import show_user_frames


class NoPlan(Exception):
    """The call needs more than the trampoline does."""


def native_plan(
    concrete: ConcreteFunction, args: Sequence[Any], order: Sequence[int],
    names: tuple[str, ...] = (),
) -> CallPlan | None:  # fmt: skip
    """A plan for calls like this one, or None where there cannot be one.

    Args:
        args: the values of a call; values of keywords come last.
        order: the places in `args` in the order of the function's parameters.
        names: the keywords.
    """
    try:
        return _FunctionWriter(concrete, len(args) - len(names), names).write(args, order)
    except (NoPlan, TooLarge):
        return None


class PlanWriter:
    """Writes the plan for one signature: checks of the arguments, then results.

    Args:
        count: positional arguments of the call.
        names: its keywords.

    Attributes:
        slots: words of the frame, by the numbers of the parameters that arrays are passed for.
        cells: words of the frame for variables that are passed.
        unused: the word for the addresses of arguments that the program does not read.
    """

    def __init__(
        self, concrete: ConcreteFunction, count: int, names: tuple[str, ...]
    ) -> None:
        self.concrete = concrete
        native, self.sizes = _native(concrete.executable)
        program = native.program
        if concrete.changed or program.needs_frame or not program.run:
            raise NoPlan
        self.signature = signature = program.signature
        self.slots = {number: i for i, number in enumerate(signature.arguments)}
        self.cells = {n: i for i, n in enumerate(signature.cells, len(signature.arguments))}
        frame = self._frame()
        self.unused = len(frame)
        self.plan = CallPlan(
            count, program.run, native.state_address, [*frame, 0],
            program.releases_gil or program.callbacks is not None, _failure(program), names,
        )  # fmt: skip
        self.plan.keep.append(native)

    def _frame(self) -> list[int]:
        """The frame with the addresses of captured arrays and the sizes that symbols stand for."""
        graph, signature = self.concrete.graph, self.signature
        first = len(graph.params) - len(graph.captures)
        frame = []
        for number in signature.arguments:
            captured = None if number < first else graph.captures[number - first]
            if getattr(captured, "is_symbolic", False):
                raise NoPlan
            frame.append(0 if captured is None else buffer_of(captured).ctypes.data)
        frame += [0] * (len(signature.cells) + len(signature.outputs))
        for source in signature.symbols:
            size = self.sizes.get(source.name)
            if not isinstance(size, int):
                raise NoPlan
            frame.append(size)
        return frame

    def hold_variables(self) -> None:
        """Other code may run during the call: it keeps the buffers of captured variables."""
        if self.plan.fields["hold"]:
            for captured in self.concrete.variables:
                self.plan.held(captured, _array_offset())

    # -- arguments ---------------------------------------------------------------------------

    def argument(self, base: int, place: Any, value: Any) -> None:
        """Checks for the item at `place` of a base, which now is `value`."""
        kind = type(value)
        if kind in (list, tuple):
            inner = self.plan.container(base, place, LIST if kind is list else TUPLE, len(value))
            for i, item in enumerate(value):
                self.argument(inner, i, item)
        elif kind is dict:
            self.mapping(base, place, value)
        else:
            self.leaf(base, place, value)

    def mapping(self, base: int, place: Any, value: dict[Any, Any]) -> None:
        if not all(type(key) is str for key in value):
            raise NoPlan
        inner = self.plan.container(base, place, DICT, len(value))
        for key in sorted(value):
            self.argument(inner, key, value[key])

    def leaf(self, base: int, place: Any, value: Any) -> None:
        """Checks for a value that is no list, tuple or dict."""
        raise NotImplementedError

    def static(self, base: int, place: Any, value: Any) -> None:
        """Checks for a Python value that must be the same."""
        kind = type(value)
        if value is None or kind is bool:
            self.plan.value(base, place, value, by_identity=True)
        elif kind in (int, str, bytes):
            self.plan.value(base, place, value, by_identity=False)
        elif kind is float:
            self.plan.float(base, place, value)
        else:
            raise NoPlan  # known by identity: an address may come to belong to another object

    # -- results -----------------------------------------------------------------------------

    def output_specs(self) -> list[TensorSpec]:
        """The specs of the program's results, whose words follow the arguments' words."""
        specs = self.concrete.outputs
        if self.signature.outputs != list(range(len(specs))):
            raise NoPlan
        if not all(isinstance(spec, TensorSpec) and is_static(spec) for spec in specs):
            raise NoPlan
        return specs  # type: ignore[return-value]

    @property
    def first_output(self) -> int:
        return len(self.signature.arguments) + len(self.signature.cells)


class _FunctionWriter(PlanWriter):
    """Plans of `td.function`: tensors or arrays in, tensors out."""

    def write(self, args: Sequence[Any], order: Sequence[int]) -> CallPlan:
        if self.signature.cells:
            raise NoPlan
        self.numbers = iter(range(len(self.concrete.graph.arguments)))
        for place in order:
            self.argument(0, place, args[place])
        if next(self.numbers, None) is not None or len(order) != len(args):
            raise NoPlan  # a tensor that a default filled in
        self._results()
        return self.plan

    def leaf(self, base: int, place: Any, value: Any) -> None:
        if isinstance(value, Variable):
            raise NoPlan
        if not is_tensor_leaf(value):
            self.static(base, place, value)
            return
        number = next(self.numbers, None)
        if number is None:
            raise NoPlan
        spec = self.concrete.graph.arguments[number].spec
        if not isinstance(spec, TensorSpec) or not is_static(spec):
            raise NoPlan
        self.plan.tensor(base, place, spec, self.slots.get(number, self.unused))

    def _results(self) -> None:
        specs = self.output_specs()
        structure = self.concrete.result_structure
        outputs = [Output(spec, self.first_output + i) for i, spec in enumerate(specs)]
        kind, order, keys = _form(structure)
        plain = sorted(order) == list(range(len(specs)))
        if not plain:
            self.plan.hold()
        self.hold_variables()
        if plain:
            self.plan.finish(outputs, kind, keys, [Item(RESULT, i) for i in order])
        else:
            self.plan.finish(outputs, PACKED_RESULT, packer=packer(structure))


def _form(structure: Any) -> tuple[int, list[int], list[str]]:
    """How results are returned: the kind, their numbers in order, and a dict's keys. The numbers
    are not all where Python has to put the results together."""
    if structure is None:
        return NOTHING, [], []
    if isinstance(structure, _Result):
        return SINGLE, [structure.index], []
    kinds: dict[type, int] = {list: LIST_RESULT, tuple: TUPLE_RESULT, dict: DICT_RESULT}
    kind, keys = kinds.get(type(structure), PACKED_RESULT), []
    if kind == DICT_RESULT:
        keys = list(structure)
        structure = list(structure.values())
    plain = kind != PACKED_RESULT and all(isinstance(x, _Result) for x in structure)
    if not plain or not structure or not all(type(key) is str for key in keys):
        return PACKED_RESULT, [-1], []
    return kind, [x.index for x in structure], keys


def _native(executable: Any) -> tuple[NativeExecutable, dict[str, Any]]:
    """The compiled program behind an executable, and the values of its symbols."""
    sizes: dict[str, Any] = {}
    if isinstance(executable, SharedExecutable):
        executable, sizes = executable.program.executable, executable.sizes
    if not isinstance(executable, NativeExecutable):
        raise NoPlan
    return executable, sizes


def _failure(program: Any) -> Callable[[], BaseException]:
    """Gives the exception with which a callback ended the program."""

    def failed() -> BaseException:
        error: BaseException = program.callbacks.take_failure()
        show_user_frames(error)
        return error

    return failed


def _array_offset() -> int:
    return slot_offset(Variable, "_buffer")
