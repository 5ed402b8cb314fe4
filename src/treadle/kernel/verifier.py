"""Checks that a kernel is well formed."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernel.ir import (
    COMBINES,
    REDUCTIONS,
    SCANS,
    Affine,
    Apply,
    Axis,
    Buffer,
    Expr,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    postorder,
)  # fmt: skip


class KernelError(ValueError):
    """A kernel that means nothing: the message names the node at fault."""


def verify(kernel: Kernel) -> None:
    """Raise KernelError unless `kernel` is well formed."""
    _unique([a.name for a in kernel.axes], "axis")
    _unique([b.name for b in kernel.buffers], "buffer")
    if not kernel.stores:
        raise KernelError("a kernel without stores computes nothing")
    axes, buffers = frozenset(kernel.axes), frozenset(kernel.buffers)
    for expr in kernel.exprs:
        _check_expr(expr, axes, buffers)
    for store in kernel.stores:
        _check_store(store, axes, buffers)
        _check_computed(store, kernel)
    if kernel.segmented:
        _check_segmented(kernel)
    if kernel.blocked:
        _check_blocked(kernel)


def _unique(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise KernelError(f"two {what} parameters are called {name!r}")


def _check_expr(expr: Expr, axes: frozenset[Axis], buffers: frozenset[Buffer]) -> None:
    if not expr.axes <= axes:
        stray = ", ".join(a.name for a in expr.axes - axes)
        raise KernelError(f"{expr} varies along {stray}, which is no axis of the kernel")
    match expr:
        case Load():
            _check_load(expr, buffers)
        case Iota() if not expr.dtype.is_integer:
            raise KernelError(f"a position has an integer dtype, not {expr.dtype.name}: {expr}")
        case Reduce():
            _check_reduce(expr, axes)
        case Scan():
            _check_scan(expr)
        case Apply() if expr.of is not None and expr.fn != "cast":
            raise KernelError(f"only a cast names its dtype: {expr}")


def _check_load(load: Load, buffers: frozenset[Buffer]) -> None:
    if load.buffer not in buffers:
        raise KernelError(f"{load} reads {load.buffer.name!r}, which is no parameter")
    if len(load.index) != len(load.buffer.shape):
        raise KernelError(f"{load} has {len(load.index)} indices for rank {len(load.buffer.shape)}")
    for index in load.index:
        if isinstance(index, Expr) and not index.dtype.is_integer:
            raise KernelError(f"{load} is indexed by {index.dtype.name}")
    if load.valid is not None:
        _expect_bool(load.valid.dtype, f"the mask of {load}")
        if load.fill is None or load.fill.dtype is not load.dtype:
            raise KernelError(f"the fill of {load} must be a {load.dtype.name} constant")


def _expect_bool(dtype: DType, what: str) -> None:
    if not dtype.is_bool:
        raise KernelError(f"{what} must be bool, not {dtype.name}")


def _check_reduce(reduce: Reduce, axes: frozenset[Axis]) -> None:
    if reduce.op not in REDUCTIONS:
        raise KernelError(f"unknown reduction {reduce.op!r}")
    if not reduce.over or not frozenset(reduce.over) <= axes:
        raise KernelError(f"{reduce} must reduce over axes of the kernel")
    logical = reduce.op in ("any", "all")
    if logical:
        _expect_bool(reduce.value.dtype, f"the operand of {reduce}")
    elif reduce.value.dtype.is_bool and reduce.op in ("sum", "prod"):
        raise KernelError(f"cast bool to a number before {reduce.op}: {reduce}")
    if reduce.op in ("argmax", "argmin"):
        if len(reduce.over) != 1:
            raise KernelError(f"{reduce.op} reduces one axis, not {len(reduce.over)}")
        if not reduce.dtype.is_integer:
            raise KernelError(f"{reduce.op} gives an integer, not {reduce.dtype.name}")
    elif reduce.dtype.is_complex:
        raise KernelError(f"complex numbers are reduced by their parts: {reduce}")
    elif reduce.of is not None and reduce.of is not reduce.value.dtype:
        raise KernelError(f"{reduce.op} keeps the dtype of its operand: {reduce}")


def _check_scan(scan: Scan) -> None:
    if scan.op not in SCANS:
        raise KernelError(f"unknown scan {scan.op!r}")
    if scan.dtype.is_bool:
        raise KernelError(f"cast bool to a number before a scan: {scan}")
    if scan.dtype.is_complex:
        raise KernelError(f"complex numbers are scanned by their parts: {scan}")


def _check_store(store: Store, axes: frozenset[Axis], buffers: frozenset[Buffer]) -> None:
    if store.buffer not in buffers:
        raise KernelError(f"{store} writes {store.buffer.name!r}, which is no parameter")
    if len(store.index) != len(store.buffer.shape):
        raise KernelError(
            f"{store} has {len(store.index)} indices for rank {len(store.buffer.shape)}"
        )
    if store.buffer.dtype is not store.value.dtype:
        raise KernelError(f"{store} stores {store.value.dtype.name} into {store.buffer.dtype.name}")
    if not store.axes <= axes or not store.value.axes <= store.axes:
        stray = ", ".join(a.name for a in store.value.axes - store.axes)
        raise KernelError(f"{store}: the value varies along {stray}, the index does not")


def _check_computed(store: Store, kernel: Kernel) -> None:
    if store.combine not in COMBINES:
        raise KernelError(f"unknown combination {store.combine!r}")
    if store.combine != "set" and (store.value.dtype.is_bool or store.value.dtype.is_complex):
        raise KernelError(f"{store.value.dtype.name} is set, not combined: {store}")
    if store.combine == "div" and not store.value.dtype.is_floating:
        raise KernelError(f"{store.value.dtype.name} is not divided: {store}")
    if not all(i.dtype.is_integer for i in store.computed):
        raise KernelError(f"a place that is no integer: {store}")
    if not store.computed and store.combine == "set":
        return
    used = [e.buffer for e in kernel.exprs if isinstance(e, Load)]
    used += [s.buffer for s in kernel.stores if s is not store]
    if store.buffer in used:
        raise KernelError(f"a buffer that is also used elsewhere in the kernel: {store}")


def _check_segmented(kernel: Kernel) -> None:
    if len(kernel.axes) != 1:
        raise KernelError("a segmented kernel has one axis")
    (axis,) = kernel.axes
    for buffer in kernel.buffers:
        if buffer.shape not in ((), (axis.extent,)):
            raise KernelError(f"a segmented kernel's buffer is a scalar or has its axis: {buffer}")
    order = postorder([s.value for s in kernel.stores])
    if any(isinstance(e, Reduce | Scan | Iota) for e in order):
        raise KernelError("a segmented kernel has no reductions, no scans and no positions")
    for store in kernel.stores:
        if store.index != (Affine(((axis, 1),)),) or store.combine != "set":
            raise KernelError(f"a segmented kernel stores element for element: {store}")


def _check_blocked(kernel: Kernel) -> None:
    order = postorder([s.value for s in kernel.stores])
    if any(isinstance(e, Reduce | Scan) for e in order):
        raise KernelError("a blocked kernel has no reductions and no scans")
    for store in kernel.stores:
        if store.computed or store.combine != "set":
            raise KernelError(f"a blocked kernel stores where it is, and replaces: {store}")
        if store.axes != frozenset(kernel.axes):
            raise KernelError(f"a blocked kernel stores along all of its axes: {store}")
