"""Routines that are code of treadle: launches with the addresses of operands."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core import locks
from treadle.core.digests import digest
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

    def write(self, name: str) -> KernelCode:
        """Its code, in which all names of functions begin with `name`."""
        raise NotImplementedError

    @locks.cached_property
    def code(self) -> KernelCode:
        """Its code, under a name that equal code has, too."""
        code = self.write("routine")
        operands = [(b.dtype.name, b.shape) for b in self.arguments.buffers]
        said = f"{code.text}\n{code.stages}\n{operands}"
        return self.write(f"routine_{digest(said, 16)}")

    @property
    def workspace(self) -> Dim:  # type: ignore[override]
        return self.code.scratch

    @property
    def launches(self) -> Dim:  # type: ignore[override]
        return len(self.code.stages)

    def fit_to(self, gpu: Gpu) -> None:
        """Let its code be for a device."""
        if gpu != self.gpu:
            self.gpu = gpu
            self.__dict__.pop("code", None)

    def prepare(self, driver: Driver) -> None:
        prepare_together(driver, [self])

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

    def write(self, name: str) -> KernelCode:
        return kernel_code(self.kernel, name, self.gpu)


# The functions that a device has loaded, by the names of their codes.
_loaded: WeakKeyDictionary[Driver, dict[str, list[Any]]] = WeakKeyDictionary()


def prepare_together(driver: Driver, routines: Iterable[Routine]) -> None:
    """Prepare routines for a device: what it has not compiled for others yet is compiled as one
    text, which takes little longer than the first of them."""
    every = [p for r in routines for p in (r, *r.parts)]
    own = [p for p in every if isinstance(p, CodeRoutine)]
    for routine in every:
        if not isinstance(routine, CodeRoutine):
            routine.prepare(driver)
    for routine in own:
        routine.fit_to(driver.gpu)
    loaded = _loaded.setdefault(driver, {})
    missing = {r.code.name: r.code for r in own if r.code.name not in loaded}
    if missing:
        loaded.update(zip(missing, driver.load(list(missing.values())), strict=True))
    for routine in own:
        routine.functions = loaded[routine.code.name]
