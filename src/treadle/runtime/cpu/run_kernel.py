"""Runs one kernel on NumPy arrays: for tests, tools and eager use outside whole programs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.shapes import substitute
from treadle.kernel.ir import Buffer, Kernel
from treadle.runtime.cpu.jit import Jit, default_jit
from treadle.runtime.cpu.kernel_code import KernelCode, emit_kernel

Array = np.ndarray[Any, np.dtype[Any]]


class CompiledKernel:
    """A kernel ready to be called with arrays."""

    def __init__(self, kernel: Kernel, jit: Jit | None = None) -> None:
        self.jit = jit or default_jit()
        self.kernel = kernel
        self.code: KernelCode = emit_kernel(kernel, self.jit.target)
        launch = self.code.launch
        address = self.jit.load([self.code.text], [launch])[launch]
        self.entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)

    def __call__(
        self, arrays: Mapping[Buffer, Array], symbols: Mapping[str, int] | None = None
    ) -> None:
        """Run in place on C-contiguous arrays, one for every buffer."""
        pointers = self._table([arrays])
        values = dict(symbols or {})
        dims = [values[name] for name in self.kernel.symbols]
        self._run(pointers, dims, values)

    def segments(self, segments: Sequence[Mapping[Buffer, Array]]) -> None:
        """Run a segmented kernel over groups of arrays."""
        sizes = [max(a.size for b, a in s.items() if b.shape) for s in segments]
        self._run(self._table(segments), [len(segments), *sizes], {})

    def _table(self, groups: Sequence[Mapping[Buffer, Array]]) -> list[int]:
        table = []
        for arrays in groups:
            for buffer in self.kernel.buffers:
                array = arrays[buffer]
                if not array.flags.c_contiguous or array.dtype != buffer.dtype.np_dtype:
                    raise ValueError(f"{buffer.name} must be C-contiguous {buffer.dtype.name}")
                table.append(array.ctypes.data)
        return table

    def _run(self, pointers: list[int], dims: list[int], symbols: dict[str, int]) -> None:
        buffers = (ctypes.c_int64 * len(pointers))(*pointers)
        words = (ctypes.c_int64 * max(len(dims), 1))(*dims)
        size = substitute(self.code.scratch_bytes, symbols)
        scratch = np.empty(int(size) + 64, np.uint8)  # type: ignore[arg-type]
        aligned = (scratch.ctypes.data + 63) & ~63
        self.entry(ctypes.addressof(buffers), ctypes.addressof(words), aligned)
