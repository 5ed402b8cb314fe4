"""Calls from a running program back into Python: ops without native form, prints, user code."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.context import recording, taping
from treadle.core.list_value import ListValue
from treadle.core.shapes import Dim, substitute
from treadle.core.spec import ListSpec, ResourceSpec, Spec
from treadle.graph.ir import Graph, Node, Value
from treadle.ops.state import Variable
from treadle.runtime.abi import array_at
from treadle.runtime.schedule.state import handles_touched, touches_everything
from treadle.runtime.schedule.steps import Callback, Launch
from treadle.runtime.scope import Scope

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class _Call(threading.local):
    """What belongs to the calls in progress in a thread."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.lists: list[dict[int, ListValue]] = []
        self.arguments: list[Sequence[Any]] = []


class Callbacks:
    """The Python side of a program's callbacks.

    Args:
        steps: the callback steps by number.
        symbols: names of the symbols in the frame, which start at word `first_symbol`.
        handles: the numbers of the variables behind the handles.
        graph: has the captured variables; others are arguments of the call.
        written: numbers of the variables that the program writes in place.
    """

    def __init__(
        self, steps: Sequence[Callback | Launch], symbols: Sequence[str], first_symbol: int,
        handles: Mapping[Value, int], graph: Graph, written: Sequence[int],
    ) -> None:  # fmt: skip
        self.steps, self.symbols, self.first_symbol = steps, symbols, first_symbol
        self.handles, self.graph, self.written = handles, graph, written
        self.local = _Call()
        self.thunk = CALLBACK(self._call)

    @property
    def address(self) -> int:
        return ctypes.cast(self.thunk, ctypes.c_void_p).value or 0

    def take_failure(self) -> BaseException:
        """The exception that ended the last call in this thread."""
        failure, self.local.failure = self.local.failure, None
        return failure or RuntimeError("the program failed without a reason")

    def enter(self, arguments: Sequence[Any]) -> None:
        """A call of a program with lists, or with variables as arguments, begins."""
        self.local.lists.append({})
        self.local.arguments.append(arguments)

    def leave(self) -> None:
        self.local.lists.pop()
        self.local.arguments.pop()

    def _variable(self, number: int) -> Variable:
        if number < len(self.graph.params) - len(self.graph.captures):
            return self.local.arguments[-1][number]  # type: ignore[no-any-return]
        return captured_variable(self.graph, number)

    def _call(self, number: int, words: int, frame: int) -> int:
        try:
            step = self.steps[number]
            if isinstance(step, Launch):
                self._kernel(step, words, frame)
            else:
                self._run(step, words, frame)
        except BaseException as error:  # it goes to the caller of the program
            self.local.failure = error
            return 1
        return 0

    def _run(self, step: Callback, words: int, frame: int) -> None:
        from treadle.runtime import interpreter

        count = len(step.inputs) + len(step.outputs)
        values = (ctypes.c_int64 * count).from_address(words) if count else []
        scope = Scope(self._symbols(frame))
        node = step.node
        # User code may hold on to arrays, and lists do.
        keep = node.regions or node.op.effect is not None or _gives_list(node)
        inputs = [
            self._input(o.value, values[i], scope, bool(keep)) for i, o in enumerate(step.inputs)
        ]
        with recording(None), taping(()), np.errstate(all="ignore"):
            outputs = interpreter._Interpreter(False).node(node, inputs, scope)
        if node.outputs and not step.outputs:  # a check called this: the op had to refuse
            raise errors.InternalError(
                None, node.op, f"{node.op.name} accepts what the check before it refused"
            )
        for i, (operand, result) in enumerate(zip(step.outputs, outputs, strict=True)):
            self._output(operand.value.spec, values, len(step.inputs) + i, result)
        if touches_everything(node) or any(w for _, w in handles_touched(node)):
            for number in self.written:
                self._variable(number).make_writable()

    def _kernel(self, step: Launch, words: int, frame: int) -> None:
        """Evaluate a kernel that has no native form."""
        from treadle.kernel.reference import evaluate

        kernel, symbols = step.kernel, self._symbols(frame)
        values = (ctypes.c_int64 * len(kernel.buffers)).from_address(words)
        if step.extent is not None:
            symbols[kernel.symbols[0]] = int(substitute(step.extent, symbols))  # type: ignore[arg-type]
        scope = Scope(symbols)
        arrays = {
            b: array_at(values[i], b.dtype.np_dtype, _shape(b.shape, scope))
            for i, b in enumerate(kernel.buffers)
        }
        with np.errstate(all="ignore"):
            for buffer, result in evaluate(kernel, arrays, symbols).items():
                arrays[buffer][...] = result

    def _symbols(self, frame: int) -> dict[str, int]:
        if not self.symbols:
            return {}
        start = frame + 8 * self.first_symbol
        values = (ctypes.c_int64 * len(self.symbols)).from_address(start)
        return dict(zip(self.symbols, values, strict=True))

    def _input(self, value: Any, word: int, scope: Scope, keep: bool) -> Any:
        spec = value.spec
        if isinstance(spec, ResourceSpec):
            return self._variable(self.handles[value])
        if isinstance(spec, ListSpec):
            return self.local.lists[-1][word]
        array = array_at(word, spec.dtype.np_dtype, _shape(spec.dims, scope))
        return array.copy() if keep else array

    def _output(self, spec: Spec, values: Any, position: int, result: Any) -> None:
        if isinstance(spec, ListSpec):
            lists = self.local.lists[-1]
            values[position] = len(lists)
            lists[len(lists)] = result
        else:
            array_at(values[position], spec.dtype.np_dtype, result.shape)[...] = result


def captured_variable(graph: Graph, number: int) -> Variable:
    """The captured variable behind parameter `number`."""
    capture = graph.captures[number - len(graph.params) + len(graph.captures)]
    assert isinstance(capture, Variable)
    return capture


def _shape(dims: Sequence[Dim], scope: Scope) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else int(substitute(d, scope.values)) for d in dims)  # type: ignore[arg-type]


def _gives_list(node: Node) -> bool:
    return any(isinstance(v.spec, ListSpec) for v in node.outputs)
