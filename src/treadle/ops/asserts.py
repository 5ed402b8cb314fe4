"""Assertions about values, dtypes, ranks and shapes.

What is known when the call is made is checked then: dtypes, ranks and known dims raise TypeError
and ValueError as in TensorFlow. Values and open dims are checked when the program runs (`Assert`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import spec_text
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import common_dtype, convert_to_tensor, has_dtype
from treadle.ops.dims import dims_tensor
from treadle.ops.dims import shape as shape_of
from treadle.ops.elementwise import comparison, logic, unary
from treadle.ops.known_values import known_value
from treadle.ops.reductions.reduction import reduce_all, reduce_any
from treadle.ops.shaping.reshaping import reshape_to

_Relation = Callable[[Any, Any], Tensor]


def _here(text: str) -> str:
    return f"{text}{at(user_origin())}"


def _with(message: str | None, text: str) -> str:
    """The user's message before what was found."""
    return f"{message}: {text}" if message else text


def _require(holds: Tensor, data: Sequence[Any], message: str, summarize: int | None) -> None:
    Assert(reduce_all(holds), [message, *data], summarize)


def _compare(
    name: str, sign: str, relation: _Relation, x: Any, y: Any,
    message: str | None, summarize: int | None,
) -> None:  # fmt: skip
    a, b = common_dtype(name, x, y)
    text = f"Condition x {sign} y did not hold. x: {spec_text(a.spec)}, y: {spec_text(b.spec)}"
    _require(relation(a, b), [a, b], _with(message, text), summarize)


def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless all elements are equal; the shapes broadcast.

    Args:
        message: the error begins with it.
        summarize: how many elements of the beginning and end of each axis the error shows: 3.
    """
    _compare("assert_equal", "==", comparison.equal, x, y, message, summarize)


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError if any two elements are equal; see `assert_equal`."""
    _compare("assert_none_equal", "!=", comparison.not_equal, x, y, message, summarize)


def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless x < y for all elements; see `assert_equal`."""
    _compare("assert_less", "<", comparison.less, x, y, message, summarize)


def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless x <= y for all elements; see `assert_equal`."""
    _compare("assert_less_equal", "<=", comparison.less_equal, x, y, message, summarize)


def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless x > y for all elements; see `assert_equal`."""
    _compare("assert_greater", ">", comparison.greater, x, y, message, summarize)


def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless x >= y for all elements; see `assert_equal`."""
    _compare("assert_greater_equal", ">=", comparison.greater_equal, x, y, message, summarize)


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, message: str | None = None,
    summarize: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Raise InvalidArgumentError unless ``abs(x - y) <= atol + rtol * abs(y)`` for all elements.

    Args:
        rtol, atol: 10 times the dtype's spacing at 1 by default.

    Raises:
        TypeError: x and y are not floats.
    """
    a, b = common_dtype("assert_near", x, y)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        raise TypeError(_here(f"assert_near compares floats, not {a.dtype.name}"))
    real = a.dtype.real_dtype
    spacing = 10 * float(_spacing(real))
    relative = convert_to_tensor(spacing if rtol is None else rtol, real)
    absolute = convert_to_tensor(spacing if atol is None else atol, real)
    holds = comparison.less_equal(unary.abs(a - b), absolute + relative * unary.abs(b))
    text = f"x and y differ by more than the tolerances: {spec_text(a.spec)}, {spec_text(b.spec)}"
    _require(holds, [a, b, relative, absolute], _with(message, text), summarize)


def _spacing(dtype: DType) -> float:
    """The distance from 1 to the next number of a floating dtype."""
    if dtype is dtypes.bfloat16:
        return 2.0**-7
    return float(np.finfo(dtype.np_dtype).eps)


def _sign(name: str, sign: str, relation: _Relation) -> Callable[..., None]:
    def check(
        x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        value = convert_to_tensor(x)
        text = f"Condition x {sign} 0 did not hold. x: {spec_text(value.spec)}"
        zero = convert_to_tensor(0, value.dtype)
        _require(relation(value, zero), [value], _with(message, text), summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise InvalidArgumentError unless x {sign} 0 for all elements."
    return check


assert_positive = _sign("assert_positive", ">", comparison.greater)
assert_negative = _sign("assert_negative", "<", comparison.less)
assert_non_negative = _sign("assert_non_negative", ">=", comparison.greater_equal)
assert_non_positive = _sign("assert_non_positive", "<=", comparison.less_equal)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, which must be floating.

    Raises:
        InvalidArgumentError: it has a NaN or an infinity; the error begins with `message`.
        TypeError: it is not floating.
    """
    x = convert_to_tensor(tensor)
    if not x.dtype.is_floating:
        text = _here(f"check_numerics takes floats, not {x.dtype.name}")
        raise errors.DtypeError(None, None, text)
    nan, infinite = reduce_any(unary.is_nan(x)), reduce_any(unary.is_inf(x))
    for found, kinds in (
        (logic.logical_and(nan, infinite), "Inf and NaN"), (nan, "NaN"), (infinite, "Inf"),
    ):  # fmt: skip
        Assert(logic.logical_not(found), [f"{message} : Tensor had {kinds} values"])
    return unary.identity(x)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """`check_numerics` under another name."""
    return check_numerics(x, message)


# -- dtypes --------------------------------------------------------------------------------------


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise TypeError unless x has an integer dtype."""
    dtype = convert_to_tensor(x).dtype
    if not dtype.is_integer:
        raise TypeError(_here(_with(message, f"an integer is expected, not {dtype.name}")))


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> None:
    """Raise TypeError unless the tensor has this dtype."""
    dtype, wanted = convert_to_tensor(tensor).dtype, dtypes.as_dtype(tf_type)
    if dtype is not wanted:
        raise TypeError(_here(_with(message, f"{wanted.name} is expected, not {dtype.name}")))


def assert_same_float_dtype(tensors: Iterable[Any] | None = None, dtype: Any = None) -> DType:
    """The one floating dtype of all tensors, and of `dtype` if it is given; float32 for none.

    Raises:
        ValueError: they differ or are not floating.
    """
    found = [] if dtype is None else [dtypes.as_dtype(dtype)]
    found += [
        dtypes.as_dtype(t.dtype) if hasattr(t, "dtype") else convert_to_tensor(t).dtype
        for t in tensors or ()
    ]
    wanted = found[0] if found else dtypes.float32
    if any(d is not wanted for d in found) or not wanted.is_floating:
        names = ", ".join(d.name for d in found)
        raise ValueError(_here(f"one floating dtype is expected, not {names}"))
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether this is a tensor of integers, floats or complex numbers."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def assert_proper_iterable(values: Any) -> None:
    """Raise TypeError for what cannot be iterated over, for tensors, arrays and strings."""
    if isinstance(values, Tensor | np.ndarray | bytes | str):
        raise TypeError(_here(f"a list or tuple is expected, not a {type(values).__name__}"))
    if not hasattr(values, "__iter__"):
        raise TypeError(_here(f"an iterable is expected, not {type(values).__name__}"))


# -- ranks and shapes ----------------------------------------------------------------------------


def _check_rank(x: Any, holds: bool, wanted: str, message: str | None) -> None:
    if not holds:
        raise ValueError(_here(_with(message, _other_rank(x, wanted))))


def _other_rank(x: Any, wanted: str) -> str:
    return f"a tensor of rank {wanted} is expected, not one of shape {x.shape}"


def _require_rank(
    x: Tensor, ranks: Sequence[int | Tensor], relation: _Relation, wanted: str, message: str | None
) -> None:
    """Raise ValueError unless the rank is in a relation to one of `ranks`; those that only a run
    tells are compared by the run."""
    of_run = [rank for rank in ranks if isinstance(rank, Tensor)]
    holds = any(relation(x.ndim, rank) for rank in ranks if not isinstance(rank, Tensor))
    if holds or not of_run:
        return _check_rank(x, holds, wanted, message)
    any_holds = functools.reduce(logic.logical_or, [relation(x.ndim, rank) for rank in of_run])
    _require(any_holds, of_run, _with(message, _other_rank(x, wanted)), None)


def _rank_of(rank: Any) -> int | Tensor:
    """A rank as an int; as a tensor where only a run tells it."""
    if has_dtype(rank):
        rank = convert_to_tensor(rank)
    known = _known(rank) if isinstance(rank, Tensor) else np.asarray(rank)
    if known is None:
        axes, is_integer = rank.ndim, rank.dtype.is_integer
    else:
        axes, is_integer = known.ndim, np.issubdtype(known.dtype, np.integer)
    if axes:
        raise ValueError(_here(f"a rank is one number, not {rank!r}"))
    if not is_integer:
        raise TypeError(_here(f"a rank is an integer, not {rank!r}"))
    return rank if known is None else int(known)


def _known(tensor: Tensor) -> Any:
    return known_value(tensor.value, {}) if isinstance(tensor, SymbolicTensor) else tensor.numpy()


def _shown(rank: int | Tensor) -> str:
    return "that a run tells" if isinstance(rank, Tensor) else str(rank)


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless x has this rank; InvalidArgumentError where only a run tells it."""
    wanted = _rank_of(rank)
    _require_rank(convert_to_tensor(x), [wanted], operator.eq, _shown(wanted), message)


def assert_rank_at_least(
    x: Any, rank: Any, message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError if x has a smaller rank; InvalidArgumentError where only a run tells it."""
    least = _rank_of(rank)
    wanted = f"{_shown(least)} or more"
    _require_rank(convert_to_tensor(x), [least], operator.ge, wanted, message)


def assert_rank_in(
    x: Any, ranks: Iterable[Any], message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError unless the rank of x is among `ranks`; InvalidArgumentError where only a run
    tells these."""
    allowed = [_rank_of(r) for r in ranks]
    wanted = " or ".join(map(_shown, allowed))
    _require_rank(convert_to_tensor(x), allowed, operator.eq, wanted, message)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless the tensor has rank 0."""
    value = convert_to_tensor(tensor)
    _check_rank(value, value.ndim == 0, "0", message)


def assert_shapes(
    shapes: Mapping[Any, Any] | Iterable[tuple[Any, Any]], data: Sequence[Any] | None = None,
    summarize: int | None = None, message: str | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Check the shapes of several tensors against one another.

        td.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", 3)), (z, (..., "Q"))])

    Args:
        shapes: pairs of a tensor and its dims: an int; a name, which stands for one size in all of
            them; None or "." for any size. ``...`` or "*" as the first one stands for any number of
            axes. A number may stand where one dim is given: its size is 1.
        data: shown by the error of an open dim; the shape by default.

    Raises:
        ValueError: a rank or a known dim does not fit. An open one that does not raises
            InvalidArgumentError when the program runs.
    """
    sizes: dict[Any, tuple[Any, str]] = {}  # name or number -> its size, and where it was found
    pairs = list(shapes.items() if isinstance(shapes, Mapping) else shapes)
    for number, (given, wanted) in enumerate(pairs):
        x = convert_to_tensor(given)
        label = f"tensor {number} of shape {x.shape}"
        if not isinstance(wanted, Iterable):
            text = f"{label}: the wanted shape must be iterable, not {wanted!r}"
            raise ValueError(_here(_with(message, text)))
        dims = tuple(wanted)
        if any(d in (..., "*") for d in dims[1:]):
            text = f"{label}: ... and * stand only at the beginning of {dims}"
            raise ValueError(_here(_with(message, text)))
        some = bool(dims) and dims[0] in (..., "*")
        own = dims[1:] if some else dims
        if x.ndim == 0 and len(own) == 1:
            x = reshape_to(x, (1,))
        fits = x.ndim >= len(own) if some else x.ndim == len(own)
        _check_rank(x, fits, f"{len(own)}{' or more' if some else ''}", message)
        for axis, symbol in enumerate(own, x.ndim - len(own)):
            if symbol is None or symbol == ".":
                continue
            known = isinstance(symbol, int | np.integer)
            first = (int(symbol), "the given size") if known else None
            size, place = sizes.setdefault(
                symbol, first or (x.dims[axis], f"dim {axis} of {label}")
            )
            text = _with(message, f"dim {axis} of {label} must be {size} ({place})")
            _check_dim(x, axis, size, data, text, summarize)


def _check_dim(
    x: Tensor, axis: int, size: Any, data: Sequence[Any] | None, text: str, summarize: int | None
) -> None:
    dim = x.dims[axis]
    if dim == size:
        return
    if isinstance(dim, int) and isinstance(size, int):
        raise ValueError(_here(text))
    holds = comparison.equal(dims_tensor(dim, dtypes.int64), dims_tensor(size, dtypes.int64))
    Assert(holds, [text, *(data or [shape_of(x)])], summarize)
