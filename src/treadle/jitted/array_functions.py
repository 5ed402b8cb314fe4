"""Functions of NumPy that call Python code or decide by values, written as users write theirs: a
jitted function that calls one with traced values calls these, and they are traced with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Vectors along the axis go into the function; what it gives lies along it."""
    moved = np.moveaxis(np.asarray(arr), axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    found = np.array([func1d(rows[i], *args, **kwargs) for i in range(len(rows))])
    shaped = found.reshape(moved.shape[:-1] + found.shape[1:])
    return shaped if found.ndim == 1 else np.moveaxis(shaped, -1, axis)


def vectorized(function: Any, otypes: Any, *arrays: Any) -> Any:
    """``np.vectorize(function, otypes)(*arrays)``."""
    parts = np.broadcast_arrays(*arrays)
    flat = [part.reshape(-1) for part in parts]
    found = np.array([function(*[f[i] for f in flat]) for i in range(len(flat[0]))])
    if otypes is not None:
        found = found.astype(np.dtype(otypes[0]))
    return found.reshape(parts[0].shape)[()]


def looped(function: Any, loops: Any, *arrays: Any) -> Any:
    """What a function of Numba's ``@vectorize`` gives for arrays.

    Args:
        loops: the types of the loops that it has (``"dd->d"``); None: those of the arguments.

    Raises:
        TypeError: none of the loops takes the arguments.
    """
    given = [np.asarray(array) for array in arrays]
    if loops is None:
        return vectorized(function, None, *given)
    taken, found = _loop_for(loops, [array.dtype for array in given])
    cast = [array.astype(dtype) for array, dtype in zip(given, taken)]  # noqa: B905
    return vectorized(function, [found], *cast)


def _loop_for(loops: Any, dtypes: Any) -> Any:
    """The dtypes of the arguments and of the result of the first loop that takes some."""
    for loop in loops:
        taken, _, found = loop.partition("->")
        fits = len(taken) == len(dtypes) and all(map(np.can_cast, dtypes, taken))
        if fits:
            return [np.dtype(char) for char in taken], np.dtype(found)
    raise TypeError(f"no loop of {', '.join(loops)} takes arguments of {dtypes}")


def fromiter(iter: Any, dtype: Any, count: Any = -1) -> Any:
    found = np.array(list(iter), dtype)
    return found if count == -1 else found[:count]


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    found = np.asarray(a, dtype)
    if found.dtype.kind in "fc" and not np.all(np.isfinite(found)):
        raise ValueError("array must not contain infs or NaNs")
    return found


def trim_zeros(filt: Any, trim: Any = "fb") -> Any:
    """A vector without the zeros at its ends."""
    places = np.nonzero(filt)[0]
    first, last = 0, len(filt)
    if len(places) > 0:
        first = int(places[0]) if "f" in trim.lower() else 0
        last = int(places[-1]) + 1 if "b" in trim.lower() else len(filt)
    else:
        last = 0
    return filt[first:last]


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.apply_along_axis: apply_along_axis,
    np.fromiter: fromiter,
    np.asarray_chkfinite: asarray_chkfinite,
    np.trim_zeros: trim_zeros,
}
