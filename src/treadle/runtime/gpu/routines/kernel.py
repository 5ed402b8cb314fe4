"""Routines that are code of treadle: launches with the addresses of operands."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.shapes import Dim
from treadle.kernel.ir import Kernel
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.kernels import KernelCode, kernel_code
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.routine import Routine, address_of, size_of

_WORD = 8  # bytes of an address and of a size


class CodeRoutine(Routine):
    """A routine that is CUDA C, whose arguments are the operands, the results, sizes, and its
    workspace where it has one.

    Attributes:
        gpu: what its code is fitted to: the device's, once it is prepared.
        arguments: what tells its buffers and symbols.
    """

    arguments: Any

    def __init__(self, name: str, gpu: Gpu) -> None:
        self.name, self.gpu = name, gpu
        self.functions: list[Any] = []

    def write(self) -> KernelCode:
        """Its code."""
        raise NotImplementedError

    @functools.cached_property
    def code(self) -> KernelCode:
        return self.write()

    @property
    def workspace(self) -> Dim:  # type: ignore[override]
        return self.code.scratch

    @property
    def launches(self) -> Dim:  # type: ignore[override]
        return len(self.code.stages)

    def prepare(self, driver: Driver) -> None:
        if driver.gpu != self.gpu:
            self.gpu = driver.gpu
            self.__dict__.pop("code", None)
        (self.functions,) = driver.load([self.code])

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        code = self.code
        given = [address_of(a) for a in (*inputs, *outputs)]
        given += [symbols[s] for s in self.arguments.symbols]
        if code.scratch != 0:
            given.append(workspace)
        words = (ctypes.c_int64 * len(given))(*given)
        first = ctypes.addressof(words)
        pointers = (ctypes.c_void_p * len(given))(*(first + _WORD * n for n in range(len(given))))
        for stage, function in zip(code.stages, self.functions, strict=True):
            blocks = size_of(stage.blocks, symbols)
            if blocks:
                place = ctypes.addressof(pointers)
                driver.launch(function, blocks, stage.threads, stage.shared, place)


class KernelRoutine(CodeRoutine):
    """A kernel whose buffers are the operands, then the results."""

    def __init__(self, name: str, kernel: Kernel, gpu: Gpu) -> None:
        super().__init__(name, gpu)
        self.kernel = self.arguments = kernel

    def write(self) -> KernelCode:
        return kernel_code(self.kernel, f"td_{self.name}", self.gpu)
