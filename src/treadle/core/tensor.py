"""Tensor: an immutable array value, concrete (eager) or a value of the graph being traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.context import context, home, placed
from treadle.core.devices import HOST, Device
from treadle.core.dtypes import DType
from treadle.core.list_value import ListValue
from treadle.core.nest import register_leaf
from treadle.core.origin import Origin, at, called_by_user, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import Dim, TensorShape
from treadle.core.spec import Spec, TensorSpec, array_spec, buffer_spec

NDArray = np.ndarray[Any, Any]


@register_leaf
class Tensor:
    """A value with a dtype and a shape that never changes.

    An eager tensor has a buffer of its device's storage (`treadle.core.storage`). Tensors of
    exactly this class are on the host: their buffer is a C-contiguous array of numbers or bools.
    `DeviceTensor` is on another device, `StringTensor` has strings, and `SymbolicTensor` stands for
    a value in a graph under construction.
    Operators, indexing and NumPy interop are installed by `treadle.ops`.
    """

    # _buffer: the eager value. _spec: its interned spec, filled on first need.
    __slots__ = ("__weakref__", "_buffer", "_spec")

    _buffer: Any
    _spec: TensorSpec | None

    # NumPy leaves `ndarray + tensor` to Tensor.__radd__.
    __array_priority__ = 100

    is_symbolic = False

    # The operators that `treadle.ops` installs: what classes that stand for tensors forward.
    OVERLOADABLE_OPERATORS: frozenset[str]

    @property
    def spec(self) -> TensorSpec:
        spec = self._spec
        if spec is None:
            spec = self._spec = array_spec(self._buffer)
        return spec

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        return self.spec.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise AttributeError(
            "A tensor never changes its shape: use x = td.reshape(x, shape), or decorate the "
            f"function with td.jit, which has NumPy's meaning{at(user_origin())}"
        )

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The exact dims, symbolic ones included (`shape` shows those as None)."""
        return self.spec.dims

    @property
    def ndim(self) -> int:
        return len(self.spec.dims)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def device(self) -> str:
        """TensorFlow's name of the device, ``/job:localhost/replica:0/task:0/device:CPU:0``."""
        return self.spec.device.name

    @property
    def backing_device(self) -> str:
        """The same: the elements are there."""
        return self.device

    def _numpy(self) -> Any:
        """The elements on the host, in an array that nobody may write."""
        return self._buffer

    def numpy(self) -> Any:
        """The value as an ndarray of the caller's own (a NumPy scalar for rank 0).

        ``np.asarray(tensor)`` is a read-only view of the elements, without a copy.
        """
        array = self._buffer
        return array.copy() if array.ndim else array[()]

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """A NotImplementedError: eager tensors have their values, see `numpy`."""
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled: the value is x.numpy()"
            f"{at(user_origin())}"
        )

    def ref(self) -> Reference:
        """A hashable stand-in for the tensor, compared by identity."""
        return Reference(self)

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Use tensor.ref() as the key.")

    if TYPE_CHECKING:  # installed by treadle.devices

        def cpu(self) -> Tensor: ...
        def gpu(self, gpu_index: int = 0) -> Tensor: ...

    if TYPE_CHECKING:  # installed by treadle.ops.operators

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __len__(self) -> int: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray: ...


TensorSpec.value_type = Tensor


class DeviceTensor(Tensor):
    """An eager tensor on another device than the host. Its spec is always known."""

    __slots__ = ()

    def _numpy(self) -> Any:
        return self.spec.device.storage.to_host(self._buffer)

    def numpy(self) -> Any:
        array = self.spec.device.storage.to_host(self._buffer, own=True)
        return array if array.ndim else array[()]


class StringTensor(Tensor):
    """An eager tensor of strings: its buffer is an array of bytes objects, on the host wherever
    programs run."""

    __slots__ = ()


class _NoValue(NotImplementedError, AttributeError):
    """A symbolic tensor's elements were asked for."""


class _NoValueAnyMore(errors.InaccessibleTensorError, AttributeError):
    """The same after the trace."""


@register_leaf
class SymbolicTensor(Tensor):
    """A value of a graph under construction. It has no elements until the graph runs."""

    # source: the Variable behind a handle, or the outer value that a region captured for its
    # parameter; None for other tensors. assigned: for a variable that control flow may leave
    # without a value, a bool tensor that says whether it has one, and the variable's name.
    # __dict__: what programs note on a tensor while they trace, such as Keras's masks.
    __slots__ = ("__dict__", "assigned", "origin", "recorder", "source", "value")

    is_symbolic = True

    def __init__(self, value: Any, spec: Spec, recorder: Any, origin: Origin | None) -> None:
        self.value = value  # graph.ir.Value
        self._spec = spec  # type: ignore[assignment]
        self.recorder = recorder
        self.origin = origin
        self.source: Any = None
        self.assigned: Any = None

    @property
    def name(self) -> str:
        """As TensorFlow's, unique in its graph: ``MatMul:0``, ``outer/add_1:0``, or what the call
        said by ``name=``."""
        return f"{self.recorder.name_of(self.value)}:{self.value_index}"

    @property
    def value_index(self) -> int:
        """Which output of its operation it is; 0 for a parameter."""
        return 0 if self.value.node is None else self.value.index

    @property
    def op(self) -> Any:
        """The operation that computes it: its name, type, inputs and outputs."""
        return self.recorder.operation(self.value)

    def consumers(self) -> Any:
        """The operations that take it."""
        return self.recorder.consumers(self.value)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """A ValueError: there are no sessions. The function's call gives values."""
        raise ValueError(
            f"Cannot evaluate {self!r} with eval(): there are no sessions. Return the tensor from "
            f"{self.recorder.name!r}, or print it with td.print{at(user_origin())}"
        )

    @property
    def graph(self) -> Any:
        return self.recorder.graph

    @property
    def device(self) -> str:
        """Nothing, as in TensorFlow: where a graph runs is known when it has been traced."""
        return ""

    @property
    def backing_device(self) -> str:
        """No attribute, as in TensorFlow, and so `cpu` and `gpu`: a graph's tensors are on one
        device, and the elements are nowhere yet."""
        raise self.no_value("asked where its elements are")

    @property
    def cpu(self) -> Any:
        raise self.no_value("copied to a device: use td.device and td.identity")

    gpu = cpu

    @property
    def _buffer(self) -> Any:
        raise self.no_value("read as an array")

    @property
    def numpy(self) -> Any:
        """No attribute, so that ``hasattr(x, "numpy")`` tells eager tensors, as in TensorFlow."""
        raise self.no_value("read with .numpy()")

    def no_value(self, use: str) -> Exception:
        """The error for a use that needs the elements, during the trace or after it."""
        where = f" ({self.origin.describe()})" if self.origin else ""
        if self.recorder.finished:
            return _NoValueAnyMore(
                f"{self!r} was made while tracing {self.recorder.name!r}{where}, and that trace "
                "has ended: the tensor has no value. Return it from the function instead of "
                f"storing it outside.{at(user_origin())}"
            )
        return _NoValue(
            f"{self!r} is symbolic: it was made while tracing {self.recorder.name!r}{where} and "
            f"cannot be {use}. Use treadle's ops or td.print on it, or call the function with "
            f"td.config.run_functions_eagerly(True) to debug.{at(user_origin())}"
        )

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'


class UnrankedTensor(SymbolicTensor):
    """A symbolic tensor whose rank only a run knows, such as a result of `py_function`.

    The graph has its elements in row-major order and its shape, as two values. `set_shape` settles
    the rank: the tensor then stands for a value of that shape, as any other symbolic tensor.

    Attributes:
        elements: a symbolic tensor of rank 1.
        extents: its shape, a symbolic int64 tensor of rank 1.
    """

    __slots__ = ("_settled", "elements", "extents")

    def __init__(self, elements: SymbolicTensor, extents: SymbolicTensor) -> None:
        spec = TensorSpec(None, elements.dtype)
        super().__init__(None, spec, elements.recorder, elements.origin)
        self.elements, self.extents = elements, extents

    @property
    def is_settled(self) -> bool:
        """Whether the rank is known by now."""
        return self._settled is not None

    @property
    def value(self) -> Any:
        """The value of the graph; ValueError as long as the rank is not known."""
        if self._settled is None:
            raise self.refusal()
        return self._settled

    @value.setter
    def value(self, value: Any) -> None:
        self._settled = value

    @property
    def dims(self) -> tuple[Dim, ...]:
        if self._settled is None:
            raise self.refusal()
        return super().dims

    @property
    def ndim(self) -> int:
        return len(self.dims)

    @property
    def name(self) -> str:
        return super().name if self.is_settled else self.elements.name

    def refusal(self, op: str | None = None) -> NotYetKnown:
        """The error for a use that needs the rank."""
        where = f" ({self.origin.describe()})" if self.origin else ""
        return NotYetKnown(
            f"{op or called_by_user()}: the rank of a tensor is not known while "
            f"{self.recorder.name!r} is traced: {self!r}{where}. Settle it before: "
            "x.set_shape([...]), td.ensure_shape(x, [...]) or td.reshape(x, [...]), with None for "
            f"sizes that only a run can tell, or give py_function a TensorSpec{at(user_origin())}"
        )


def lacks_rank(tensor: Any) -> TypeGuard[UnrankedTensor]:
    """Whether it is a symbolic tensor of a rank that is not known."""
    return isinstance(tensor, UnrankedTensor) and not tensor.is_settled


class Reference:
    """Hashes and compares a tensor or variable by identity; `deref` gives it back."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def deref(self) -> Any:
        return self._wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._wrapped is self._wrapped

    def __hash__(self) -> int:
        return id(self._wrapped)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._wrapped!r}>"


_new = object.__new__


def from_array(array: NDArray) -> Tensor:
    """An eager tensor over `array`, not copied: the caller gives the array away."""
    tensor = _new(StringTensor if array.dtype.hasobject else Tensor)
    tensor._buffer = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    tensor._spec = None
    return tensor


def placed_array(array: NDArray) -> Tensor:
    """The same on the device that the innermost scope names, or where it is without a scope."""
    tensor = from_array(array)
    return moved(tensor, placed() or home_of(tensor)) if context.counted else tensor


def home_of(tensor: Tensor) -> Device:
    """The device of a tensor that no scope places: its own, or `home` for one of the host that is
    drawn there."""
    spec = tensor.spec
    return home() if spec.device is HOST and is_drawn(spec.dtype) else spec.device


def is_drawn(dtype: DType) -> bool:
    """Whether values of a dtype are computed on a GPU where nobody places them. Positions and sizes
    (int32), bools and strings stay on the host, which decides by them what comes next."""
    return dtype is not dtypes.int32 and dtype is not dtypes.bool and dtype is not dtypes.string


def from_buffer(buffer: Any, device: Device = HOST) -> Tensor:
    """An eager tensor over a buffer of a device, or over a list value or strings, which are on the
    host."""
    if isinstance(buffer, np.ndarray) and buffer.dtype.hasobject:
        return from_array(buffer)
    if isinstance(buffer, ListValue):
        device = HOST
    tensor = _new(Tensor if device is HOST else DeviceTensor)
    tensor._buffer = buffer
    tensor._spec = buffer_spec(buffer, device)
    return tensor


def buffer_of(x: Any, device: Device = HOST) -> Any:
    """What a program for a device takes for `x`: the buffer of an eager tensor, which is copied to
    the device where it is elsewhere; an array or variable itself."""
    if not isinstance(x, Tensor):
        return x
    return x._buffer if type(x) is Tensor and device is HOST else moved(x, device)._buffer


def may_share(a: Any, b: Any) -> bool:
    """Whether two of eager tensors and arrays may have elements in common. Buffers of other devices
    never overlap, as all tensors there have been copied; a list of tensors is no array."""
    a, b = (x._buffer if type(x) is Tensor else x for x in (a, b))
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return bool(arrays and a.ndim and b.ndim and np.may_share_memory(a, b))


def moved(tensor: Tensor, device: Device) -> Tensor:
    """An eager tensor with the same elements on a device; itself where it is there, or has
    strings."""
    if tensor.spec.device is device or isinstance(tensor, StringTensor):
        return tensor
    here, there = tensor.spec.device.storage, device.storage
    buffer = there.from_device(tensor._buffer, here)
    if buffer is None:
        buffer = there.from_host(here.to_host(tensor._buffer))
    return from_buffer(buffer, device)
