"""Input: where a model that is made of calls of layers begins."""

from __future__ import annotations

import warnings
from typing import Any

import treadle as td
from treadle.keras import config
from treadle.keras.layers.base import Layer
from treadle.keras.layers.symbolic import KerasTensor, Node


class InputLayer(Layer):
    """States the shape and dtype of the examples; passes its input on."""

    def __init__(
        self, shape: Any = None, batch_size: int | None = None, dtype: Any = None,
        sparse: bool | None = None, ragged: bool | None = None, batch_shape: Any = None,
        input_tensor: Any = None, optional: bool = False, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if "input_shape" in kwargs:
            warnings.warn(
                "Argument `input_shape` is deprecated. Use `shape` instead.", stacklevel=2
            )
            shape = kwargs.pop("input_shape")
        batch_shape = kwargs.pop("batch_input_shape", batch_shape)
        if input_tensor is not None:
            given = {"batch_size": batch_size, "shape": shape, "batch_shape": batch_shape}
            _check_like(input_tensor, given | {"dtype": dtype, "sparse": sparse})
            batch_shape, dtype = tuple(input_tensor.shape), input_tensor.dtype
        elif batch_shape is None:
            batch_shape = _batch_shape(shape, batch_size)
        else:
            for what, value in (("shape", shape), ("batch_size", batch_size)):
                if value is not None:
                    raise ValueError(
                        f"You cannot pass both `{what}` and `batch_shape` at the same time."
                    )
        kind = td.as_dtype(dtype or config.floatx())
        super().__init__(name=name, dtype=kind, input_shape=tuple(batch_shape)[1:], **kwargs)
        self.batch_shape = tuple(batch_shape)
        self.optional = bool(optional)
        self.built = True
        made = input_tensor
        if made is None:
            made = KerasTensor(self.batch_shape, kind, bool(sparse), bool(ragged), name=name)
            made._name = self.name
        self.sparse, self.ragged = made.sparse, made.ragged
        Node(self, (), {}, made)

    sparse = ragged = False

    def call(self, inputs: Any = None) -> Any:
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The shape with the batch's size, the dtype, the name, and whether None may be given."""
        return {
            "batch_shape": self.batch_shape, "dtype": self.dtype, "sparse": self.sparse,
            "ragged": self.ragged, "name": self.name, "optional": self.optional,
        }  # fmt: skip


def _batch_shape(shape: Any, batch_size: int | None) -> tuple[int | None, ...]:
    if shape is None:
        raise ValueError(
            "You must pass a `shape` argument. It is the shape of one example, shape=(...); "
            "batch_shape=(...) has the batch's size, too."
        )
    if isinstance(shape, int):  # Keras 2
        shape = (shape,)
    return batch_size, *shape


def _check_like(tensor: Any, given: dict[str, Any]) -> None:
    """Refuse a tensor of an Input that is none, or arguments beside it that say something else."""
    if not isinstance(tensor, KerasTensor):
        raise ValueError(
            "Argument `input_tensor` must be a KerasTensor. Received invalid type: "
            f"input_tensor={tensor} (of type {type(tensor)})"
        )
    batch_shape = tuple(tensor.shape)
    own = {
        "batch_size": batch_shape[:1], "shape": batch_shape[1:], "batch_shape": batch_shape,
        "dtype": tensor.dtype, "sparse": tensor.sparse,
    }  # fmt: skip
    for name, value in given.items():
        if value is None:
            continue
        found = (value,) if name == "batch_size" else value
        fits = own[name] == (tuple(found) if isinstance(own[name], tuple) else found)
        if not fits:
            raise ValueError(
                "When providing the `input_tensor` argument, you cannot provide an incompatible "
                f"`{name}` argument."
            )


def Input(
    shape: Any = None, batch_size: int | None = None, dtype: Any = None,
    sparse: bool | None = None, ragged: bool | None = None, batch_shape: Any = None,
    name: str | None = None, tensor: Any = None, optional: bool = False,
) -> Any:  # fmt: skip
    """The start of a model: calls of layers on it describe the model, Model(inputs, outputs) is it.

    Args:
        shape: of one example; None stands for a size that varies.
        batch_size: None stands for any.
        dtype: of the input, that of layers when omitted.
        name: by which a dict of inputs names it.
        sparse, ragged: whether its values are `td.SparseTensor`, or `td.RaggedTensor`.
        batch_shape: the shape with the batch's size, instead of both.
        tensor: a KerasTensor to begin with, instead of a new one.
        optional: whether models may be given None instead of it, which their layers then get.

    Raises:
        ValueError: no shape is given, or what says the same differs.
    """
    return InputLayer(
        shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name
    ).output
