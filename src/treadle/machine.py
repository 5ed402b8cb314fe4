"""The machine that programs are made for, as the compiler sees it (`treadle env` prints it)."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterator

import numpy as np

from treadle.core.object_cache import default_cache
from treadle.core.processors import usable
from treadle.runtime.cpu.target import Target, aarch64, baseline, host, named, this_machine, using
from treadle.runtime.cpu.thread_count import planned_workers, threads
from treadle.runtime.device_setup import setup, why_none
from treadle.runtime.tuning import Cache, Tuning
from treadle.version import __version__

__all__ = [
    "Cache",
    "Target",
    "Tuning",
    "aarch64",
    "baseline",
    "facts",
    "host",
    "named",
    "this_machine",
    "using",
]


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
    "far": "cycles until something comes from the last cache",
    "meeting": "cycles of work that are worth the meeting of two threads",
    "spins": "pauses of a waiting thread before it sleeps",
    "pack_rows": "rows of a product from which copying the other matrix pays",
    "pack_colliding": "the same where its rows share sets of the caches",
    "pack_columns": "columns from which its rows are too far apart to be fetched ahead",
    "wide_rows": "rows of a product from which tiles are wide and low",
    "threads": "threads that programs are planned for; fewer may be in use",
    "near": "bytes of the second-level cache that blocks are planned for",
    "chains": "sums that must be under way at once",
    "unroll": "vectors that a loop works on at once",
    "task_flops": "floating operations of a product that are worth a thread",
    "task_bytes": "bytes read that are worth a thread",
    "task_elements": "elements of simple work that are worth a thread",
}
