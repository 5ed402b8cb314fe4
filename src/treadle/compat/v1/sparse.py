"""``td.compat.v1.sparse``: sparse tensors of graphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1.functions import convert_to_tensor, renamed
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.inputs import placeholder as dense_placeholder
from treadle.compat.v1.inputs import placeholder_with_default
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.recording import give_operators, in_graphs, recorded, writes_into
from treadle.compat.v1.shapes import TensorShape, plain
from treadle.compat.v1.values import (
    ANY_RANKS,
    POSSIBLE_RANKS,
    Composite,
    chosen_session,
    reading,
)
from treadle.core.context import recording, taping
from treadle.core.origin import at, user_origin
from treadle.sparse.tensor import SparseTensorValue


class _SparseKind(type):
    """A sparse tensor is treadle's own where calls are made at once."""

    def __call__(cls, indices: Any, values: Any, dense_shape: Any) -> Any:
        if writes_into(indices, values, dense_shape) is None:
            return td.SparseTensor(indices, values, dense_shape)
        return super().__call__(indices, values, dense_shape)

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, td.SparseTensor)


class SparseTensor(
    Composite, of=td.SparseTensor, fields="indices values dense_shape", value=SparseTensorValue,
    metaclass=_SparseKind,
):  # fmt: skip
    """A sparse tensor of a graph: see `td.SparseTensor`. Runs give and take a
    `SparseTensorValue`."""

    __array_priority__ = 200
    __array_ufunc__ = None

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with get_default_graph().name_scope("SparseTensor"):
            self.indices = convert_to_tensor(indices, td.int64, name="indices")
            self.values = convert_to_tensor(values, name="values")
            self.dense_shape = convert_to_tensor(dense_shape, td.int64, name="dense_shape")
        self._outlined()  # checks the sizes

    dtype = property(lambda self: self.values.dtype)
    graph = property(lambda self: self.values.graph)
    op = property(lambda self: self.values.op)
    name = property(lambda self: self.values.name)

    def fed_parts(self, value: Any) -> tuple[Any, ...]:
        """The tensors that a value is fed for: the shape may be left out where it has a default.

        Raises:
            TypeError: the value is a sparse tensor itself.
        """
        if isinstance(value, SparseTensor):
            raise TypeError(
                "The value of a feed cannot be a tf.SparseTensor object: give a "
                f"tf.SparseTensorValue, or a tuple of arrays{at(user_origin())}"
            )
        has_default = self.dense_shape.op.type == "PlaceholderWithDefault"
        count = 2 if has_default and len(value) == 2 else 3
        return tuple(self.parts_of(self)[:count])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> Any:
        """A sparse tensor of a `SparseTensorValue`; sparse tensors pass through."""
        given = sparse_tensor_value
        return given if isinstance(given, SparseTensor) else cls(*given)

    @property
    def shape(self) -> TensorShape:
        if len(self.dense_shape.readings) > 1:
            return TensorShape(None)
        return TensorShape(self._outlined().shape)

    def _outlined(self) -> Any:
        """What stands for it in the outline, for the first ranks that it may have."""
        ranks = next(iter(self.indices.readings))
        parts = [reading(p, ranks) for p in self.parts_of(self)]
        with recording(parts[0].recorder), taping(()):
            return td.SparseTensor(*parts)

    def get_shape(self) -> TensorShape:
        """The shape, as far as it is known."""
        return self.shape

    @property
    def rank(self) -> int | None:
        return self.shape.rank

    def with_values(self, new_values: Any) -> Any:
        """Other elements at the same places."""
        return self.standing_for([self.indices, convert_to_tensor(new_values), self.dense_shape])

    def consumers(self) -> list[Any]:
        """The operations that take its elements."""
        return self.values.consumers()  # type: ignore[no-any-return]

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Its value in a session, the default one where none is given."""
        chosen = chosen_session(session, self.graph, "evaluate tensor")
        return chosen.run(self, feed_dict)  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        raise TypeError(f"'SparseTensor' object is not iterable{at(user_origin())}")

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


give_operators(SparseTensor)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor that each run is given: a `SparseTensorValue`, or a tuple of indices, values
    and shape, which a known shape makes unnecessary.

    Args:
        shape: None where the rank is unknown, too; None in it for sizes that differ.

    Raises:
        RuntimeError: calls are made at once (`enable_eager_execution`).
    """
    if writes_into() is None:
        raise RuntimeError(
            "tf.sparse_placeholder() is not compatible with eager execution: give the function an "
            f"argument{at(user_origin())}"
        )

    def called(part: str) -> str | None:
        return f"{name}/{part}" if name else None

    sizes, graph = plain(shape), get_default_graph()
    rank = None if sizes is None else len(sizes)
    if sizes is None:
        dense_shape = dense_placeholder(td.int64, [None], called("shape"))
    else:
        with graph.at_root():
            known = td.constant([-1 if d is None else d for d in sizes], td.int64)
            given = recorded(td.identity, "Const", "Const")(known, name=called("shape_default"))
            dense_shape = placeholder_with_default(given, [rank], called("shape"))
            with recording(graph._outline), taping(()):
                dense_shape.readings = {ANY_RANKS: _sizes(graph, sizes)}
    values = dense_placeholder(dtype, [None], called("values"))
    indices = dense_placeholder(td.int64, [None, rank], called("indices"))
    if rank is None:  # one reading of both for each rank that the sparse tensor may have
        with graph.at_root():
            for tensor, first in ((indices, [None]), (dense_shape, [])):
                tensor.readings = {
                    frozenset({(indices.op, r)}): graph.parameter(td.int64, [*first, r])
                    for r in POSSIBLE_RANKS if r
                }  # fmt: skip
    graph.unique_name("SparseTensor")  # TensorFlow opens this scope for it
    return SparseTensor.standing_for([indices, values, dense_shape])  # type: ignore[no-any-return]


def _sizes(graph: Any, sizes: list[int | None]) -> Any:
    """What stands in the outline for sizes of which some are known."""
    each = [
        graph.parameter(td.int64, []) if d is None else td.constant(d, td.int64) for d in sizes
    ]
    return td.stack(each) if each else td.constant([], td.int64)


def _reduction(name: str, function: Callable[..., Any], is_sparse: bool) -> Callable[..., Any]:
    call = graph_function(function, "".join(word.capitalize() for word in name.split("_")))

    def reduce(sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None,
               keep_dims: Any = None, name: str | None = None) -> Any:  # fmt: skip
        axis = renamed(axis, "axis", reduction_axes, "reduction_axes")
        keepdims = renamed(keepdims, "keepdims", keep_dims, "keep_dims")
        return call(sp_input, axis, bool(keepdims), is_sparse, name=name)

    reduce.__name__ = name
    reduce.__doc__ = f"`td.sparse.{function.__name__}`; also by the old names of its arguments."
    return reduce


reduce_sum = _reduction("sparse_reduce_sum", td.sparse.reduce_sum, False)
reduce_sum_sparse = _reduction("sparse_reduce_sum_sparse", td.sparse.reduce_sum, True)
reduce_max = _reduction("sparse_reduce_max", td.sparse.reduce_max, False)
reduce_max_sparse = _reduction("sparse_reduce_max_sparse", td.sparse.reduce_max, True)


def add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two tensors of which one is sparse at least: see `td.sparse.add`."""
    chosen = renamed(threshold, "threshold", thresh, "thresh")
    return graph_function(td.sparse.add)(a, b, 0 if chosen is None else chosen)


def concat(axis: Any, sp_inputs: Any, name: str | None = None, expand_nonconcat_dim: bool = False,
           concat_dim: Any = None, expand_nonconcat_dims: Any = None) -> Any:  # fmt: skip
    """Sparse tensors one behind the other along an axis."""
    expands = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    axis = concat_dim if axis is None else axis
    return graph_function(td.sparse.concat)(axis, list(sp_inputs), expands, name=name)


def split(sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None,
          split_dim: Any = None) -> Any:  # fmt: skip
    """The parts of a sparse tensor along an axis."""
    axis = renamed(axis, "axis", split_dim, "split_dim")
    return graph_function(td.sparse.split)(sp_input, num_split, axis, name=name)


def _merged(ids: Any, values: Any, sizes: list[Any], already_sorted: bool) -> Any:
    columns = [td.cast(x.values, td.int64)[:, None] for x in ids]
    indices = td.concat([ids[0].indices[:, :-1], *columns], 1)
    shape = td.concat([ids[0].dense_shape[:-1], td.cast(td.stack(sizes), td.int64)], 0)
    found = td.SparseTensor(indices, values.values, shape)
    return found if already_sorted else td.sparse.reorder(found)


def merge(sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None,
          already_sorted: bool = False) -> Any:  # fmt: skip
    """The values of one sparse tensor at the places that others name, instead of their last axis.

    Args:
        sp_ids: a sparse tensor of numbers, or a list of them, which are an axis each.
        vocab_size: the size of each new axis.
    """
    several = isinstance(sp_ids, list | tuple)
    ids = list(sp_ids) if several else [sp_ids]
    sizes = list(vocab_size) if several else [vocab_size]
    call = recorded(_merged, "SparseMerge", "SparseMerge")
    return call(ids, sp_values, sizes, already_sorted, name=name)


def _split_strings(source: Any, separators: str, skip_empty: bool) -> Any:
    text = td.convert_to_tensor(source, td.string)
    if len(separators) > 1:  # each of them separates
        kind = "[" + "".join(map(re.escape, separators)) + "]"
        text = td.strings.regex_replace(text, kind, separators[0])
    parts = td.strings.split(text, separators[0])
    if not skip_empty:
        return parts.to_sparse()
    return td.ragged.boolean_mask(parts, parts.with_flat_values(
        td.not_equal(parts.flat_values, "")
    )).to_sparse()  # fmt: skip


def string_split(source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None,
                 result_type: str = "SparseTensor", name: str | None = None) -> Any:
    """The words of strings, a row for each string, as a sparse tensor.

    Args:
        sep, delimiter: the characters each of which separates words; a blank where omitted.

    Raises:
        NotImplementedError: words without separators, or a ragged result are asked for.
    """
    separators = renamed(sep, "sep", delimiter, "delimiter")
    separators = " " if separators is None else separators
    if isinstance(separators, bytes):
        separators = separators.decode()
    if result_type != "SparseTensor" or not isinstance(separators, str) or not separators:
        raise NotImplementedError(
            "string_split gives sparse tensors, with separators that are known: use "
            f"td.strings.split or td.strings.bytes_split in a td.function{at(user_origin())}"
        )
    call = recorded(_split_strings, "StringSplit", "StringSplit")
    return call(source, separators, skip_empty, name=name)


matmul = sparse_dense_matmul = graph_function(
    td.sparse.sparse_dense_matmul, "SparseTensorDenseMatMul"
)
to_dense = graph_function(td.sparse.to_dense, "SparseToDense")

in_graphs(
    _merged,
    _split_strings,
)
__getattr__ = fallback(__name__, "treadle.sparse")
