"""A made-up device whose memory the host does not see; its programs are schedules, run as such.

Kernels are evaluated by their reference, routines by the ops' NumPy implementations. The host has
registers only; what it gets from the device it gets by `Fetch` steps, which are counted, or as
arrays of Python callbacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.errors import InvalidArgumentError
from treadle.core.shapes import substitute
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Node, Value
from treadle.kernel import reference
from treadle.kernel.ir import Buffer, Kernel, store
from treadle.ops.lowering import Rows
from treadle.ops.registry import OPS
from treadle.ops.state import Variable
from treadle.runtime import interpreter
from treadle.runtime.backend import Backend
from treadle.runtime.cpu.library import routine_for
from treadle.runtime.cpu.target import host
from treadle.runtime.executable import Executable
from treadle.runtime.fusion.strided import View
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.facts import Facts
from treadle.runtime.schedule.status import raise_noted
from treadle.runtime.schedule.steps import (
    Append,
    Block,
    Branch,
    Callback,
    Check,
    Copy,
    Deliver,
    Evaluate,
    Fetch,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Measure,
    Note,
    Operand,
    OpLoops,
    Place,
    Position,
    SegmentedLaunch,
    Sizes,
    Step,
    Update,
    Verdict,
)
from treadle.runtime.scope import Scope
from treadle.runtime.symbols import symbol_sources, told_symbol

Array = np.ndarray[Any, Any]


class ApartFacts(Facts):
    """What the schedule knows of the device: it has the routines of the processor."""

    unified = False

    def routine_bytes(self, node: Node, apart: bool = False, views: Sequence[Any] = ()) -> Any:
        known = not (apart or views) and routine_for(node) is not None
        return 0 if known else None


class Apart(Backend):
    """The device as a backend."""

    def facts(self) -> Facts:
        return ApartFacts(host().tuning)

    def build(self, planned: Planned) -> ApartExecutable:
        return ApartExecutable(planned)


class ApartExecutable(Executable):
    """Attributes:
    fetches: how often each number was fetched in the last run.
    launches: how many kernels and routines the last run had the device do.
    waits: how often the host waited for numbers in the last run.
    moved: bytes of the operands and results of its routines.
    """

    mode = "apart"

    def __init__(self, planned: Planned) -> None:
        super().__init__(planned.graph)
        self.planned, self.work = planned, planned.work
        self.builder, self.block = planned.builder, planned.block
        self.fetches: dict[Value, int] = {}
        self.launches = self.waits = self.moved = 0

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        run = _Run(self, arrays)
        try:
            run.block(self.block)
        except Exception:
            if isinstance(verdict := self.block.steps[-1], Verdict):
                run.verdict(verdict)  # what failed earlier
            raise
        self.fetches, self.launches, self.waits = run.fetches, run.launches, run.waits
        self.moved = run.moved
        return [np.array(run.outputs[n]) for n in range(len(self.work.results))]

    def evaluate(
        self, step: Launch, arrays: Mapping[Buffer, Array], symbols: Mapping[str, int]
    ) -> dict[Buffer, Array]:
        """What a launch stores."""
        return reference.evaluate(step.kernel, arrays, symbols)

    def evaluate_segments(
        self, step: SegmentedLaunch, given: Sequence[tuple[dict[Buffer, Array], dict[str, int]]]
    ) -> list[dict[Buffer, Array]]:
        """What each segment of a launch stores."""
        pairs = zip(step.segments, given, strict=True)
        return [self.evaluate(s, arrays, symbols) for s, (arrays, symbols) in pairs]

    @property
    def text(self) -> str:
        return self.planned.texts["schedule"]()


class _Run:
    """Attributes:
    registers: those of the host.
    memory: the arrays of the device, by place.
    turned: the pairs of buffers that have changed roles.
    symbols: the sizes that are known.
    tellers: the value whose shape told a symbol, which it tells again when it is made again.
    """

    def __init__(self, program: ApartExecutable, arrays: Sequence[Any]) -> None:
        self.program, self.builder = program, program.builder
        self.registers: dict[Value, Array] = {}
        self.memory: dict[Any, Array] = {}
        self.outputs: dict[int, Array] = {}
        self.turned: set[int] = set()
        self.fetches: dict[Value, int] = {}
        self.launches = self.waits = self.moved = 0
        self.given = arrays
        sources = symbol_sources(program.work.params)
        self.symbols = {s.name: np.shape(arrays[s.argument])[s.axis] for s in sources}
        self.tellers: dict[str, Value] = {}

    # -- memory ------------------------------------------------------------------------------

    def shape(self, dims: Sequence[Any]) -> tuple[int, ...]:
        return tuple(int(substitute(d, self.symbols)) for d in dims)  # type: ignore[arg-type]

    def array(self, place: Place) -> Array:
        """The memory of a place."""
        match place.kind:
            case "argument":
                return np.asarray(self.given[place.number])
            case "constant":
                return np.asarray(self.builder.constants[place.number])
            case "variable":
                variable = self.given[place.number]
                assert isinstance(variable, Variable)
                variable.make_writable()
                return variable._buffer
            case "output":
                return self._made(self.outputs, place.number, place)
            case "pair" | "pair'":
                second = (place.kind == "pair'") is not (place.number in self.turned)
                return self.array(place.parts[second])
            case "grown" | "grown'":
                second = (place.kind == "grown'") is not (place.number in self.turned)
                return self._made(self.memory, (place.number, second), place)
            case "buffer":
                return self._made(self.memory, place.number, place)
        return self._made(self.memory, place, place)

    def _made(self, where: dict[Any, Array], key: Any, place: Place) -> Array:
        shape = self.shape(place.dims)
        if key not in where or where[key].shape != shape:
            where[key] = np.zeros(shape, place.dtype.np_dtype)
        return where[key]

    def read(self, operand: Operand) -> Any:
        """An operand of a kernel, a routine or a callback: an array, or a number given by value."""
        if operand.place is not None:
            return self.array(operand.place).reshape(self.shape(operand.value.spec.dims))
        if isinstance(operand.value.spec, ResourceSpec):
            return self.given[self.builder.variables[operand.value]]
        return self.registers[operand.value]

    def on_host(self, operand: Operand) -> Any:
        assert operand.place is None, f"the host reads {operand.value} in memory"
        return self.registers[operand.value]

    def write(self, operand: Operand, result: Any) -> None:
        if isinstance(operand.value.spec, ListSpec):
            self.registers[operand.value] = result
            return
        result = np.asarray(result)
        self.learn(operand.value, result.shape)
        if operand.place is None:
            self.registers[operand.value] = result.astype(operand.value.spec.dtype.np_dtype)
        else:
            array = self.array(operand.place)
            array[...] = result.reshape(array.shape)

    def learn(self, value: Value, shape: Sequence[int], again: bool = False) -> None:
        """Symbols among the dims of a value get their values, or new ones."""
        for dim, size in zip(value.spec.dims, shape, strict=True):
            told = told_symbol(dim, set() if again else self.known([value]).keys())
            if told is not None and isinstance(told[1], int):
                self.symbols[told[0]] = size - told[1]
                self.tellers[told[0]] = value

    def known(self, made: Sequence[Value]) -> dict[str, int]:
        """The sizes that are known before some values are made."""
        return {s: n for s, n in self.symbols.items() if self.tellers.get(s) not in made}

    # -- steps -------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for step in block.steps:
            self.step(step)

    def step(self, step: Step) -> None:
        match step:
            case Launch():
                self.launch(step)
            case SegmentedLaunch():
                self.segments(step)
            case Evaluate():
                self.evaluate(step)
            case LibraryCall() | OpLoops():
                self.launches += 1
                self.call(step.node, step.inputs, step.outputs, getattr(step, "views", ()))
                self.note_moved([*step.inputs, *step.outputs])
                if isinstance(step, LibraryCall) and step.epilogue is not None:
                    self.launch(step.epilogue)
            case Callback():
                self.call(step.node, step.inputs, step.outputs)
            case ListStep():
                self.list_op(step)
            case Append():
                rows = [np.array(self.read(o)) for o in step.inputs]
                self.write(step.output, np.concatenate(rows))
            case Update():
                self.update(step)
            case Check():
                if not self.on_host(step.holds):
                    self.call(step.callback.node, step.callback.inputs, [])
            case Position():
                self.position(step)
            case Note(launches=[]):
                (check,) = step.findings
                if not self.on_host(check.holds):
                    raise_noted(check, [self.read(o) for o in check.elements], self.symbols)
            case Note():
                for launch in step.launches:
                    self.launch(launch)
            case Verdict():
                self.verdict(step)
            case Fetch():
                self.waits += 1
                for value, source in zip(step.values, step.sources, strict=True):
                    self.fetches[value] = self.fetches.get(value, 0) + 1
                    self.registers[value] = self.array(source).copy()
            case Copy():
                source, target = np.array(self.read(step.source)), self.array(step.target)
                target[...] = source.reshape(target.shape)
                self.moved += 2 * target.nbytes
            case Measure():
                self.symbols[step.name] = int(self.on_host(step.source))
            case Sizes():
                self.symbols |= {n: self.shape([d])[0] for n, d in step.pairs}
            case Guard():
                a, b = self.shape(step.sizes)
                assert a == b, step
            case Deliver():
                self.outputs[step.number] = np.array(self.read(step.source))
            case Branch():
                self.branch(step)
            case Loop():
                self.loop(step)
            case _:
                raise NotImplementedError(type(step).__name__)

    def note_moved(self, operands: Sequence[Operand]) -> None:
        """A routine has read or written some operands."""
        arrays = [self.read(o) for o in operands if o.place is not None]
        self.moved += sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))

    def launch(self, step: Launch) -> None:
        self.launches += 1
        arrays, symbols = self.given_to(step)
        for buffer, result in self.program.evaluate(step, arrays, symbols).items():
            arrays[buffer][...] = result

    def segments(self, step: SegmentedLaunch) -> None:
        self.launches += 1
        given = [self.given_to(segment) for segment in step.segments]
        made = self.program.evaluate_segments(step, given)
        for (arrays, _), results in zip(given, made, strict=True):
            for buffer, result in results.items():
                arrays[buffer][...] = result

    def given_to(self, step: Launch) -> tuple[dict[Buffer, Array], dict[str, int]]:
        """The operands of a kernel, and its sizes."""
        kernel = step.kernel
        symbols = {**self.symbols}
        if step.extent is not None:
            (symbols["n"],) = self.shape([step.extent])
        arrays: dict[Buffer, Array] = {}
        for buffer, operand in zip(kernel.buffers, step.operands, strict=True):
            shape = tuple(int(substitute(d, symbols)) for d in buffer.shape)  # type: ignore[arg-type]
            arrays[buffer] = self.read(operand).reshape(shape)
        return arrays, symbols

    def evaluate(self, step: Evaluate) -> None:
        out = Buffer("result of the step", step.value.spec.dtype, ())
        loaded = {n: Buffer(n, o.value.spec.dtype, ()) for n, o in step.inputs.items()}
        kernel = Kernel((), (*loaded.values(), out), (store(out, value=step.expr),))
        arrays = {loaded[n]: self.on_host(o) for n, o in step.inputs.items()}
        results = reference.evaluate(kernel, arrays, self.symbols)
        self.registers[step.value] = np.array(results[out])

    def scope(self, node: Node) -> Scope:
        return Scope(self.known(node.outputs))

    def call(
        self, node: Node, inputs: Sequence[Operand], outputs: Sequence[Operand],
        views: Sequence[View] = (),
    ) -> None:  # fmt: skip
        given = [_copied(self.read(o)) for o in inputs]
        if views:
            parts = zip(given, views, node.inputs, strict=True)
            given = [self.part(array, view, value) for array, view, value in parts]
        if node.op.eager is None and isinstance(node.op.lower, Rows):
            made = self.with_verdicts(node, given)
        else:
            made = interpreter._Interpreter(False).node(node, given, self.scope(node))
        for operand, result in zip(outputs, made, strict=False):
            self.write(operand, result)

    def part(self, array: Array, view: View, value: Value) -> Array:
        """The elements of a value in the memory that it is a view of."""
        (offset,), strides = self.shape([view.offset]), self.shape(view.strides)
        steps = [n * array.itemsize for n in strides]
        flat = array.reshape(-1)[offset:]
        shape = self.shape(value.spec.dims)
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, shape, steps))

    def with_verdicts(self, node: Node, given: list[Any]) -> list[Any]:
        """The results of a routine and its verdicts: with numbers that mean nothing where it
        refuses its input."""
        *specs, verdicts = [v.spec for v in node.outputs]
        refused = np.zeros(self.shape(verdicts.dims), np.int32)
        plain = Node(OPS[node.op.name], node.inputs, node.attrs, specs, (), node.origin)
        try:
            made = interpreter._Interpreter(False).node(plain, given, self.scope(node))
        except InvalidArgumentError:
            made = [np.full(self.shape(s.dims), 7).astype(s.dtype.np_dtype) for s in specs]
            refused += 1
        return [*made, refused]

    def list_op(self, step: ListStep) -> None:
        """Lists hold arrays of the device; lengths and positions are numbers of the host."""
        if step.slot is not None:  # memory that a later step writes
            self.memory[step.slot] = np.empty(self.shape(step.slot.dims), step.slot.dtype.np_dtype)
        given = [v if step.slot else _copied(v) for v in map(self.read, step.inputs)]
        made = interpreter._Interpreter(False).node(step.node, given, self.scope(step.node))
        for operand, result in zip(step.outputs, made, strict=True):
            if operand.place is not None and operand.place.kind == "element":
                self.memory[operand.place] = np.array(result)
                self.learn(operand.value, np.shape(result))
            else:
                self.write(operand, result)

    def update(self, step: Update) -> None:
        if step.launch is not None:
            self.launch(step.launch)
            return
        self.launches += 1
        others = [np.array(self.read(o)) for o in step.inputs[1:]]
        array = self.array(step.target)
        given = [array.copy(), *others]
        with contextlib.suppress(InvalidArgumentError):  # what lies outside is left out
            (made,) = interpreter._Interpreter(False).node(step.node, given, Scope(self.symbols))
            array[...] = made
        self.note_moved(step.inputs[1:])

    def verdict(self, step: Verdict) -> None:
        number = int(self.array(step.word))
        if number:
            check = step.findings[number - 1]
            assert check.number == number
            raise_noted(check, [self.array(p).copy() for p in check.kept], self.symbols)

    def position(self, step: Position) -> None:
        position, (size,) = int(self.on_host(step.source)), self.shape([step.size])
        if step.wraps and position < 0:
            position += size
        if not 0 <= position < size:
            self.call(step.callback.node, step.callback.inputs, [])
        self.registers[step.value] = np.asarray(position, np.uint64)

    def branch(self, step: Branch) -> None:
        block = step.then if self.flag(step.predicate, step.alone) else step.otherwise
        self.block(block)
        for out, inner in zip(step.results, block.results, strict=True):
            if out.place is None:
                self.registers[out.value] = self.on_host(inner)
            elif out.place.kind == "joined":
                self.write(out, self.read(inner))

    def loop(self, step: Loop) -> None:
        starts = [_copied(self.read(c.start)) for c in step.carried]
        for c, start in zip(step.carried, starts, strict=True):
            if c.place is None:
                self.registers[c.param] = self.on_host(c.start)
            else:
                self.learn(c.param, start.shape, again=True)
                array = self.array(c.place)
                array[...] = start.reshape(array.shape)
        while self._goes_on(step):
            self.block(step.body)
            registers = [c.param for c in step.carried if c.place is None]
            made = [o for c, o in zip(step.carried, step.body.results, strict=True) if not c.place]
            self.registers |= dict(zip(registers, map(self.on_host, made), strict=True))
            arrays = [p for p in zip(step.carried, step.body.results, strict=True) if p[0].place]
            shapes = [self.shape(o.value.spec.dims) for _, o in arrays]
            self.turned ^= {c.place.number for c in step.carried if c.place and c.other}
            for (c, _), shape in zip(arrays, shapes, strict=True):
                self.learn(c.param, shape, again=True)

    def _goes_on(self, step: Loop) -> bool:
        self.block(step.condition)
        return self.flag(step.condition.results[0], step.alone)

    def flag(self, operand: Operand, alone: bool) -> bool:
        """A bool, which only the device has where it runs a loop or a branch by itself."""
        return bool(self.read(operand) if alone else self.on_host(operand))


def _copied(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else value
