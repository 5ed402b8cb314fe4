"""What compilations need whatever they compile, begun on another thread while Python still works.

Loading LLVM takes as long as tracing a training step, and needs no GIL. Where this processor is
unknown to the cache on disk there is no code for it either, so LLVM will be asked: that is known
when the first function is about to be traced.

Jobs import no modules of treadle that the caller may be importing: two threads that import modules
of one package, each needing what the other has begun, find a deadlock.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable

from treadle.core.object_cache import stores_programs
from treadle.graph.ir import Graph
from treadle.ops.lowering import Library, Rows
from treadle.runtime.cpu.background import Background
from treadle.runtime.cpu.jit import background
from treadle.runtime.cpu.kept_memory import prepare_memory
from treadle.runtime.cpu.target import is_known, llvm_binding
from treadle.runtime.cpu.threads import prepare_pool

# What writes the code that every program calls.
_SHARED = ("treadle.runtime.cpu.kept_memory_code", "treadle.runtime.cpu.pool_code")
_expected = False


def expect_compilation() -> None:
    """A function is about to be traced: begin what its program needs where nothing is on disk."""
    global _expected
    if not _expected:
        _expected = True
        if not is_known():
            _import_shared()
            background.submit("first", _begin)


def begin_compilation(graph: Graph) -> None:
    """A graph is about to be compiled: begin with what it will call, and load LLVM for its kernels
    where they would have been found with its stored program."""
    if stores_programs():
        background.submit("llvm", _load)
    _import_shared()
    background.submit("shared", _prepare_shared)
    lowers = [n.op.lower for n in graph.walk() if isinstance(n.op.lower, Library | Rows)]
    if lowers:
        _import_library({lower.name for lower in lowers if isinstance(lower, Library)})
        for routine in {lower.routine for lower in lowers if isinstance(lower, Rows)}:
            module = routine.partition(".")[0]
            importlib.import_module(f"treadle.runtime.routines.{module}")
            importlib.import_module("treadle.runtime.cpu.routines.entry")
        background.submit(f"library {id(graph)}", lambda: _prepare_library(graph))


# What compiles a graph, one with loops, and one that differs in dims only from an earlier one.
_COMPILER = (
    "treadle.runtime.compiler", "treadle.runtime.cpu.build_program", "treadle.graph.families",
    "treadle.graph.passes.loops", "treadle.runtime.passes.loops",
)  # fmt: skip
# Whole graphs wait here, so that parts of programs that somebody needs now do not wait for them.
_graphs = Background(lambda: 1)


def compile_later(key: str, compile: Callable[[], None], graph: Graph | None) -> None:
    """Let a thread make a program for which nobody waits, unless it is about to.

    Args:
        compile: does so; it does nothing where that is done.
        graph: what the program is made from, where that is known.
    """
    for name in _COMPILER:
        importlib.import_module(name)
    if graph is not None:
        begin_compilation(graph)
    _graphs.submit(key, compile)


def _import_shared() -> None:
    for name in _SHARED:
        importlib.import_module(name)


def _import_library(routines: set[str]) -> None:
    """The modules that plan and write the routines."""
    names = ["library", "library_code", "library_share", "matmul.routine"]
    if any(name.startswith("conv") for name in routines):
        names += ["convolution.classes", "convolution.routines", "depthwise.routines"]
    for name in names:
        importlib.import_module(f"treadle.runtime.cpu.{name}")


def _begin() -> None:
    with contextlib.suppress(Exception):  # whoever needs it finds out and tells
        llvm_binding()
        _prepare_shared()


def _load() -> None:
    with contextlib.suppress(Exception):
        llvm_binding()


def _prepare_shared() -> None:
    """The modules that every program calls."""
    with contextlib.suppress(Exception):
        prepare_pool()
        prepare_memory()


def _prepare_library(graph: Graph) -> None:
    from treadle.runtime.cpu.library import routine_for
    from treadle.runtime.cpu.library_code import prepare_module

    with contextlib.suppress(Exception):
        for node in graph.walk():
            routine = routine_for(node)
            if routine is not None:
                prepare_module(routine.symbol)
