"""Tensors and NumPy: `np.asarray` without a copy, NumPy functions on tensors, DLPack.

NumPy functions applied to eager tensors give ndarrays, but tensors where a tape watches an
argument, so that no gradient is lost. Applied to symbolic tensors they go into the graph: see
`staging`, which is imported when that first happens.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from treadle.core.context import context
from treadle.core.devices import HOST, all_devices
from treadle.core.dtypes import bfloat16
from treadle.core.origin import at, user_origin
from treadle.core.tensor import (
    DeviceTensor,
    NDArray,
    SymbolicTensor,
    Tensor,
    buffer_of,
    from_array,
    from_buffer,
)  # fmt: skip
from treadle.numpy_staging import tensor_methods
from treadle.ops.numbers.python_numbers import SymbolicNumber, apply, numpy_rules
from treadle.ops.operators import in_place
from treadle.ops.state import Variable


def read_only(array: NDArray) -> NDArray:
    """A view that cannot be written: a tensor never changes under its holder."""
    view = array.view()
    view.flags.writeable = False
    return view


def tensor_array(tensor: Any, dtype: Any = None, copy: bool | None = None) -> NDArray:
    """``np.asarray(tensor)``: shares the elements, read-only; a copy where one is asked for.

    Raises:
        NotImplementedError: the tensor is symbolic.
        ValueError: ``copy=False`` with another dtype.
    """
    if tensor.is_symbolic:
        raise tensor.no_value("read by NumPy")
    return _as_array(tensor._numpy(), dtype, copy)


def _as_array(array: NDArray, dtype: Any, copy: bool | None) -> NDArray:
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError(f"a copy is needed to convert {array.dtype} to {np.dtype(dtype)}")
        return array.astype(dtype)
    return array.copy() if copy else read_only(array)


def variable_array(variable: Variable, dtype: Any = None, copy: bool | None = None) -> NDArray:
    """``np.asarray(variable)``: a snapshot that later assignments do not change."""
    if context.recorder is not None:
        raise NotImplementedError(
            f"Variable {variable.name!r} cannot be read by NumPy inside a function: its value is "
            f"only known when the function runs; use td operations{at(user_origin())}"
        )
    return _as_array(variable._numpy(), dtype, copy)


_DLPACK_CPU = 1, 0  # the protocol's number of the kind of device, and the device's


def tensor_dlpack(tensor: Any, **kwargs: Any) -> Any:
    """Another library's view of the elements, which it must not write to. Where the library asks
    for them on the host, as ``np.from_dlpack(x, device="cpu")`` does, tensors of other devices are
    copied."""
    if tensor.is_symbolic:
        raise tensor.no_value("exported with DLPack")
    array = exported(tensor)
    if array is not None:
        if kwargs.get("dl_device") != _DLPACK_CPU:
            return array.__dlpack__(**kwargs)
        kwargs.pop("dl_device")
    array = tensor._numpy()
    if not array.flags.writeable and "max_version" not in kwargs:
        array = array.copy()  # the old protocol has no way to say read-only
    return array.__dlpack__(**kwargs)


def tensor_dlpack_device(tensor: Any) -> tuple[int, int]:
    """DLPack's numbers of the kind of device and of the device."""
    array = None if tensor.is_symbolic else exported(tensor)
    return _DLPACK_CPU if array is None else array.__dlpack_device__()


def exported(tensor: Any) -> Any:
    """The elements as an array of the library of the tensor's device; None where that is NumPy."""
    device = tensor.spec.device
    return None if device is HOST else device.storage.exported(buffer_of(tensor, device))


def cuda_array(tensor: Any) -> Any:
    """``__cuda_array_interface__``, by which CuPy and Numba read tensors of a GPU without a copy.

    Raises:
        AttributeError: the tensor is not on a GPU, or its dtype is none that the protocol knows.
    """
    if not tensor.is_symbolic and tensor.spec.device.kind == "GPU":
        if tensor.dtype is bfloat16:
            raise AttributeError(
                "__cuda_array_interface__ knows no bfloat16: use DLPack, as in from_dlpack(x)"
            )
        return exported(tensor).__cuda_array_interface__
    raise AttributeError(f"{tensor!r} is not on a GPU: it has no __cuda_array_interface__")


def from_dlpack(external: Any) -> Tensor:
    """A tensor over another library's array, on the same device and without a copy where its
    layout allows.

    The array must not be written to afterwards.

    Raises:
        BufferError: it is on a device that no tensor can be on.
    """
    kind, number = external.__dlpack_device__()
    if (int(kind), number) == _DLPACK_CPU:
        return from_array(np.from_dlpack(external))
    for device in all_devices():
        buffer = device.storage.imported(external)
        if buffer is not None:
            return from_buffer(buffer, device)
    raise BufferError(f"no device of treadle is DLPack's device ({int(kind)}, {number})")


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    from treadle.numpy_staging.staging import applies_operator, array_ufunc

    frame = sys._getframe(1)
    operator = applies_operator(frame, ufunc)
    if operator and kwargs.get("out"):  # array += tensor
        in_place.note(inputs[0], frame)
    return array_ufunc(ufunc, method, inputs, kwargs, operator)


def _variable_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Inside a function the variable's value is read there; outside it is an array, but where a
    tape watches."""
    from treadle.numpy_staging.staging import any_watched, applies_operator, array_ufunc, reflected

    operator = applies_operator(sys._getframe(1), ufunc)
    if context.recorder is not None or any_watched(inputs):
        return array_ufunc(ufunc, method, inputs, kwargs, operator)
    name = reflected(ufunc) if operator and method == "__call__" else None
    if name is not None and isinstance(inputs[1], Tensor | Variable):
        return getattr(inputs[1], name)(inputs[0])
    arrays = (np.asarray(x) if isinstance(x, Tensor | Variable) else x for x in inputs)
    return getattr(ufunc, method)(*arrays, **kwargs)


def _array_wrap(self: Any, array: NDArray, call: Any = None, return_scalar: bool = False) -> Any:
    """What a ufunc gives for eager tensors: NumPy's result, but a tensor where a tape watches.

    NumPy has computed it already, from the tensors' arrays. (With ``__array_ufunc__`` operators of
    NumPy's numbers would no longer leave tensors to `Tensor`.)
    """
    from treadle.numpy_staging.staging import any_watched, array_ufunc, without_gradient
    from treadle.numpy_staging.ufuncs import UFUNCS

    if context.tapes and any_watched((self, call[1] if call else ())):
        if call is None or call[0] not in UFUNCS:
            return without_gradient(call[0].__name__ if call else "ufunc.reduce", array)
        found = array_ufunc(call[0], "__call__", call[1][: call[0].nin], {}, False)
        return found[call[2]] if isinstance(found, tuple) else found
    return array[()] if return_scalar else array


def _array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    from treadle.numpy_staging.staging import array_function

    return array_function(func, args, kwargs)


def _number_ufunc(
    self: SymbolicNumber, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
) -> Any:
    if numpy_rules.call is not None and method == "__call__":
        inputs = tuple(x[()] if isinstance(x, np.ndarray) else x for x in inputs)
        return numpy_rules.call(ufunc, *inputs, **kwargs)
    if any(isinstance(x, Tensor) for x in inputs):
        from treadle.numpy_staging.staging import array_ufunc

        return array_ufunc(ufunc, method, inputs, kwargs, False)
    arrays = any(isinstance(x, np.ndarray) for x in inputs)
    if method != "__call__" or kwargs:
        raise self.needed(f"given to np.{ufunc.__name__}.{method}")
    if arrays:
        from treadle.ops.numbers.tabulated import tabulated_ufunc

        return tabulated_ufunc(ufunc, inputs)
    return apply(ufunc, *inputs)


def install() -> None:
    """Put the protocols and ndarray's methods on Tensor and Variable."""
    tensor_methods.install()
    setattr(SymbolicNumber, "__array_ufunc__", _number_ufunc)  # noqa: B010
    setattr(SymbolicTensor, "__array_ufunc__", _array_ufunc)  # noqa: B010
    setattr(Variable, "__array_ufunc__", _variable_ufunc)  # noqa: B010
    setattr(Tensor, "__array_wrap__", _array_wrap)  # noqa: B010
    for kind in (Tensor, Variable):
        setattr(kind, "__array_function__", _array_function)  # noqa: B010
    for kind, method in ((Tensor, tensor_array), (Variable, variable_array)):
        setattr(kind, "__array__", method)  # noqa: B010
    setattr(Tensor, "__dlpack__", tensor_dlpack)  # noqa: B010
    setattr(Tensor, "__dlpack_device__", tensor_dlpack_device)  # noqa: B010
    setattr(DeviceTensor, "__cuda_array_interface__", property(cuda_array))  # noqa: B010


install()
