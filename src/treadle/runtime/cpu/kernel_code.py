"""A kernel as LLVM text with entry points, and what a program needs to call it.

For a kernel whose symbol is ``k_x`` the text defines

    void @k_x(ptr %buffers, ptr %dims, i64 %low, i64 %high, ptr %scratch)
        the units [low, high) of the outermost loop, in this thread
    void @k_x_launch(ptr %buffers, ptr %dims, ptr %scratch)
        the whole kernel on the thread pool, and its finish

buffers: a table of pointers in the order of `Kernel.buffers`. dims: an i64 for each of
`Kernel.symbols`. scratch: at least `scratch_bytes` bytes aligned to 64, or null when that is 0.
A segmented kernel takes the table of every segment one after another, and as dims the number
of segments followed by their sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.shapes import Dim
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Apply, Buffer, Kernel, Load, Reduce, postorder
from treadle.kernel.printer import kernel_hash
from treadle.kernel.verifier import verify
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.nest_emit import NestEmitter, buffer_pointers
from treadle.runtime.cpu.nest_plan import (
    Plan,
    UnsupportedKernel,
    ceil_div,
    drop_unit_reductions,
    plan_kernel,
    split_totals,
)
from treadle.runtime.cpu.target import Target, host

PARALLEL_FOR = "void @treadle_parallel_for(ptr, ptr, i64, i64, i64)"
GRAIN_WORK = 16384  # cheap element operations worth handing to another thread
UNIT = 64  # elements: parts of a flat kernel start on cache lines


@dataclass(frozen=True)
class KernelCode:
    """A kernel's LLVM text and how to call it."""

    kernel: Kernel
    symbol: str
    text: str
    extent: Dim  # of the outermost loop; 1 when there is none
    unit: int  # parts of [0, extent) start at multiples of this
    scratch_bytes: Dim
    finish: str | None  # void @finish(ptr %buffers, ptr %dims, ptr %scratch) after all parts
    operations: Dim  # estimate: scalar operations
    traffic: Dim  # estimate: bytes loaded and stored

    @property
    def launch(self) -> str:
        return f"{self.symbol}_launch"


def emit_kernel(kernel: Kernel, target: Target | None = None) -> KernelCode:
    """The code of a kernel; UnsupportedKernel when this target cannot express it."""
    verify(kernel)
    module = Module(target or host())
    symbol = f"k_{kernel_hash(kernel)}"
    kernel = drop_unit_reductions(kernel)
    if kernel.segmented:
        return _segmented(kernel, module, symbol)
    split = split_totals(kernel)
    plan = plan_kernel(split.main)
    extent: Dim = plan.outer[0].extent if plan.outer else 1
    flat = bool(plan.outer) and plan.outer[0] is plan.vector
    unit = UNIT if flat else 1
    scratch = _Scratch(split.partials)
    _entry(module, plan, kernel, symbol, scratch)
    finish = None
    if split.finish is not None:
        finish = f"{symbol}_finish"
        _finish(module, split.finish, kernel, finish, scratch)
    inner: Dim = 1
    for loop in (*plan.outer[1:], *plan.inner):
        inner = inner * loop.extent
    cost = _cost(kernel)
    _launch(module, kernel, symbol, extent, unit, inner * cost, finish)
    total = inner * extent
    return KernelCode(
        kernel, symbol, module.text(), extent, unit, scratch.size, finish,
        total * cost, _traffic(kernel),
    )  # fmt: skip


class _Scratch:
    """Where the partial results lie, in bytes."""

    def __init__(self, partials: tuple[Buffer, ...]) -> None:
        self.offsets: dict[Buffer, Dim] = {}
        self.size: Dim = 0
        for buffer in partials:
            self.offsets[buffer] = self.size
            count: Dim = 1
            for dim in buffer.shape:
                count = count * dim
            self.size = self.size + ceil_div(count * buffer.dtype.size, 64) * 64


def _symbol_reader(function: Function, kernel: Kernel, table: str) -> dict[str, Word]:
    return {name: function.load_word(table, place) for place, name in enumerate(kernel.symbols)}


def _pointers(
    function: Function, kernel: Kernel, scratch: _Scratch, symbols: dict[str, Word]
) -> dict[Buffer, str]:
    found = buffer_pointers(function, list(kernel.buffers), "%buffers")
    for buffer, offset in scratch.offsets.items():
        found[buffer] = function.offset("%scratch", function.dim(offset, symbols.__getitem__), "i8")
    return found


def _entry(module: Module, plan: Plan, kernel: Kernel, symbol: str, scratch: _Scratch) -> None:
    function = Function(module)
    symbols = _symbol_reader(function, kernel, "%dims")
    pointers = _pointers(function, kernel, scratch, symbols)
    NestEmitter(function, plan, pointers, symbols.__getitem__).emit("%low", "%high")
    function.emit("ret void")
    signature = "void @{}(ptr %buffers, ptr %dims, i64 %low, i64 %high, ptr %scratch)"
    function.define(symbol, signature)


def _finish(module: Module, finish: Kernel, kernel: Kernel, name: str, scratch: _Scratch) -> None:
    function = Function(module)
    symbols = _symbol_reader(function, kernel, "%dims")
    by_name = {b.name: p for b, p in _pointers(function, kernel, scratch, symbols).items()}
    order = postorder([s.value for s in finish.stores])
    buffers = {e.buffer for e in order if isinstance(e, Load)} | {s.buffer for s in finish.stores}
    pointers = {b: by_name[b.name] for b in buffers}
    NestEmitter(function, plan_kernel(finish), pointers, symbols.__getitem__).emit(0, 1)
    function.emit("ret void")
    function.define(name, "void @{}(ptr %buffers, ptr %dims, ptr %scratch)")


def _cost(kernel: Kernel) -> int:
    """Cheap operations per element, roughly."""
    cost = 1
    for expr in postorder([s.value for s in kernel.stores]):
        if isinstance(expr, Apply):
            cost += 10 if FUNCTIONS[expr.fn].costly else 1
        elif isinstance(expr, Reduce | Load):
            cost += 1
    return cost


def _traffic(kernel: Kernel) -> Dim:
    total: Dim = 0
    for buffer in (*kernel.inputs, *kernel.outputs):
        size: Dim = buffer.dtype.size
        for dim in buffer.shape:
            size = size * dim
        total = total + size
    return total


def _job(module: Module, symbol: str) -> str:
    """The pool's view of a kernel: ``void job(ptr context, i64 low, i64 high)``."""
    function = Function(module)
    buffers = function.load_word("%context", 0, "ptr")
    dims = function.load_word("%context", 1, "ptr")
    scratch = function.load_word("%context", 2, "ptr")
    function.emit(
        f"call void @{symbol}(ptr {buffers}, ptr {dims}, i64 %low, i64 %high, ptr {scratch})"
    )
    function.emit("ret void")
    name = f"{symbol}_job"
    function.define(name, "void @{}(ptr %context, i64 %low, i64 %high)", "internal")
    return name


def _run_parallel(function: Function, symbol: str, extent: Word, unit: int, grain: Word) -> None:
    context = function.alloca("[3 x ptr], align 16")
    for place, value in enumerate(("%buffers", "%dims", "%scratch")):
        function.emit(f"store ptr {value}, ptr {function.offset(context, place, 'ptr')}")
    function.module.declare(PARALLEL_FOR)
    job = _job(function.module, symbol)
    function.emit(
        f"call void @treadle_parallel_for(ptr @{job}, ptr {context}, i64 {extent}, "
        f"i64 {unit}, i64 {grain})"
    )


def _launch(
    module: Module, kernel: Kernel, symbol: str, extent: Dim, unit: int, work: Dim,
    finish: str | None,
) -> None:  # fmt: skip
    function = Function(module)
    symbols = _symbol_reader(function, kernel, "%dims")
    length = function.dim(extent, symbols.__getitem__)
    each = function.max(function.dim(work, symbols.__getitem__), 1)
    grain = function.max(function.divide(GRAIN_WORK, each), unit)
    known = isinstance(length, int) and isinstance(grain, int) and length <= grain
    if known:
        function.emit(
            f"call void @{symbol}(ptr %buffers, ptr %dims, i64 0, i64 {length}, ptr %scratch)"
        )
    else:
        _run_parallel(function, symbol, length, unit, grain)
    if finish:
        function.emit(f"call void @{finish}(ptr %buffers, ptr %dims, ptr %scratch)")
    function.emit("ret void")
    function.define(f"{symbol}_launch", "void @{}(ptr %buffers, ptr %dims, ptr %scratch)")


# ---- many tensors in one launch
def _segmented(kernel: Kernel, module: Module, symbol: str) -> KernelCode:
    plan = plan_kernel(kernel)
    if len(plan.outer) != 1:
        raise UnsupportedKernel("a segmented kernel needs an axis of symbolic extent")
    _segment_loop(module, plan, kernel, symbol)
    function = Function(module)
    count = function.load_word("%dims")
    total = _sum_sizes(function, count)
    grain = max(GRAIN_WORK // _cost(kernel), UNIT)
    _run_parallel(function, symbol, total, UNIT, grain)
    function.emit("ret void")
    function.define(f"{symbol}_launch", "void @{}(ptr %buffers, ptr %dims, ptr %scratch)")
    (axis,) = kernel.axes
    return KernelCode(
        kernel, symbol, module.text(), axis.extent, UNIT, 0, None,
        axis.extent * _cost(kernel), _traffic(kernel),
    )  # fmt: skip


def _sum_sizes(function: Function, count: str) -> str:
    total = function.alloca("i64, align 8")
    function.emit(f"store i64 0, ptr {total}, align 8")
    with function.loop(0, count) as segment:
        size = function.load_word("%dims", function.add(segment, 1))
        function.emit(f"store i64 {function.add(function.load_word(total), size)}, ptr {total}")
    return function.load_word(total)


def _segment_loop(module: Module, plan: Plan, kernel: Kernel, symbol: str) -> None:
    """Clip [low, high) of the concatenation to each segment and run the body there."""
    function = Function(module)
    count = function.load_word("%dims")
    base = function.alloca("i64, align 8")
    function.emit(f"store i64 0, ptr {base}, align 8")
    with function.loop(0, count) as segment:
        size = function.load_word("%dims", function.add(segment, 1))
        start = function.load_word(base)
        function.emit(f"store i64 {function.add(start, size)}, ptr {base}, align 8")
        low = function.max(function.sub("%low", start), 0)
        high = function.min(function.sub("%high", start), size)
        with function.when(function.compare("slt", low, high)):
            row = function.mul(segment, len(kernel.buffers))
            table = function.offset("%buffers", row, "ptr")
            pointers = buffer_pointers(function, list(kernel.buffers), table)
            NestEmitter(function, plan, pointers, lambda _: size).emit(low, high)
    function.emit("ret void")
    signature = "void @{}(ptr %buffers, ptr %dims, i64 %low, i64 %high, ptr %scratch)"
    function.define(symbol, signature)
