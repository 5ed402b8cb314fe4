"""One run of a program on a GPU: the host goes through the steps and hands the device its work."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import errors
from treadle.core.context import context, recount
from treadle.core.dtypes import DType
from treadle.core.interrupts import QUIET, numpy_errors
from treadle.core.origin import failed_at
from treadle.core.shapes import Dim, substitute
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Node, Value
from treadle.kernel.reference import evaluate
from treadle.runtime import interpreter
from treadle.runtime.exhausted import no_array
from treadle.runtime.gpu.driver import Memory
from treadle.runtime.gpu.finish import Ends
from treadle.runtime.gpu.launches import PreparedLaunch, PreparedSegments, word_of
from treadle.runtime.gpu.lists import Lists
from treadle.runtime.gpu.memory import Buffer
from treadle.runtime.gpu.recorded_control import is_decided_late, record_branch, record_loop
from treadle.runtime.memory.use import Maker
from treadle.runtime.schedule.status import raise_noted
from treadle.runtime.schedule.steps import (
    Append,
    Block,
    Branch,
    Callback,
    Carried,
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
    is_same_memory,
    node_of,
)
from treadle.runtime.scope import Scope
from treadle.runtime.symbols import told_symbol

if TYPE_CHECKING:
    from treadle.runtime.gpu.program import GpuProgram, Status
    from treadle.runtime.gpu.routines import Form

Array = np.ndarray[Any, Any]


class SizesDiffer(Exception):
    """Sizes differ that the program takes to be equal, and it has changed nothing so far."""


class Run:
    """The state of a run.

    Attributes:
        registers: the numbers and lists that the host has.
        symbols: the sizes that are known; `entry` names those known when the call began.
        outputs: the results, by number.
        buffers: the memory that was found while the program runs, by place.
        turned: the pairs of buffers that have changed roles.
        is_recorded: whether the device records what it is handed.
        submitted: how many launches, library calls and copies the device was handed.
    """

    def __init__(self, program: GpuProgram, arrays: Sequence[Any], sizes: dict[str, int]) -> None:
        self.program, self.given, self.symbols = program, arrays, sizes
        self.storage, self.driver = program.storage, program.storage.driver
        self.entry = tuple(sizes)
        self.registers: dict[Value, Any] = {}
        self.outputs: dict[int, Any] = {}
        self.buffers: dict[Any, Buffer] = {}
        self.turned: set[int] = set()
        self.is_recorded = False
        self.submitted = 0
        self.workspace: Memory | None = None
        self.scratch: list[Any] = []
        self.scratch_bytes = 0
        self.status: Status | None = program.status(self) if program.has_verdict else None

    def begin(self) -> None:
        """Take the memory of the temporaries.

        Raises:
            MemoryError: there is none.
        """
        self.turned.clear()
        size = self.size(self.program.plan.bytes)
        self.workspace = self.driver.allocate(size) if size else None

    def key(self) -> tuple[int, ...]:
        """What the work of a run that may be recorded depends on."""
        program, given = self.program, self.given
        sizes = [self.symbols[n] for n in self.entry]
        arguments = [given[place.number].address for place in program.builder.arguments]
        variables = [given[number].cell().buffer.address for number in program.variables]
        results = [buffer.address for buffer in self.outputs.values()]
        return (*sizes, *arguments, *variables, *results)

    def keeps(self) -> Sequence[Any]:
        """What its work needs beside arguments, variables and results."""
        return [self.workspace, *self.scratch, self.status]

    def expect_verdict(self) -> None:
        """What the checks of this run find is read later."""
        if self.status is not None:
            self.status.expect()

    # -- sizes and memory ------------------------------------------------------------------------

    def size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else int(substitute(dim, self.symbols))  # type: ignore[arg-type]

    def shape(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(map(self.size, dims))

    def bytes_of(self, place: Place) -> int:
        count = math.prod(self.shape(place.dims))
        return count * int(place.dtype.size)

    def empty(self, place: Place) -> Buffer:
        """Memory of its own for a place."""
        return self.storage.empty(place.dtype.np_dtype, self.shape(place.dims))

    def learn(self, value: Value, shape: Sequence[int], again: bool = False) -> None:
        """Symbols among the dims of a value get their values, or new ones."""
        for dim, size in zip(value.spec.dims, shape, strict=True):
            if isinstance(dim, int):
                continue
            told = told_symbol(dim, set() if again else self.symbols.keys())
            if told is not None and isinstance(told[1], int):
                self.symbols[told[0]] = size - told[1]

    def address(self, place: Place) -> int:
        """Where the array of a place begins."""
        match place.kind:
            case "temporary":
                assert self.workspace is not None
                return self.workspace.address + self.size(self.program.plan.offset(place))
            case "argument":
                return self.given[place.number].address  # type: ignore[no-any-return]
            case "constant":
                return self.program.constants[place.number].address
            case "variable":
                return self.given[place.number].cell().buffer.address  # type: ignore[no-any-return]
            case "output":
                return self.outputs[place.number].address  # type: ignore[no-any-return]
            case "status":
                assert self.status is not None
                return self.status.addresses[place.number]
            case "pair" | "pair'":
                second = (place.kind == "pair'") is not (place.number in self.turned)
                return self.address(place.parts[second])
        return self._found(place).address

    def _found(self, place: Place) -> Buffer:
        """The memory of a place that is allocated while the program runs."""
        key: Any = place
        match place.kind:
            case "grown" | "grown'":
                second = (place.kind == "grown'") is not (place.number in self.turned)
                key = "grown", place.number, second
            case "buffer":
                key = "buffer", place.number
        found, shape = self.buffers.get(key), self.shape(place.dims)
        if found is None or found.shape != shape:
            found = self.buffers[key] = self._resized(found, place, shape)
        return found

    def _resized(self, old: Buffer | None, place: Place, shape: tuple[int, ...]) -> Buffer:
        """Memory for an array of a new size. What grows stays where it is while there is room."""
        size = self.bytes_of(place)
        dtype = place.dtype.np_dtype
        if old is not None and place.kind in ("buffer", "grown", "grown'"):
            room = old.memory.room if isinstance(old.memory, _Room) else 0
            if size <= room:
                return Buffer(old.memory, old.address, dtype, shape)
            if size > old.size:
                grown = _Room(self.driver.allocate(2 * size), 2 * size)
                if place.kind == "buffer" and old.size:
                    self.copy(grown.memory.address, old.address, old.size)
                return Buffer(grown, grown.memory.address, dtype, shape)
        return self.storage.empty(dtype, shape)

    def reserve_scratch(self, steps: Collection[Step] | None = None) -> None:
        """Take the memory that any of some steps, or of all, uses beside the temporaries, before
        work is recorded."""
        program = self.program
        for step, launch in program.launches.items():
            if steps is None or step in steps:
                sizes = {name: size for _, name, size in self._symbols(launch)}
                self.scratch_for(_size(launch.code.code.scratch, sizes))
        for step, routine in program.routines.items():
            if steps is None or step in steps:
                self.scratch_for(self.size(routine.workspace))
                found = program.finishes.get(step)
                finish = None if found is None else found.finish
                routine.before_recording(self.driver, self.symbols, finish)

    def scratch_for(self, size: int) -> int:
        """Memory that one step uses: the device does one step after the other."""
        if size > self.scratch_bytes:
            self.scratch.append(self.driver.allocate(size))
            self.scratch_bytes = size
        return self.scratch[-1].address if size else 0

    # -- operands --------------------------------------------------------------------------------

    def copy(self, target: int, source: int, size: int) -> None:
        if size and target != source:
            self.submitted += 1
            self.driver.copy(target, source, size)

    def on_host(self, operand: Operand) -> Any:
        assert operand.place is None, f"the host reads {operand.value} in memory"
        return self.registers[operand.value]

    def dims_of(self, operand: Operand) -> tuple[int, ...]:
        return self.shape(operand.value.spec.dims)

    def buffer_of(self, operand: Operand) -> Buffer:
        """An operand in memory; a number of the host is copied to the device."""
        dtype = operand.value.spec.dtype.np_dtype
        if operand.place is None:
            return self.storage.from_host(np.asarray(self.registers[operand.value], dtype))
        return Buffer(None, self.address(operand.place), dtype, self.dims_of(operand))

    def to_host(self, operand: Operand) -> Any:
        """An operand as an array, a variable or a list of arrays, as Python reads it."""
        spec = operand.value.spec
        if isinstance(spec, ResourceSpec):
            return self.given[self.program.builder.variables[operand.value]]
        if operand.place is None:
            return self.registers[operand.value]
        shape = self.dims_of(operand)
        return self.storage.read(self.address(operand.place), spec.dtype.np_dtype, shape)

    def from_host(self, operand: Operand, result: Any) -> None:
        """Put what Python computed where it belongs."""
        spec = operand.value.spec
        if isinstance(spec, ListSpec):
            self.registers[operand.value] = result
            return
        array = np.asarray(result, spec.dtype.np_dtype)
        self.learn(operand.value, array.shape)
        if operand.place is None:
            self.registers[operand.value] = array
        else:
            self.storage.write(self.address(operand.place), np.ascontiguousarray(array))

    # -- steps -----------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        self.steps(block.steps)

    def steps(self, steps: Sequence[Step]) -> None:
        """Go through some steps."""
        for step in steps:
            try:
                _STEPS[type(step)](self, step)
            except MemoryError as error:
                if isinstance(error, errors.OpError):
                    raise
                node = node_of(step)
                maker = None if node is None else Maker(node.op.name, node.origin)
                raise no_array(
                    self.program.graph, maker, str(error), self.program.memory, self.symbols
                ) from None

    def launch(self, step: Launch) -> None:
        if not step.native:
            self._by_reference(step)
            return
        self._launch(self.program.launches[step])

    def _launch(self, prepared: PreparedLaunch) -> None:
        words, parameters = prepared.words, prepared.parameters
        for word, place in parameters.places:
            words[word] = self.address(place)
        for word, value in parameters.numbers:
            for n, bits in enumerate(word_of(self.registers[value])):
                words[word + n] = bits
        symbols = self._symbols(prepared)
        for word, _, size in symbols:
            words[word] = size
        sizes = {name: size for _, name, size in symbols}
        code = prepared.code.code
        if prepared.scratch_word is not None:
            words[prepared.scratch_word] = self.scratch_for(_size(code.scratch, sizes))
        for stage, function in zip(code.stages, prepared.code.functions, strict=True):
            blocks = _size(stage.blocks, sizes)
            if blocks:
                self.submitted += 1
                self.driver.launch(function, blocks, stage.threads, stage.shared, prepared.address)

    def _symbols(self, prepared: PreparedLaunch) -> list[tuple[int, str, int]]:
        given = prepared.parameters.symbols
        return [
            (word, name, self.symbols[dim] if isinstance(dim, str) else self.size(dim))
            for name, (word, dim) in zip(prepared.names, given, strict=True)
        ]

    def segments(self, step: SegmentedLaunch) -> None:
        prepared = self.program.segments[step]
        if isinstance(prepared, list):
            for launch in prepared:
                self._launch(launch)
            return
        most = prepared.most
        for first in range(0, len(prepared.parameters), most):
            self._some_segments(prepared, range(len(prepared.parameters))[first : first + most])

    def _some_segments(self, prepared: PreparedSegments, numbers: Sequence[int]) -> None:
        words, stride, blocks = prepared.words, prepared.stride, 0
        code = prepared.code.code
        (stage,), (function,) = code.stages, prepared.code.functions
        for slot, number in enumerate(numbers):
            first, parameters = slot * stride, prepared.parameters[number]
            for word, place in parameters.places:
                words[first + word] = self.address(place)
            for word, value in parameters.numbers:
                for n, bits in enumerate(word_of(self.registers[value])):
                    words[first + word + n] = bits
            sizes = {}
            names = prepared.step.kernel.symbols
            for name, (word, dim) in zip(names, parameters.symbols, strict=True):
                size = self.symbols[dim] if isinstance(dim, str) else self.size(dim)
                words[first + word] = sizes[name] = size
            words[first + stride - 1] = blocks
            blocks += _size(stage.blocks, sizes)
        words[stride * prepared.most] = len(numbers)
        if blocks:
            self.submitted += 1
            self.driver.launch(function, blocks, stage.threads, stage.shared, prepared.address)

    def _by_reference(self, step: Launch) -> None:
        """A kernel without a form for the device, by its NumPy reference."""
        kernel, symbols = step.kernel, dict(self.symbols)
        if step.extent is not None:
            symbols["n"] = self.size(step.extent)
        arrays = {}
        for buffer, operand in zip(kernel.buffers, step.operands, strict=True):
            shape = tuple(int(substitute(d, symbols)) for d in buffer.shape)  # type: ignore[arg-type]
            arrays[buffer] = np.asarray(self.to_host(operand)).reshape(shape)
        for buffer, result in evaluate(kernel, arrays, symbols).items():
            place = step.operands[kernel.buffers.index(buffer)].place
            assert place is not None
            made = np.broadcast_to(result, arrays[buffer].shape).astype(buffer.dtype.np_dtype)
            self.storage.write(self.address(place), np.ascontiguousarray(made))

    def number(self, step: Evaluate) -> None:
        self.registers[step.value] = self.program.numbers[step](self.registers, self.symbols)

    def library_call(self, step: LibraryCall) -> None:
        routine, driver = self.program.routines[step], self.driver
        inputs = [self.buffer_of(o) for o in step.inputs]
        outputs = [self.buffer_of(o) for o in step.outputs]
        arrays = [driver.array(b.address, b.dtype, b.shape) for b in (*inputs, *outputs)]
        self.submitted += self.size(routine.launches)
        scratch = self.scratch_for(self.size(routine.workspace))
        given, made = arrays[: len(inputs)], arrays[len(inputs) :]
        follows = self.program.finishes.get(step)
        if follows is not None:
            places = [None if o is None else o.place for o in follows[1:]]
            ends = Ends(follows.finish, *(0 if p is None else self.address(p) for p in places))
            if routine.finished(driver, given, ends, scratch, self.symbols):
                return
        routine(driver, given, made, scratch, self.symbols)
        if step.epilogue is not None:
            self.launch(step.epilogue)

    def callback(self, step: Callback) -> None:
        form = self.program.forms.get(step)
        if form is None or not self._by_library(step, form):
            self._call(step.node, step.inputs, step.outputs)

    def _by_library(self, step: Callback, form: Form) -> bool:
        """Compute a node with arrays of the device; False where NumPy is to do it."""
        driver, inputs = self.driver, [self.buffer_of(o) for o in step.inputs]
        if not all(b.size for b in inputs):
            return False
        arrays = [driver.array(b.address, b.dtype, b.shape) for b in inputs]
        scope = Scope(dict(self.symbols))
        attrs = {name: scope.resolve(attr) for name, attr in step.node.attrs.items()}
        try:
            with driver.computing():
                found = form(driver, arrays, attrs)
        except np.linalg.LinAlgError:
            return False
        if found is None:
            return False
        self.submitted += 1
        for operand, result in zip(step.outputs, found, strict=True):
            self.learn(operand.value, result.shape)
        for operand, result in zip(step.outputs, found, strict=True):
            if operand.place is None:
                made = self.storage.empty(operand.value.spec.dtype.np_dtype, result.shape)
                driver.array(made.address, made.dtype, made.shape)[...] = result
                self.registers[operand.value] = self.storage.read(made.address, made.dtype, ())
                continue
            made = self.buffer_of(operand)
            if made.size:
                driver.array(made.address, made.dtype, made.shape)[...] = result
        return True

    def op_loops(self, step: OpLoops) -> None:
        if step.launch is None:
            self._call(step.node, step.inputs, step.outputs)
            return
        (output,) = step.outputs
        made = self.buffer_of(output)
        if made.size:
            self.driver.clear(made.address, made.size)
        self.launch(step.launch)

    def _call(self, node: Node, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> None:
        """The NumPy implementation of a node, or the interpreter for one with regions."""
        self.storage.raise_failures()
        given = [self.to_host(o) for o in inputs]
        scope = Scope(dict(self.symbols))
        outside, before = (context.recorder, context.tapes), numpy_errors.get()
        try:
            context.recorder, context.tapes = None, ()
            numpy_errors.set(QUIET)
            made = interpreter._Interpreter(False).node(node, given, scope)
        finally:
            context.recorder, context.tapes = outside
            numpy_errors.set(before)
            recount()
        if node.outputs and not outputs:  # a check has failed: the op had to raise
            raise errors.InternalError(
                None, node.op, f"{node.op.name} accepts what the check before it refused"
            )
        for operand, result in zip(outputs, made, strict=True):
            self.from_host(operand, result)
        for number in self.program.written:  # others may hold the buffer by now
            self.given[number].make_writable()

    def append(self, step: Append) -> None:
        parts = [self.buffer_of(o) for o in step.inputs]
        rows = sum(part.shape[0] for part in parts)
        self.learn(step.output.value, (rows, *parts[0].shape[1:]))
        assert step.output.place is not None
        target = self.address(step.output.place)
        for number, part in enumerate(parts):
            if number or not is_same_memory(step.inputs[0].place, step.output.place):
                self.copy(target, part.address, part.size)  # else it is there, in a larger buffer
            target += part.size

    def update(self, step: Update) -> None:
        if step.launch is not None:
            self.launch(step.launch)
            return
        self.storage.raise_failures()
        given = [self.to_host(o) for o in step.inputs]
        dtype, shape = step.target.dtype.np_dtype, self.shape(step.target.dims)
        address = self.address(step.target)
        given[0] = self.storage.read(address, dtype, shape)
        scope = Scope(dict(self.symbols))
        (made,) = interpreter._Interpreter(False).node(step.node, given, scope)
        self.storage.write(address, np.ascontiguousarray(made))

    def check(self, step: Check) -> None:
        if not self.on_host(step.holds):
            self._call(step.callback.node, step.callback.inputs, [])

    def note(self, step: Note) -> None:
        for launch in step.launches:
            self.launch(launch)
        if not step.launches:
            (check,) = step.findings
            if not self.on_host(check.holds):
                self.storage.raise_failures()
                raise_noted(check, [self.to_host(o) for o in check.elements], self.symbols)

    def verdict(self, step: Verdict) -> None:
        self.expect_verdict()

    def position(self, step: Position) -> None:
        position, size = int(self.on_host(step.source)), self.size(step.size)
        if step.wraps and position < 0:
            position += size
        if not 0 <= position < size:
            self._call(step.callback.node, step.callback.inputs, [])
        self.registers[step.value] = np.asarray(position, np.uint64)

    def guard(self, step: Guard) -> None:
        a, b = self.shape(step.sizes)
        if a != b:
            if step.restarts:
                raise SizesDiffer
            text = step.message(a, b)
            error = errors.InvalidArgumentError(None, step.node.op, text)
            raise failed_at(step.node.origin, error)

    def sizes(self, step: Sizes) -> None:
        self.symbols |= {name: self.size(dim) for name, dim in step.pairs}

    def measure(self, step: Measure) -> None:
        self.symbols[step.name] = int(self.on_host(step.source))

    def deliver(self, step: Deliver) -> None:
        self.outputs[step.number] = self.storage.copy(self.buffer_of(step.source))

    def copy_step(self, step: Copy) -> None:
        target = self.address(step.target)
        if step.source.place is None:
            self.store_number(target, step.source, step.target)
            return
        self.copy(target, self.address(step.source.place), self.bytes_of(step.target))

    def store_number(self, address: int, number: Operand, target: Place) -> None:
        """Put a number of the host into memory of the device, as a parameter of a kernel."""
        array = np.asarray(self.on_host(number), target.dtype.np_dtype)
        self.small("put", target.dtype, (word_of(array), [address]))

    def small(
        self, name: str, dtype: DType, parameters: Sequence[list[int]], count: int = 1
    ) -> None:
        """Launch one of `small_kernels`."""
        small = self.program.small[name, dtype]
        self.submitted += small(self.driver, parameters, count)

    def fetch(self, step: Fetch) -> None:
        """The host waits once for all the numbers."""
        for value, source in zip(step.values, step.sources, strict=True):
            dtype = source.dtype.np_dtype
            self.registers[value] = self.storage.read(self.address(source), dtype, ())

    # -- control flow ----------------------------------------------------------------------------

    def _flag(self, operand: Operand) -> bool:
        """A bool, which the host waits for where only the device has it."""
        if operand.place is None:
            return bool(self.registers[operand.value])
        dtype = operand.place.dtype.np_dtype
        return bool(self.storage.read(self.address(operand.place), dtype, ()))

    def branch(self, step: Branch) -> None:
        if step in self.program.alone:
            self._launch(self.program.alone[step])
            return
        if self.is_recorded and is_decided_late(step):
            record_branch(self, step)
            return
        block = step.then if self._flag(step.predicate) else step.otherwise
        self.block(block)
        for out, inner in zip(step.results, block.results, strict=True):
            if out.place is None:
                self.registers[out.value] = self.on_host(inner)
            elif out.place.kind == "joined":
                found = self.buffer_of(inner)
                self.learn(out.value, found.shape)
                self.copy(self.address(out.place), found.address, found.size)

    def loop(self, step: Loop) -> None:
        if step in self.program.alone:
            self._launch(self.program.alone[step])
            return
        for c in step.carried:
            if c.place is None:
                self.registers[c.param] = self.on_host(c.start)
        arrays = [c for c in step.carried if c.place is not None]
        for c in arrays:
            self._start(c)
        if self.is_recorded and is_decided_late(step):
            record_loop(self, step)
            return
        while self._goes_on(step):
            self.iteration(step)

    def iteration(self, step: Loop) -> None:
        """One iteration of a loop, after which its variables have new values."""
        self.block(step.body)
        pairs = list(zip(step.carried, step.body.results, strict=True))
        numbers = {c.param: self.on_host(o) for c, o in pairs if c.place is None}
        self.registers |= numbers
        moved = [(c, self.dims_of(o)) for c, o in pairs if c.place is not None]
        self.turned ^= {c.place.number for c in step.carried if c.place and c.other}
        for c, shape in moved:
            self.learn(c.param, shape, again=True)

    def _start(self, carried: Carried) -> None:
        """Put the value that an array of a loop starts with into its memory."""
        assert carried.place is not None
        if carried.start.place is None:
            self.store_number(self.address(carried.place), carried.start, carried.place)
            return
        start = self.buffer_of(carried.start)
        self.learn(carried.param, start.shape, again=True)
        self.copy(self.address(carried.place), start.address, start.size)

    def _goes_on(self, step: Loop) -> bool:
        self.block(step.condition)
        return self._flag(step.condition.results[0])

    def list_step(self, step: ListStep) -> None:
        Lists(self).step(step)


class _Room:
    """Memory with room for an array that grows."""

    __slots__ = ("memory", "room")

    def __init__(self, memory: Any, room: int) -> None:
        self.memory, self.room = memory, room


def _size(dim: Dim, sizes: Mapping[str, int]) -> int:
    return dim if isinstance(dim, int) else int(substitute(dim, sizes))  # type: ignore[arg-type]


_STEPS: dict[type[Step], Callable[[Run, Any], None]] = {
    Launch: Run.launch, SegmentedLaunch: Run.segments, Evaluate: Run.number,
    LibraryCall: Run.library_call, Callback: Run.callback, OpLoops: Run.op_loops,
    ListStep: Run.list_step, Append: Run.append, Update: Run.update, Check: Run.check,
    Note: Run.note, Verdict: Run.verdict, Position: Run.position, Guard: Run.guard,
    Sizes: Run.sizes, Measure: Run.measure, Deliver: Run.deliver, Copy: Run.copy_step,
    Fetch: Run.fetch, Branch: Run.branch, Loop: Run.loop,
}  # fmt: skip
