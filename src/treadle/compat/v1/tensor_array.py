"""TensorArray of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1.recording import recorded, writes_into
from treadle.compat.v1.values import Tensor, stands_for


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, td.TensorArray)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls._is_shell(*args):
            return type.__call__(cls, *args)
        kwargs.pop("name", None)
        return recorded(_made, "TensorArray", "TensorArrayV3")(*args, **kwargs)

    @staticmethod
    def _is_shell(*args: Any) -> bool:
        return len(args) == 1 and type(args[0]) is Tensor


def _made(*args: Any, **kwargs: Any) -> Any:
    return td.TensorArray(*args, **kwargs)


class TensorArray(metaclass=_Kind):
    """A list of tensors, to write and read by position: see `td.TensorArray`. `write` and the like
    give a new one, with which the program goes on."""

    def __init__(self, array: Any) -> None:
        self._array: Tensor = array

    def _as_tensor(self) -> Tensor:
        return self._array

    @property
    def dtype(self) -> td.DType:
        return self._array.dtype

    @property
    def graph(self) -> Any:
        return self._array.graph

    @property
    def op(self) -> Any:
        return self._array.op

    @property
    def name(self) -> str:
        return self._array.name

    @property
    def flow(self) -> Tensor:
        return self._array

    handle = flow

    @property
    def element_shape(self) -> Any:
        return self._array._any().element_shape

    @property
    def dynamic_size(self) -> Any:
        return self._array._any().dynamic_size


def _method(name: str, type_: str) -> Callable[..., Any]:
    def method(array: Any, *args: Any) -> Any:
        return getattr(array, name)(*args)

    method.__name__ = name
    call = recorded(method, f"TensorArray{name.capitalize()}", type_, f"TensorArray.{name}")

    def on_array(self: Any, *args: Any, **kwargs: Any) -> Any:
        label = kwargs.pop("name", None)
        return call(self, *args, *kwargs.values(), name=label) if writes_into(self) else call(
            self, *args
        )

    on_array.__name__ = name
    on_array.__doc__ = f"See `td.TensorArray.{name}`."
    return on_array


for _name, _type in {
    "write": "TensorArrayWriteV3", "read": "TensorArrayReadV3", "stack": "TensorArrayGatherV3",
    "unstack": "TensorArrayScatterV3", "gather": "TensorArrayGatherV3",
    "scatter": "TensorArrayScatterV3", "concat": "TensorArrayConcatV3",
    "split": "TensorArraySplitV3", "size": "TensorArraySizeV3", "identity": "Identity",
    "grad": "TensorArrayGradV3", "close": "TensorArrayCloseV3",
}.items():  # fmt: skip
    if hasattr(td.TensorArray, _name):
        setattr(TensorArray, _name, _method(_name, _type))
stands_for(td.TensorArray, TensorArray)
