"""Discrete Fourier transforms along one axis, without scaling: complex to complex, real to complex
and back. Rows whose length is a power of two are transformed natively
(`runtime/routines/fourier.py`), others by NumPy, and on a GPU by CuPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.functions import join_parts
from treadle.ops.complex_pairs import Pair, PartsCall
from treadle.ops.conversion import CONST, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.transposing import transpose
from treadle.ops.lowering import Library, RowCall, Rows
from treadle.ops.op_makers import guard, require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs, at_least_one

# -- the ops -------------------------------------------------------------------------------------


def _transform(x: NDArray, *, inverse: bool, axis: int) -> NDArray:
    if inverse:
        return np.ascontiguousarray(np.fft.ifft(x, axis=axis, norm="forward"))
    return np.ascontiguousarray(np.fft.fft(x, axis=axis))


def _gradient(call: OpCall, grad: Tensor) -> list[Any]:
    """The transform is symmetric, and the gradient of a linear map is its adjoint."""
    turned = {**call.attrs, "inverse": not call.attrs["inverse"]}
    return [run(FOURIER, grad, **turned)]


def _infer(x: TensorSpec, *, inverse: bool, axis: int) -> TensorSpec:
    require_kinds("c", x)
    return x


def _with_dim(x: TensorSpec, axis: int, dim: Dim, dtype: DType) -> TensorSpec:
    return TensorSpec((*x.dims[:axis], dim, *x.dims[axis + 1 :]), dtype)


def _infer_of_real(x: TensorSpec, *, axis: int) -> TensorSpec:
    require_kinds("f", x)
    return _with_dim(x, axis, x.dims[axis] // 2 + 1, x.dtype.complex_dtype)


def _gradient_of_real(call: OpCall, grad: Tensor) -> list[Any]:
    """The numbers between the ends stand for two, of which the gradient knows one."""
    axis, size = call.attrs["axis"], call.inputs[0].dims[call.attrs["axis"]]
    return [run(TO_REAL, grad * _between(grad, size, axis, 0.5), size=size, axis=axis)]


def _infer_to_real(x: TensorSpec, *, size: Dim, axis: int) -> TensorSpec:
    require_kinds("c", x)
    wanted, found = size // 2 + 1, x.dims[axis]
    if isinstance(wanted, int) and isinstance(found, int) and wanted != found:
        raise ValueError(f"{size} real numbers have {wanted} coefficients, not {found}")
    return _with_dim(x, axis, size, x.dtype.real_dtype)


def _to_real(x: NDArray, *, size: int, axis: int) -> NDArray:
    found = np.fft.irfft(x, size, axis, norm="forward")
    return np.ascontiguousarray(found.astype(x.real.dtype, copy=False))


def _sizes_to_real(specs: Sequence[Any], _: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    size = attrs["size"]
    if not isinstance(size, int):
        yield at_least_one(size)
    if specs[0].dims[attrs["axis"]] != size // 2 + 1:
        yield specs[0].dims[attrs["axis"]], size // 2 + 1


def _gradient_to_real(call: OpCall, grad: Tensor) -> list[Any]:
    axis, size = call.attrs["axis"], call.attrs["size"]
    found: Tensor = run(OF_REAL, grad, axis=axis)
    return [found * _between(found, size, axis, 2.0)]


def _between(x: Tensor, size: Dim, axis: int, factor: float) -> Tensor:
    """`factor` for the coefficients between the ends along an axis, 1 for those at the ends."""
    count = size // 2 + 1
    numbers: Tensor = run(RANGE, start=0, delta=1, size=count, dtype=dtypes.int64)
    ends = (numbers == 0) | (numbers * 2 == dims_tensor(size, dtypes.int64))
    one, other = (convert_to_tensor(w, x.dtype) for w in (1.0, factor))
    return reshape_to(where(ends, one, other), (count, *[1] * (x.ndim - axis - 1)))


# -- on the parts of complex numbers ---------------------------------------------------------------


def _is_power_of_two(dim: Dim, least: int = 1) -> bool:
    return isinstance(dim, int) and dim >= least and dim & (dim - 1) == 0


def _constant(array: NDArray) -> Tensor:
    return run(CONST, value=array)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _powers(count: int, size: int, dtype: str) -> tuple[NDArray, NDArray]:
    """The first powers of the root of unity exp(-2 pi i / size)."""
    angle = -2 * np.pi * np.arange(count) / size
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


@functools.lru_cache(maxsize=64)
def tables(n: int, dtype: str) -> tuple[NDArray, NDArray]:
    """The roots of unity that the stages of a transform of `n` elements multiply with: for each
    length the first powers of one, of its square and of its cube, side by side."""
    stages: list[tuple[NDArray, NDArray]] = []
    length = n
    while length >= 4:
        quarter = np.arange(length // 4)
        angle = -2 * np.pi * np.concatenate([quarter, 2 * quarter, 3 * quarter]) / length
        stages.append((np.cos(angle), np.sin(angle)))
        length //= 4
    if not stages:
        return np.ones(1, dtype), np.zeros(1, dtype)
    real, imag = (np.concatenate(part).astype(dtype) for part in zip(*stages, strict=True))
    return real, imag


def _at_the_end(x: Tensor, axis: int) -> Tensor:
    """With the axis as the last one."""
    if axis == x.ndim - 1:
        return x
    return transpose(x, [*(a for a in range(x.ndim) if a != axis), axis])


def _back(x: Tensor, axis: int) -> Tensor:
    """The inverse of `_at_the_end`."""
    if axis == x.ndim - 1:
        return x
    order = list(range(x.ndim - 1))
    return transpose(x, [*order[:axis], x.ndim - 1, *order[axis:]])


def _tables(n: int, x: Tensor) -> list[Tensor]:
    return [_constant(t) for t in tables(n, x.dtype.name)]


def _roots(n: int, x: Tensor) -> list[Tensor]:
    return [_constant(t) for t in _powers(n // 2 + 1, n, x.dtype.name)]


def _parts(call: PartsCall) -> Pair | None:
    axis = call.attrs["axis"]
    n = call.outputs[0].dims[axis]
    if not _is_power_of_two(n):
        return None
    a, b = (_at_the_end(part, axis) for part in call.inputs[0])
    if call.attrs["inverse"]:  # with the parts exchanged the transform is the inverse one
        imag, real = run(ON_PARTS, b, a, *_tables(n, a))
    else:
        real, imag = run(ON_PARTS, a, b, *_tables(n, a))
    return Pair(_back(real, axis), _back(imag, axis))


def _parts_of_real(call: PartsCall) -> Pair | None:
    (x,), axis = call.inputs, call.attrs["axis"]
    n = x.dims[axis]
    if not _is_power_of_two(n, 2):
        return None
    tables_and_roots = [*_tables(n // 2, x), *_roots(n, x)]
    real, imag = run(OF_REAL_ON_PARTS, _at_the_end(x, axis), *tables_and_roots)
    return Pair(_back(real, axis), _back(imag, axis))


def _parts_to_real(call: PartsCall) -> Tensor | None:
    (pair,), axis, n = call.inputs, call.attrs["axis"], call.attrs["size"]
    if not _is_power_of_two(n, 2):
        return None
    a, b = (_at_the_end(part, axis) for part in pair)
    return _back(run(TO_REAL_ON_PARTS, a, b, *_tables(n // 2, a), *_roots(n, a)), axis)


def _call(routine: str, length: Callable[[Sequence[TensorSpec]], Dim], rows: int) -> Rows:
    """The lowering of a transform; `rows` half rows of workspace."""

    def plan(
        inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
    ) -> RowCall:
        n, dtype = length([*inputs, *outputs]), inputs[0].dtype
        assert isinstance(n, int)
        work = 5 * n * max(1, n.bit_length() - 1)
        space = rows * n // 2 * dtype.size
        count = product(inputs[0].dims[:-1])
        return RowCall(count, count * work, {"n": n}, {"T": dtype}, space)

    return Rows(f"fourier.{routine}", plan)


def _infer_parts(a: TensorSpec, b: TensorSpec, wr: TensorSpec, wi: TensorSpec) -> Any:
    return a, a


def _infer_of_real_parts(x: TensorSpec, *tables: TensorSpec) -> Any:
    found = _with_dim(x, x.rank - 1, x.dims[-1] // 2 + 1, x.dtype)
    return found, found


def _infer_to_real_parts(a: TensorSpec, b: TensorSpec, *tables: TensorSpec) -> TensorSpec:
    return _with_dim(a, a.rank - 1, 2 * (a.dims[-1] - 1), a.dtype)


def _split(z: NDArray) -> tuple[NDArray, NDArray]:
    return np.ascontiguousarray(z.real), np.ascontiguousarray(z.imag)


_CALLED = "routines transform rows of a known size that is a power of 2"
FOURIER = register(
    Op(
        "fourier", _infer, guard("c", _transform), _gradient, Library("fourier"), parts=_parts,
        callback=_CALLED,
    )
)  # fmt: skip
OF_REAL = register(
    Op(
        "fourier_of_real", _infer_of_real,
        guard("f", lambda x, *, axis: np.ascontiguousarray(np.fft.rfft(x, axis=axis))),
        _gradient_of_real, Library("fourier_of_real"), parts=_parts_of_real, callback=_CALLED,
    )
)  # fmt: skip
TO_REAL = register(
    Op(
        "fourier_to_real",
        _infer_to_real,
        guard("c", _to_real),
        _gradient_to_real,
        Library("fourier_to_real"),
        parts=_parts_to_real,
        sizes=_sizes_to_real,
        callback=_CALLED,
    )
)
ON_PARTS = register(
    Op(
        "fourier_on_parts", _infer_parts,
        lambda a, b, wr, wi: _split(np.fft.fft(join_parts(a, b))),
        lower=_call("transform", lambda specs: specs[0].dims[-1], 4),
    )
)  # fmt: skip
OF_REAL_ON_PARTS = register(
    Op(
        "fourier_of_real_on_parts", _infer_of_real_parts,
        lambda x, *tables: _split(np.fft.rfft(x)),
        lower=_call("real_transform", lambda specs: specs[0].dims[-1], 6),
    )
)  # fmt: skip
TO_REAL_ON_PARTS = register(
    Op(
        "fourier_to_real_on_parts", _infer_to_real_parts,
        lambda a, b, *tables: np.fft.irfft(join_parts(a, b), norm="forward").astype(a.dtype),
        lower=_call("to_real", lambda specs: specs[-1].dims[-1], 6),
    )
)  # fmt: skip
