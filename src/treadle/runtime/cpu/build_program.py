"""From a schedule to a NativeExecutable: emits, compiles, and binds everything with an address."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, Any

from treadle.core.shapes import Dim, dim_symbols, product
from treadle.core.spec import BufferSpec, ResourceSpec
from treadle.graph.ir import Graph, Region
from treadle.ops.control.collectives import ALL_REDUCE
from treadle.ops.state import ASSIGN
from treadle.runtime.callbacks import Callbacks, output_words
from treadle.runtime.cpu.abi import layout
from treadle.runtime.cpu.compiled_kernels import KernelCode, kernel_code
from treadle.runtime.cpu.emission import on_another_thread
from treadle.runtime.cpu.host_memory import host_memory
from treadle.runtime.cpu.jit import Code, jit
from treadle.runtime.cpu.native import NativeExecutable, Program
from treadle.runtime.cpu.program_blueprint import SHORT_WORK, Blueprint
from treadle.runtime.cpu.program_emitters import EMITTERS
from treadle.runtime.cpu.program_record import Record
from treadle.runtime.cpu.program_run import program_text
from treadle.runtime.cpu.program_state import StateTable
from treadle.runtime.cpu.state_words import StateWords
from treadle.runtime.cpu.target import host
from treadle.runtime.executable import Executable
from treadle.runtime.memory.report import maker
from treadle.runtime.memory.use import Maker, MemoryUse
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.printer import all_kernels, all_steps
from treadle.runtime.schedule.steps import (
    Block,
    Callback,
    Deliver,
    Exhausted,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    OpLoops,
    SegmentedLaunch,
    Update,
    node_of,
)
from treadle.runtime.signature import Signature
from treadle.runtime.step_times import step_times

if TYPE_CHECKING:
    from treadle.runtime.cpu.program_times import Timer


def build_program(planned: Planned, is_timed: bool = False) -> NativeExecutable:
    """Compile a schedule.

    Args:
        is_timed: the program writes down when its steps ran (`program_times`).
    """
    timer = _timer() if is_timed else None
    emitted, text = emitted_program(planned, timer)
    graph, builder, block = planned.graph, planned.builder, planned.block
    signature, written, workers = emitted.signature, list(emitted.written), emitted.workers
    loaded = jit().load(text, forever=False)
    kernels = _Kernels()
    kernels.load(emitted.table)
    by_object = layout() is not None and not signature.cells
    asks = any(map(_keeps_for_call, emitted.callbacks))
    asks = asks or (bool(signature.cells) and _uses_variables(block, emitted))
    python_lists = planned.uses_lists and not builder.native_lists
    callbacks = _callbacks(graph, builder, emitted, written, planned.memory)
    calls_python = any(not isinstance(s, Exhausted) for s in emitted.callbacks)
    program = Program(
        signature=signature,
        table=emitted.table,
        entry=loaded.address("entry") if by_object else 0,
        run=loaded.address("run"),
        words=StateWords(
            graph,
            builder.constants,
            callbacks,
            workers,
            _has_library(emitted.table),
            kernels.address,
            step_times.add_program(graph.name, timer.described()) if timer else 0,
        ),  # fmt: skip
        callbacks=callbacks,
        written=written,
        releases_gil=emitted.releases is not False,
        needs_frame=calls_python and (python_lists or asks),
        texts=_texts(planned, text),
        memory=planned.memory,
        counters={
            "kernels": sum(isinstance(s, Launch | SegmentedLaunch) for s in all_steps(block)),
            "epilogues": sum(
                isinstance(s, LibraryCall) and s.epilogue is not None for s in all_steps(block)
            ),
            "workspace_bytes": planned.plan.static_bytes,
            "callbacks": _count_callbacks(block, emitted),
        },
        code=loaded.key,
        keep=[loaded, callbacks, builder.constants, kernels],
    )
    timed = None if is_timed else functools.partial(build_program, planned, is_timed=True)
    return NativeExecutable(graph, program, make_timed=timed)


def _timer() -> Timer:
    from treadle.runtime.cpu.program_times import Timer

    return Timer()


def emitted_program(
    planned: Planned, timer: Timer | None = None, is_standalone: bool = False
) -> tuple[Blueprint, str]:
    """The text of a schedule's module, with what is known of the program. Nothing is loaded.

    Args:
        is_standalone: the program runs without Python: there is no GIL, no signal and no ndarray,
            and its caller sees to it that nobody else writes the variables meanwhile.
    """
    work, builder, block = planned.work, planned.builder, planned.block
    signature = planned.signature
    written = sorted(_written(work, builder))
    variables = sorted(set(builder.variables.values()))
    runs_user_code = any(node.runs_user_code for node in work.nodes)
    releases = not is_standalone and _long(block, signature, bool(variables) and runs_user_code)
    calls = any(isinstance(s, Callback) for s in all_steps(block))
    shares = bool(variables) and not is_standalone
    holds = shares and (releases is not False or calls) and not runs_user_code
    emitted = Blueprint(
        host(), builder.facts.tuning.threads, block, planned.plan, signature, releases, written,
        variables, holds, _whole(work, variables), builder.native_lists, builder.element_dims,
        timer,
    )  # fmt: skip
    arrays = None if is_standalone else layout()
    return emitted, program_text(emitted, planned.equal_sizes, EMITTERS, arrays)


class _Kernels:
    """The kernels of a program, loaded when their addresses are asked for at the latest."""

    def __init__(self) -> None:
        self.codes: dict[str, Code] = {}

    def load(self, table: StateTable) -> None:
        """Load the kernels of a table. One thread compiles them all where no interrupt comes (see
        `emission`): to start one for each would take about a tenth of their time."""
        keys: list[Any] = [key for kind, key in table.keys if kind == "kernel"]
        codes: dict[str, KernelCode] = {code.name: code for code, _ in keys}
        if len(codes) < 2:
            return
        compiler, stopped = jit(), list[bool]()

        def work() -> None:
            for name, code in codes.items():
                if stopped:
                    break
                self.codes[name] = compiler.load(code.emitted.text, forever=False)

        try:
            on_another_thread(work)
        except BaseException:  # of this thread: what the other one still does is for nothing
            stopped.append(True)
            raise

    def address(self, key: tuple[KernelCode, str]) -> int:
        kernel, symbol = key
        code = self.codes.get(kernel.name)
        if code is None:
            code = self.codes[kernel.name] = kernel.load()
        return code.address(symbol)


def record_of(executable: Executable, traced: Graph, planned: Planned) -> Record | None:
    """What is stored of a program; None for one that runs Python code or knows this process.

    Args:
        traced: the graph that the program was made from.
    """
    assert isinstance(executable, NativeExecutable)
    program, builder = executable.program, planned.builder
    constants = [_stored_constant(c, executable.graph) for c in builder.constants]
    if program.needs_frame or program.counters["callbacks"]:
        return None
    table = [(kind, _stored_key(kind, key)) for kind, key in program.table.keys]
    return Record(
        program.signature, program.code, bool(program.entry), table, constants,
        program.callbacks is not None, _has_library(program.table), builder.facts.tuning.threads,
        program.written, program.releases_gil, program.counters, executable.guards,
        executable.output_specs,
        *_stored_memory(program, traced), _choices(planned.block),
    )  # fmt: skip


def _choices(block: Block) -> dict[str, str]:
    """What was chosen for the routines that a program calls."""
    calls = [step for step in all_steps(block) if isinstance(step, LibraryCall)]
    if not calls:
        return {}
    from treadle.runtime.cpu.library import routine_for

    routines = (routine_for(step.node, step.apart, step.views) for step in calls)
    return dict(pair for routine in routines if routine for pair in routine.made_with)


def _stored_memory(
    program: Program, traced: Graph
) -> tuple[MemoryUse | None, dict[int, Maker | None]]:
    """What a run needs, and what makes that for which there may be no memory, by the number of the
    callback. The user's lines are those of nodes of the traced graph, which has them again."""
    numbers: dict[int, int] = {}
    for number, node in enumerate(traced.walk()):
        numbers.setdefault(id(node.origin), number)

    def place(origin: Any) -> int | None:
        return numbers.get(id(origin))

    makers: dict[int, Maker | None] = {}
    for number, step in enumerate(program.callbacks.steps if program.callbacks else ()):
        if isinstance(step, Exhausted):
            found = maker(node_of(step.step))
            makers[number] = found and found.located(place)
    memory = program.memory
    return memory and memory.located(place), makers


def _stored_key(kind: str, key: Any) -> Any:
    """The key of a word; a kernel is named by its object on disk."""
    return (key[0].load().key, key[1]) if kind == "kernel" else key


def _stored_constant(array: Any, graph: Graph) -> Any:
    """A constant of a record: the number of a captured tensor, or the array."""
    for number, capture in enumerate(graph.captures):
        if getattr(capture, "_buffer", None) is array:
            return number
    return array


def _has_library(table: StateTable) -> bool:
    """Whether a program calls routines of the library."""
    return any(kind == "routine" for kind, _ in table.keys)


def _count_callbacks(block: Block, emitted: Blueprint) -> int:
    """Steps that always run in Python, in contrast to checks, which do so when they fail."""
    steps = set(all_steps(block))
    return sum(s in steps and not isinstance(s, Guard | ListStep) for s in emitted.callbacks)


def _keeps_for_call(step: object) -> bool:
    """Whether a callback makes an array whose size it finds out, or hands a result over: such
    arrays belong to the call. Checks do not, whatever the sizes that their errors tell."""
    if isinstance(step, Callback):
        return any(output_words(o) > 1 for o in step.outputs)
    return isinstance(step, Deliver)


def _uses_variables(block: Block, emitted: Blueprint) -> bool:
    """Whether Python code that the program calls may look at variables that are arguments: code
    that goes back to the program, and ops that take them."""
    if _count_callbacks(block, emitted):
        return True
    nodes = [s.node for s in emitted.callbacks if isinstance(s, Callback)]
    return any(isinstance(v.spec, ResourceSpec) for node in nodes for v in node.inputs)


def _callbacks(
    graph: Graph, builder: Builder, emitted: Blueprint, written: Sequence[int], memory: MemoryUse
) -> Callbacks | None:
    if not emitted.callbacks:
        return None
    signature = emitted.signature
    names = [s.name for s in signature.symbols]
    first = signature.words - len(names)
    return Callbacks(
        emitted.callbacks, names, first, builder.variables, graph, written, memory, host_memory
    )


def _texts(planned: Planned, text: str) -> dict[str, Callable[[], str]]:
    """The stages for `inspect`, made when they are asked for."""
    codes = {
        code.name: code.emitted.text
        for kernel in all_kernels(planned.block)
        if (code := kernel_code(kernel)) is not None
    }
    return {
        **planned.texts,
        "llvm": lambda: "\n".join([text, *(f"; kernel {n}\n{t}" for n, t in codes.items())]),
        "assembly": lambda: "\n".join(map(jit().assembly, [text, *codes.values()])),
    }


def _written(region: Region, builder: Builder) -> set[int]:
    """Numbers of the variables that the program itself assigns."""
    found: set[int] = set()
    for node in region.walk():
        if node.op is ASSIGN:
            handle = node.inputs[0]
            if handle in builder.variables:
                found.add(builder.variables[handle])
    return found


def _whole(work: Graph, variables: Sequence[int]) -> set[int]:
    """Numbers of the variables that are not the caller's arrays."""
    return {n for n in variables if not isinstance(work.params[n].spec, BufferSpec)}


def _long(block: Block, signature: Signature, assigned_by_others: bool) -> bool | Dim:
    """Whether the GIL is worth releasing: for loops, sizes found out late, and much work. For
    sizes that are known on entry the work in element operations.

    Args:
        assigned_by_others: the program runs user code that may assign its variables.
    """
    total: Dim = 0
    for step in all_steps(block):
        if isinstance(step, Loop) or _waits(step):
            return True
        total = total + _work(step)
    if assigned_by_others:
        return False  # it uses the buffers that there are at each step, which must not change
    if isinstance(total, int):
        return total > SHORT_WORK
    return total if dim_symbols(total) <= {s.name for s in signature.symbols} else True


def _waits(step: object) -> bool:
    """Whether a step waits for other processes."""
    return isinstance(step, LibraryCall) and step.node.op is ALL_REDUCE


def _work(step: object) -> Dim:
    if isinstance(step, SegmentedLaunch):
        return functools.reduce(add, map(_work, step.segments))
    if isinstance(step, Launch):
        if step.extent is not None:
            return step.extent
        return product(a.extent for a in step.kernel.axes)
    if isinstance(step, LibraryCall):
        return product(product(o.value.spec.dims) for o in step.inputs)
    if isinstance(step, Update | OpLoops) and step.launch is not None:
        return _work(step.launch)
    return 0
