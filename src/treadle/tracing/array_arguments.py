"""NumPy arrays that a function changes in place: the caller would expect to see it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from treadle.tracing.signature import Arguments

if TYPE_CHECKING:
    from treadle.tracing.concrete import ConcreteFunction


def refuse_changed_arrays(concrete: ConcreteFunction, arguments: Arguments) -> None:
    """Raise where an argument that the function changes in place is a NumPy array.

    Tensors have TensorFlow's meaning: the variable gets a new tensor, and nobody expects the old
    one to change. Of arrays ``x += 1`` has both meanings, so where the function goes on with the
    result a warning, once, says which one it has.

    Raises:
        TypeError: names the argument and the line that changes it.
    """
    for changed in concrete.changed:
        if not isinstance(arguments.leaves[changed.leaf], np.ndarray):
            continue
        text = (
            f"{concrete.name!r} changes its argument {changed.name!r}, a NumPy array, in place: "
            f"{changed.how}. In a td.function arguments are tensors, which never change"
        )
        if not changed.goes_on:
            raise TypeError(
                f"{text}: the caller's array would stay as it is. Decorate the function with "
                "td.jit, which has NumPy's meaning, or work on a copy (x = x.copy()) and return it"
                f"{changed.where}"
            )
        warnings.warn(
            f"{text}: the variable gets a new tensor, and the caller's array stays as it is. "
            f"td.jit has NumPy's meaning{changed.where}",
            stacklevel=4,
        )
    concrete.changed = [c for c in concrete.changed if not c.goes_on]
