"""`keras.ops`: conversions, slices, scattered elements, branches and loops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.ops.conversion import is_composite, tensor
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import standardize_dtype

_operation = functools.partial(operation, "core")
_slice = slice  # of Python; `slice` here is the operation


# -- conversions -----------------------------------------------------------------------------------


@_operation("x")
def cast(x: Any, dtype: Any) -> Any:
    """The values in another dtype."""
    return td.cast(x if isinstance(x, td.Tensor) else td.convert_to_tensor(x),
                   standardize_dtype(dtype))  # fmt: skip


@_operation("x")
def saturate_cast(x: Any, dtype: Any) -> Any:
    """The values in another dtype, those beyond its range as its extreme ones."""
    x, kind = tensor(x), standardize_dtype(dtype)
    if kind == "bool":
        return td.cast(td.clip_by_value(td.cast(x, td.float32), 0.0, 1.0), td.bool)
    if x.dtype == td.bool:
        return td.cast(x, kind)
    return td.saturate_cast(x, kind)


@_operation("x")
def convert_to_tensor(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
    """A value as a tensor.

    Args:
        sparse, ragged: False: sparse and ragged tensors are made dense; else they stay.
    """
    found: Any = tensor(x, dtype)
    if sparse is False and isinstance(found, td.IndexedSlices):
        return td.convert_to_tensor(found)
    if sparse is False and hasattr(found, "dense_shape"):
        return td.sparse.to_dense(found)
    if ragged is False and hasattr(found, "row_splits"):
        return found.to_tensor()
    return found


def convert_to_numpy(x: Any) -> Any:
    """The values as an array that may be written to; those of sparse and ragged tensors with zeros
    between them."""
    if isinstance(x, KerasTensor):
        raise ValueError(f"convert_to_numpy: {x!r} has no values")
    return np.array(convert_to_tensor(x, sparse=False, ragged=False) if is_composite(x) else x)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor or a variable."""
    return isinstance(x, td.Tensor | td.Variable)


def shape(x: Any) -> tuple[Any, ...]:
    """The sizes of the axes: ints, tensors in functions where they vary, None of KerasTensors."""
    if isinstance(x, KerasTensor):
        return tuple(x.shape)
    x = tensor(x)
    known = x.shape.as_list()
    if hasattr(x, "row_splits"):
        return tuple(known)  # None where rows differ
    return tuple(td.shape(x)[i] if size is None else size for i, size in enumerate(known))


def dtype(x: Any) -> str:
    """The name of the dtype."""
    return standardize_dtype(x.dtype)


@_operation("variable")
def stop_gradient(variable: Any) -> Any:
    """The same values, as if they were constants."""
    return td.stop_gradient(tensor(variable))


def custom_gradient(f: Callable[..., Any]) -> Any:
    """Decorator: a function that gives its result and the function of its gradient."""
    return td.custom_gradient(f)


# -- parts -----------------------------------------------------------------------------------------


@_operation("inputs", "start_indices")
def slice(inputs: Any, start_indices: Any, shape: Any) -> Any:
    """The part of that shape that begins at the indices."""
    return td.slice(tensor(inputs), start_indices, shape)


@_operation("inputs", "start_indices", "updates")
def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Any:
    """The inputs with a part that begins at the indices replaced."""
    x, new = tensor(inputs), tensor(updates)
    starts = [start_indices[i] for i in range(len(x.shape))]
    sizes = [td.shape(new)[i] if d is None else d for i, d in enumerate(new.shape)]
    limits = [(td.shape(x)[i] if d is None else d) for i, d in enumerate(x.shape)]
    axes = []
    for start, size, limit in zip(starts, sizes, limits, strict=True):
        first = td.clip_by_value(td.cast(start, td.int32), 0, limit - size)
        axes.append(first + td.range(size))
    grid = td.meshgrid(*axes, indexing="ij")
    if not grid:
        return td.cast(new, x.dtype)
    return td.tensor_scatter_nd_update(x, td.stack(grid, -1), td.cast(new, x.dtype))


@_operation("indices", "values")
def scatter(indices: Any, values: Any, shape: Any) -> Any:
    """Zeros of that shape with values at indices; values at one place are added up."""
    return td.scatter_nd(tensor(indices), tensor(values), shape)


@_operation("inputs", "indices", "updates")
def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Any:
    """The inputs with elements at indices replaced, or combined with the updates.

    Args:
        reduction: "add", "max", "min" or "mul"; None replaces.

    Raises:
        ValueError: another reduction.
    """
    x, places = tensor(inputs), tensor(indices)
    new = tensor(updates, x.dtype)
    by_name: dict[Any, Any] = {
        None: td.tensor_scatter_nd_update, "add": td.tensor_scatter_nd_add,
        "max": td.tensor_scatter_nd_max, "min": td.tensor_scatter_nd_min,
    }  # fmt: skip
    if reduction in by_name:
        return by_name[reduction](x, places, new)
    if reduction != "mul":
        raise ValueError(f"Unsupported reduction: {reduction}")
    depth = places.shape[-1]
    sizes = td.shape(x)[:depth]
    strides = td.math.cumprod(sizes, exclusive=True, reverse=True)
    rows = td.reduce_sum(td.cast(places, td.int32) * strides, -1)
    count = td.reduce_prod(sizes)
    products = td.math.unsorted_segment_prod(new, rows, count)
    return x * td.reshape(products, td.shape(x))


@_operation("x")
def unstack(x: Any, num: int | None = None, axis: int = 0) -> Any:
    """The slices along the axis, as a list."""
    return td.unstack(tensor(x), num, axis)


# -- branches and loops ----------------------------------------------------------------------------


@_operation("pred", "true_fn", "false_fn")
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """What one of two functions gives."""
    if isinstance(pred, bool | int):
        return true_fn() if pred else false_fn()
    return td.cond(td.cast(tensor(pred), td.bool), true_fn, false_fn)


@_operation("index", "branches", "operands")
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What the function of that number gives of the operands; the first or last one beyond."""
    number = td.clip_by_value(tensor(index, td.int32), 0, len(branches) - 1)
    return td.switch_case(number, [functools.partial(b, *operands) for b in branches])


@_operation("loop_vars")
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:  # fmt: skip
    """The variables of a loop after it.

    Args:
        cond: whether it goes on, a function of the variables.
        body: gives their next values.
        loop_vars: their first values.
        maximum_iterations: ends it at the latest.
    """
    several = isinstance(loop_vars, tuple | list)

    def step(*values: Any) -> tuple[Any, ...]:
        found = body(*values)
        return tuple(found) if several else (found,)

    first = tuple(loop_vars) if several else (loop_vars,)
    found = td.while_loop(cond, step, first, maximum_iterations=maximum_iterations)
    return tuple(found) if several else found[0]


@_operation("init_val")
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """What repeated calls of ``body_fun(number, value)`` make of the first value."""
    if not td.inside_function() and isinstance(lower, int) and isinstance(upper, int):
        value = td.nest.map_structure(tensor, init_val)
        for number in range(lower, upper):
            value = body_fun(number, value)
        return value
    return td.while_loop(
        lambda i, value: i < upper, lambda i, value: (i + 1, body_fun(i, value)),
        (tensor(lower), init_val),
    )[1]  # fmt: skip


@_operation("f", "xs")
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """What a function gives of each row, as rows of one tensor."""
    xs = td.nest.map_structure(tensor, xs)
    first = f(td.nest.map_structure(lambda x: x[0], xs))
    specs = td.nest.map_structure(lambda x: td.TensorSpec(x.shape, x.dtype), first)
    return td.map_fn(f, xs, fn_output_signature=specs)


@_operation("elements")
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """What a function gives of each row, as rows of one tensor, computed for all rows at once."""
    return td.vectorized_map(function, td.nest.map_structure(tensor, elements))


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Any = None, signature: str | None = None
) -> Callable[..., Any]:
    """A function of single elements as one of tensors, whose shapes are broadcast.

    Args:
        excluded: positions and names of arguments that are passed on as they are.
        signature: the axes that the function takes and gives, as "(n),(n)->()".

    Raises:
        ValueError: `pyfunc` is no function.
    """
    if not callable(pyfunc):
        raise ValueError(
            f"Expected argument `pyfunc` to be a callable. Received: pyfunc={pyfunc}"
        )  # fmt: skip
    left_out = excluded or set()

    @functools.wraps(pyfunc)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in left_out and args[i] is not None]
        xs = [tensor(args[i]) for i in places]
        inner = [0] * len(xs)
        if signature is not None:
            inner = [len(part.strip("() ").split(",")) if part.strip("() ") else 0
                     for part in signature.partition("->")[0].replace("),", ");").split(";")]
        outer = [x.shape[: len(x.shape) - n] for x, n in zip(xs, inner, strict=True)]
        shape = functools.reduce(td.broadcast_static_shape, outer).as_list()
        rows = [
            td.reshape(
                td.broadcast_to(x, [*shape, *x.shape[len(x.shape) - n :]]),
                [-1, *x.shape[len(x.shape) - n :]],
            )
            for x, n in zip(xs, inner, strict=True)
        ]  # fmt: skip

        def called(elements: Any) -> Any:
            given = list(args)
            for place, element in zip(places, elements, strict=True):
                given[place] = element
            return pyfunc(*given, **kwargs)

        found = td.vectorized_map(called, tuple(rows))
        return td.nest.map_structure(
            lambda y: td.reshape(y, [*shape, *td.unstack(td.shape(y))[1:]]), found
        )

    return mapped


def _function(f: Any) -> None:
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")


@_operation("f", "init", "xs")
def scan(
    f: Callable[[Any, Any], Any], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1,
) -> Any:  # fmt: skip
    """What a function carries from row to row, and what it gives beside, as rows.

    Args:
        f: ``f(carry, row)`` gives the next carry, and a row of the results.
        init: the first carry.
        xs: the rows, or None.
        length: how many steps there are.
        reverse: from the last row to the first.
        unroll: accepted: the compiler decides.

    Raises:
        ValueError: neither `xs` nor `length` is given, or `unroll` is no positive int.
        TypeError: `f` is no function.
    """
    _function(f)
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        )  # fmt: skip
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    rows = None if xs is None else td.nest.map_structure(tensor, xs)
    carry = td.nest.map_structure(tensor, init)
    leaves = [] if xs is None else td.nest.flatten(rows)
    count = length if length is not None else shape(leaves[0])[0]

    def row(i: Any) -> Any:
        return None if xs is None else td.nest.map_structure(lambda x: x[i], rows)

    _, like = f(carry, row(0))
    kinds = [] if like is None else td.nest.flatten(like)
    arrays = tuple(td.TensorArray(y.dtype, size=count, element_shape=y.shape)
                   for y in _given(kinds))  # fmt: skip

    def step(i: Any, state: Any, written: Any) -> Any:
        at = count - 1 - i if reverse else i
        state, given = f(state, row(at))
        parts = _given([] if given is None else td.nest.flatten(given))
        new = tuple(a.write(at, part) for a, part in zip(written, parts, strict=True))
        return i + 1, td.nest.map_structure(tensor, state), new

    _, carry, arrays = td.while_loop(
        lambda i, state, written: i < count, step, (td.constant(0), carry, arrays)
    )
    stacked = [array.stack() for array in arrays]
    return carry, td.nest.pack_sequence_as(like, stacked) if kinds else None


def _given(values: list[Any]) -> list[td.Tensor]:
    """The values that are no None as tensors."""
    return [tensor(v) for v in values if v is not None]


@_operation("f", "elems")
def associative_scan(
    f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """What an associative function gives of the elements up to each, combined in pairs.

    Args:
        f: of two structures like `elems`.
        elems: tensors of one size along the axis.
        reverse: from the last element to the first.

    Raises:
        TypeError: `f` is no function.
        ValueError: the sizes differ, or are not known.
    """
    _function(f)
    leaves = [tensor(x) for x in td.nest.flatten(elems)]
    sizes = {x.shape[axis] for x in leaves}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[x.shape for x in leaves]})"
        )
    (count,) = sizes
    leaves = [td.reverse(x, [axis]) for x in leaves] if reverse else leaves

    def part(x: td.Tensor, *bounds: Any) -> td.Tensor:
        front = (_slice(None),) * (axis % len(x.shape))
        return x[(*front, _slice(*bounds))]

    def combined(a: list[Any], b: list[Any]) -> list[Any]:
        pair = (td.nest.pack_sequence_as(elems, a), td.nest.pack_sequence_as(elems, b))
        return [tensor(y) for y in td.nest.flatten(f(*pair))]

    def scanned(xs: list[Any], n: int) -> list[Any]:
        if n < 2:
            return xs
        even = [part(x, 0, n - 1, 2) for x in xs]
        odd = scanned(combined(even, [part(x, 1, None, 2) for x in xs]), n // 2)
        more = (n - 1) // 2
        rest = [part(x, 0, 1) for x in xs]
        if more:
            later = combined([part(o, 0, more) for o in odd], [part(x, 2, None, 2) for x in xs])
            rest = [td.concat([first, y], axis) for first, y in zip(rest, later, strict=True)]
        return [_interleaved(e, o, axis % len(e.shape)) for e, o in zip(rest, odd, strict=True)]

    found = scanned(leaves, count)
    found = [td.reverse(x, [axis]) for x in found] if reverse else found
    return td.nest.pack_sequence_as(elems, found)


def _interleaved(even: td.Tensor, odd: td.Tensor, axis: int) -> td.Tensor:
    """Elements of two tensors in turn; the first may have one more."""
    count = odd.shape[axis]
    front = (_slice(None),) * axis
    pairs = td.stack([even[(*front, _slice(0, count))], odd], axis + 1)
    sizes = shape(even)
    joined = td.reshape(pairs, [*sizes[:axis], 2 * count, *sizes[axis + 1 :]])
    return td.concat([joined, even[(*front, _slice(count, None))]], axis)
