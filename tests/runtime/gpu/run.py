"""All kernels that programs need on a GPU: compiled for GPUs, and run on the processor.

    PYTHONPATH=src:. python -m tests.runtime.gpu.run --out docs/results/gpu_kernels.json
    PYTHONPATH=src:. python -m tests.runtime.gpu.run --traffic docs/results/gpu_traffic.json

The second command counts what the workloads' kernels move. Programs are those of the corpus, of
tests of the runtime, of the benchmarks' workloads, and random graphs. `--kinds workloads` does one
kind, `--graphs 500` says how many graphs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.runtime.gpu import sources, traffic
from tests.runtime.gpu.collected import Collection
from tests.runtime.gpu.compiling import ARCHITECTURES, check
from tests.runtime.gpu.on_processor import BATCH, GPU, Kernels
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.toolkit import CompileError, Compiler, compilers

TESTS = (
    "test_dtypes_and_threads.py", "test_dynamic.py", "test_epilogues.py", "test_growing.py",
    "test_list_slots.py", "test_loops.py", "test_memory.py", "test_programs.py",
    "test_ragged_lists.py", "test_random_programs.py", "test_row_loops.py", "test_scalar_loops.py",
    "test_scatters.py", "test_strided.py", "test_updates.py", "test_variable_order.py",
)  # fmt: skip
# Workloads whose traffic is counted, and devices that it is told for.
MEASURED = (
    "arrays", "cnn", "convolution", "elementwise", "linalg", "mlp", "rnn", "rows", "sequence",
    "updates",
)  # fmt: skip
GPUS = (
    Gpu("H200", "sm_90"),
    Gpu("A100 80GB", "sm_80", multiprocessors=108, cache=40 << 20, bandwidth=2.0e12),
    Gpu("A100 40GB", "sm_80", multiprocessors=108, cache=40 << 20, bandwidth=1.555e12),
)
PORTION = 50  # graphs or workloads that are collected together


class Examination:
    """What is known of the programs of a kind.

    Attributes:
        kernels: those met, by name; equal ones have one name.
        ran: the names of those that calls ran.
        not_run: why calls did not run others, by their names.
        compiled: how many compile, by compiler.
        refused: what compilers say of kernels that they do not compile.
        unsupported: why a source has no program for the device.
        differing: what is wrong with a call.
    """

    def __init__(self, compilers: list[Compiler]) -> None:
        self.compilers = compilers
        self.sources = self.programs = self.calls = self.launches = 0
        self.kernels: set[str] = set()
        self.ran: set[str] = set()
        self.not_run: dict[str, str] = {}
        self.compiled: dict[str, int] = {}
        self.refused: list[str] = []
        self.unsupported: dict[str, str] = {}
        self.differing: dict[str, str] = {}

    def add(self, found: Collection) -> None:
        """Compile the kernels that were collected, and do the calls with them."""
        kernels = Kernels(found.forms, GPU)
        self.compile(kernels)
        for known, new in (
            (self.differing, found.differences(kernels)), (self.unsupported, found.unsupported),
        ):  # fmt: skip
            known |= new
            for source, words in new.items():
                print(f"--- {source}\n{words[:3000]}", flush=True)
        self.ran |= kernels.ran
        self.not_run |= found.not_run(kernels)
        self.sources += found.sources
        self.programs += found.programs
        self.calls += len(found.calls)
        self.launches += found.launches

    def compile(self, kernels: Kernels) -> None:
        """Compile those that were not met before."""
        new = {n: c.text for n, (_, c) in kernels.distinct.items() if n not in self.kernels}
        self.kernels |= new.keys()
        texts = list(new.values())
        batches = [texts[n : n + BATCH] for n in range(0, len(texts), BATCH)]
        for compiler in self.compilers:

            def count(batch: list[str], compiler: Compiler = compiler) -> int:
                try:
                    check(compiler, "\n".join(batch))
                except CompileError as error:
                    self.refused.append(f"{compiler.name}: {error}")
                    return 0
                return len(batch)

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                done = sum(pool.map(count, batches))
            self.compiled[compiler.name] = self.compiled.get(compiler.name, 0) + done

    def _reasons(self) -> dict[str, int]:
        """How many kernels no call ran, by the reason."""
        return dict(Counter(why for name, why in self.not_run.items() if name not in self.ran))

    def table(self) -> dict[str, Any]:
        return {
            "sources": self.sources, "programs": self.programs, "launches": self.launches,
            "kernels": len(self.kernels), "compiled": self.compiled, "refused": self.refused,
            "kernels run": len(self.ran), "kernels not run": self._reasons(),
            "calls compared": self.calls,
            "differing": self.differing, "unsupported": self.unsupported,
        }  # fmt: skip


def portions(kind: str, graphs: int) -> Iterator[Collection]:
    """The programs of a kind, some at a time."""
    if kind in ("corpus", "tests"):
        found = Collection()
        if kind == "corpus":
            sources.corpus(found)
        else:
            sources.runtime_tests(found, TESTS)
        yield found
        return
    makers: list[Callable[[Collection], None]]
    if kind == "workloads":
        makers = [lambda f, w=w: sources.workload(f, *w) for w in sources.workloads()]
    else:
        makers = [lambda f, s=s: sources.graph(f, s) for s in range(graphs)]
    for first in range(0, len(makers), PORTION):
        found = Collection()
        for make in makers[first : first + PORTION]:
            make(found)
        yield found


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((s.partition(": ")[2] for s in lines if s.startswith("model name")), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=["corpus", "tests", "workloads", "graphs"])
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--traffic", type=Path, help="write what workloads move, and nothing else")
    options = parser.parse_args()
    os.environ["TREADLE_STRICT"] = "1"  # what has no program is an error
    if options.traffic:
        rows = traffic.table([w for w, _ in sources.workloads(MEASURED)], GPUS)
        devices = {g.name: {"bandwidth": g.bandwidth, "cache": g.cache} for g in GPUS}
        found = {"processor": processor(), "devices": devices, "workloads": rows}
        options.traffic.write_text(json.dumps(found, indent=1) + "\n")
        return
    result: dict[str, Any] = {
        "command": "PYTHONPATH=src:. python -m tests.runtime.gpu.run",
        "processor": processor(), "compilers": [c.name for c in compilers()],
        "architectures": ARCHITECTURES,
        "python": platform.python_version(),
    }  # fmt: skip
    for kind in options.kinds:
        begin = time.monotonic()
        examination = Examination(compilers())
        for found in portions(kind, options.graphs):
            examination.add(found)
            table = examination.table()
            counts = {k: v if isinstance(v, int) else len(v) for k, v in table.items()}
            print(kind, counts, flush=True)
        for words in table["refused"]:
            print(f"--- refused: {words[:3000]}", flush=True)
        result[kind] = table | {"seconds": round(time.monotonic() - begin)}
        if options.out:  # after each kind: one that is cut off leaves the others
            options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
