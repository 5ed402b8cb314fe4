"""Calls from a running program back into Python: ops without native form, prints, user code."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import errors
from treadle.core.arrays import own_copy
from treadle.core.context import context, recount
from treadle.core.interrupts import QUIET, numpy_errors
from treadle.core.list_value import ListValue
from treadle.core.origin import at, failed_at
from treadle.core.shapes import Dim, substitute
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Graph, Node, Value
from treadle.ops.collections.iterators import release_iterators
from treadle.ops.state import Variable
from treadle.runtime.exhausted import no_array
from treadle.runtime.memory.use import Maker, MemoryUse
from treadle.runtime.schedule.steps import (
    Callback,
    Deliver,
    Exhausted,
    Guard,
    Launch,
    ListStep,
    Operand,
    node_of,
)  # fmt: skip
from treadle.runtime.scope import Scope

if TYPE_CHECKING:
    from treadle.runtime.backend import ProgramMemory

_UNKNOWN = "none for Python itself"

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class Call:
    """One call of a program with lists, sizes that it finds out, or variables as arguments.

    Attributes:
        delivered: the results that the program found the sizes of, by number.
        kept: arrays made by callbacks, by output: each lives until its callback runs again.
    """

    __slots__ = ("arguments", "delivered", "kept", "lists")

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arguments = arguments
        self.lists: dict[int, ListValue] = {}
        self.delivered: dict[int, Any] = {}
        self.kept: dict[int, Any] = {}


class _Calls(threading.local):
    """The calls in progress in a thread. Callers set `innermost` and put it back, without a call in
    between: an interrupt comes before or after both."""

    failure: BaseException | None = None
    innermost: Any = None


class Callbacks:
    """The Python side of a program's callbacks.

    Args:
        steps: the callback steps by number.
        symbols: names of the symbols in the frame, which start at word `first_symbol`.
        handles: the numbers of the variables behind the handles.
        graph: has the captured variables; others are arguments of the call.
        written: numbers of the variables that the program writes in place.
        memory: how many bytes a run needs.
        program_memory: the memory that the addresses of operands point to.
    """

    def __init__(
        self, steps: Sequence[Any], symbols: Sequence[str], first_symbol: int,
        handles: Mapping[Value, int], graph: Graph, written: Sequence[int], memory: MemoryUse,
        program_memory: ProgramMemory,
    ) -> None:  # fmt: skip
        self.steps, self.symbols, self.first_symbol = steps, symbols, first_symbol
        self.handles, self.graph, self.written = handles, graph, written
        self.memory, self.program_memory = memory, program_memory
        self.layouts: dict[int, _Layout] = {}  # by the step's id
        self.local = _Calls()
        self.thunk = CALLBACK(self._call)

    @property
    def address(self) -> int:
        return ctypes.cast(self.thunk, ctypes.c_void_p).value or 0

    def take_failure(self) -> BaseException:
        """The exception that ended the last call in this thread."""
        failure, self.local.failure = self.local.failure, None
        release_iterators(self.graph)
        return failure or no_array(self.graph, None, _UNKNOWN, self.memory, {})

    def _variable(self, number: int) -> Variable:
        if number < len(self.graph.params) - len(self.graph.captures):
            return self.local.innermost.arguments[number]  # type: ignore[no-any-return]
        return captured_variable(self.graph, number)

    def _call(self, number: int, words: int, frame: int) -> int:
        try:
            step = self.steps[number]
            if isinstance(step, ListStep):
                self._outside(step, words)
            elif isinstance(step, Exhausted):
                self._exhausted(self._maker(number), words, frame)
            elif isinstance(step, Guard):
                self._differ(step, words)
            elif isinstance(step, Deliver):
                self._deliver(step, words)
            elif isinstance(step, Launch):
                self._kernel(step, words)
            else:
                self._run(step, words, frame)
        except MemoryError as error:
            self.local.failure = self._without_memory(number, error, frame)
            return 1
        except BaseException as error:  # it goes to the caller of the program
            self.local.failure = error
            return 1
        return 0

    def _exhausted(self, made_by: Maker | None, words: int, frame: int) -> None:
        """The program got no memory for an array."""
        wanted = ctypes.c_int64.from_address(words).value
        raise no_array(self.graph, made_by, wanted, self.memory, self._symbols(frame))

    def _without_memory(self, number: int, error: MemoryError, frame: int) -> MemoryError:
        """NumPy got none."""
        if isinstance(error, errors.OpError):
            return error
        reason, sizes = str(error) or _UNKNOWN, self._symbols(frame)
        return no_array(self.graph, self._maker(number), reason, self.memory, sizes)

    def _maker(self, number: int) -> Maker | None:
        """The operation of a step."""
        step = self.steps[number]
        node = node_of(step.step if isinstance(step, Exhausted) else step)
        return None if node is None else Maker(node.op.name, node.origin)

    def _run(self, step: Callback, words: int, frame: int) -> None:
        from treadle.runtime import interpreter

        layout = self.layouts.get(id(step))
        if layout is None:
            layout = self.layouts[id(step)] = _Layout(step)
        values: Any = layout.words.from_address(words) if layout.count else []
        scope = Scope(self._symbols(frame))
        if step.mentioned:
            scope.values.update(zip(step.mentioned, values[-len(step.mentioned) :], strict=True))
        node = step.node
        inputs = []
        for operand, sized, position in zip(step.inputs, step.sized, layout.positions, strict=True):
            spec, shape = operand.value.spec, None
            if sized:
                shape = tuple(values[position + 1 : position + 1 + spec.rank])
                scope.bind(spec, shape)
            inputs.append(self._input(operand.value, values[position], scope, layout.keep, shape))
        outside = context.recorder, context.tapes, context.places
        before = numpy_errors.get()
        try:
            context.recorder, context.tapes, context.places = None, (), ()
            numpy_errors.set(QUIET)
            outputs = interpreter._Interpreter(False).node(node, inputs, scope)
        finally:
            context.recorder, context.tapes, context.places = outside
            numpy_errors.set(before)
            recount()
        if node.outputs and not step.outputs:  # a check has failed: the op had to raise
            raise errors.InternalError(
                None, node.op, f"{node.op.name} accepts what the check before it refused"
            )
        position = layout.first_output
        for operand, result in zip(step.outputs, outputs, strict=True):
            self._output(operand, values, position, result, layout.gives_own)
            position += output_words(operand)
        for number in self.written:  # others may hold the buffer by now
            self._variable(number).make_writable()

    def _outside(self, step: ListStep, words: int) -> None:
        """A list was used at a position that it does not have."""
        position, length = (ctypes.c_int64 * 2).from_address(words)
        text = (
            f"{step.node.op.name}: index {position} is out of range for a list of {length} "
            f"elements{at(step.node.origin)}"
        )
        raise failed_at(step.node.origin, errors.OutOfRangeError(None, step.node.op, text))

    def _differ(self, step: Guard, words: int) -> None:
        a, b = (ctypes.c_int64 * 2).from_address(words)
        text = step.message(a, b)
        raise failed_at(step.node.origin, errors.InvalidArgumentError(None, step.node.op, text))

    def _deliver(self, step: Deliver, words: int) -> None:
        """Copy a result out of the program's memory."""
        spec = step.source.value.spec
        values = (ctypes.c_int64 * (1 + spec.rank)).from_address(words)
        array = self.program_memory.view(values[0], spec.dtype.np_dtype, tuple(values[1:]))
        self.local.innermost.delivered[step.number] = own_copy(array)

    def _kernel(self, step: Launch, words: int) -> None:
        """Evaluate a kernel that has no native form."""
        from treadle.kernel.reference import evaluate

        kernel, count = step.kernel, len(step.kernel.buffers)
        values = (ctypes.c_int64 * (count + len(kernel.symbols))).from_address(words)
        symbols = dict(zip(kernel.symbols, values[count:], strict=True))
        scope = Scope(symbols)
        arrays = {
            b: self.program_memory.view(values[i], b.dtype.np_dtype, _shape(b.shape, scope))
            for i, b in enumerate(kernel.buffers)
        }
        addresses = dict(zip(kernel.buffers, values, strict=False))
        before = numpy_errors.get()
        try:
            numpy_errors.set(QUIET)
            for buffer, result in evaluate(kernel, arrays, symbols).items():
                shape, dtype = arrays[buffer].shape, arrays[buffer].dtype
                made = np.asarray(np.broadcast_to(result, shape), dtype)
                self.program_memory.write(addresses[buffer], made)
        finally:
            numpy_errors.set(before)

    def _symbols(self, frame: int) -> dict[str, int]:
        if not self.symbols:
            return {}
        start = frame + 8 * self.first_symbol
        values = (ctypes.c_int64 * len(self.symbols)).from_address(start)
        return dict(zip(self.symbols, values, strict=True))

    def _input(
        self, value: Any, word: int, scope: Scope, keep: bool, shape: tuple[int, ...] | None
    ) -> Any:
        spec = value.spec
        if isinstance(spec, ResourceSpec):
            return self._variable(self.handles[value])
        if isinstance(spec, ListSpec):
            return self.local.innermost.lists[word]
        dims = _shape(spec.dims, scope) if shape is None else shape
        array = self.program_memory.view(word, spec.dtype.np_dtype, dims)
        return array.copy() if keep else array

    def _output(self, operand: Operand, values: Any, position: int, result: Any, own: bool) -> None:
        spec = operand.value.spec
        if operand.place is not None and operand.place.kind == "late":
            kept = np.ascontiguousarray(result) if own else np.array(result, order="C")
            self.local.innermost.kept[id(operand)] = kept
            values[position] = kept.ctypes.data
            values[position + 1 : position + 1 + kept.ndim] = list(kept.shape)
        elif isinstance(spec, ListSpec):
            lists = self.local.innermost.lists
            values[position] = len(lists)
            lists[len(lists)] = result
        else:
            self.program_memory.write(values[position], np.asarray(result, spec.dtype.np_dtype))


class _Layout:
    """The words at which the operands of a callback stand, and whether its op keeps arrays that it
    is given, or gives arrays that nobody else holds."""

    def __init__(self, step: Callback) -> None:
        node = step.node
        self.count = callback_words(step)
        self.words = ctypes.c_int64 * self.count
        self.positions, self.first_output = input_positions(step), input_words(step)
        # User code may hold on to arrays, and lists do.
        self.keep = bool(node.regions or node.op.effect is not None or _gives_list(node))
        self.gives_own = "gives_own_arrays" in node.op.tags


def output_words(operand: Operand) -> int:
    """How many words a callback has for an output: one for its address or handle; where the program
    does not know the size, the callback writes the address and the dims."""
    late = operand.place is not None and operand.place.kind == "late"
    return 1 + operand.value.spec.rank if late else 1


def input_positions(step: Callback) -> list[int]:
    """The words at which the inputs stand: an address, then the dims where they are passed."""
    positions, position = [], 0
    for operand, sized in zip(step.inputs, step.sized, strict=True):
        positions.append(position)
        position += 1 + (operand.value.spec.rank if sized else 0)
    return positions


def input_words(step: Callback) -> int:
    pairs = zip(step.inputs, step.sized, strict=True)
    return sum(1 + (operand.value.spec.rank if sized else 0) for operand, sized in pairs)


def callback_words(step: Callback) -> int:
    return input_words(step) + sum(map(output_words, step.outputs)) + len(step.mentioned)


def captured_variable(graph: Graph, number: int) -> Variable:
    """The captured variable behind parameter `number`."""
    capture = graph.captures[number - len(graph.params) + len(graph.captures)]
    assert isinstance(capture, Variable)
    return capture


def _shape(dims: Sequence[Dim], scope: Scope) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else int(substitute(d, scope.values)) for d in dims)  # type: ignore[arg-type]


def _gives_list(node: Node) -> bool:
    return any(isinstance(v.spec, ListSpec) for v in node.outputs)
