"""Scalar arguments: the numbers and texts that a function takes beside its tensors.

Taken with `int()` or `float()`, other values would be refused eagerly than in graphs, where a
tensor has no value yet. `what` names function and argument in errors: "band_part: num_lower".
"""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor, has_dtype, is_weak, to_array


def number(what: str, value: Any, kinds: str = "fiu") -> Any:
    """A Python number, or a symbolic scalar where only a run can tell it.

    Args:
        value: a number, or an array or tensor without axes.
        kinds: the dtype kinds that are allowed, "iu" for integers only.

    Raises:
        InvalidArgumentError: an array or tensor with axes.
        TypeError: no number of these kinds.
    """
    if type(value) is int or (type(value) is float and "f" in kinds):
        return value
    is_late = has_dtype(value) or is_weak(value)
    given: Any = convert_to_tensor(value) if is_late else to_array(value)
    if given.ndim:
        text = f"{what} must be a scalar, not of shape {tuple(given.shape)}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    kind = given.dtype.kind
    if ("f" if kind == "V" else kind) not in kinds:  # NumPy's kind of bfloat16 is V
        wanted = "a real number" if "f" in kinds else "an integer"
        text = f"{what} must be {wanted}, not of dtype {given.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if isinstance(given, Tensor):
        return given if given.is_symbolic else given.numpy().item()
    return given.item()


def integer(what: str, value: Any) -> int:
    """A Python integer.

    Raises:
        InvalidArgumentError: an array or tensor with axes.
        TypeError: no integer, or one that only a run can tell.
    """
    return int(number(what, value, "iu"))


def as_bytes(what: str, value: Any) -> bytes:
    """The bytes of a Python string.

    Raises:
        TypeError: no string.
    """
    if not isinstance(value, str | bytes):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}{at(user_origin())}")
    return value.encode() if isinstance(value, str) else bytes(value)
