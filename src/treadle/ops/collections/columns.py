"""The values of a structure one after another along a first axis: taken apart, and put together.

A loop over elements takes them from `slices_of`, and collects its results in the arrays of a
`Column`. Tensors are stacked. Ragged and sparse tensors are *pieces*, tensors that differ in their
first sizes, which are joined (`CompositeTensorSpec.pieces`). An extension type says by its encoder
(`__batch_encoder__`) which of these it consists of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeTensor, CompositeTensorSpec
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.ops.collections.lists import list_concat
from treadle.ops.collections.tensor_array import TensorArray
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.requirements import require
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.reshaping import with_dims

# -- taking values apart ---------------------------------------------------------------------------


class Slices:
    """The slices of one value along its first axis.

    Attributes:
        value: the value.
        size: how many slices there are.
        at: gives the slice at a position.
    """

    def __init__(self, value: Any, size: Dim, at: Callable[[Any], Any]) -> None:
        self.value, self.size, self.at = value, size, at

    def checked(self, size: Dim, text: str) -> Slices:
        """The same where there are `size` slices; else an error with `text` when a program runs."""
        if not isinstance(self.value, Tensor) or self.size == size:
            return self
        value = require(self.value, [(self.size, size)], text)
        return Slices(value, size, lambda i: value[i])

    def row_spec(self) -> Any:
        """The type of a slice, of which sizes are left open."""
        if isinstance(self.value, Tensor):
            return self.value.dtype
        spec = _type_of(self.value)
        if isinstance(spec, CompositeTensorSpec):
            return spec.opened().unbatched()
        return _encoder(spec).unbatch(spec)


def slices_of(what: str, value: Any) -> Slices:
    """The slices of a tensor, a ragged or sparse tensor, or an extension type.

    Raises:
        ValueError: it is a scalar.
        TypeError: an extension type cannot be taken apart.
    """
    if isinstance(value, CompositeTensor):
        return Slices(value, value._row_count(), value._row)
    if _is_structure(value):
        return _slices_of_extension(what, value)
    tensor = convert_to_tensor(value)
    if tensor.ndim == 0:
        raise ValueError(
            f"{what}: elements in elems must be 1+ dimensional Tensors, not scalars"
            f"{at(user_origin())}"
        )
    return Slices(tensor, tensor.dims[0], lambda i: tensor[i])


def _slices_of_extension(what: str, value: Any) -> Slices:
    spec = _type_of(value)
    encoder = _encoder(spec)
    if encoder is None:
        raise TypeError(
            f"{what} can not consume {spec!r} inputs: derive the class from "
            f"td.experimental.BatchableExtensionType{at(user_origin())}"
        )
    encoded = encoder.encode(spec, value, minimum_rank=1)
    parts = [slices_of(what, part) for part in nest.flatten(encoded, expand_composites=False)]
    if not parts:
        raise ValueError(f"{what}: {spec!r} holds no tensor{at(user_origin())}")
    text = f"{what}: the tensors of {type(value).__name__} have different numbers of elements"
    parts = [part.checked(parts[0].size, text) for part in parts]
    row = encoder.unbatch(spec)

    def at_position(index: Any) -> Any:
        rows = [part.at(index) for part in parts]
        return encoder.decode(row, nest.pack(encoded, rows, expand_composites=False))

    return Slices(value, parts[0].size, at_position)


def _is_structure(value: Any) -> bool:
    """Whether a leaf of the user's structures is a structure of tensors, as extension types are."""
    return nest.children(value) is not None


def _encoder(spec: Any) -> Any:
    return getattr(getattr(spec, "value_type", None), "__batch_encoder__", None)


# -- putting values together -----------------------------------------------------------------------


class Column:
    """Values of one type that are put together along a new first axis.

    Attributes:
        arrays: what they are written to, value after value.
    """

    arrays: list[TensorArray]

    def parts(self, value: Any) -> list[Any]:
        """What is written to each of the arrays for a value."""
        raise NotImplementedError

    def batch(self, arrays: Sequence[TensorArray]) -> Any:
        """All values, of the arrays after the loop."""
        raise NotImplementedError


def column_of(
    what: str, spec: Any, size: Dim, count: Tensor, infer_shape: bool = True
) -> Column:
    """The column for values of a type.

    Args:
        what: the public function that asks.
        spec: a dtype, or the type of tensors, of ragged or sparse tensors, or of extension types.
        size, count: how many values there are, as a dim and as a tensor.
        infer_shape: whether the tensors among them have one shape.

    Raises:
        TypeError: objects of the type are not put together.
    """
    if isinstance(spec, CompositeTensorSpec):
        return _Joined(what, spec, size, count)
    if _encoder(spec) is not None:
        return _Encoded(what, spec, size, count, infer_shape)
    if isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec):
        raise TypeError(f"{what} can not generate {spec!r} outputs{at(user_origin())}")
    known = spec if isinstance(spec, TensorSpec) else dtypes.as_dtype(spec)
    return _Stacked(known, size, count, infer_shape)


class _Stacked(Column):
    """Tensors of one shape."""

    def __init__(
        self, spec: TensorSpec | DType, size: Dim, count: Tensor, infer_shape: bool
    ) -> None:
        self.size = size
        shape = spec.shape if isinstance(spec, TensorSpec) else None
        dtype = spec.dtype if isinstance(spec, TensorSpec) else spec
        self.arrays = [TensorArray(dtype, count, infer_shape=infer_shape, element_shape=shape)]

    def parts(self, value: Any) -> list[Any]:
        return [value]

    def batch(self, arrays: Sequence[TensorArray]) -> Any:
        (array,) = arrays
        if self.size == 0 and context.recorder is None:  # no value has told the others' shape
            dims = [d if isinstance(d, int) else 0 for d in array.dims_of_elements or ()]
            return zeros((0, *dims), array.dtype)
        return array.stack()


class _Joined(Column):
    """Ragged or sparse tensors."""

    def __init__(self, what: str, spec: CompositeTensorSpec, size: Dim, count: Tensor) -> None:
        self.what, self.spec, self.size = what, spec, size
        self.arrays = [
            TensorArray(piece.dtype, count, infer_shape=False, element_shape=piece.shape)
            for piece in spec.piece_specs()
        ]

    def parts(self, value: Any) -> list[Any]:
        _check(self.what, self.spec, value)
        return self.spec.pieces(value)

    def batch(self, arrays: Sequence[TensorArray]) -> Any:
        joined = [list_concat(a.flow, a.dims_of_elements) for a in arrays]
        lengths = [with_dims(length, (self.size,)) for _, length in joined]
        return self.spec.of_pieces([values for values, _ in joined], lengths, self.size)


class _Encoded(Column):
    """Extension types, as what their encoder makes of them."""

    def __init__(self, what: str, spec: Any, size: Dim, count: Tensor, infer_shape: bool) -> None:
        self.what, self.spec, self.size = what, spec, size
        self.encoder = _encoder(spec)
        self.form = self.encoder.encoding_specs(spec)
        leaves = nest.flatten(self.form, expand_composites=False)
        self.columns = [column_of(what, leaf, size, count, infer_shape) for leaf in leaves]
        self.arrays = [array for column in self.columns for array in column.arrays]

    def parts(self, value: Any) -> list[Any]:
        _check(self.what, self.spec, value)
        encoded = nest.flatten(self.encoder.encode(self.spec, value), expand_composites=False)
        pairs = zip(self.columns, encoded, strict=True)
        return [part for column, leaf in pairs for part in column.parts(leaf)]

    def batch(self, arrays: Sequence[TensorArray]) -> Any:
        given = iter(arrays)
        leaves = [c.batch([next(given) for _ in c.arrays]) for c in self.columns]
        batched = self.encoder.batch(self.spec, self.size if isinstance(self.size, int) else None)
        return self.encoder.decode(batched, nest.pack(self.form, leaves, expand_composites=False))


def _check(what: str, spec: Any, value: Any) -> None:
    if not spec.is_compatible_with(value):
        found = _type_of(value)
        raise ValueError(
            f"{what}: expected `fn` to return a {spec!r}, but it returned a {found!r}. To fix, "
            f"change the `fn_output_signature`{at(user_origin())}"
        )


def _type_of(value: Any) -> Any:
    found = getattr(value, "_type_spec", None)
    return TensorSpec.from_tensor(convert_to_tensor(value)) if found is None else found
