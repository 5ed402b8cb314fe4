"""TensorFlow's discrete Fourier transforms, over the last one, two or three axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, SymbolicDim
from treadle.core.tensor import Tensor
from treadle.numpy_staging import fft as transforms
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import elements_of, size_of


def _operand(name: str, input: Any, kind: str, count: int) -> Tensor:
    x = convert_to_tensor(input)
    if x.dtype.kind != kind or x.dtype.size == 2:
        wanted = "complex64 or complex128" if kind == "c" else "float32 or float64"
        text = f"{name} takes {wanted}, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if x.ndim < count:
        text = f"{name}: {count} axes are needed, the shape is {x.shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return x


def _complex(name: str, count: int, inverse: bool, doc: str) -> Callable[..., Tensor]:
    transform = transforms.ifft if inverse else transforms.fft

    def function(input: Any, name: str | None = None) -> Tensor:
        x = _operand(f"td.signal.{function.__name__}", input, "c", count)
        if 0 in x.dims[-count:]:
            return x
        for axis in range(-count, 0):
            x = transform(x, axis=axis)
        return x

    return _named(function, name, doc)


def _lengths(name: str, given: Any, count: int) -> list[Dim | None]:
    """The sizes that the axes are to have, from an argument `fft_length`; None: their own."""
    if given is None:
        return [None] * count
    what = f"td.signal.{name}: fft_length"
    if _is_open(given):
        is_short = given.ndim == 0 or isinstance(given.dims[0], int)
        found: list[Any] = elements_of(given) if is_short else []
    elif isinstance(given, list | tuple) and any(map(_is_open, given)):
        found = list(given)
    else:
        found = np.atleast_1d(np.asarray(given)).tolist()
    known = [n for n in found if not _is_open(n)]
    if len(found) != count or any(not isinstance(n, int) or n < 1 for n in known):
        text = f"{what} must be {count} positive ints, not {found}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return [size_of(n, what, least=1) for n in found]


def _is_open(value: Any) -> bool:
    """Whether only a run knows a size, or a tensor of sizes."""
    return isinstance(value, SymbolicDim) or getattr(value, "is_symbolic", False)


def _of_real(name: str, count: int, doc: str) -> Callable[..., Tensor]:
    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        own = function.__name__
        x = _operand(f"td.signal.{own}", input_tensor, "f", count)
        sizes = _lengths(own, fft_length, count)
        x = transforms.rfft(x, sizes[-1])
        for axis, size in zip(range(-count, -1), sizes, strict=False):
            x = transforms.fft(x, size, axis)
        return x

    return _named(function, name, doc)


def _to_real(name: str, count: int, doc: str) -> Callable[..., Tensor]:
    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        own = function.__name__
        x = _operand(f"td.signal.{own}", input_tensor, "c", count)
        sizes = _lengths(own, fft_length, count)
        for axis, size in zip(range(-count, -1), sizes, strict=False):
            x = transforms.ifft(x, size, axis)
        return transforms.irfft(x, sizes[-1])

    return _named(function, name, doc)


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_OVER = {1: "last axis", 2: "last two axes", 3: "last three axes"}
_SIZES = "`fft_length` cuts the axes off, or appends zeros to them, first."


def _name(base: str, count: int) -> str:
    return base if count == 1 else f"{base}{count}d"


fft, fft2d, fft3d = (
    _complex(_name("fft", n), n, False, f"The Fourier transform over the {_OVER[n]}.")
    for n in (1, 2, 3)
)
ifft, ifft2d, ifft3d = (
    _complex(_name("ifft", n), n, True, f"The inverse transform over the {_OVER[n]}.")
    for n in (1, 2, 3)
)
rfft, rfft2d, rfft3d = (
    _of_real(
        _name("rfft", n), n,
        f"The transform of real numbers over the {_OVER[n]}: the first ``size // 2 + 1`` "
        f"coefficients of the last one, as the others follow from them. {_SIZES}",
    )
    for n in (1, 2, 3)
)  # fmt: skip
irfft, irfft2d, irfft3d = (
    _to_real(
        _name("irfft", n), n,
        f"The real numbers whose `rfft` over the {_OVER[n]} is given. `fft_length`: the sizes of "
        "the result; the last one is ``2 * (coefficients - 1)`` by default.",
    )
    for n in (1, 2, 3)
)  # fmt: skip


def _unscaled(name: str, norm: str | None) -> None:
    if norm not in (None, "backward"):
        raise ValueError(f"td.signal.{name}: norm {norm!r} is not supported{at(user_origin())}")


def _places(name: str, x: Tensor, axes: Any, lengths: Any) -> tuple[list[int], list[Dim | None]]:
    if axes is None:
        count = x.ndim if lengths is None else math.prod(np.shape(lengths))
        places = list(range(x.ndim - count, x.ndim))
    else:
        places = [int(a) for a in np.atleast_1d(np.asarray(axes))]
    return places, _lengths(name, lengths, len(places))


def fftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transform over any axes, all by default.

    Args:
        fft_length: the sizes that the axes are cut off or filled up with zeros to.
        norm: None, or "backward", which is the same.
    """
    _unscaled("fftnd", norm)
    x = _operand("td.signal.fftnd", input_tensor, "c", 0)
    for axis, size in zip(*_places("fftnd", x, axes, fft_length), strict=True):
        x = transforms.fft(x, size, axis)
    return x


def ifftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The inverse transform over any axes, all by default; see `fftnd`."""
    _unscaled("ifftnd", norm)
    x = _operand("td.signal.ifftnd", input_tensor, "c", 0)
    for axis, size in zip(*_places("ifftnd", x, axes, fft_length), strict=True):
        x = transforms.ifft(x, size, axis)
    return x


def rfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The transform of real numbers over any axes, all by default; see `rfft` and `fftnd`."""
    _unscaled("rfftnd", norm)
    x = _operand("td.signal.rfftnd", input_tensor, "f", 1)
    places, sizes = _places("rfftnd", x, axes, fft_length)
    x = transforms.rfft(x, sizes[-1], places[-1])
    for axis, size in zip(places[:-1], sizes[:-1], strict=True):
        x = transforms.fft(x, size, axis)
    return x


def irfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The real numbers whose `rfftnd` is given; see `irfft` and `fftnd`."""
    _unscaled("irfftnd", norm)
    x = _operand("td.signal.irfftnd", input_tensor, "c", 1)
    places, sizes = _places("irfftnd", x, axes, fft_length)
    for axis, size in zip(places[:-1], sizes[:-1], strict=True):
        x = transforms.ifft(x, size, axis)
    return transforms.irfft(x, sizes[-1], places[-1])


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """With the coefficient of frequency 0 in the middle of the axes, all by default."""
    return transforms.fftshift(x, axes)


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """What `fftshift` did, undone."""
    return transforms.ifftshift(x, axes)
