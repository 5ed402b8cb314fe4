"""Compiled kernels of this process, by structure."""

from __future__ import annotations

import contextlib
import functools

from treadle.core import locks
from treadle.core.caches import clears
from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.core.switches import is_on
from treadle.kernel.ir import Apply, Kernel, Reduce, Scan
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
        is_part: whether it may be a part of the code of programs that launch it in loops.
    """

    name: str
    emitted: EmittedKernel
    is_part: bool = False

    def load(self) -> Code:
        """The machine code, compiled or loaded on first need; to be held while it may run."""
        return jit().load(self.emitted.text, forever=False)


MOST_LINES = 400  # of a kernel whose code is written again in each program that has it
_PLAIN = frozenset(
    ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "cast", "select", "and", "or", "not",
     "eq", "ne", "lt", "le", "gt", "ge"),
)  # fmt: skip
_SUMS = frozenset(("sum", "prod", "any", "all"))
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
        emitted = emit_kernel(canonical(kernel), target)
        code = KernelCode(name, emitted, _is_part(kernel, emitted) and target is host())
        if not code.is_part:  # its program compiles that
            jit().prepare(emitted.text)
    with _lock:
        while len(_codes) >= MOST_KERNELS:
            del _codes[next(iter(_codes))]
        return _codes.setdefault((name, target), code)


def _is_part(kernel: Kernel, emitted: EmittedKernel) -> bool:
    """Whether the code is short, for few points, and needs nothing but its operands and the values
    of its dims; and whether LLVM's passes, which programs with loops go through, leave its
    instructions as they are. (They make several of those that choose the larger of two.)"""
    alone = emitted.segmented or emitted.finish is not None
    if not kernel.few or alone or emitted.scratch != 0 or emitted.shared != 0:
        return False
    plain = all(
        e.fn in _PLAIN if isinstance(e, Apply) else e.op in _SUMS
        for e in kernel.exprs
        if isinstance(e, Apply | Reduce | Scan)
    )
    return plain and emitted.text.count("\n") <= MOST_LINES


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
