"""Functions of tensors on sparse ones, as Keras has them: sparse where zeros stay zeros."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import treadle as td

Function = Callable[..., Any]


def is_sparse(x: Any) -> bool:
    """Whether it is a `td.SparseTensor`."""
    return isinstance(x, td.SparseTensor)


def dense(x: Any) -> Any:
    """A sparse tensor with its zeros; other values as they are."""
    return td.sparse.to_dense(x) if is_sparse(x) else x


def taking_sparse(name: str, function: Function) -> Function:
    """A function of tensors that may be given sparse ones, too.

    Args:
        name: what `keras.ops` calls it, which says whether results are sparse.
        function: of dense tensors. Where Keras has no such function of sparse ones, it is given
            back as it is.
    """
    rule = _RULES.get(name)
    if rule is None:
        return function

    @functools.wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_sparse, args)):
            return rule(function, *args, **kwargs)
        return function(*args, **kwargs)

    return taking


def _made_dense(function: Function, *args: Any, **kwargs: Any) -> Any:
    return function(*map(dense, args), **kwargs)


def _of_elements(function: Function, x: Any, *args: Any, **kwargs: Any) -> Any:
    return td.sparse.map_values(lambda values: function(values, *args, **kwargs), x)


def _of_places(function: Function, x: Any, *args: Any) -> Any:
    """A function of `td.sparse` of the same name."""
    return getattr(td.sparse, function.__name__)(x, *args)


def _union(joined: Function) -> Function:
    """Of two sparse tensors what `joined` gives, which has the places of both."""

    def rule(function: Function, a: Any, b: Any) -> Any:
        return joined(a, b) if is_sparse(a) and is_sparse(b) else _made_dense(function, a, b)

    return rule


def _product(function: Function, a: Any, b: Any) -> Any:
    if not is_sparse(a):
        return _product(lambda x, y: function(y, x), b, a)
    beside = td.gather_nd(td.broadcast_to(dense(b), a.dense_shape), a.indices)
    return td.sparse.map_values(lambda values: function(values, beside), a)


def _quotient(function: Function, a: Any, b: Any) -> Any:
    if is_sparse(b):
        return _made_dense(function, a, b)
    if not len(getattr(b, "shape", ())):
        return _of_elements(function, a, b)
    return td.sparse.from_dense(_made_dense(function, a, b))  # 0 / 0 is a place, too


def _matmul(function: Function, a: Any, b: Any) -> Any:
    if not is_sparse(a):
        b = td.sparse.transpose(b)
        return td.transpose(td.sparse.sparse_dense_matmul(b, td.transpose(a)))
    found = td.sparse.sparse_dense_matmul(a, dense(b))
    return td.sparse.from_dense(found) if is_sparse(b) else found


_FILLING = "arccos arccosh cos cosh exp exp2 isfinite log log10 log2 reciprocal"
_OF_ELEMENTS = (
    "absolute fabs arcsin arcsinh arctan arctanh ceil conjugate copy expm1 floor imag log1p "
    "negative real round sign signbit sin sinh sqrt square tan tanh trunc"
)
_RULES: dict[str, Function] = {
    "add": _union(td.sparse.add), "maximum": _union(td.sparse.maximum),
    "minimum": _union(td.sparse.minimum),
    "subtract": _union(lambda a, b: td.sparse.add(a, td.sparse.map_values(td.negative, b))),
    "multiply": _product, "divide": _quotient, "true_divide": _quotient, "matmul": _matmul,
    **dict.fromkeys(_FILLING.split(), _made_dense),
    **dict.fromkeys(_OF_ELEMENTS.split(), _of_elements),
    **dict.fromkeys(("reshape", "transpose", "expand_dims"), _of_places),
}  # fmt: skip

reshape = taking_sparse("reshape", td.reshape)
transpose = taking_sparse("transpose", td.transpose)
expand_dims = taking_sparse("expand_dims", td.expand_dims)


def concat(tensors: Any, axis: int) -> Any:
    """The tensors one after the other: sparse where all of them are."""
    if all(map(is_sparse, tensors)):
        return td.sparse.concat(axis, tensors)
    return td.concat([dense(x) for x in tensors], axis)
