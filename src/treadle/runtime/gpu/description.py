"""What `td.inspect` shows of a program for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core.locks import cached_property
from treadle.core.shapes import Dim, SymbolicDim, product, substitute
from treadle.kernel.printer import kernel_hash
from treadle.ops.lowering import ListAction, ListForm
from treadle.runtime.gpu.driver import Needs
from treadle.runtime.gpu.kernels import PRELUDE, KernelCode
from treadle.runtime.gpu.launches import Parameters, PreparedLaunch, PreparedSegments
from treadle.runtime.gpu.recorded_control import is_decided_late
from treadle.runtime.gpu.routines import Routine
from treadle.runtime.gpu.routines.kernel import CodeRoutine
from treadle.runtime.gpu.stages import Stage
from treadle.runtime.gpu.toolkit import (
    Compiled,
    CompileError,
    Compiler,
    NoTool,
    compiler,
    disassembled,
)
from treadle.runtime.memory.use import size_text
from treadle.runtime.schedule.printer import operand_text
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Callback,
    Fetch,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Note,
    Operand,
    OpLoops,
    SegmentedLaunch,
    Step,
    Update,
    Verdict,
    node_of,
)

if TYPE_CHECKING:
    from treadle.runtime.gpu.program import GpuProgram

Code = tuple[KernelCode, Sequence[Any]]  # with the functions of its stages
Lines = Iterator[str]


class Description:
    """The texts of a program, by the names of the stages."""

    def __init__(self, program: GpuProgram) -> None:
        self.program, self.driver = program, program.storage.driver

    @property
    def texts(self) -> dict[str, Callable[[], str]]:
        return {
            "launches": self.launches, "copies": self.copies, "cuda": self.cuda, "ptx": self.ptx,
            "sass": self.sass,
        }  # fmt: skip

    # -- code --------------------------------------------------------------------------------

    @cached_property
    def codes(self) -> dict[str, Code]:
        """The kernels of the program and of its routines, by name."""
        own = [(c.code, c.functions) for c in self.program.codes.all]
        found = [r for r in self.program.routines.values() if isinstance(r, CodeRoutine)]
        return {code.name: (code, f) for code, f in (*own, *((r.code, r.functions) for r in found))}

    def cuda(self) -> str:
        """CUDA C."""
        texts = [code.text.strip() for code, _ in self.codes.values()]
        return "\n\n".join([f"// after {PRELUDE}", *texts])

    @cached_property
    def compiler(self) -> Compiler:
        return compiler()

    @cached_property
    def compiled(self) -> Compiled:
        text = "\n".join(code.text for code, _ in self.codes.values())
        return self.compiler.compile(text, self.driver.gpu.architecture)

    def ptx(self) -> str:
        """NVIDIA's assembly, or why it cannot be shown."""
        return self._from_tools(lambda: self.compiled.ptx)

    def sass(self) -> str:
        """The instructions of the device, or why they cannot be shown."""
        return self._from_tools(lambda: disassembled(self.compiled.code))

    def _from_tools(self, write: Callable[[], str]) -> str:
        if not self.codes:
            return "the program has no kernels"
        try:
            return write().strip()
        except (NoTool, CompileError, RuntimeError) as error:
            return str(error)

    @cached_property
    def needs(self) -> tuple[dict[str, Needs], str]:
        """What each function takes, and who says so or why nobody does."""
        with self.program.storage.working():
            pairs = [
                (stage.name, self.driver.needs(function))
                for code, functions in self.codes.values()
                for stage, function in zip(code.stages, functions, strict=True)
            ]
        told = {name: needs for name, needs in pairs if needs is not None}
        if told or not pairs:
            return told, ""
        try:
            found = self.compiled.needs
        except (NoTool, CompileError) as error:
            return {}, f"registers are not known: {error}"
        made_for = f"{self.compiler.name} for {self.driver.gpu.architecture}"
        return found, f"registers and local memory: as compiled by {made_for}"

    # -- launches ----------------------------------------------------------------------------

    def launches(self) -> str:
        """Each launch in the order of the steps, and how the device gets them."""
        lines = list(self._block(self.program.block, 0)) or ["nothing is launched"]
        recorded = self.program.is_recorded
        how = (
            "recorded as a CUDA graph by the second call with the same memory, and submitted as a "
            "whole from then on" if recorded else self._in_stretches()
        )  # fmt: skip
        return "\n".join([*lines, "", how, *filter(None, [self.needs[1]])])

    def _block(self, block: Block, depth: int) -> Lines:
        pad = "  " * depth
        for step in block.steps:
            if step in self.program.alone:
                what = "branch" if isinstance(step, Branch) else "loop"
                code = self.program.alone[step].code.code
                yield f"{pad}{what} by one block: the host neither waits nor launches its kernels"
                for stage in code.stages:
                    yield pad + self._stage(stage, stage.blocks)
            elif isinstance(step, Branch):
                by = " (the device decides in recordings)" if self._is_recorded(step) else ""
                for head, inner in (
                    (f"if {operand_text(step.predicate)}{by}", step.then), ("else", step.otherwise),
                ):  # fmt: skip
                    lines = list(self._block(inner, depth + 1))
                    yield from [pad + head, *lines] if lines else ()
            elif isinstance(step, Loop):
                by = ", which the device ends in recordings" if self._is_recorded(step) else ""
                yield f"{pad}loop{by}"
                yield from self._block(step.condition, depth + 1)
                yield from self._block(step.body, depth + 1)
            else:
                for line in self._step(step):
                    yield pad + line

    def _in_stretches(self) -> str:
        """How calls are submitted that are not recorded as a whole."""
        stretches = self.program.stretches
        if stretches is None:
            return "submitted one after the other in each call"
        count = f"{stretches.size} stretch{'es' * (stretches.size > 1)}"
        return f"submitted in each call, {count} of them recorded as CUDA graphs"

    def _is_recorded(self, step: Loop | Branch) -> bool:
        """Whether a recording has the step as a part that the device decides about."""
        return self.program.is_recorded and is_decided_late(step)

    def _step(self, step: Step) -> Lines:
        program = self.program
        match step:
            case Launch() if step.native:
                yield from self._launch(step, program.launches[step])
            case SegmentedLaunch():
                prepared = program.segments[step]
                if isinstance(prepared, PreparedSegments):
                    yield from self._segments(prepared)
                else:
                    for segment, each in zip(step.segments, prepared, strict=True):
                        yield from self._launch(segment, each)
            case Note():
                for launch in step.launches:
                    yield from self._launch(launch, program.launches[launch])
            case Update() | OpLoops() if step.launch is not None:
                yield from self._launch(step.launch, program.launches[step.launch])
            case LibraryCall():
                yield from self._routine(step, program.routines[step])
            case Callback() if step in program.forms:
                yield f"{step.node.op.name} by functions of CuPy{_at(step)}"

    def _launch(self, step: Launch, prepared: PreparedLaunch) -> Lines:
        code = prepared.code.code
        sizes = _sizes(step, prepared.parameters)
        yield f"kernel {kernel_hash(step.kernel)[:8]}{_of(step)}{_scratch(code, sizes)}"
        for stage in code.stages:
            yield self._stage(stage, substitute(stage.blocks, sizes))

    def _segments(self, prepared: PreparedSegments) -> Lines:
        step, (stage,) = prepared.step, prepared.code.code.stages
        count = len(step.segments)
        each = f", at most {prepared.most} a launch" if count > prepared.most else ""
        yield f"kernel {kernel_hash(step.kernel)[:8]} for {count} segments{each}{_of(step)}"
        blocks: Dim = 0
        for segment, parameters in zip(step.segments, prepared.parameters, strict=True):
            blocks = blocks + substitute(stage.blocks, _sizes(segment, parameters))
        yield self._stage(stage, blocks)

    def _routine(self, step: LibraryCall, routine: Routine) -> Lines:
        name = f"{step.node.op.name} by {routine.name}{_at(step)}"
        if not isinstance(routine, CodeRoutine):
            count = routine.launches
            yield f"{name}: {count} call{'' if count == 1 else 's'} of a library of CUDA"
        else:
            yield f"{name}{_scratch(routine.code, {})}"
            for stage in routine.code.stages:
                yield self._stage(stage, stage.blocks)
        if step.epilogue is not None:
            follows = self.program.finishes.get(step)
            if follows is not None:
                yield f"  with {follows.finish} at once, or where the library cannot:"
            for line in self._launch(step.epilogue, self.program.launches[step.epilogue]):
                yield f"  {line}"

    def _stage(self, stage: Stage, blocks: Dim) -> str:
        needs = self.needs[0].get(stage.name)
        threads = "" if needs is None else (
            f", {needs.registers} registers, {needs.local} bytes local"
        )  # fmt: skip
        sizes = f"grid {blocks}, block {stage.threads}, shared {stage.shared} bytes"
        return f"  {stage.name}: {sizes}{threads}"

    # -- copies ------------------------------------------------------------------------------

    def copies(self) -> str:
        """What goes between the host and the device in a call."""
        program = self.program
        params = program.planned.work.params
        given = [params[place.number] for place in program.builder.arguments]
        here = program.graph.device
        lines = []
        if given:
            listed = ", ".join(f"%{p.name} ({_bytes(p.spec)})" for p in given)
            lines.append(f"to the device: arguments that the caller has elsewhere than on {here},")
            lines.append(f"  of {listed}")
        lines += self._moves(program.block, "")
        if program.copied is None:
            lines.append("no call was made yet")
        else:
            up, down = program.copied
            lines.append(f"the last call copied to the device {up}, to the host {down}")
        return "\n".join(lines)

    def _moves(self, block: Block, when: str) -> Lines:
        for step in block.steps:
            if step in self.program.alone:
                continue
            if isinstance(step, Branch):
                yield from self._flag(step, step.predicate, when)
                for inner in (step.then, step.otherwise):
                    yield from self._moves(inner, when or ", where the branch is taken")
            elif isinstance(step, Loop):
                turn = ", in each turn of the loop"
                yield from self._flag(step, step.condition.results[0], turn)
                for inner in (step.condition, step.body):
                    yield from self._moves(inner, turn)
            else:
                own = ", where CuPy does not compute it" if step in self.program.forms else ""
                for direction, operands in _moved(step):
                    values = [o.value for o in operands if o.place is not None]
                    if values:
                        listed = ", ".join(f"%{v.name} ({_bytes(v.spec)})" for v in values)
                        yield f"to the {direction}: {listed}{_at(step)}{when}{own}"
                if isinstance(step, Verdict):
                    checks = len(step.findings)
                    text = "4 bytes that say which of the program's checks failed"
                    yield f"to the host, when it next waits: {text} ({checks} of them)"

    def _flag(self, step: Branch | Loop, flag: Operand, when: str) -> Lines:
        """The copy of a bool that the device has and the host decides by."""
        if flag.place is not None:
            until = " until calls are recorded" if self._is_recorded(step) else ""
            yield f"to the host: %{flag.value.name} ({_bytes(flag.value.spec)}){when}{until}"


def _moved(step: Step) -> Iterator[tuple[str, Sequence[Operand]]]:
    """The direction and the operands of what a step copies; those in registers stay there."""
    match step:
        case Fetch():
            pairs = zip(step.values, step.sources, strict=True)
            yield "host", [Operand(v, p) for v, p in pairs]
        case Callback() | OpLoops() if getattr(step, "launch", None) is None:
            yield "host", step.inputs
            yield "device", step.outputs
        case Update() if step.launch is None:
            yield "host", step.inputs
            yield "device", step.inputs[:1]
        case Launch() if not step.native:
            yield "host", step.operands
            yield "device", [step.operands[n] for n in step.outputs]
        case LibraryCall():
            numbers = [o for o in step.inputs if o.place is None]
            yield "device", [Operand(o.value, step.outputs[0].place) for o in numbers]
        case ListStep():
            form = step.node.op.lower
            assert isinstance(form, ListForm)
            if form.action in _READ:
                yield "host", step.inputs[1:]
            yield "device", step.outputs[_WRITTEN.get(form.action, len(step.outputs)) :]


# What of lists the host knows: their lengths and the shapes of elements.
_READ = (ListAction.SPLIT, ListAction.UNPACK)
_WRITTEN = {ListAction.LENGTH: 0, ListAction.CONCAT: 1, ListAction.PACK: 1}


def _sizes(step: Launch, parameters: Parameters) -> dict[str, Dim]:
    """The symbols of a kernel as the program's sizes."""
    given = [dim for _, dim in parameters.symbols]
    return {
        name: SymbolicDim.symbol(dim) if isinstance(dim, str) else dim
        for name, dim in zip(step.kernel.symbols, given, strict=True)
    }


def _bytes(spec: Any) -> str:
    return f"{size_text(product(spec.dims) * spec.dtype.size)} bytes"


def _scratch(code: KernelCode, sizes: dict[str, Dim]) -> str:
    size = substitute(code.scratch, sizes)
    return "" if size == 0 else f", scratch {size_text(size)} bytes"


def _of(step: Step) -> str:
    """The operation that a kernel ends with, and the user's line."""
    node = node_of(step)
    return "" if node is None else f" of {node.op.name}{_at(step)}"


def _at(step: Step) -> str:
    node = node_of(step)
    return "" if node is None or node.origin is None else f" ({node.origin})"
