"""Input: where a model that is made of calls of layers begins."""

from __future__ import annotations

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
        if input_tensor is not None:
            if not isinstance(input_tensor, KerasTensor):
                raise ValueError(
                    "Argument `input_tensor` must be a KerasTensor. Received invalid type: "
                    f"input_tensor={input_tensor} (of type {type(input_tensor)})"
                )
            batch_shape = tuple(input_tensor.shape) if batch_shape is None else batch_shape
            dtype = input_tensor.dtype if dtype is None else dtype
        if batch_shape is not None and (shape is not None or batch_size is not None):
            raise ValueError(
                "You cannot pass `shape` or `batch_size` together with `batch_shape`."
            )
        given = kwargs.pop("input_shape", None) if shape is None else shape
        if batch_shape is not None:
            batch_size, *given = batch_shape
        if isinstance(given, int):  # Keras 2
            given = (given,)
        kind = td.as_dtype(dtype or config.floatx())
        super().__init__(name=name, dtype=kind, input_shape=given, **kwargs)
        self.batch_shape = (batch_size, *(given or ()))
        self.built = True
        if given is not None:
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
        """The shape with the batch's size, the dtype, whether it is sparse or ragged, the name."""
        kinds = {k: True for k in ("sparse", "ragged") if getattr(self, k)}
        own = {"batch_shape": list(self.batch_shape), "dtype": self.dtype, "name": self.name}
        return own | kinds


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
        optional: taken for Keras's programs.

    Raises:
        ValueError: no shape is given.
    """
    if shape is None and batch_shape is None and tensor is None:
        raise ValueError("Input: give the shape of one example, shape=(...), or batch_shape=(...)")
    return InputLayer(
        shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name
    ).output
