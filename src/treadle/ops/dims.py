"""Shapes as values: `td.shape` and the way back from shape tensors to symbolic dims.

While tracing, ``td.shape(x)`` is a tensor whose elements are known as dims. `as_dims` follows a
tensor to the shape ops and constants that it was computed from, so that
``td.reshape(x, [td.shape(x)[0], -1])`` has the static attribute ``shape=(B, 784)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import ANY, Dim, SymbolicDim, TensorShape, compound, fresh_symbol, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, SymbolicTensor, Tensor, lacks_rank
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.conversion import constant, convert_to_tensor, has_dtype, pack
from treadle.ops.elementwise.casting import cast as cast_tensor
from treadle.ops.known_values import known_value
from treadle.ops.lowering import (
    Compute,
    LoopRoutine,
    LowerCall,
    ProgramLoops,
    Structure,
    dim_expr,
    index_expr,
)
from treadle.ops.properties import Refusal
from treadle.ops.registry import OPS, Op, register, run

# -- ops that give dims as tensors ---------------------------------------------------------------


def _select_dim(dims: Sequence[Dim], call: LowerCall, index: Sequence[Index]) -> Expr:
    """The dim at a position, chosen by comparisons: shapes are short."""
    chosen = dim_expr(dims[-1]) if dims else const(0, dtypes.int64)
    for position in range(len(dims) - 2, -1, -1):
        here = apply("eq", index_expr(index[0]), const(position, dtypes.int64))
        chosen = apply("select", here, dim_expr(dims[position]), chosen)
    return cast(chosen, call.out.dtype)


SHAPE = register(
    Op(
        "shape",
        lambda x, *, out_type: TensorSpec((x.rank,), out_type),
        lambda x, *, out_type: np.array(x.shape, out_type.np_dtype),
        lower=Compute(lambda call, i: _select_dim(call.specs[0].dims, call, i), "view"),
        tags=frozenset({"any_elements", "cheap"}),
    )
)
DIM = register(
    Op(
        "dim",
        lambda *, dim, out_type: TensorSpec((), out_type),
        lambda *, dim, out_type: np.array(dim, out_type.np_dtype),
        lower=Compute(lambda call, i: cast(dim_expr(call.attrs["dim"]), call.out.dtype), "view"),
        tags=frozenset({"any_elements", "cheap"}),
    )
)
# An integer as a dim: the result has `dim`, a symbol, as its size and no elements that are read.
# The passes that write it know that the integer is in [least, most].
AS_DIM = register(
    Op(
        "as_dim",
        lambda n, *, dim, least, most: TensorSpec((dim,), dtypes.bool),
        lambda n, *, dim, least, most: np.zeros(int(n), np.bool_),
        lower=Structure.SIZE,
        tags=frozenset({"dynamic"}),
    )
)


def _eager_position(i: NDArray, *, size: int) -> NDArray:
    if not -size <= i < size:
        raise errors.InvalidArgumentError(
            None, None, f"index {int(i)} is out of range for a dim of {size}: [{-size}, {size})"
        )
    return np.array(i + size if i < 0 else i, np.int64)


def _lower_position(call: LowerCall, index: Sequence[Index]) -> Expr:
    place = cast(call.inputs[0](()), dtypes.int64)
    around = apply("add", place, dim_expr(call.attrs["size"]))
    return apply("select", apply("lt", place, const(0, dtypes.int64)), around, place)


# A position on an axis of `size` elements, counted from its start; programs check it.
POSITION = register(
    Op(
        "position",
        lambda i, *, size: TensorSpec((), dtypes.int64),
        _eager_position,
        lower=Compute(_lower_position, "elementwise"),
        refuses=Refusal.OWN_POSITION,
    )
)


def _eager_open_dim(number: NDArray, *, what: str, least: int, most: int | None) -> NDArray:
    _check_size(int(number), what, least, most)
    return np.empty((int(number), 0), np.bool_)


_MOST = (1 << 63) - 1  # what an int64 holds


def _check_size(number: int, what: str, least: int, most: Dim | None, where: str = "") -> None:
    high = most if isinstance(most, int) else _MOST
    if not least <= number <= high:
        few = number < least and high == _MOST
        wanted = f"at least {least}" if few else f"in [{least}, {high}]"
        raise errors.InvalidArgumentError(
            None, None, f"{what} must be {wanted}, not {number}{where}"
        )


# A number that only a run can tell becomes a dim: the result, which has no elements, has a new
# symbol as its first dim, and the attributes and specs of other nodes may use that symbol.
OPEN_DIM = register(
    Op(
        "open_dim",
        lambda number, *, what, least, most: TensorSpec((fresh_symbol("n"), 0), dtypes.bool),
        _eager_open_dim,
        lower=ProgramLoops(LoopRoutine.CHECK_DIM, numbers=True),
        tags=frozenset({"dynamic", "speaks_for_caller", "gives_dim"}),
    )
)


def dims_tensor(dim: Dim, dtype: DType) -> Tensor:
    """The run-time value of a dim as a scalar tensor."""
    if isinstance(dim, int):
        return constant(dim, dtype)
    return run(DIM, dim=dim, out_type=dtype)  # type: ignore[no-any-return]


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The shape as a vector of integers, int32 by default; dims that a trace leaves open are known
    when it runs."""
    x = convert_to_tensor(input)
    dtype = dtypes.as_dtype(out_type or dtypes.int32)
    if not dtype.is_integer:
        text = f"shape: out_type must be an integer dtype, not {dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if lacks_rank(x):
        return cast_tensor(x.extents, dtype)
    if context.recorder is None or all(isinstance(d, int) for d in x.dims):
        return constant(np.array(x.dims, dtype.np_dtype), dtype)
    return run(SHAPE, x, out_type=dtype)  # type: ignore[no-any-return]


def shape_n(
    input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None
) -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape(x, out_type) for x in input]


def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The number of elements, int32 by default."""
    x = convert_to_tensor(input)
    dims = x.elements.dims if lacks_rank(x) else x.dims
    return dims_tensor(product(dims), dtypes.as_dtype(out_type or dtypes.int32))


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes, an int32 scalar."""
    x = convert_to_tensor(input)
    if lacks_rank(x):
        return dims_tensor(x.extents.dims[0], dtypes.int32)
    return constant(x.ndim, dtypes.int32)


# -- from tensors back to dims -------------------------------------------------------------------

# An object array whose elements are ints, SymbolicDims, or None where a value is not known.
Dims = np.ndarray[Any, Any]


def _lift(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Elementwise on object arrays; None where an operand is None."""

    def known(*args: Any) -> Any:
        return None if any(a is None for a in args) else fn(*args)

    return lambda *arrays: np.asarray(np.vectorize(known, otypes=[object])(*arrays), object)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": _lift(lambda a, b: a + b),
    "subtract": _lift(lambda a, b: a - b),
    "multiply": _lift(lambda a, b: a * b),
    "floordiv": _lift(lambda a, b: a // b if b != 0 else None),
    "mod": _lift(lambda a, b: a % b if b != 0 else None),
    "maximum": _lift(lambda a, b: compound("max", a, b)),
    "minimum": _lift(lambda a, b: compound("min", a, b)),
}


def resolve(tensor: Tensor) -> Dims | None:
    """The elements of an integer tensor as dims, None for those that only a run can tell."""
    if not tensor.dtype.is_integer:
        return None
    if not tensor.is_symbolic:
        return tensor._numpy().astype(object)  # type: ignore[no-any-return]
    assert isinstance(tensor, SymbolicTensor)
    return _resolve_value(tensor.value, tensor.recorder)


def _resolve_value(value: Any, recorder: Any) -> Dims | None:
    node = value.node
    if node is None:
        return _resolve_outer(value, recorder)
    if node.op.name == "const":
        array = node.attrs["value"]
        return array.astype(object) if array.dtype.kind in "iu" and array.size < 64 else None
    if node.op.name == "shape":
        return _objects(node.inputs[0].spec.dims)
    if node.op.name == "dim":
        return _objects([node.attrs["dim"]]).reshape(())
    rule = _ARITHMETIC.get(node.op.name) or _MOVES.get(node.op.name)
    most = 1 if node.op.name in _FOLDS else 2  # tables of paddings have two axes
    if rule is None or any(i.spec.rank > most or not i.spec.dtype.is_integer for i in node.inputs):
        known = known_value(value, {})
        return None if known is None else known.astype(object)
    inputs = [_known_or_none(i, recorder) for i in node.inputs]
    if any(i is None for i in inputs):
        return None
    if node.op.name in _ARITHMETIC:
        return np.asarray(rule(*inputs), object)
    # The NumPy implementations move objects as they move numbers.
    return np.asarray(rule(*inputs, **node.attrs), object)


def _known_or_none(value: Any, recorder: Any) -> Dims | None:
    found = _resolve_value(value, recorder)
    if found is None and all(isinstance(d, int) for d in value.spec.dims):
        return np.full(value.spec.dims, None, object)
    return found


def _resolve_outer(param: Any, recorder: Any) -> Dims | None:
    """A captured tensor is what it is outside the region."""
    for outer, inner in recorder.captured.values():
        if inner.value is param and isinstance(outer, Tensor):
            return resolve(outer) if outer.is_symbolic else None
    return None


def _objects(items: Sequence[Any]) -> Dims:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _move(name: str) -> Callable[..., Any]:
    def rule(*inputs: Any, **attrs: Any) -> Any:
        eager = OPS[name].eager
        assert eager is not None
        return eager(*inputs, **attrs)

    return rule


_MOVES: dict[str, Callable[..., Any]] = {
    name: _move(name)
    for name in ("strided_slice", "stack", "concat", "reshape", "identity", "broadcast_to")
}
_MOVES["cast"] = lambda x, dtype: x
_FOLDS: dict[str, Callable[..., Any]] = {
    "reduce_prod": lambda x, axis, keepdims: _fold(lambda a, b: a * b, x, keepdims),
    "reduce_sum": lambda x, axis, keepdims: _fold(lambda a, b: a + b, x, keepdims),
}
_MOVES |= _FOLDS


def _fold(fn: Callable[..., Any], x: Dims, keepdims: bool) -> Dims:
    total = _lift(fn)
    result = x.reshape(-1)[0] if x.size else None
    for item in x.reshape(-1)[1:]:
        result = total(result, item)[()]
    return _objects([result]) if keepdims and x.ndim else _objects([result]).reshape(())


def partial_dims(value: Any, what: str = "shape") -> tuple[Dim | None, ...]:
    """The dims that a shape argument names, None for those that only a run can tell.

    value: a TensorShape, a list of ints and scalar tensors, or an integer tensor of rank 1.
    """
    if isinstance(value, TensorShape):
        if ANY in value.exact or value.rank is None:
            raise ValueError(f"{what}: the shape {value} is not fully known{at(user_origin())}")
        return value.exact
    if has_dtype(value) or isinstance(value, np.ndarray):
        tensor = convert_to_tensor(value)
        _check_integers(tensor, what)
        dims = tensor.dims
        if len(dims) > 1:
            text = f"{what}: a vector of dims is expected, not a tensor of shape {tensor.shape}"
            raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
        found = resolve(tensor)
        if found is None:
            if dims and not isinstance(dims[0], int):
                raise _unknown_length(tensor, f"{what}: ")
            return (None,) * (dims[0] if dims else 1)  # type: ignore[operator]
        return tuple(_exact(d) for d in found.reshape(-1))
    if isinstance(value, list | tuple):
        return tuple(as_dim_value(d, what) for d in in_integers(value))
    return (as_dim_value(value, what),)


def in_integers(sizes: Sequence[Any]) -> Sequence[Any]:
    """Sizes of which tensors of floats are cut to integers: lists are cast as they are packed."""
    if not any(isinstance(s, Tensor) and s.dtype.is_floating for s in sizes):
        return sizes
    return [cast_tensor(s, dtypes.int32) if isinstance(s, Tensor) else s for s in sizes]


def as_dim_value(value: Any, what: str = "dim") -> Dim | None:
    """One dim from an int, a SymbolicDim or a scalar integer tensor; None if a run must tell."""
    if isinstance(value, SymbolicDim):
        return value
    if has_dtype(value) or isinstance(value, np.ndarray):
        tensor = convert_to_tensor(value)
        if tensor.ndim:
            text = f"{what} must be a scalar, not of shape {tensor.shape}{at(user_origin())}"
            raise errors.InvalidArgumentError(None, None, text)
        _check_integers(tensor, what)
        found = resolve(tensor)
        return None if found is None else _exact(found.reshape(-1)[0])
    if value is None or not hasattr(value, "__index__"):
        raise errors.DtypeError(
            None, None, f"{value!r} in a {what} is not an integer{at(user_origin())}"
        )
    return int(value.__index__())


def _check_integers(tensor: Tensor, what: str) -> None:
    if not tensor.dtype.is_integer:
        raise errors.DtypeError(
            None, None,
            f"The {what} must be integers, not {tensor.dtype.name}: {tensor!r}{at(user_origin())}",
        )  # fmt: skip


def _exact(dim: Any) -> Dim | None:
    return dim if dim is None or isinstance(dim, SymbolicDim) else int(dim)


def size_of(value: Any, what: str, least: int = 0, most: Dim | None = None) -> Dim:
    """One dim from an int or a scalar integer tensor; a new symbol where only a run can tell.

    Args:
        what: the op and its argument, for errors: "top_k: k".
        least, most: the limits, both allowed; most None: there is none.

    Raises:
        InvalidArgumentError: a number beyond the limits, or a tensor that is no scalar.
        TypeError: anything but an integer.
    """
    if isinstance(value, SymbolicDim):
        return value
    dim = as_dim_value(value, what)
    if dim is None:
        dim = run(OPEN_DIM, convert_to_tensor(value), what=what, least=least, most=most).dims[0]
    if isinstance(dim, int):
        _check_size(dim, what, least, most, at(user_origin()))
    return dim


def sizes_of(value: Any, what: str) -> tuple[Dim, ...]:
    """The dims that a shape argument names; new symbols for those that only a run can tell.

    Raises:
        InvalidArgumentError: a negative dim.
        ValueError: a tensor whose length, and so the number of dims, is not known while tracing.
    """
    known: Sequence[Any] = partial_dims(value, what)
    if any(d is None for d in known):
        parts = in_integers(value) if isinstance(value, list | tuple) else elements_of(value)
        known = [p if d is None else d for p, d in zip(parts, known, strict=True)]
    return tuple(size_of(d, what) for d in known)


def elements_of(value: Any) -> list[Tensor]:
    """The scalars of an integer vector of known length, or of a scalar."""
    vector = convert_to_tensor(value)
    count = vector.dims[0] if vector.ndim else 0
    if not isinstance(count, int):
        raise _unknown_length(vector)
    return [vector[k] for k in range(count)] if vector.ndim else [vector]


def _unknown_length(vector: Tensor, what: str = "") -> NotYetKnown:
    return NotYetKnown(
        f"{what}the length of {vector!r} is not known while tracing, and it decides "
        f"the number of axes; give the tensor a known length (td.ensure_shape){at(user_origin())}",
        vector.dims[0],
    )


def shape_tensor(value: Any) -> Tensor:
    """A shape argument as an int64 vector."""
    if isinstance(value, list | tuple):
        return pack([number_tensor(d) for d in value])
    return cast_tensor(value, dtypes.int64)


def number_tensor(value: Any) -> Tensor:
    """A dim, a Python integer or an integer tensor as an int64 tensor."""
    if isinstance(value, int | SymbolicDim):
        return dims_tensor(value, dtypes.int64)
    return cast_tensor(value, dtypes.int64)
