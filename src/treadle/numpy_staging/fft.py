"""NumPy's discrete Fourier transforms (``np.fft``) on tensors."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, compound
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array, floating
from treadle.numpy_staging.shapes import roll
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.linalg.fourier import FOURIER, OF_REAL, TO_REAL
from treadle.ops.registry import run
from treadle.ops.shaping.padding import pad


def _complex_dtype(x: Tensor) -> DType:
    if x.dtype.is_complex:
        return x.dtype
    return dtypes.complex64 if x.dtype.is_floating and x.dtype.size <= 4 else dtypes.complex128


def _resized(x: Tensor, n: Dim | None, axis: int) -> Tensor:
    """With `n` elements along an axis: cut off, or followed by zeros."""
    size = x.dims[axis]
    if n is None or n == size:
        return x
    _check_size(n)
    more = compound("max", n - size, 0)
    if more != 0:
        x = pad(x, [(0, more if i == axis else 0) for i in range(x.ndim)])
    return x if x.dims[axis] == n else x[(*(slice(None),) * axis, slice(n))]


def _check_size(n: Dim) -> None:
    if isinstance(n, int) and n < 1:
        raise ValueError(f"np.fft: n must be at least 1, not {n}{at(user_origin())}")


def _scaled(x: Tensor, size: Dim, inverse: bool, norm: str | None) -> Tensor:
    kind = norm or "backward"
    if kind not in ("backward", "ortho", "forward"):
        raise ValueError(f"np.fft: norm={norm!r} is not known{at(user_origin())}")
    if kind == ("forward" if inverse else "backward"):
        return x
    count = cast(dims_tensor(size, dtypes.int64), dtypes.float64)
    factor = 1.0 / (count**0.5 if kind == "ortho" else count)
    return x * cast(factor, x.dtype)


def _along(a: Any, n: Dim | None, axis: int, norm: str | None, inverse: bool) -> Tensor:
    x = as_array(a)
    place = normalize_axis(axis, x.ndim)
    x = cast(_resized(x, n, place), _complex_dtype(x))
    found: Tensor = run(FOURIER, x, inverse=inverse, axis=place)
    return _scaled(found, x.dims[place], inverse, norm)


def fft(a: Any, n: Dim | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    return _along(a, n, axis, norm, inverse=False)


def ifft(a: Any, n: Dim | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    return _along(a, n, axis, norm, inverse=True)


def rfft(a: Any, n: Dim | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    x = floating(as_array(a))
    place = normalize_axis(axis, x.ndim)
    x = _resized(x, n, place)
    size = x.dims[place]
    if x.dtype.is_complex or x.dtype.size == 2:
        whole = fft(x, None, place, norm)
        return whole[(*(slice(None),) * place, slice(None, size // 2 + 1))]
    return _scaled(run(OF_REAL, x, axis=place), size, False, norm)


def irfft(a: Any, n: Dim | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    x = as_array(a)
    place = normalize_axis(axis, x.ndim)
    size = 2 * (x.dims[place] - 1) if n is None else n
    _check_size(size)
    x = _resized(cast(x, _complex_dtype(x)), size // 2 + 1, place)
    return _scaled(run(TO_REAL, x, size=size, axis=place), size, True, norm)


def _over(a: Any, s: Any, axes: Any, norm: str | None, transform: Any) -> Tensor:
    x = as_array(a)
    places = normalize_axes(axes, x.ndim) if s is None or axes is not None else range(-len(s), 0)
    for i, axis in enumerate(places):
        x = transform(x, None if s is None else s[i], axis, norm)
    return x


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    return _over(a, s, axes, norm, fft)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    return _over(a, s, axes, norm, ifft)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    return _over(a, s, axes, norm, fft)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    return _over(a, s, axes, norm, ifft)


def fftshift(x: Any, axes: Any = None) -> Tensor:
    return _shifted(x, axes, lambda size: size // 2)


def ifftshift(x: Any, axes: Any = None) -> Tensor:
    return _shifted(x, axes, lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, by: Any) -> Tensor:
    tensor = as_array(x)
    places = normalize_axes(axes, tensor.ndim)
    amounts = [by(tensor.dims[i]) for i in places]
    known = (n if isinstance(n, int) else dims_tensor(n, dtypes.int64) for n in amounts)
    return roll(tensor, tuple(known), tuple(places))


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    x = as_array(a)
    places = normalize_axes(axes, x.ndim) if s is None or axes is not None else range(-len(s), 0)
    *others, last = places
    sizes = [None] * len(places) if s is None else list(s)
    x = rfft(x, sizes[-1], last, norm)
    for size, axis in zip(sizes[:-1], others, strict=True):
        x = fft(x, size, axis, norm)
    return x


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    return rfftn(a, s, axes, norm)
