"""Compiled kernels of this process, by structure."""

from __future__ import annotations

import contextlib
import functools

from treadle.core import locks
from treadle.core.caches import clears
from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.core.switches import is_on
from treadle.kernel.ir import Kernel
from treadle.kernel.printer import kernel_hash
from treadle.kernel.rewrite import canonical
from treadle.runtime.cpu.jit import Code, jit
from treadle.runtime.cpu.nest import EmittedKernel, emit_kernel
from treadle.runtime.cpu.nest.shape import UnsupportedKernel
from treadle.runtime.cpu.target import Target, host


@record(frozen=True)
class KernelCode:
    """A kernel's code. Its dims are in terms of the kernel's own symbols, by position.

    Attributes:
        name: names the structure, in every process.
    """

    name: str
    emitted: EmittedKernel

    def load(self) -> Code:
        """The machine code, compiled or loaded on first need; to be held while it may run."""
        return jit().load(self.emitted.text, forever=False)


MOST_KERNELS = 1024  # whose texts are kept: memory of this process
_lock = locks.lock()
_codes: dict[tuple[str, Target], KernelCode | None] = {}  # the oldest first


def kernel_code(kernel: Kernel) -> KernelCode | None:
    """The code of a kernel, or None where it cannot be emitted."""
    name, target = kernel_hash(kernel), host() if is_on("wide_vectors") else _narrow(host())
    with _lock:
        if (name, target) in _codes:
            return _codes[name, target]
    code: KernelCode | None = None
    with contextlib.suppress(UnsupportedKernel):
        code = KernelCode(name, emit_kernel(canonical(kernel), target))
        jit().prepare(code.emitted.text)
    with _lock:
        while len(_codes) >= MOST_KERNELS:
            del _codes[next(iter(_codes))]
        return _codes.setdefault((name, target), code)


@functools.cache
def _narrow(target: Target) -> Target:
    """A machine as far as its vectors have 128 bits; the rest of its features stays."""
    return target.without(*(f for f in target.features if f.startswith(("avx2", "avx512"))))


@clears
def forget_kernels() -> None:
    """Let go of the emitted kernels; those of living programs go on working."""
    with _lock:
        _codes.clear()


def in_terms_of(kernel: Kernel, dim: Dim) -> Dim:
    """A dim of the code in the symbols of a kernel of that structure."""
    renamed = {f"s{i}": SymbolicDim.symbol(n) for i, n in enumerate(kernel.symbols)}
    return substitute(dim, renamed)
