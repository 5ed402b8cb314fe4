"""Runs kernels natively, between guard zones, on any target and number of threads."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.object_cache import ObjectCache
from treadle.core.shapes import substitute
from treadle.kernel.ir import Buffer, Kernel
from treadle.kernel.reference import evaluate
from treadle.runtime.cpu.jit import Jit, jit
from treadle.runtime.cpu.nest import emit_kernel
from treadle.runtime.cpu.target import baseline
from treadle.runtime.cpu.threads import pool

GUARD = 256  # bytes before and after every array
_LAUNCH = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
)  # fmt: skip

PORTABLE = {f"x86-64-v{level}": baseline(level) for level in (1, 3)}
JITS = {"host": jit(), **{n: Jit(t, ObjectCache(jit().cache.folder)) for n, t in PORTABLE.items()}}


class Guarded:
    """A copy of an array with bytes around it that nobody may touch.

    past: how many bytes after a multiple of 64 it begins.
    """

    def __init__(self, array: np.ndarray, past: int = 16) -> None:
        self.memory = np.full(array.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
        self.start = GUARD + (past - self.memory.ctypes.data) % 64
        self.end = self.start + array.nbytes
        inside = self.memory[self.start : self.end]
        self.array = inside.view(array.dtype).reshape(array.shape)
        self.array[...] = array

    @property
    def intact(self) -> bool:
        around = self.memory[: self.start], self.memory[self.end :]
        return all(bool((part == 0xA5).all()) for part in around)


def words(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def run(
    kernel: Kernel,
    arrays: Mapping[Buffer, np.ndarray],
    symbols: Mapping[str, int] | None = None,
    threads: int = 1,
    target: str = "host",
    grain: int | None = None,
    past: int = 16,
) -> dict[Buffer, np.ndarray]:
    """What the kernel stores; arrays that are not given start as zeros.

    grain: the fewest units a thread, to make small kernels run on several threads.
    past: how many bytes after a multiple of 64 the arrays begin.
    """
    symbols = dict(symbols or {})
    compiler = JITS[target]
    emitted = emit_kernel(kernel, compiler.target)
    code = compiler.load(emitted.text)
    guarded = {}
    for buffer in kernel.buffers:
        shape = tuple(substitute(d, symbols) for d in buffer.shape)
        given = arrays.get(buffer)
        guarded[buffer] = Guarded(
            np.zeros(shape, buffer.dtype.np_dtype) if given is None else given, past
        )
    dims = words([symbols[name] for name in emitted.symbols])
    units = substitute(emitted.units, symbols)
    grain = grain or substitute(emitted.grain, symbols)
    shared = np.zeros(substitute(emitted.shared, symbols) + 64, np.uint8)
    stride = (substitute(emitted.scratch, symbols) + 127) // 64 * 64
    scratch = np.zeros(threads * stride + 64, np.uint8)
    table = words([*(g.array.ctypes.data for g in guarded.values()), aligned(shared)])
    launch(
        code.address(emitted.symbol), table, dims, units, grain,
        aligned(scratch), stride, threads,
    )  # fmt: skip
    if emitted.finish:
        finish = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            code.address(emitted.finish)
        )
        finish(ctypes.addressof(table), ctypes.addressof(dims))
    assert all(g.intact for g in guarded.values()), "wrote outside its buffers"
    return {b: guarded[b].array for b in kernel.outputs}


def launch(
    function: int, table: Any, dims: Any, units: int, grain: int, scratch: int, stride: int,
    threads: int,
) -> None:  # fmt: skip
    workers = pool()
    before = workers.threads
    workers.set_threads(threads)
    try:
        _LAUNCH(workers.addresses.launch)(
            function, ctypes.addressof(table), ctypes.addressof(dims), units, grain, scratch,
            stride, 0, None,
        )  # fmt: skip
    finally:
        workers.set_threads(before)


def aligned(memory: np.ndarray) -> int:
    return (memory.ctypes.data + 63) & ~63


def run_segments(
    kernel: Kernel, segments: Sequence[Mapping[Buffer, np.ndarray]], threads: int = 1
) -> list[dict[Buffer, np.ndarray]]:
    """A segmented kernel over several groups of arrays, in place on copies."""
    emitted = emit_kernel(kernel, JITS["host"].target)
    code = JITS["host"].load(emitted.text)
    guarded = [{b: Guarded(s[b]) for b in kernel.buffers} for s in segments]
    table, units = [len(segments)], 0
    for group in guarded:
        size = max(g.array.size for b, g in group.items() if b.shape)
        table += [size, *(g.array.ctypes.data for g in group.values())]
        units += size
    launch(code.address(emitted.symbol), words(table), words([]), units, 1, 0, 0, threads)
    assert all(g.intact for group in guarded for g in group.values())
    return [{b: g[b].array for b in kernel.outputs} for g in guarded]


def check(
    kernel: Kernel,
    arrays: Mapping[Buffer, np.ndarray],
    symbols: Mapping[str, int] | None = None,
    rtol: float = 2e-5,
    targets: Sequence[str] = ("host",),
) -> None:
    """The kernel agrees with the reference, and bit for bit for 1, 2 and 3 threads."""
    wanted = evaluate(kernel, arrays, symbols)
    for target in targets:
        found = run(kernel, arrays, symbols, 1, target)
        for buffer, array in wanted.items():
            same(found[buffer], array, rtol, f"{target}: {kernel}")
        for threads in (2, 3):
            other = run(kernel, arrays, symbols, threads, target, grain=1)
            for buffer in wanted:
                assert other[buffer].tobytes() == found[buffer].tobytes(), f"{threads} threads"


def same(found: np.ndarray, wanted: np.ndarray, rtol: float, message: str) -> None:
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted, err_msg=message)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            found.astype(wide), wanted.astype(wide), rtol=rtol, atol=rtol / 10,
            err_msg=message,
        )  # fmt: skip
