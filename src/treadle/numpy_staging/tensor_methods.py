"""The methods of ndarray on tensors, with NumPy's signatures and result dtypes.

TensorFlow's tensors have none of these names, so nothing is taken away from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import identity
from treadle.ops.indexing.transposing import transpose
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.state import Variable


def _from(name: str) -> Callable[..., Any]:
    """The NumPy function of that name with the tensor as its first argument."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return _named(name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As ``numpy.ndarray.{name}``."
    return method


def _named(name: str) -> Callable[..., Any]:
    from treadle.numpy_staging.functions import named

    return named(name)


def _reshape(self: Tensor, *shape: Any, order: str = "C") -> Tensor:
    """``x.reshape(2, 3)`` or ``x.reshape((2, 3))``; a dim may be -1."""
    wanted = shape[0] if len(shape) == 1 else list(shape)
    return reshape(self, wanted) if order == "C" else _named("reshape")(self, wanted, order)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """``x.transpose()``, ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    chosen = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return transpose(self, chosen or None)


def _astype(self: Tensor, dtype: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype, in a copy as NumPy makes it."""
    made = cast(self, dtypes.array_dtype(dtype))
    return identity(made) if made is self else made


def _flatten(self: Tensor, order: str = "C") -> Tensor:
    """All elements on one axis, in a copy as NumPy makes it."""
    return identity(reshape(self, -1) if order == "C" else _named("ravel")(self, order))


def _size(self: Tensor) -> Any:
    """The number of elements: an int, or a scalar tensor where only a run can tell."""
    return _named("size")(self)


def _bytes(self: Tensor) -> Any:
    """The bytes of all elements."""
    return _size(self) * self.dtype.size


_REDUCTIONS = (
    "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin", "cumsum",
    "cumprod", "ptp",
)  # fmt: skip
_FUNCTIONS = (
    "argsort", "clip", "copy", "diagonal", "dot", "nonzero", "ravel", "repeat", "round",
    "searchsorted", "squeeze", "swapaxes", "take", "trace",
)  # fmt: skip


def _refused(name: str, instead: str) -> Callable[..., Any]:
    """A method that changes an array in place, which a tensor cannot."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f".{name}() changes an array in place, and a tensor never changes: {instead}, or "
            f"decorate the function with td.jit, which has NumPy's meaning{at(user_origin())}"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Refused: {instead}."
    return method


_IN_PLACE = {
    "sort": "use td.sort(x), or np.sort(x)",
    "fill": "use td.fill(x.shape, value), or np.full_like(x, value)",
    "partition": "use np.partition(x, k)",
    "put": "use x[positions] = values in a function",
    "resize": "use td.reshape(x, shape)",
}

METHODS: dict[str, Any] = {
    **{name: _from(name) for name in (*_REDUCTIONS, *_FUNCTIONS)},
    **{name: _refused(name, instead) for name, instead in _IN_PLACE.items()},
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "flatten": _flatten,
    "T": property(_transpose, doc="The tensor with its axes in reverse order."),
    "size": property(_size),
    "nbytes": property(_bytes),
    "itemsize": property(lambda self: self.dtype.size, doc="The bytes of an element."),
}


def install() -> None:
    """Put the methods on Tensor, and on Variable for its value."""
    for name, method in METHODS.items():
        setattr(Tensor, name, method)
        if not hasattr(Variable, name):
            setattr(Variable, name, _of_value(name, method))


def _of_value(name: str, method: Any) -> Any:
    """The method, or property, of a variable's value."""
    if isinstance(method, property):
        return property(lambda self: getattr(self._operand(), name), doc=method.__doc__)

    @functools.wraps(method)
    def of_value(self: Variable, *args: Any, **kwargs: Any) -> Any:
        return method(self._operand(), *args, **kwargs)

    return of_value
