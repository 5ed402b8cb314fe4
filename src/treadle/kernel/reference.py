"""The meaning of kernels: an evaluator in NumPy, which the tests compare all targets with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, substitute
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import (
    Apply,
    Buffer,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
)  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate(
    kernel: Kernel, arrays: Mapping[Buffer, Array], symbols: Mapping[str, int] | None = None
) -> dict[Buffer, Array]:
    """The contents of every stored buffer after the kernel ran.

    arrays: an array for every buffer that is loaded; a stored buffer also given here keeps the
    elements that no store touches (others start as zero). symbols: values of the symbolic dims.
    """
    return _Evaluator(kernel, arrays, dict(symbols or {})).run()


def compute_dtype(dtype: DType) -> np.dtype[Any]:
    """The dtype in which values are held while computing: float32 for 16-bit floats."""
    if dtype.is_floating and dtype.size == 2:
        return np.dtype(np.float32)
    return dtype.np_dtype


class _Evaluator:
    """Every value is an array with one dimension an axis, of extent 1 where it does not vary."""

    def __init__(
        self, kernel: Kernel, arrays: Mapping[Buffer, Array], symbols: dict[str, int]
    ) -> None:
        self.kernel, self.arrays, self.symbols = kernel, arrays, symbols
        self.position = {a: n for n, a in enumerate(kernel.axes)}
        self.extents = [self.dim(a.extent) for a in kernel.axes]
        self.values: dict[Expr, Array] = {}

    def dim(self, dim: Dim) -> int:
        value = substitute(dim, self.symbols)
        if not isinstance(value, int):
            raise KeyError(f"no value for the symbols of {value}")
        return value

    def run(self) -> dict[Buffer, Array]:
        with np.errstate(all="ignore"):
            for expr in self.kernel.exprs:
                self.values[expr] = self.value(expr)
            results: dict[Buffer, Array] = {}
            for store in self.kernel.stores:
                self.write(store, results)
        return results

    def value(self, expr: Expr) -> Array:
        rank = len(self.extents)
        match expr:
            case Const():
                return np.full([1] * rank, expr.value).astype(compute_dtype(expr.dtype))
            case Extent():
                return np.full([1] * rank, self.dim(expr.dim)).astype(compute_dtype(expr.dtype))
            case Iota():
                return self.iota(self.position[expr.axis]).astype(expr.dtype.np_dtype)
            case Load():
                return self.load(expr)
            case Apply():
                return self.call(expr)
            case Reduce():
                return self.reduce(expr)
            case Scan():
                return self.scan(expr)
        raise TypeError(f"unknown expression {expr}")

    def iota(self, position: int) -> Array:
        shape = [1] * len(self.extents)
        shape[position] = self.extents[position]
        return np.arange(self.extents[position]).reshape(shape)

    def index(self, index: Index) -> Array:
        if isinstance(index, Expr):
            return self.values[index].astype(np.int64)
        total = np.full([1] * len(self.extents), self.dim(index.offset))
        for axis, coefficient in index.terms:
            total = total + self.iota(self.position[axis]) * self.dim(coefficient)
        return total

    def load(self, load: Load) -> Array:
        array = self.arrays[load.buffer]
        indices = []
        for index, size in zip(load.index, array.shape, strict=True):
            place = self.index(index)
            guarded = load.valid is not None or isinstance(index, Expr)
            indices.append(np.clip(place, 0, max(size - 1, 0)) if guarded else place)
        compute = compute_dtype(load.dtype)
        if load.valid is None or load.fill is None:
            loaded = array[tuple(indices)] if indices else array.reshape([1] * len(self.extents))
            return loaded.astype(compute)
        valid = self.values[load.valid]
        shape = np.broadcast_shapes(valid.shape, *(i.shape for i in indices))
        if not array.size:
            return np.full(shape, load.fill.value).astype(compute)
        loaded = array[tuple(indices)] if indices else array
        return np.where(valid, loaded, np.asarray(load.fill.value, array.dtype)).astype(compute)

    def call(self, expr: Apply) -> Array:
        args = [self.values[a] for a in expr.args]
        if expr.fn != "cast":
            return np.asarray(FUNCTIONS[expr.fn].reference(*args)).astype(
                compute_dtype(expr.dtype), copy=False
            )
        return cast_array(args[0], expr.dtype)

    def reduce(self, reduce: Reduce) -> Array:
        value = self.values[reduce.value]
        shape: list[int] = list(value.shape)
        for axis in reduce.over:
            shape[self.position[axis]] = self.extents[self.position[axis]]
        value = np.broadcast_to(value, shape)
        axes = tuple(self.position[a] for a in reduce.over)
        if reduce.op in ("argmax", "argmin"):
            if not shape[axes[0]]:
                shape[axes[0]] = 1
                return np.zeros(shape, reduce.dtype.np_dtype)
            find = getattr(np, reduce.op)
            return np.asarray(find(value, axis=axes[0], keepdims=True), reduce.dtype.np_dtype)
        settings: dict[str, Any] = {"axis": axes, "keepdims": True}
        if reduce.op in ("sum", "prod"):
            settings["dtype"] = value.dtype
        elif reduce.op in ("max", "min"):
            settings["initial"] = neutral(reduce.op, reduce.dtype)
        return np.asarray(getattr(np, reduce.op)(value, **settings))

    def scan(self, scan: Scan) -> Array:
        value, position = self.values[scan.value], self.position[scan.axis]
        shape = list(value.shape)
        shape[position] = self.extents[position]
        source = np.moveaxis(np.broadcast_to(value, shape), position, 0)
        result = np.empty_like(source)
        state = np.full(source.shape[1:], scan_start(scan)).astype(value.dtype)
        combine = FUNCTIONS[scan.op].reference
        for i in range(len(source))[:: -1 if scan.reverse else 1]:
            after = combine(state, source[i])
            result[i] = state if scan.exclusive else after
            state = after
        return np.moveaxis(result, 0, position)

    def write(self, store: Store, results: dict[Buffer, Array]) -> None:
        buffer = store.buffer
        if buffer not in results:
            given = self.arrays.get(buffer)
            shape = tuple(self.dim(d) for d in buffer.shape)
            start = np.zeros(shape, buffer.dtype.np_dtype) if given is None else given.copy()
            results[buffer] = start
        value = self.values[store.value].astype(buffer.dtype.np_dtype)
        extents = [
            n if axis in store.axes else 1
            for axis, n in zip(self.kernel.axes, self.extents, strict=True)
        ]
        places = [np.broadcast_to(self.index(i), extents).reshape(-1) for i in store.index]
        values = np.broadcast_to(value, extents).reshape(-1)
        inside = np.ones(values.shape, np.bool_)
        for index, place, size in zip(store.index, places, results[buffer].shape, strict=True):
            if isinstance(index, Expr):
                inside &= (place >= 0) & (place < size)
        target = results[buffer].reshape(-1)
        flat = np.zeros(values.shape, np.int64)
        for place, size in zip(places, results[buffer].shape, strict=True):
            flat = flat * size + place
        if store.combine == "set":
            target[flat[inside]] = values[inside]
        else:
            combine: Any = FUNCTIONS[store.combine].reference
            combine.at(target, flat[inside], values[inside])


def cast_array(value: Array, dtype: DType) -> Array:
    """The IR's cast: float to integer truncates and saturates (NaN gives 0)."""
    if value.dtype.kind == "f" and dtype.is_integer:
        limits = np.iinfo(dtype.np_dtype)
        whole = np.nan_to_num(np.trunc(value.astype(np.float64)), nan=0.0)
        inside = (whole > float(limits.min)) & (whole < float(limits.max))
        exact = np.where(inside, whole, 0.0).astype(dtype.np_dtype)
        least, most = dtype.np_dtype.type(limits.min), dtype.np_dtype.type(limits.max)
        return np.where(inside, exact, np.where(whole <= float(limits.min), least, most))
    rounded = value.astype(dtype.np_dtype)
    return rounded.astype(compute_dtype(dtype))


def neutral(op: str, dtype: DType) -> Any:
    """The value that changes nothing when reduced, or scanned, with `op`."""
    if op in ("sum", "add", "prod", "mul"):
        return 0 if op in ("sum", "add") else 1
    if op in ("any", "all"):
        return op == "all"
    if dtype.is_bool:
        return op == "min"
    if dtype.is_floating:
        return np.inf if op == "min" else -np.inf
    limits = np.iinfo(dtype.np_dtype)
    return limits.min if op == "max" else limits.max


def scan_start(scan: Scan) -> Any:
    """The value that a scan combines with its first value.

    -0 + x is x for every x: a running sum begins with the first value itself, as NumPy's does. An
    exclusive one begins with 0.
    """
    first = scan.op == "add" and scan.dtype.is_floating and not scan.exclusive
    return -0.0 if first else neutral(scan.op, scan.dtype)


def evaluate_segmented(
    kernel: Kernel, segments: Sequence[Mapping[Buffer, Array]]
) -> list[dict[Buffer, Array]]:
    """`evaluate` for every segment of a segmented kernel."""
    (axis,) = kernel.axes
    results = []
    for arrays in segments:
        (size,) = {a.size for b, a in arrays.items() if b.shape}
        symbols = {str(axis.extent): size}
        results.append(evaluate(kernel, arrays, symbols))
    return results
