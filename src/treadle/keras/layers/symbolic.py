"""Layers called on `keras.Input`: what was called on what, for models made of such calls."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

import treadle as td
from treadle.keras.layers.arguments import only_shapes
from treadle.keras.layers.input_spec import check_inputs
from treadle.keras.masks import mask_of, set_mask

if TYPE_CHECKING:
    from treadle.keras.layers.base import Layer


class NoValuesError(TypeError, ValueError):
    """A KerasTensor was used as if it had values. Keras raises one or the other of these."""


class NotIterableError(NotImplementedError, TypeError):
    """A KerasTensor was iterated over. Keras raises the first of these, Python the second one."""


class KerasTensor:
    """A result of a layer that was called on `keras.Input`: a shape and a dtype, no values.

    Arithmetic, comparisons and indexing give further ones, as functions of `keras.ops` do:
    `keras.ops` gives the class these operators. Functions of `td` take tensors: put them into a
    Layer, or into ``keras.layers.Lambda``.
    """

    def __init__(
        self, shape: Any, dtype: Any = "float32", sparse: bool = False, ragged: bool = False,
        record_history: bool = True, name: str | None = None, *,
        ragged_rank: int | None = None, row_splits_dtype: Any = None,
    ) -> None:  # fmt: skip
        if sparse and ragged:
            raise ValueError(
                "KerasTensor cannot have `sparse=True` and `ragged=True` at the same time."
            )
        self._sparse, self._ragged = bool(sparse), bool(ragged)
        self.ragged_rank, self.row_splits_dtype = ragged_rank, row_splits_dtype
        self._shape = td.TensorShape(shape)
        self._dtype = td.as_dtype(dtype)
        self._name = name
        self.node: Node | None = None
        self.mask: td.TensorSpec | None = None  # of the mask that its value will have

    @property
    def shape(self) -> td.TensorShape:
        """The shape."""
        return self._shape

    @property
    def dtype(self) -> td.DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def sparse(self) -> bool:
        """Whether the value will be a sparse tensor."""
        return self._sparse

    @property
    def ragged(self) -> bool:
        """Whether the value will be a ragged tensor."""
        return self._ragged

    @property
    def name(self) -> str:
        """The given name, or that of the layer."""
        if self._name is None and self.node is not None:
            return str(self.node.layer.name)
        return self._name or "keras_tensor"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def get_shape(self) -> td.TensorShape:
        """The shape."""
        return self.shape

    def _refuse(self, use: str, kind: type[Exception] = NoValuesError) -> NoReturn:
        raise kind(
            f"{self!r} has no values, so it cannot be {use}: it stands for what a model will "
            "compute. Use functions of keras.ops, or put functions of tensors into a Layer or into "
            "keras.layers.Lambda(lambda x: ...)"
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._refuse("taken as an array or tensor")

    def __bool__(self) -> NoReturn:
        self._refuse("a condition")

    def __iter__(self) -> NoReturn:
        self._refuse("iterated over", NotIterableError)

    def __len__(self) -> NoReturn:
        self._refuse("measured with len(): use .shape")

    def __float__(self) -> NoReturn:
        self._refuse("a Python number")

    __int__ = __index__ = __float__

    def __repr__(self) -> str:
        kind = ", sparse=True" * self.sparse + ", ragged=True" * self.ragged
        return (
            f"<KerasTensor shape={tuple(self.shape.as_list())}, dtype={self.dtype.name}{kind}, "
            f"{self.name}>"
        )

    @property
    def spec(self) -> Any:
        """The type of the values that it stands for."""
        if self.sparse:
            return td.SparseTensorSpec(self.shape, self.dtype)
        if self.ragged:
            splits = self.row_splits_dtype or td.int64
            return td.RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, splits)
        return td.TensorSpec(self.shape, self.dtype)

    @classmethod
    def like(cls, value: Any) -> Any:
        """What stands for a value of a layer's results; what has no shape stands for itself."""
        if not hasattr(value, "shape"):
            return value
        rows = {}
        if ragged := hasattr(value, "row_splits"):
            rows = {"ragged_rank": value.ragged_rank, "row_splits_dtype": value.row_splits.dtype}
        sparse = hasattr(value, "dense_shape") and isinstance(value, td.SparseTensor)
        return cls(list(value.shape), value.dtype, sparse, ragged, **rows)


class Node:
    """One call of a layer: its arguments and results, with KerasTensors among them."""

    def __init__(
        self, layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        self.layer, self.structure, self.outputs = layer, (args, kwargs), outputs
        self.leaves = td.nest.flatten(self.structure)
        self.results: list[Any] = td.nest.flatten(outputs)
        for result in self.results:
            if isinstance(result, KerasTensor):
                result.node = self
        layer._call_nodes.append(self)

    @property
    def sources(self) -> list[KerasTensor]:
        """The KerasTensors among the arguments."""
        return [leaf for leaf in self.leaves if isinstance(leaf, KerasTensor)]

    def run(self, values: dict[int, Any]) -> None:
        """Call the layer on the values of its arguments, and note those of its results."""
        leaves = [values[id(x)] if isinstance(x, KerasTensor) else x for x in self.leaves]
        args, kwargs = td.nest.pack_sequence_as(self.structure, leaves)
        found = td.nest.flatten(self.layer(*args, **kwargs))
        # A class whose `__call__` is its own may keep some results to itself.
        values.update((id(k), v) for k, v in zip(self.results, found, strict=False))


def among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a KerasTensor is among the arguments, or a value that takes calls of layers."""
    return any(map(_holds, args)) or any(map(_holds, kwargs.values()))


def _holds(value: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        return any(_holds(leaf) for leaf in td.nest.flatten(value))
    return isinstance(value, KerasTensor) or _takes_calls(value)


def _takes_calls(value: Any) -> bool:
    """Whether calls of layers with a value are its own, as with tensors of graphs of
    `treadle.compat.v1`: its class has a method `call_layer`."""
    return hasattr(type(value), "call_layer")


def call(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make the layer's weights and give KerasTensors for its results, or what the value gives that
    takes calls of layers."""
    taking = next(filter(_takes_calls, td.nest.flatten((args, kwargs))), None)
    if taking is not None:
        return taking.call_layer(layer, args, kwargs)
    outputs = outputs_of(layer, args, kwargs)
    layer._last_output_shape = td.nest.map_structure(
        lambda x: tuple(x.shape) if isinstance(x, KerasTensor) else None, outputs
    )
    return Node(layer, args, kwargs, outputs).outputs


def outputs_of(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """KerasTensors for the results of a layer."""
    if layer._has_spec():
        if not layer.built:
            layer._build_for(args, kwargs)
        with contextlib.suppress(NotImplementedError):
            return layer.compute_output_spec(*args, **kwargs)
    alone = len(args) == 1 and not kwargs and isinstance(args[0], KerasTensor)
    dense = alone and not args[0].sparse and not args[0].ragged
    if dense and layer._has_rule() and not layer._makes_masks():
        outputs = _by_rule(layer, args[0])
        if layer.supports_masking and isinstance(outputs, KerasTensor):
            outputs.mask = args[0].mask
        return outputs
    if args and not layer.built and layer._has_own_build():
        layer._build_for(args, kwargs)  # tensors that it keeps have values then
    return _by_tracing(layer, args, kwargs)


def _by_rule(layer: Layer, source: KerasTensor) -> Any:
    """The result of a layer that gives its output's shape from its input's."""
    shape = tuple(source.shape)
    check_inputs(layer, source)
    if not layer.built:
        layer.build(shape)
        layer.built = True
    return _specs_of(layer.compute_output_shape(shape), layer.compute_dtype)


def _specs_of(shape: Any, dtype: Any) -> Any:
    """KerasTensors for a shape, or for a structure of shapes."""
    if isinstance(shape, dict):
        return {name: _specs_of(inner, dtype) for name, inner in shape.items()}
    if isinstance(shape, list | tuple) and any(isinstance(d, list | tuple) for d in shape):
        return type(shape)(_specs_of(inner, dtype) for inner in shape)
    return KerasTensor(shape, dtype)


def _by_tracing(layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of a layer from tracing its `call`."""
    leaves = td.nest.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, KerasTensor)]
    described: list[Any] = []  # the results, of which a trace's type may know less

    def traced(tensors: list[Any], masks: list[Any]) -> Any:
        filled = list(leaves)
        for place, tensor, mask in zip(places, tensors, masks, strict=True):
            filled[place] = tensor
            if mask is not None:
                set_mask(tensor, mask)
        given, named = td.nest.pack_sequence_as((args, kwargs), filled)
        results = layer._base_call(*given, **named)
        described[:] = [td.nest.map_structure(KerasTensor.like, results)]
        return results, [mask_of(result) for result in td.nest.flatten(results)]

    specs = [leaves[i].spec for i in places]
    masks = [leaves[i].mask for i in places]
    with only_shapes():
        trace = td.function(autograph=False)(traced).get_concrete_function(specs, masks)
    layer._forget_losses()  # they belong to the trace
    _, found = trace.structured_outputs
    (outputs,) = described
    for output, mask in zip(td.nest.flatten(outputs), found, strict=True):
        if isinstance(output, KerasTensor) and mask is not None:
            output.mask = td.TensorSpec(mask.shape, mask.dtype)
    return outputs


def output_shape(layer: Layer, shape: Any) -> Any:
    """The shape of a layer's results for a shape of its inputs, or for a list of shapes."""
    several = bool(shape) and isinstance(shape[0], list | tuple)
    dtype = layer.shape_dtype or layer.compute_dtype
    sources = [KerasTensor(each, dtype) for each in (shape if several else [shape])]
    outputs = outputs_of(layer, (sources if several else sources[0],), {})
    return td.nest.map_structure(lambda x: tuple(x.shape), outputs)


def is_keras_tensor(x: Any) -> bool:
    """Whether x is what `keras.Input`, or a layer called on it, gave."""
    return isinstance(x, KerasTensor)


def get_source_inputs(tensor: KerasTensor) -> list[KerasTensor]:
    """What `keras.Input` gave, of all that the tensor depends on."""
    found: dict[int, KerasTensor] = {}
    waiting, seen = [tensor], {id(tensor)}
    while waiting:
        now = waiting.pop()
        sources = [] if now.node is None else now.node.sources
        if not sources:
            found[id(now)] = now
        new = [source for source in sources if id(source) not in seen]
        seen.update(map(id, new))
        waiting += reversed(new)
    return list(found.values())
