"""The machine that programs are made for, as the compiler sees it (`treadle env` prints it)."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterator

import numpy as np

from treadle.core.object_cache import default_cache
from treadle.core.processors import usable
from treadle.runtime.cpu.measuring import Measurement
from treadle.runtime.cpu.target import (
    Target,
    aarch64,
    baseline,
    host,
    keep,
    named,
    this_machine,
    using,
)
from treadle.runtime.cpu.thread_count import planned_workers, threads
from treadle.runtime.device_setup import setup, why_none
from treadle.runtime.tuning import Cache, Measured, Tuning
from treadle.version import __version__

__all__ = [
    "Cache",
    "Target",
    "Tuning",
    "aarch64",
    "baseline",
    "facts",
    "host",
    "measure",
    "named",
    "this_machine",
    "using",
]


def measure() -> Measured:
    """Measure this processor now, and keep the numbers for programs of later processes. Takes about
    a second.

    Raises:
        MemoryError: there is no memory for a block that no cache holds.
    """
    measurement = Measurement(this_machine())
    for _ in measurement.steps():
        pass
    keep(measurement.found)
    return measurement.found


def facts() -> Iterator[tuple[str, str, str]]:
    """(name, value, meaning) of what programs are made for, the record of the machine included."""
    target = host()
    yield "treadle", __version__, "its version"
    yield "python", platform.python_version(), "its version"
    yield "numpy", np.__version__, "its version"
    yield "llvm", target.llvm, "the version that generates code"
    yield "triple", target.triple, "architecture and system of the code"
    yield "cpu", target.cpu, "the processor, as LLVM names it"
    yield "features", " ".join(sorted(target.features)), "instruction sets that code may use"
    yield "threads in use", str(threads()), "that share the work of programs now"
    yield "processors", str(usable()), "that this process may use"
    gpus = ", ".join(gpu.name for gpu in setup.gpus().values())
    yield "gpus", gpus or f"none: {why_none()}", "that CuPy finds"
    yield "cache folder", str(default_cache().folder or "none"), "compiled code on disk"
    tuning = dataclasses.replace(target.tuning, threads=planned_workers())
    for name, meaning in MEANINGS.items():
        yield name, str(getattr(tuning, name)), meaning
    if target.measured is None:
        yield "measured", "nothing", "in the background of an earlier process, or by --measure"
        return
    for name, meaning in MEASURED.items():
        yield f"measured {name}", f"{getattr(target.measured, name):g}", meaning


# What was measured on this processor. The record has it where it differs from what is stated.
MEASURED = {
    "fma": "vectors multiplied and added in a cycle",
    "loads": "vectors loaded in a cycle",
    "latency": "cycles of a multiply-add",
    "forward": "cycles from a store to a load of the same number",
    "copy": "bytes read and written in a cycle of copying in the second-level cache",
    "moving": "cycles in which a core, alone, copies a cache line of memory to memory",
    "l1": "cycles until a number of the first-level cache arrives",
    "l2": "cycles until one of the second-level cache arrives",
    "l3": "cycles until one of the last cache arrives",
    "memory": "cycles until one of memory arrives",
    "pause": "cycles of a pause in a waiting loop",
    "nanoseconds": "of a cycle: of two integer additions, one after the other, each takes one",
}

# What `Tuning` says, and what follows from it.
MEANINGS = {
    "family": "the processors whose numbers these are",
    "vector_bits": "width of the vectors that code fills",
    "registers": "vector registers",
    "l1": "cache of a core, first level",
    "l2": "cache of a core, second level",
    "l3": "last cache, as far as a program finds its data there",
    "fma": "vectors multiplied and added in a cycle",
    "loads": "vectors loaded in a cycle",
    "latency": "cycles of a multiply-add",
    "window": "instructions under way at once",
    "copy": "bytes a core moves between its caches in a cycle",
    "moving": "cycles in which a core copies a cache line of memory to memory",
    "far": "cycles until an operand comes that is too large for the core's caches",
    "meeting": "cycles of work that are worth the meeting of two threads",
    "spins": "pauses of a waiting thread before it sleeps",
    "pack_rows": "rows of a product from which copying the other matrix pays",
    "pack_colliding": "the same where its rows share sets of the caches",
    "pack_columns": "columns from which its rows are too far apart to be fetched ahead",
    "wide_rows": "rows of a product from which tiles are wide and low",
    "fill_rows": "rows of a product below which tiles copy the other matrix as they read it",
    "alike_rows": "rows of a tile that may share a set of the first-level cache",
    "far_rows": "bytes of a product's first operand and result from which its tiles are copied",
    "pages": "pages whose addresses a core has at hand",
    "threads": "threads that programs are planned for; fewer may be in use",
    "near": "bytes of the second-level cache that blocks are planned for",
    "chains": "sums that must be under way at once",
    "unroll": "vectors that a loop works on at once",
    "task_flops": "floating operations of a product that are worth a thread",
    "task_bytes": "bytes read that are worth a thread",
    "task_elements": "elements of simple work that are worth a thread",
}
