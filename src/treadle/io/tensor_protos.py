"""Arrays as TensorFlow's messages TensorProto, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import as_dtype
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.strings.tensors import packed, unpacked


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:  # fmt: skip
    """A message TensorProto with values.

    Args:
        values: an array, or what converts to a tensor.
        dtype: that of the message; of the values when omitted.
        shape: that of the message. One value is repeated to fill it.
        verify_shape: whether the values must have that shape.
        allow_broadcast: whether other values are repeated, too.

    Raises:
        TypeError: `verify_shape` is set, and the shape is another one.
        ImportError: protobuf is not installed.
    """
    from treadle.compat.graph_messages import message

    tensor = convert_to_tensor(values, dtype)
    array = np.asarray(tensor.numpy(), object if tensor.dtype is dtypes.string else None)
    if shape is not None:
        dims = [int(d) for d in shape]
        if verify_shape and tensor.shape.as_list() != dims:
            raise TypeError(
                f"Expected Tensor's shape: {tuple(dims)}, got {tuple(tensor.shape)}."
                f"{at(user_origin())}"
            )
        repeats = allow_broadcast or array.size == 1
        if array.size == 1:
            array = array.reshape(())
        array = np.broadcast_to(array, dims) if repeats else array.reshape(dims)
    return message("TensorProto").FromString(packed(array, as_dtype(tensor.dtype)))


def make_ndarray(tensor: Any) -> NDArray:
    """The array that a message TensorProto stands for."""
    found, _ = unpacked(tensor.SerializeToString())
    return found
