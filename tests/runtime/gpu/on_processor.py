"""Kernels for a GPU, run on the processor through `shim.hpp`."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.records import record
from treadle.core.shapes import substitute
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.gpu.kernels import PRELUDE, Arguments, KernelCode, Stage, kernel_code
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.scalars import element_type

HERE = Path(__file__).parent
GPU = Gpu("made up", "sm_90")
MOST_SEGMENTS = 40  # of a launch


class Fault(AssertionError):
    """A kernel did what a GPU leaves undefined."""


def launcher(kernel: Kernel | Arguments, code: KernelCode, stage: Stage) -> str:
    """C functions that run one thread of a stage, and fill the structs of its segments before."""
    arguments = []
    for number, buffer in enumerate(kernel.buffers):
        constness = "" if buffer in kernel.outputs else "const "
        access = "value" if buffer in code.values else "buffer"
        kind = f"{constness}{element_type(buffer.dtype)}"
        arguments.append(f"given.{access}<{kind}>({number}, s)")
    arguments += [f"given.size({n}, s)" for n in range(len(kernel.symbols))]
    if code.scratch != 0:
        arguments.append("given.scratch")
    fields, struct = ", ".join([*arguments, "given.firsts[s]"]), f"{stage.name}_segments"
    call = f'extern "C" void call_{stage.name}(const shim::Given &given) {{'
    if not kernel.segmented:
        return f"{call} const int s = 0; {stage.name}({', '.join(arguments)}); }}"
    return f"""extern "C" void prepare_{stage.name}(shim::Given &given) {{
  auto *all = ({struct} *)given.room(sizeof({struct}));
  for (int s = 0; s < given.segments; s++) all->of[s] = {{{fields}}};
}}
{call} {stage.name}(*(const {struct} *)given.structs, given.segments); }}"""


class Operand(ctypes.Structure):
    """`shim::Operand`."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("count", ctypes.c_longlong), ("uses", ctypes.c_void_p),
        ("loaded", ctypes.c_void_p), ("stored", ctypes.c_void_p),
    ]  # fmt: skip


class Scratch(ctypes.Structure):
    """`shim::Scratch`."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("bytes", ctypes.c_longlong), ("uses", ctypes.c_void_p)
    ]  # fmt: skip


# Bytes of a sector that blocks moved, `shim::Moved`: of the block that moved most, and of all.
SECTOR = 32
MOVED = np.dtype([("block", "i8"), ("now", "u4"), ("most", "u4"), ("all", "u4"), ("", "u4")])
# Who stored into an element, and who loaded it: `shim::Use`.
USE = np.dtype([
    ("writer", "i8"), ("written", "i8"), ("reader", "i8"), ("read", "i8"), ("several", "?"),
    ("elsewhere", "?"), ("", "V6"),
])  # fmt: skip
Form = tuple[Kernel, frozenset[Buffer]]  # a kernel, and its buffers that are passed as numbers
NONE: frozenset[Buffer] = frozenset()
BATCH = 100  # kernels that are compiled as one text


@record(frozen=True)
class Traffic:
    """What the threads of a kernel load or store.

    Attributes:
        elements: accesses of threads.
        requests: of warps.
        moved: sectors of 32 bytes; for shared memory, the turns that its banks take.
        least: how many the requests could do with, if elements lay side by side.
    """

    elements: int
    requests: int
    moved: int
    least: int


class Kernels:
    """Kernels that are compiled together, those of equal code once.

    Attributes:
        codes: the CUDA C of each.
        cached: bytes of a buffer that the blocks of a launch get from memory once together, as it
            stays in the cache of the device. None: what is moved is not counted.
        moved: bytes so far.
        launches: so far.
        ran: the names of the kernels that were launched.
    """

    def __init__(self, kernels: Iterable[Kernel | Form], gpu: Gpu = GPU) -> None:
        self.codes: dict[Form, KernelCode] = {}
        self.ran: set[str] = set()
        self.cached: int | None = None
        self.moved = self.launches = 0
        for form in kernels:
            kernel, values = (form, NONE) if isinstance(form, Kernel) else form
            if (kernel, values) not in self.codes:
                code = kernel_code(kernel, "k", gpu, values, MOST_SEGMENTS)
                name = f"k{hashlib.sha256(code.text.encode()).hexdigest()[:12]}"
                code = kernel_code(kernel, name, gpu, values, MOST_SEGMENTS)
                self.codes[kernel, values] = code

    def add(self, arguments: Any, code: KernelCode) -> None:
        """Code that is of no kernel, with what tells its buffers and sizes as a kernel does."""
        self.codes[arguments, NONE] = code

    @property
    def distinct(self) -> dict[str, tuple[Kernel, KernelCode]]:
        """The kernels whose codes differ, by their names."""
        return {code.name: (kernel, code) for (kernel, _), code in self.codes.items()}

    @functools.cached_property
    def libraries(self) -> dict[str, ctypes.CDLL]:
        """The library that has a kernel, by its name."""
        found = list(self.distinct.values())
        batches = [found[n : n + BATCH] for n in range(0, len(found), BATCH)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compiled, map(text_of, batches)))
        return {
            code.name: library
            for library, batch in zip(made, batches, strict=True)
            for _, code in batch
        }

    def run(
        self, kernel: Kernel, arrays: Mapping[Buffer, Any], symbols: Mapping[str, int] = {},
        values: frozenset[Buffer] = NONE,
    ) -> dict[Buffer, Any]:  # fmt: skip
        """The contents of the stored buffers.

        Raises:
            Fault: the kernel did what a GPU leaves undefined.
        """
        (found,) = self.run_segments(kernel, [arrays], [symbols], values)
        return found

    def run_segments(
        self, kernel: Kernel, segments: Sequence[Mapping[Buffer, Any]],
        symbols: Sequence[Mapping[str, int]], values: frozenset[Buffer] = NONE,
    ) -> list[dict[Buffer, Any]]:  # fmt: skip
        """The same for each segment, in one launch of each stage."""
        code = self.codes[kernel, values]
        held: list[Held] = []
        sizes, firsts = [], []
        blocks = [0] * len(code.stages)
        for arrays, known in zip(segments, symbols, strict=True):
            for buffer in kernel.buffers:
                shape = tuple(size(d, known) for d in buffer.shape)
                array = aligned(shape, buffer.dtype.np_dtype)
                given = arrays.get(buffer)
                array[...] = 0 if given is None else np.asarray(given).reshape(shape)
                counted = self.cached is not None and buffer not in values
                held.append(Held(array, counted, buffer in kernel.outputs))
            sizes += [known[s] for s in kernel.symbols]
            firsts.append(blocks[0])
            blocks = [n + size(s.blocks, known) for n, s in zip(blocks, code.stages, strict=True)]
        shared = aligned((size(code.scratch, known),), np.dtype(np.uint8))
        shared[...] = 0xFF  # NaN, or far outside
        given = words(sizes), words(firsts), len(kernel.buffers), len(kernel.symbols), len(segments)
        for number, stage in zip(blocks, code.stages, strict=True):
            self._launch(code, stage, number, held, given, shared)
        count, made = len(kernel.buffers), []
        for number in range(len(segments)):
            own = [h.array for h in held[number * count : (number + 1) * count]]
            pairs = zip(kernel.buffers, own, strict=True)
            made.append({b: a for b, a in pairs if b in kernel.outputs})
        return made

    def _launch(
        self, code: KernelCode, stage: Stage, blocks: int, held: Sequence[Held],
        given: tuple[Any, ...], shared: Any,
    ) -> None:  # fmt: skip
        launch(self.libraries[code.name], code, stage, blocks, held, given, shared)
        self.launches += 1
        self.ran.add(code.name)
        if self.cached is not None:
            self.moved += sum(h.moved(self.cached) for h in held)

    def traffic(
        self, kernel: Kernel, arrays: Mapping[Buffer, Any], symbols: Mapping[str, int] = {}
    ) -> dict[tuple[Buffer | str, str], Traffic]:
        """What a run moves: the key is a buffer, "shared" or "scratch"; and "loads" or "stores"."""
        count = self.libraries[self.codes[kernel, NONE].name].shim_traffic
        count(True, None)
        self.run(kernel, arrays, symbols)
        rows = np.zeros((2 * len(kernel.buffers) + 8, 6), np.int64)
        found = count(False, ctypes.c_void_p(rows.ctypes.data))
        memories = [*kernel.buffers, "scratch", "shared"]
        return {
            (memories[number], ("loads", "stores")[stores]): Traffic(*counts)
            for number, stores, *counts in rows[:found].tolist()
        }


def launch(
    library: ctypes.CDLL, code: KernelCode, stage: Stage, blocks: int, held: Sequence[Held],
    given: tuple[Any, ...], shared: Any,
) -> None:  # fmt: skip
    """Run a stage of a kernel.

    Args:
        held: the operands of each segment.
        given: sizes and first blocks of the segments, how many operands and sizes each has, and how
            many there are.
        shared: the scratch memory of the stages.

    Raises:
        Fault: it did what a GPU leaves undefined.
    """
    prepare = f"prepare_{stage.name}"
    library.td_run.restype = ctypes.c_char_p
    for h in held:
        h.begin()
    uses = unused(shared.size)
    fault = library.td_run(
        library[f"call_{stage.name}"],
        library[prepare] if hasattr(library, prepare) else None,
        blocks, stage.threads, stage.shared, stage.meets,
        (Operand * len(held))(*(h.operand for h in held)), *given,
        Scratch(address(shared), shared.size, address(uses)),
    )  # fmt: skip
    if fault:
        raise Fault(f"{fault.decode()}\n{code.text}")


class Held:
    """An array of a launch, with what the shim notes of it."""

    def __init__(self, array: Any, counted: bool, stored: bool) -> None:
        self.array, self.counted, self.stored = array, counted, stored

    def begin(self) -> None:
        """A launch begins."""
        sectors = self.array.nbytes // SECTOR + 1 if self.counted else 0
        self.uses = unused(self.array.size if self.stored else 0)
        self.sides = [np.zeros(sectors, MOVED) for _ in range(2)]

    @property
    def operand(self) -> Operand:
        array = self.array
        sides = map(address, self.sides)
        return Operand(address(array), array.size, address(self.uses), *sides)

    def moved(self, cached: int) -> int:
        """Bytes that moved between the device and its memory, where buffers of at most so many
        bytes stay in its cache. A sector moves as a whole."""
        counts = "most" if self.array.nbytes <= cached else "all"
        touched = [side[counts][side["all"] > 0] for side in self.sides]
        return sum(int(np.maximum(t, SECTOR).sum()) for t in touched)


def unused(count: int) -> Any:
    """`USE` of elements that nobody has used."""
    uses = np.zeros(count, USE)
    for name in ("writer", "written", "reader", "read"):
        uses[name] = -1
    return uses


def address(array: Any) -> int | None:
    return array.ctypes.data if array.size else None


def text_of(batch: Sequence[tuple[Kernel | Arguments, KernelCode]]) -> str:
    """Kernels as C++, without what they include."""
    parts = [code.text for _, code in batch]
    parts += [launcher(k, code, s) for k, code in batch for s in code.stages]
    return "\n".join(parts)


def words(values: Sequence[int]) -> Any:
    return (ctypes.c_longlong * (len(values) or 1))(*values)


def size(dim: Any, symbols: Mapping[str, int]) -> int:
    value = substitute(dim, dict(symbols))
    assert isinstance(value, int), f"{dim} with {symbols}"
    return value


def aligned(shape: tuple[int, ...], dtype: Any, alignment: int = 256) -> Any:
    """An array that begins where arrays of a GPU begin."""
    count = int(np.prod(shape)) * dtype.itemsize
    room = np.zeros(count + alignment, np.uint8)
    first = -room.ctypes.data % alignment
    return room[first : first + count].view(dtype).reshape(shape)


FOLDER = Path(tempfile.gettempdir()) / f"treadle-shim-{os.getuid()}"


# Of what makes kernels run fast only that which compiles fast: most of them run once.
OPTIONS = ["-std=c++20", "-Og", "-w", "-ffp-contract=off", "-fPIC"]


def compiled(text: str) -> ctypes.CDLL:
    """C++ as a library; the same text is compiled once on a machine."""
    files = (HERE / "shim.hpp", HERE / "shim.cpp", PRELUDE)
    shim = b"".join(file.read_bytes() for file in files) + " ".join(OPTIONS).encode()
    name = hashlib.sha256(shim + text.encode()).hexdigest()[:24]
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    header = FOLDER / f"{hashlib.sha256(shim).hexdigest()[:24]}.hpp"
    included = f'#include "{HERE / "shim.hpp"}"\n#include "{PRELUDE}"\n'
    made, common = header.with_suffix(".hpp.gch"), header.with_suffix(".o")
    _once(included, header, header, [])
    _once(included, header, made, ["-x", "c++-header"])  # what all texts include, compiled already
    _once(f'#include "{HERE / "shim.cpp"}"\n', header.with_suffix(".cpp"), common, ["-c", "-O1"])
    path = FOLDER / f"{name}.so"
    options = ["-shared", "-include", str(header), str(common)]
    _once(text, path.with_suffix(".cpp"), path, options)
    return ctypes.CDLL(str(path))


def _once(text: str, source: Path, target: Path, options: Sequence[str]) -> None:
    """Compile a text unless that was done; another process that runs these tests may do it."""
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        if target == source:
            target.write_text(text)
            return
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            given, made = Path(folder) / source.name, Path(folder) / target.name
            given.write_text(text)
            command = ["g++", *OPTIONS, *options, "-o", str(made), str(given)]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            assert not found.returncode, f"{found.stderr[:3000]}\n{text[-3000:]}"
            made.replace(target)
