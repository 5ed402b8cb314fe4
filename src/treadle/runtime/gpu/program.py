"""Programs for a GPU: the steps of a schedule, prepared for the device that runs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

from treadle.core import errors
from treadle.core.dtypes import DType
from treadle.core.meeting import is_part, meet
from treadle.core.shapes import substitute
from treadle.ops.collections.iterators import release_iterators
from treadle.ops.collections.lists import LIST_ADD
from treadle.runtime.executable import Executable
from treadle.runtime.exhausted import no_results, no_workspace
from treadle.runtime.gpu.description import Description
from treadle.runtime.gpu.driver import Memory, Recording
from treadle.runtime.gpu.finish import finishing
from treadle.runtime.gpu.host_numbers import HostNumber
from treadle.runtime.gpu.launches import (
    Codes,
    PreparedFinish,
    PreparedLaunch,
    PreparedSegments,
    SmallLaunch,
    prepared,
)  # fmt: skip
from treadle.runtime.gpu.memory import Buffer, Copied, DeviceStorage
from treadle.runtime.gpu.one_block import block_code, fits_one_block
from treadle.runtime.gpu.recorded import recorded
from treadle.runtime.gpu.recorded_control import is_decided_late
from treadle.runtime.gpu.routines import (
    Form,
    Routine,
    device_form,
    prepare_together,
    routine_for,
)
from treadle.runtime.gpu.routines.exchanges import ExchangeRoutine
from treadle.runtime.gpu.run import Run, SizesDiffer
from treadle.runtime.gpu.stretches import KeptStretches, Stretches
from treadle.runtime.memory.use import MemoryUse
from treadle.runtime.planned import Planned
from treadle.runtime.precision import precision
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.printer import all_steps
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
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Measure,
    Note,
    OpLoops,
    Place,
    SegmentedLaunch,
    Step,
    Update,
    Verdict,
)


class _Way(IntEnum):
    """How the work of a call is done: step by step, which is also recorded, or from a recording."""

    WORK = 0
    RECORD = 1
    SUBMIT = 2


MOST_RECORDINGS = 8  # of a program: one for each set of addresses that its calls come with
_WAITS = (Append, Callback, Deliver, Fetch, ListStep, Measure, OpLoops)
_FOUND_LATE = ("late", "joined", "slot", "element", "grown", "buffer")


class GpuProgram(Executable):
    """A schedule on one device.

    A call submits its work and does not wait for it, except where the host reads a number of the
    device. Where it never does, the work of a call is recorded when buffers at the same addresses
    come a second time, and submitted as a whole from then on.

    Attributes:
        launches: of kernels, by their steps.
        alone: the launches of loops and branches that the device runs by itself.
        routines: of library calls.
        finishes: what follows these, where a library may do both at once.
        forms: what computes ops by functions of the library for which a processor's programs call
            NumPy.
        numbers: what the host computes itself.
        constants: the buffers of literal arrays and captured tensors.
        written: the numbers of the variables that the program writes.
        submitted: how many launches, library calls and copies the last call made.
        copied: what the last call copied to the device and to the host, beside arguments; None
            before the first one.
        recordings: (whether TensorFloat-32 is allowed, sizes, addresses) -> the work of a call
            with these.
        stretches: the parts that are recorded where the whole is not; None: there are none, or the
            whole is recorded. `kept` has their recordings as `recordings` has those of the whole.
    """

    mode = "native"

    def __init__(self, planned: Planned, storage: DeviceStorage) -> None:
        """
        Raises:
            Unsupported: a step has no form for the device.
        """
        super().__init__(planned.graph)
        self.planned, self.storage = planned, storage
        self.block, self.plan, self.builder = planned.block, planned.plan, planned.builder
        self.codes = Codes(storage.driver)
        self.launches: dict[Step, PreparedLaunch] = {}
        self.segments: dict[Step, PreparedSegments | list[PreparedLaunch]] = {}
        self.alone: dict[Step, PreparedLaunch] = {}
        self.routines: dict[Step, Routine] = {}
        self.finishes: dict[Step, PreparedFinish] = {}
        self.forms: dict[Step, Form] = {}
        self.numbers: dict[Step, HostNumber] = {}
        self.small: dict[tuple[str, DType], SmallLaunch] = {}
        steps = list(self._prepared(self.block))
        with storage.working():
            self.codes.load()
            prepare_together(storage.driver, self.routines.values())
            self.constants = [self._constant(c) for c in self.builder.constants]
        places = [p for s in steps for p in (*s.reads, *s.writes)]
        written = (p for s in all_steps(self.block) for p in s.writes)
        self.written = sorted({p.number for p in written if p.kind == "variable"})
        self.variables = sorted(set(self.builder.variables.values()))
        self.static = [p for p in _distinct(places) if p.kind == "output"]
        self.has_verdict = any(isinstance(s, Verdict) for s in self.block.steps)
        self.meets = any(isinstance(r, ExchangeRoutine) for r in self.routines.values())
        self.is_recorded = self._may_be_recorded(steps, places)
        self.recordings: OrderedDict[tuple[int, ...], Recording | None] = OrderedDict()
        stretches = None if self.is_recorded else Stretches(self, self.block)
        self.stretches = stretches if stretches is not None and stretches.size else None
        self.kept: OrderedDict[tuple[int, ...], KeptStretches | None] = OrderedDict()
        self.verdicts: dict[tuple[int, ...], Status] = {}
        self.submitted = 0
        self.copied: tuple[Copied, Copied] | None = None
        self.texts = {**planned.texts, **Description(self).texts}

    # -- preparation -----------------------------------------------------------------------------

    def _prepared(self, block: Block) -> Iterator[Step]:
        """The steps that the host goes through, prepared."""
        for step in block.steps:
            yield step
            if isinstance(step, Loop | Branch) and step.alone and self._prepare_alone(step):
                continue
            self._prepare(step)
            match step:
                case Branch():
                    inner = [step.then, step.otherwise]
                case Loop():
                    inner = [step.condition, step.body]
                case _:
                    continue
            for inside in inner:
                yield from self._prepared(inside)

    def _prepare_alone(self, step: Loop | Branch) -> bool:
        """Prepare one launch for a loop or a branch, if there can be one."""
        gpu = self.storage.driver.gpu
        if step.of is None or not fits_one_block(step.of, gpu):
            return False
        try:
            made = block_code(step, self.codes.next_name(), gpu)
        except Unsupported:
            return False
        self.alone[step] = PreparedLaunch(self.codes.add(made.code), made.operands)
        return True

    def _prepare(self, step: Step) -> None:
        match step:
            case Launch():
                self._prepare_launch(step)
            case SegmentedLaunch():
                self.segments[step] = self._segments(step)
            case Note():
                for launch in step.launches:
                    self._prepare_launch(launch)
            case Update() | OpLoops() if step.launch is not None:
                self._prepare_launch(step.launch)
            case LibraryCall():
                routine = routine_for(step.node, step.views, self.storage.driver.gpu)
                if routine is None:
                    raise Unsupported(f"{step.node.op.name} has no routine for a GPU")
                self.routines[step] = routine
                if step.epilogue is not None:
                    self._prepare_epilogue(step, step.epilogue)
            case Callback():
                form = device_form(step.node)
                if form is not None:
                    self.forms[step] = form
            case Evaluate():
                self.numbers[step] = HostNumber(step)
            case Copy() if step.source.place is None:
                self._prepare_small("put", step.target.dtype)
            case Loop():
                for c in step.carried:
                    if c.place is not None and c.start.place is None:
                        self._prepare_small("put", c.place.dtype)
            case ListStep() if step.node.op is LIST_ADD:
                self._prepare_small("add", step.node.inputs[0].spec.dtype)

    def _prepare_small(self, name: str, dtype: DType) -> None:
        if (name, dtype) not in self.small:
            self.small[name, dtype] = SmallLaunch(name, dtype, self.codes)

    def _prepare_launch(self, launch: Launch) -> None:
        if launch.native:
            self.launches[launch] = prepared(launch, self.codes)

    def _prepare_epilogue(self, call: LibraryCall, step: Launch) -> None:
        self._prepare_launch(step)
        (value,), stores, operands = call.node.outputs, step.kernel.stores, step.operands
        operand = dict(zip(step.kernel.buffers, operands, strict=True))
        index = stores[0].index
        found = finishing(
            [s.value for s in stores],
            lambda e: operand[e.buffer].value is value and e.index == index, index,
        )  # fmt: skip
        if found is None:
            return
        numbers = found.out, found.kept
        out, kept = (None if n is None else operand[stores[n].buffer] for n in numbers)
        bias = None if found.bias is None else operand[found.bias]
        assert out is not None
        if all(o is None or o.place is not None for o in (bias, kept, out)):
            self.finishes[call] = PreparedFinish(found.finish, out, bias, kept)

    def _segments(self, step: SegmentedLaunch) -> PreparedSegments | list[PreparedLaunch]:
        """One launch for all segments; one for each where only some get a number of the host."""
        by_number = {tuple(o.place is None for o in s.operands) for s in step.segments}
        if len(by_number) == 1:
            return PreparedSegments(step, self.codes)
        return [prepared(segment, self.codes) for segment in step.segments]

    def _constant(self, constant: Any) -> Buffer:
        if isinstance(constant, Buffer):
            return constant
        return self.storage.from_host(constant)

    def _may_be_recorded(self, steps: Sequence[Step], places: Sequence[Place]) -> bool:
        """Whether all calls with the same sizes and addresses do the same work: the host reads
        nothing of the device, and all memory is known when the call begins."""
        waits = any(isinstance(s, _WAITS) or _works_on_host(s) for s in steps)
        waits |= any(isinstance(s, Loop | Branch) and self._reads_flag(s) for s in steps)
        replays = all(r.replays for r in self.routines.values())
        calls = [s for s in steps if isinstance(s, LibraryCall)]
        if any(o.place is None for s in calls for o in s.inputs):
            return False  # a number is copied to the device for it
        return not waits and replays and not any(p.kind in _FOUND_LATE for p in places)

    def _reads_flag(self, step: Loop | Branch) -> bool:
        """Whether the host waits for the bool of a loop or a branch."""
        flag = step.predicate if isinstance(step, Branch) else step.condition.results[0]
        if step in self.alone or flag.place is None:
            return False
        return not (self.storage.driver.gpu.decides and is_decided_late(step))

    # -- calls -----------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        storage = self.storage
        with storage.working():
            sizes = self._sizes(arrays)
            if self._differ(sizes):
                return self.where_sizes_differ(arrays)
            for number in self.written:
                arrays[number].make_writable()
            run = self._begun(arrays, sizes)
            before = storage.uploads, storage.downloads
            try:
                self._submit(run)
            except SizesDiffer:
                release_iterators(self.graph)
                return self.where_sizes_differ(arrays)
            except BaseException as error:
                release_iterators(self.graph)
                if isinstance(error, Exception):
                    storage.raise_failures()  # what failed before on the device
                raise
            self.submitted = run.submitted
            self.copied = storage.uploads - before[0], storage.downloads - before[1]
            return [run.outputs[n] for n in range(len(self.planned.work.results))]

    def _sizes(self, arrays: Sequence[Any]) -> dict[str, int]:
        return {
            s.name: arrays[s.argument].shape[s.axis] for s in self.planned.signature.symbols
        }

    def _differ(self, sizes: dict[str, int]) -> bool:
        return any(
            substitute(a, sizes) != substitute(b, sizes) for a, b in self.planned.equal_sizes
        )

    def _begun(self, arrays: Sequence[Any], sizes: dict[str, int]) -> Run:
        """A run, with memory for its results."""
        run = Run(self, arrays, sizes)
        results = {place.number: place for place in self.static}
        try:
            for number, place in results.items():
                run.outputs[number] = run.empty(place)
        except MemoryError:
            specs = {n: self.planned.work.results[n].spec for n in results}
            raise no_results(self.graph, specs, self.memory, sizes) from None
        return run

    def _submit(self, run: Run) -> None:
        """Have the device do the work of a call, from a recording where there is one."""
        key = (precision.tensor_float, *run.key()) if self.is_recorded else ()  # products keep it
        way = self._agreed(self._way(key), "the way of a call")
        if way is _Way.RECORD:
            made = self._recorded(run)
            if self._agreed(made is not None, "a recording"):
                self.recordings[key] = made
            else:  # a device cannot record such work
                self.is_recorded = False
                way = _Way.WORK
        if way is _Way.WORK:
            if self.stretches is None or not self._in_stretches(self.stretches, run):
                self._work(run)
            return
        recording = self.recordings[key]
        assert recording is not None
        run.expect_verdict()
        recording.submit()
        run.submitted = 1

    def _way(self, key: tuple[int, ...]) -> _Way:
        """How a call would have its work done by itself."""
        if not self.is_recorded:
            return _Way.WORK
        if key not in self.recordings:  # the first call with these addresses
            self.recordings[key] = None
            if len(self.recordings) > MOST_RECORDINGS:
                self.recordings.popitem(last=False)
            return _Way.WORK
        self.recordings.move_to_end(key)
        return _Way.RECORD if self.recordings[key] is None else _Way.SUBMIT

    def _in_stretches(self, stretches: Stretches, run: Run) -> bool:
        """Do the work of a call with the recordings of its stretches; False where buffers come at
        these addresses for the first time."""
        key = (precision.tensor_float, *run.key())
        if key not in self.kept:
            self.kept[key] = None
            if len(self.kept) > MOST_RECORDINGS:
                self.kept.popitem(last=False)
            return False
        self.kept.move_to_end(key)
        try:
            kept = self.kept[key] = self.kept[key] or KeptStretches(stretches, run)
        except MemoryError:
            raise no_workspace(self.graph, self.memory, run.symbols) from None
        kept.work(run)
        return True

    def _agreed(self, way: Any, about: str) -> Any:
        """What all programs of a call do that meet on the way: they record exchanges together, and
        do recorded ones together."""
        return meet(about, way, min) if self.meets and is_part() else way

    def _work(self, run: Run) -> None:
        """Go through the steps."""
        try:
            run.begin()
        except MemoryError:
            raise no_workspace(self.graph, self.memory, run.symbols) from None
        run.block(self.block)

    def _recorded(self, run: Run) -> Recording | None:
        run.begin()
        run.reserve_scratch()
        recording = recorded(run, lambda: run.block(self.block))
        return None if recording is None else Kept(recording, run)

    # -- the status ------------------------------------------------------------------------------

    def status(self, run: Run) -> Status:
        """The memory of the status for calls with the sizes of a run. It stays zero until a check
        fails, and is cleared when the error was raised: calls need not begin with it."""
        key = tuple(run.symbols[n] for n in run.entry)
        if key not in self.verdicts:
            self.verdicts[key] = Status(self, run)
        return self.verdicts[key]

    # -- description -----------------------------------------------------------------------------

    @property
    def memory(self) -> MemoryUse | None:
        return self.planned.memory


class Kept:
    """A recording, with the memory that its work is done in."""

    def __init__(self, recording: Recording, run: Run) -> None:
        self.recording, self.memory = recording, run.keeps()

    def submit(self) -> None:
        self.recording.submit()


class Status:
    """The status of a program in the memory of the device, see `treadle.runtime.schedule.status`.

    Attributes:
        addresses: of its places, by their numbers.
        is_pending: whether a call was submitted whose verdict nobody has read.
    """

    def __init__(self, program: GpuProgram, run: Run) -> None:
        self.program, self.symbols = program, dict(run.symbols)
        self.storage = program.storage
        (self.verdict,) = [s for s in program.block.steps if isinstance(s, Verdict)]
        self.places = program.builder.status.places
        self.addresses: dict[int, int] = {}
        size = 0
        for place in self.places:
            self.addresses[place.number] = size
            size += -(-run.bytes_of(place) // 16) * 16
        self.size = max(size, 1)
        self.memory: Memory = self.storage.driver.allocate(self.size)
        self.addresses = {n: a + self.memory.address for n, a in self.addresses.items()}
        self.storage.driver.clear(self.memory.address, self.size)
        self.is_pending = False

    def expect(self) -> None:
        """A call was submitted: its verdict is read when the host next waits."""
        if not self.is_pending:
            self.is_pending = True
            self.storage.verdicts.append(self.read)

    def read(self) -> None:
        """Raise the error of the check that failed first, if one did."""
        self.is_pending = False
        word = self.verdict.word
        number = int(self._elements(word))
        if not number:
            return
        check = self.verdict.findings[number - 1]
        kept = [self._elements(place) for place in check.kept]
        self.storage.driver.clear(self.memory.address, self.size)
        raise_noted(check, kept, self.symbols)
        raise errors.InternalError(None, None, "a check failed without an error")

    def _elements(self, place: Place) -> Any:
        shape = tuple(int(substitute(d, self.symbols)) for d in place.dims)  # type: ignore[arg-type]
        return self.storage.read(self.addresses[place.number], place.dtype.np_dtype, shape)


def _works_on_host(step: Step) -> bool:
    """Whether NumPy computes what a step is for."""
    match step:
        case Launch():
            return not step.native
        case Update():
            return step.launch is None
        case Note():
            return not step.launches
        case Check():
            return True
    return False


def _distinct(places: Sequence[Place]) -> Iterator[Place]:
    """Each place once by its kind and number."""
    seen = set()
    for place in places:
        if (place.kind, place.number) not in seen:
            seen.add((place.kind, place.number))
            yield place
