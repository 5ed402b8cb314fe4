"""From a schedule to a NativeExecutable: emits, compiles, and binds everything with an address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from treadle.core import processors
from treadle.core.shapes import Dim, dim_symbols, product
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Graph, Node, Region
from treadle.kernel.ir import Kernel
from treadle.runtime.abi import c_function, layout
from treadle.runtime.callbacks import Callbacks, captured_variable
from treadle.runtime.cpu.compiled_kernels import in_terms_of, kernel_code
from treadle.runtime.cpu.jit import jit
from treadle.runtime.cpu.kept_memory import kept_memory, memory_text
from treadle.runtime.cpu.program import SHORT_WORK, Emitter
from treadle.runtime.cpu.program_entry import Signature
from treadle.runtime.cpu.program_steps import emit_block
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.thread_count import threads
from treadle.runtime.cpu.threads import pool, pool_text
from treadle.runtime.memory.plan import ALIGNMENT, Plan
from treadle.runtime.memory.report import MemoryUse, memory_use
from treadle.runtime.native import NativeExecutable, Program
from treadle.runtime.schedule.backend import Needs
from treadle.runtime.schedule.build import Builder
from treadle.runtime.schedule.printer import all_kernels, all_steps, kernels_text, schedule_text
from treadle.runtime.schedule.steps import (
    Block,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    Loop,
    Rows,
    SegmentedLaunch,
)
from treadle.runtime.symbols import broadcast_guards, symbol_sources


def build_program(
    graph: Graph, work: Graph, builder: Builder, block: Block, plan: Plan
) -> NativeExecutable:
    """Compile a schedule.

    Args:
        graph: the optimized graph, which is interpreted where shapes broadcast unexpectedly.
        work: the copy of it that `block` is the schedule of.
    """
    signature = _signature(work, builder)
    written = sorted(_written(work, builder))
    releases = _long(block, signature)
    workers = builder.backend.workers
    emitter = Emitter(
        host(), workers, block, plan, signature, list(broadcast_guards(work)), written, releases
    )
    emitter.native_lists, emitter.element_dims = builder.native_lists, builder.element_dims
    text = emitter.emit(emit_block, layout())
    loaded = jit().load(text, forever=False)
    callbacks = _callbacks(graph, builder, emitter, written)
    by_object = layout() is not None and not signature.cells
    finds_out = bool(builder.late) or bool(signature.cells)
    lists = _uses_lists(work)
    python_lists = lists and not builder.native_lists
    memory = memory_use(
        work, signature.outputs, builder.constants, builder.temporaries, lists, plan
    )
    program = Program(
        signature=signature,
        table=emitter.table,
        entry=loaded.address("entry") if by_object else 0,
        run=loaded.address("run"),
        words=_Words(graph, builder, callbacks, block),
        callbacks=callbacks,
        written=written,
        releases_gil=releases is not False,
        needs_frame=callbacks is not None and (python_lists or finds_out),
        texts=_texts(block, plan, text, memory),
        memory=memory,
        counters={
            "kernels": sum(isinstance(s, Launch | SegmentedLaunch) for s in all_steps(block)),
            "epilogues": sum(
                isinstance(s, LibraryCall) and s.epilogue is not None for s in all_steps(block)
            ),
            "workspace_bytes": plan.static_bytes,
            "callbacks": _count_callbacks(block, emitter),
        },
        keep=[loaded, callbacks],
    )
    return NativeExecutable(graph, program)


def _count_callbacks(block: Block, emitter: Emitter) -> int:
    """Steps that always run in Python, in contrast to checks, which do so when they fail."""
    steps = set(all_steps(block))
    return sum(s in steps and not isinstance(s, Guard | ListStep) for s in emitter.callbacks)


def _callbacks(
    graph: Graph, builder: Builder, emitter: Emitter, written: Sequence[int]
) -> Callbacks | None:
    if not emitter.callbacks:
        return None
    signature = emitter.signature
    names = [s.name for s in signature.symbols]
    first = signature.words - len(names)
    return Callbacks(emitter.callbacks, names, first, builder.variables, graph, written)


def _texts(block: Block, plan: Plan, text: str, memory: MemoryUse) -> dict[str, Callable[[], str]]:
    """The stages for `inspect`, made when they are asked for."""
    codes = {
        code.name: code.emitted.text
        for kernel in all_kernels(block)
        if (code := kernel_code(kernel)) is not None
    }
    return {
        "schedule": lambda: schedule_text(block, plan),
        "memory": lambda: str(memory),
        "kernels": lambda: kernels_text(block),
        "llvm": lambda: "\n".join([text, *(f"; kernel {n}\n{t}" for n, t in codes.items())]),
        "assembly": lambda: "\n".join(map(jit().assembly, [text, *codes.values()])),
    }


class Cpu:
    """What the schedule must know of this machine (`schedule.build.Backend`)."""

    def __init__(self) -> None:
        jit().prepare(lambda: pool_text(host()), "pool")
        jit().prepare(lambda: memory_text(host()), "memory")
        # As many as there are processors, so that the setting may go up to these later.
        self.workers = max(processors.usable(), threads())

    def routine_bytes(self, node: Node) -> Dim | None:
        from treadle.runtime.cpu.library import prepare_routine, routine_for

        routine = routine_for(node)
        if routine is None:
            return None
        prepare_routine(routine.symbol)
        return routine.workspace(self.workers)

    def takes_epilogue(self, node: Node) -> bool:
        from treadle.runtime.cpu.library import routine_for

        routine = routine_for(node)
        return routine is not None and routine.epilogue

    def kernel_needs(self, kernel: Kernel) -> Needs | None:
        code = kernel_code(kernel)
        if code is None:
            return None
        scratch = in_terms_of(kernel, code.emitted.scratch)
        shared = in_terms_of(kernel, code.emitted.shared)
        return Needs(_rounded(scratch) * self.workers, shared)

    def rows(self, loop: Loop) -> Rows | None:
        from treadle.runtime.cpu.rows import split_rows

        return split_rows(loop, self.workers)


def _rounded(size: Dim) -> Dim:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def _signature(work: Graph, builder: Builder) -> Signature:
    first_capture = len(work.params) - len(work.captures)
    arrays = [p.number for p in builder.arguments]
    cells = [
        i for i, p in enumerate(work.params[:first_capture]) if isinstance(p.spec, ResourceSpec)
    ]
    outputs = [n for n in range(len(work.results)) if n not in builder.delivered]
    return Signature(arrays, cells, outputs, symbol_sources(work.params))


def _written(region: Region, builder: Builder) -> set[int]:
    """Numbers of the variables that the program itself assigns."""
    found: set[int] = set()
    for node in region.walk():
        if node.op.name == "assign_variable":
            handle = node.inputs[0]
            if handle in builder.variables:
                found.add(builder.variables[handle])
    return found


def _long(block: Block, signature: Signature) -> bool | Dim:
    """Whether the GIL is worth releasing: for loops, sizes found out late, and much work. For
    sizes that are known on entry the work in element operations."""
    total: Dim = 0
    for step in all_steps(block):
        if isinstance(step, Loop):
            return True
        total = total + _work(step)
    if isinstance(total, int):
        return total > SHORT_WORK
    return total if dim_symbols(total) <= {s.name for s in signature.symbols} else True


def _work(step: object) -> Dim:
    if isinstance(step, SegmentedLaunch):
        return reduce(add, map(_work, step.segments))
    if isinstance(step, Launch):
        if step.extent is not None:
            return step.extent
        return product(a.extent for a in step.kernel.axes)
    if isinstance(step, LibraryCall):
        return product(product(o.value.spec.dims) for o in step.inputs)
    return 0


def _uses_lists(work: Graph) -> bool:
    return any(isinstance(v.spec, ListSpec) for node in work.walk() for v in node.outputs)


class _Words:
    """The words of the state table."""

    def __init__(
        self, graph: Graph, builder: Builder, callbacks: Callbacks | None, block: Block
    ) -> None:
        self.graph, self.builder, self.callbacks = graph, builder, callbacks
        self.workers = builder.backend.workers
        self.has_library = any(isinstance(s, LibraryCall) for s in all_steps(block))
        self.loaded: list[Any] = []  # code that the table points into

    def __call__(self, kind: str, key: Any) -> int:
        if kind == "fixed":
            return self._fixed(key)
        if kind == "constant":
            return int(self.builder.constants[key].ctypes.data)
        if kind == "kernel":
            kernel, symbol = key
            code = kernel.load()
            self.loaded.append(code)
            return code.address(symbol)  # type: ignore[no-any-return]
        if kind == "routine":
            from treadle.runtime.cpu.library import routine_address

            return routine_address(key)
        assert kind == "cell"
        return ctypes.addressof(captured_variable(self.graph, key).cell())

    def _fixed(self, name: str) -> int:
        if name == "callback":
            return 0 if self.callbacks is None else self.callbacks.address
        if name in ("launch", "parallel"):
            return int(getattr(pool().addresses, name))
        if name == "aligned_alloc":
            return kept_memory().allocate
        if name == "free":
            return kept_memory().free
        if name == "None":
            return id(None)
        if name == "ndarray":
            return id(np.ndarray)
        if name == "library":
            return self._library()
        return c_function(name)

    def _library(self) -> int:
        from treadle.runtime.cpu.library import table_address

        return table_address(self.workers) if self.has_library else 0
