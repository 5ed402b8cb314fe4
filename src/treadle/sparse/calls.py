"""What public functions do with sparse tensors. Importing this module completes the class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.errors import DtypeError
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed
from treadle.core.tensor import Tensor
from treadle.ops.control import io
from treadle.ops.conversion import register_converter
from treadle.ops.dims import rank, shape, size
from treadle.ops.elementwise import arithmetic, casting, unary
from treadle.ops.nn.activations import relu
from treadle.ops.reductions.reduction import reduce_prod
from treadle.ops.statistics.histograms import bincount
from treadle.ops.variable_casts import cast
from treadle.sparse.counts import dense_counts
from treadle.sparse.tensor import SparseTensor
from treadle.sparse.values import with_dense

# Functions that give zero for zero: of the elements alone.
_OF_ELEMENTS = (
    unary.abs, unary.negative, unary.sign, unary.square, unary.sqrt, unary.tanh, unary.sin,
    unary.tan, unary.erf, unary.floor, unary.ceil, unary.round, unary.expm1, unary.log1p, relu,
    unary.identity, cast,
)  # fmt: skip


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A public function's call with a sparse tensor among its arguments.

    Raises:
        DtypeError: the function has no form for sparse tensors.
    """
    own = inspect.unwrap(function)
    form = _FORMS.get(own)
    if form is None:
        raise DtypeError(
            None, None,
            f"{own.__name__} does not take sparse tensors: use td.sparse.to_dense(x), or the "
            f"functions of td.sparse{at(user_origin())}",
        )  # fmt: skip
    return form(*args, **kwargs)


def _claim(value: SparseTensor, dtype: Any) -> Any:
    raise Claimed(
        "A sparse tensor is no tensor: use td.sparse.to_dense(x), or the functions of td.sparse"
        f"{at(user_origin())}",
        call,
    )


register_converter(SparseTensor, _claim)


def _of_elements(function: Callable[..., Any]) -> Callable[..., Any]:
    def form(x: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return x.with_values(function(x.values, *args, **kwargs))

    return form


def _sparse_and_dense(function: Callable[..., Any]) -> Callable[..., Any]:
    def form(x: Any, y: Any, name: str | None = None) -> SparseTensor:
        if isinstance(x, SparseTensor) and isinstance(y, SparseTensor):
            raise TypeError(
                f"{function.__name__} of two sparse tensors is not provided: use "
                f"td.sparse.map_values, or td.sparse.to_dense for one{at(user_origin())}"
            )
        if isinstance(x, SparseTensor):
            return with_dense(function, x, y)
        if function is not arithmetic.multiply:
            raise TypeError(
                f"{function.__name__} by a sparse tensor is not defined: use td.sparse.to_dense"
                f"{at(user_origin())}"
            )
        return with_dense(function, y, x)

    return form


def _rank(input: SparseTensor, name: str | None = None) -> Tensor:
    return size(input.dense_shape)


def _shape(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    return casting.cast(input.dense_shape, dtypes.int32 if out_type is None else out_type)


def _size(input: SparseTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    wanted = dtypes.int32 if out_type is None else out_type
    return reduce_prod(casting.cast(input.dense_shape, wanted))


def _print(*inputs: Any, **kwargs: Any) -> None:
    parts: list[Any] = []
    for value in inputs:
        if isinstance(value, SparseTensor):
            parts += ["SparseTensor(indices=", value.indices, ", values=", value.values]
            parts += [", shape=", value.dense_shape, ")"]
        else:
            parts.append(value)
    io.print(*parts, **kwargs)


_FORMS: dict[Any, Callable[..., Any]] = {
    **{function: _of_elements(function) for function in _OF_ELEMENTS},
    **{f: _sparse_and_dense(f) for f in (arithmetic.multiply, arithmetic.divide)},
    bincount: dense_counts,
    rank: _rank,
    shape: _shape,
    size: _size,
    io.print: _print,
}


def _multiply(self: SparseTensor, other: Any) -> SparseTensor:
    return _FORMS[arithmetic.multiply](self, other)  # type: ignore[no-any-return]


def _divide(self: SparseTensor, other: Any) -> SparseTensor:
    return _FORMS[arithmetic.divide](self, other)  # type: ignore[no-any-return]


def _negate(self: SparseTensor) -> SparseTensor:
    return self.with_values(unary.negative(self.values))


def install() -> None:
    methods: dict[str, Any] = {
        "__mul__": _multiply, "__rmul__": _multiply, "__truediv__": _divide, "__neg__": _negate,
    }  # fmt: skip
    for name, method in methods.items():
        setattr(SparseTensor, name, method)


install()
