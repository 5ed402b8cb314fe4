"""How tensors and variables print: exactly as TensorFlow prints them."""

from __future__ import annotations

from typing import Any

from treadle.core.context import context
from treadle.core.list_value import ListValue
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.state import Variable


def value_text(array: NDArray | ListValue, is_repr: bool) -> str:
    """The elements as NumPy prints them, on lines of their own if there are several."""
    if isinstance(array, ListValue):
        return repr(array)
    if array.ndim == 0:
        return repr(array.item()) if is_repr else str(array[()])
    text = repr(array) if is_repr else str(array)
    # Dtypes that are not NumPy's, such as bfloat16, may write themselves in another way.
    text = text.replace(f"dtype={array.dtype!r})", f"dtype={array.dtype.name})")
    return "\n" + text if "\n" in text else text


def tensor_str(tensor: Tensor) -> str:
    """``tf.Tensor([1 2 3], shape=(3,), dtype=int32)``."""
    text = value_text(tensor._numpy(), is_repr=False)
    return f"tf.Tensor({text}, shape={tensor.shape}, dtype={tensor.dtype.name})"


def tensor_repr(tensor: Tensor) -> str:
    """``<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>``."""
    text = value_text(tensor._numpy(), is_repr=True)
    return f"<tf.Tensor: shape={tensor.shape}, dtype={tensor.dtype.name}, numpy={text}>"


def tensor_format(tensor: Any, spec: str) -> str:
    """f-strings show the elements only; a format spec applies to the number of a scalar."""
    if tensor.is_symbolic:
        return format(str(tensor), spec)
    array = tensor._numpy()
    return format(array.item() if spec and not array.ndim else str(array), spec)


def variable_repr(variable: Variable) -> str:
    """``<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>``, and
    ``<Variable path=dense/bias, shape=(2,), dtype=float32, value=[1. 2.]>`` of Keras's."""
    if variable.path is not None:
        shape, dtype = tuple(variable.shape), variable.dtype.name
        head = f"<Variable path={variable.path}, shape={shape}, dtype={dtype}"
        return f"{head}>" if context.recorder is not None else f"{head}, value={variable._numpy()}>"
    head = f"<tf.Variable '{variable.name}' shape={variable.shape} dtype={variable.dtype.name}"
    if context.recorder is not None:
        return head + ">"  # the value is only known when the function runs
    return f"{head}, numpy={value_text(variable._numpy(), is_repr=True)}>"


def install() -> None:
    """Put the texts on Tensor and Variable; SymbolicTensor has its own."""
    setattr(Tensor, "__str__", tensor_str)  # noqa: B010
    setattr(Tensor, "__repr__", tensor_repr)  # noqa: B010
    setattr(Tensor, "__format__", tensor_format)  # noqa: B010
    setattr(Variable, "__repr__", variable_repr)  # noqa: B010
