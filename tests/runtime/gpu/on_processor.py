"""Kernels for a GPU, run on the processor through `shim.hpp`."""

import ctypes
import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.shapes import substitute
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.gpu.kernels import PRELUDE, KernelCode, Stage, kernel_code
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.scalars import element_type

HERE = Path(__file__).parent
GPU = Gpu("made up", "sm_90")


class Fault(AssertionError):
    """A kernel did what a GPU leaves undefined."""


def launcher(kernel: Kernel, code: KernelCode, stage: Stage) -> str:
    """A C function that runs a stage: (blocks, arrays, how many elements they have, sizes), each
    for one segment after the other; and scratch memory."""
    count, symbols = len(kernel.buffers), len(kernel.symbols)
    writers, arguments = [], []
    for number, buffer in enumerate(kernel.buffers):
        constness = "" if buffer in kernel.outputs else "const "
        kind = f"{constness}{element_type(buffer.dtype)}"
        if buffer in code.values:
            arguments.append(f"*({kind} *)data[s * {count} + {number}]")
            continue
        at, made = f"s * {count} + {number}", "nullptr"
        if buffer in kernel.outputs:
            writers.append(f"    writers[{at}].assign(counts[{at}], -1);")
            made = f"writers[{at}].data()"
        inside = f"({kind} *)data[{at}], counts[{at}], {number}, {made}"
        arguments.append(f"shim::Buffer<{kind}>{{{inside}}}")
    arguments += [f"sizes[s * {symbols} + {n}]" for n in range(symbols)]
    if code.scratch != 0:
        arguments.append("shim::Scratch{scratch, bytes, scratch_writers.data()}")
    meets = "true" if stage.meets else "false"
    given = f"{stage.name}({', '.join(arguments)});"
    if kernel.segmented:
        given = f"{stage.name}(all.data(), segments);"
    fill = [
        f"  std::vector<{stage.name}_segment> all;",
        "  for (int s = 0; s < segments; s++)",
        f"    all.push_back({{{', '.join([*arguments, 'firsts[s]'])}}});",
    ]
    return "\n".join(
        [
            f'extern "C" const char *run_{stage.name}(unsigned blocks, int segments, void **data,',
            "    const long long *counts, const long long *sizes, const long long *firsts,",
            "    char *scratch, long long bytes) {",
            f"  std::vector<std::vector<long long>> writers({count} * segments);",
            "  for (int s = 0; s < segments; s++) {",
            *writers,
            "  }",
            "  std::vector<long long> scratch_writers(bytes, -1);",
            *(fill if kernel.segmented else ["  const int s = 0;"]),
            f"  std::function<void()> body = [&] {{ {given} }};",
            f"  return shim::run(blocks, {stage.threads}, {stage.shared}, {meets}, body);",
            "}",
        ]
    )


class Kernels:
    """Kernels that are compiled together.

    Attributes:
        codes: the CUDA C of each.
    """

    def __init__(
        self, kernels: Sequence[Kernel], gpu: Gpu = GPU,
        values: Mapping[Kernel, frozenset[Buffer]] = {},
    ) -> None:  # fmt: skip
        self.codes: dict[Kernel, KernelCode] = {}
        for kernel in kernels:
            if kernel not in self.codes:
                name, passed = f"k{len(self.codes)}", values.get(kernel, frozenset())
                self.codes[kernel] = kernel_code(kernel, name, gpu, passed)

    @functools.cached_property
    def library(self) -> ctypes.CDLL:
        parts = [f'#include "{HERE / "shim.hpp"}"', f'#include "{PRELUDE}"']
        parts += [code.text for code in self.codes.values()]
        parts += [launcher(k, code, s) for k, code in self.codes.items() for s in code.stages]
        return compiled("\n".join(parts))

    def run(
        self, kernel: Kernel, arrays: Mapping[Buffer, Any], symbols: Mapping[str, int] = {}
    ) -> dict[Buffer, Any]:
        """The contents of the stored buffers.

        Raises:
            Fault: the kernel did what a GPU leaves undefined.
        """
        (found,) = self.run_segments(kernel, [arrays], [symbols])
        return found

    def run_segments(
        self, kernel: Kernel, segments: Sequence[Mapping[Buffer, Any]],
        symbols: Sequence[Mapping[str, int]],
    ) -> list[dict[Buffer, Any]]:  # fmt: skip
        """The same for each segment, in one launch of each stage."""
        code = self.codes[kernel]
        held, sizes, firsts = [], [], []
        blocks = [0] * len(code.stages)
        for arrays, known in zip(segments, symbols, strict=True):
            for buffer in kernel.buffers:
                shape = tuple(size(d, known) for d in buffer.shape)
                given = arrays.get(buffer)
                array = aligned(shape, buffer.dtype.np_dtype)
                array[...] = 0 if given is None else np.asarray(given).reshape(shape)
                held.append(array)
            sizes += [known[s] for s in kernel.symbols]
            firsts.append(blocks[0])
            blocks = [n + size(s.blocks, known) for n, s in zip(blocks, code.stages, strict=True)]
        scratch = aligned((size(code.scratch, known),), np.dtype(np.uint8))
        scratch[...] = 0xFF  # NaN, or far outside
        data = (ctypes.c_void_p * (len(held) or 1))(*(a.ctypes.data for a in held))
        counts = words([a.size for a in held])
        given = len(segments), data, counts, words(sizes), words(firsts)
        memory = ctypes.c_void_p(scratch.ctypes.data), ctypes.c_longlong(scratch.size)
        for number, stage in zip(blocks, code.stages, strict=True):
            function = getattr(self.library, f"run_{stage.name}")
            function.restype = ctypes.c_char_p
            fault = function(number, *given, *memory)
            if fault:
                raise Fault(f"{fault.decode()}\n{code.text}")
        count, made = len(kernel.buffers), []
        for number in range(len(segments)):
            own = held[number * count : (number + 1) * count]
            pairs = zip(kernel.buffers, own, strict=True)
            made.append({b: a for b, a in pairs if b in kernel.outputs})
        return made


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


def compiled(text: str) -> ctypes.CDLL:
    """C++ as a library; the same text is compiled once on a machine."""
    shim = (HERE / "shim.hpp").read_bytes() + PRELUDE.read_bytes()
    name = hashlib.sha256(shim + text.encode()).hexdigest()[:24]
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    path = FOLDER / f"{name}.so"
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process that runs these tests may make it
        if not path.exists():
            _compile(text, path)
    return ctypes.CDLL(str(path))


def _compile(text: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        source, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        source.write_text(text)
        options = "-std=c++20 -O1 -w -ffp-contract=off -shared -fPIC"
        command = ["g++", *options.split(), "-o", str(made), str(source)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not found.returncode, f"{found.stderr[:3000]}\n{text[-3000:]}"
        made.replace(path)
