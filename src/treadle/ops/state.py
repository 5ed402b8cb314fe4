"""Variable: mutable state, and the ops that read and assign it."""

from __future__ import annotations

import enum
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from treadle.core import errors, locks
from treadle.core.context import context, count_modes, naming, placed, recording, taping
from treadle.core.devices import Device
from treadle.core.dtypes import DType
from treadle.core.interrupts import during, is_mode
from treadle.core.keras_generation import generation
from treadle.core.living import Living
from treadle.core.nest import register_leaf
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import ResourceSpec, TensorSpec, buffer_spec
from treadle.core.storage import Buffer, Cell
from treadle.core.tensor import Reference, Tensor, from_buffer, home_of, moved
from treadle.core.trials import refuse
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor, register_converter
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.indexing import variable_parts
from treadle.ops.indexing.extremes import tensor_scatter_nd_max, tensor_scatter_nd_min
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.scatter import (
    batch_positions,
    gather_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from treadle.ops.indexing.scatter_products import scatter_div, scatter_mul
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.indexing.updates import set_item
from treadle.ops.lowering import Structure
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.reshaping import of_rank, reshape_to
from treadle.ops.sizes import Pairs
from treadle.ops.variable_creation import Created


def _keep(variable: Variable, **values: Any) -> None:
    """Put values into the variable's own slots, also where a class that users derive from it has
    properties of these names."""
    for name, value in values.items():
        vars(Variable)[name].__set__(variable, value)


# What a variable was told about itself when it was made.
_SAID = ("name", "path", "trainable", "constraint", "synchronization", "aggregation")


def _kept(variable: Variable, name: str) -> Any:
    """What the variable's own slot has, or what one that only stands for another asks that for."""
    try:
        return vars(Variable)[name].__get__(variable)
    except AttributeError:
        return getattr(variable, name)


# Methods by which classes of programs say what their variables are to operations: the first that
# one defines counts.
_READINGS = ("_dense_var_to_tensor", "value")


def _owner(kind: type, name: str) -> type | None:
    """The class that `kind` has an attribute from."""
    return next((c for c in kind.__mro__ if name in vars(c)), None)


def _of_program(kind: type | None) -> bool:
    return kind is not None and not kind.__module__.startswith("treadle.")


def _member(kind: type[enum.Enum], value: Any) -> Any:
    if not isinstance(value, kind):
        names = ", ".join(f"{kind.__name__}.{m.name}" for m in kind)
        raise ValueError(
            f"Invalid variable option {value!r}: use one of {names}{at(user_origin())}"
        )
    return value


READ = register(
    Op(
        "read_variable",
        lambda handle: handle.element,
        gradient=lambda call, grad: [grad],
        effect="read",
        lower=Structure.READ,
        tags=frozenset({"passes_on", "strings"}),
        takes_variables=True,
    )
)


def _infer_assign(handle: ResourceSpec, value: TensorSpec) -> tuple[()]:
    if value.dtype is not handle.dtype:
        raise TypeError(
            f"cannot assign {value.dtype.name} to a variable of dtype {handle.dtype.name}"
        )
    if not value.shape.is_compatible_with(handle.shape):
        raise ValueError(f"cannot assign shape {value.shape} to a variable of shape {handle.shape}")
    return ()


def _same_size(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """A variable keeps its size."""
    handle, value = specs
    yield from zip(value.dims, handle.dims, strict=False)


ASSIGN = register(
    Op(
        "assign_variable", _infer_assign, effect="write", lower=Structure.ASSIGN,
        tags=frozenset({"strings"}), sizes=_same_size,
    )
)  # fmt: skip


def _read_open(variable: Variable, *, out: TensorSpec) -> Any:
    found = variable.current_spec.shape
    if not out.shape.is_compatible_with(found):
        raise ValueError(
            f"variable {variable.name!r} has shape {found} now, and the function was traced for "
            f"{out.shape}: what assigns another rank must be known while tracing"
        )
    return variable._numpy()


def _assign_open(variable: Variable, value: Any) -> tuple[()]:
    variable._assign_now(from_buffer(value.copy()))
    return ()


_OPEN = "programs know places of fixed sizes for variables"
# The same for variables whose shape may change.
READ_OPEN = register(
    Op(
        "read_open_variable",
        lambda handle, *, out: out.with_fresh_symbols(),
        _read_open,
        lambda call, grad: [grad],
        effect="read",
        tags=frozenset({"passes_on", "strings"}),
        takes_variables=True,
        callback=_OPEN,
    )
)
ASSIGN_OPEN = register(
    Op(
        "assign_open_variable", _infer_assign, _assign_open, effect="write",
        tags=frozenset({"strings"}), callback=_OPEN,
    )
)  # fmt: skip


_cells: Living[Cell] = Living()


def _after_fork() -> None:
    """In a child made by fork the writers that were other threads do not exist."""
    me = threading.get_ident()
    for cell in _cells:
        if cell.writer != me:
            cell.writer = 0
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Held while a buffer is replaced or handed out. Signal handlers and finalizers may assign, too.
_changing = locks.reentrant_lock()
_HELD, _COPIED = 1, 2  # in `Cell.shared`: somebody may hold it; for each copy that is being made
_LONGEST_WAIT = 1e-4  # seconds between two looks at a variable that is being written
_LOOKS = 50  # at threads that wait: for so long a thread that writes lets them go first
_waiting: dict[int, Cell] = {}  # what threads wait for
_names = itertools.count()
_Kind = TypeVar("_Kind", bound="Variable")


class VariableSynchronization(enum.Enum):
    """When copies of a variable on several devices are made equal. There is one copy here: programs
    may say and ask it."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How what several devices assign to a variable is made one. There is one device at work here:
    programs may say and ask it."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class Substitutes(Protocol):
    """Values that stand for those of variables in a thread (`substituting`)."""

    def read(self, variable: Variable) -> Tensor | None:
        """The value of a variable; None: what the variable holds."""

    def write(self, variable: Variable, value: Tensor) -> None:
        """Take note of a value that is assigned to a variable, which keeps its own."""


class _Substituting(threading.local):
    values: Substitutes | None = None


_substituting = is_mode(_Substituting())


class substituting(during):
    """Reads of variables in this thread give what stands for them inside the block, and
    assignments change nothing else. Functions run eagerly there, so that they follow it."""

    def __init__(self, values: Substitutes) -> None:
        super().__init__(_substituting, "values", values)

    def __enter__(self) -> Any:
        count_modes(("substituting", threading.get_ident()), 1)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if _substituting.values is None:
            count_modes(("substituting", threading.get_ident()), 0)


def values_are_substituted() -> bool:
    """Whether something stands for values of variables in this thread."""
    return _substituting.values is not None


class _Value:
    """``variable.value()`` is its value, as in TensorFlow. Variables of Keras have a `path`; in
    Keras 3 ``variable.value`` is their value, without a call."""

    def __get__(self, variable: Variable | None, kind: type[Variable]) -> Any:
        if variable is None:
            return kind.read_value
        is_method = variable.path is None or generation.is_2
        return variable._stored if is_method else variable._stored()


@register_leaf
class Variable(metaclass=Created):
    """A tensor-valued state that can be assigned.

    It is on the device that `td.device` names around its making, else on that of its initial value.

    Args:
        initial_value: a tensor or anything that converts to one, or a function that returns it.
        trainable: whether gradient tapes watch it by themselves; default True for floats that are
            not synchronized when they are read.
        name: a name for printing and checkpoints, which `name_scope` puts its own in front of.
        dtype: the dtype to convert `initial_value` to.
        synchronization: a `VariableSynchronization`; changes nothing but `trainable`.
        aggregation: a `VariableAggregation`; changes nothing.
        shape: a more general shape than the initial value's; with ``td.TensorShape(None)`` values
            of any rank may be assigned. Functions that use the variable then have a trace for each
            rank.
        validate_shape: False is as ``shape=td.TensorShape(None)``.

    Raises:
        ValueError: created while a function is traced again (only a first call may create);
            another value as synchronization or aggregation.
    """

    __slots__ = (
        "__weakref__", "_buffer", "_cell", "_stands_for", "aggregation", "constraint", "name",
        "path", "spec", "synchronization", "told_apart", "trainable",
    )  # fmt: skip

    spec: ResourceSpec
    name: str
    path: str | None
    trainable: bool
    constraint: Callable[[Tensor], Tensor] | None
    synchronization: VariableSynchronization
    aggregation: VariableAggregation

    __array_priority__ = 100
    # In a class itself: its objects are read and assigned as those of `Variable`, so that a
    # strategy may put variables of its own in their place.
    _is_plain: ClassVar[bool] = True
    # Whether the class only adds to what the next class does, by `super()`: a strategy lays it over
    # a variable of its own, so that the variable is both.
    _is_layer: ClassVar[bool] = False
    # Operators of variables of Keras, which have a path, with operands of other dtypes: `keras.ops`
    # puts its functions here, which know Keras's common dtypes.
    _promoted: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {}

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        self._stands_for: weakref.ref[Variable] | None = None
        self.told_apart = False
        _keep(self, path=None)
        recorder: Any = context.recorder
        if initial_value is None:
            # A class of a program that is a variable by name only expects TensorFlow's answer.
            kind = NotImplementedError if self._is_of_program() else ValueError
            raise kind(f"A Variable needs an initial_value{at(user_origin())}")
        if not isinstance(name, str | None):
            raise ValueError(f"A Variable's name must be a string, not {name!r}")
        if constraint is not None and not callable(constraint):
            raise ValueError(f"The `constraint` argument must be a callable, not {constraint!r}")
        _keep(
            self, synchronization=_member(VariableSynchronization, synchronization),
            aggregation=_member(VariableAggregation, aggregation),
        )  # fmt: skip
        if recorder is not None:
            refuse("it creates a variable")
            recorder.variable_created()
        with recording(None), taping(()):
            if callable(initial_value):
                initial_value = initial_value()
        if isinstance(initial_value, Tensor) and initial_value.is_symbolic:
            known = initial_value.shape
            initial_value = recorder.lift(initial_value)
            if shape is None and not known.is_fully_defined():
                # Later calls may assign values of other sizes.
                shape = TensorShape(None if known.rank is None else known.as_list())
        with recording(None), taping(()):
            value = convert_to_tensor(initial_value, dtype)
        value = moved(value, placed() or home_of(value))
        if shape is None and not validate_shape:
            shape = TensorShape(None)
        if shape is not None and not value.shape.is_compatible_with(shape):
            raise ValueError(
                f"The initial value's shape {value.shape} is not compatible with shape={shape}"
                f"{at(user_origin())}"
            )
        spec = ResourceSpec(value.shape if shape is None else shape, value.dtype)
        self.spec = spec.on(value.spec.device)
        self._use(value._buffer)  # the tensor may live on: it is copied when first written in place
        if trainable is None:
            read = synchronization is VariableSynchronization.ON_READ
            trainable = value.dtype.is_differentiable and not read
        scoped = f"{naming.scope}{name or 'Variable'}:0"
        _keep(self, trainable=trainable, name=scoped, constraint=constraint)

    # The method that gives what operations on a variable compute with, where a class that a
    # program derived defines one; None where this is the value.
    _read_by: ClassVar[str | None] = None
    # Whether such a class has a `read_value` of its own.
    _reads_otherwise: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = (c for c in cls.__mro__ if "read_value" in vars(c) and not _of_program(c))
        cls._stored = vars(next(own))["read_value"]
        cls._reads_otherwise = _of_program(_owner(cls, "read_value"))
        owners = {name: _owner(cls, name) for name in _READINGS}
        cls._read_by = next((name for name, owner in owners.items() if _of_program(owner)), None)

    @classmethod
    def _is_of_program(cls) -> bool:
        """Whether it is a class that a program derived."""
        return _of_program(cls)

    def _operand(self, dtype: DType | None = None) -> Tensor:
        """What an operation on the variable computes with: its value, or what a class that a
        program derived says that this is, as in TensorFlow."""
        found: Any
        if self._read_by is None:
            value: Tensor = self._stored()
            return value
        if self._read_by == "value":
            found = self.value  # a property, or a method
            return convert_to_tensor(found() if callable(found) else found)
        found = getattr(self, self._read_by)(dtype=dtype)
        if found is NotImplemented:
            raise ValueError(
                f"{type(self).__name__}.{self._read_by} makes no tensor of dtype={dtype!r}"
                f"{at(user_origin())}"
            )
        return convert_to_tensor(found)

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        return self.spec.shape

    def get_shape(self) -> TensorShape:
        return self.spec.shape

    @property
    def device(self) -> str:
        """TensorFlow's name of the device, ``/job:localhost/replica:0/task:0/device:CPU:0``."""
        return self.spec.device.name

    @property
    def current_spec(self) -> TensorSpec:
        """The spec of the value that it holds now."""
        return buffer_spec(self._buffer, self.spec.device)

    @property
    def traced_rank(self) -> int:
        """The rank for which a function is traced here: that of the value, or of the one that the
        trace has assigned."""
        recorder: Any = context.recorder
        while recorder is not None and not self.spec.has_rank:
            found = recorder.assigned.get(id(self))
            if found is not None:
                rank: int = found[1]
                return rank
            recorder = recorder.parent or recorder.outer
        return self.current_spec.rank

    # -- reading -----------------------------------------------------------------------------

    def read_value(self) -> Tensor:
        """The current value as a tensor, which later assignments do not change."""
        return _read(self)

    # `read_value` as treadle's own classes have it: `value` is this, whatever a program's class
    # says that reading is.
    _stored: ClassVar[Any] = read_value
    value: Any = _Value()

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows at `indices`; their gradient is `IndexedSlices`."""
        return gather(self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The parts at positions given by the last axis of `indices`."""
        return gather_nd(self, indices)

    def __getitem__(self, key: Any) -> Tensor:
        """A part of the current value, to which values may be assigned: ``v[1:3].assign(x)``."""
        part = getitem(self._operand(), key)
        variable_parts.remember(part, self, key)
        return part

    def is_initialized(self, name: str | None = None) -> Tensor:
        """True: a variable has a value from the beginning."""
        return convert_to_tensor(True)

    @property
    def initializer(self) -> None:
        """None: there is nothing to run, a variable has a value from the beginning."""
        return None

    def initialized_value(self) -> NoReturn:
        """TensorFlow 1's: not supported, as in TensorFlow 2."""
        raise NotImplementedError(
            f"initialized_value() of variable {self.name!r}: a variable has a value from the "
            f"beginning, use value(){at(user_origin())}"
        )

    def numpy(self) -> Any:
        """The current value as an array of the caller's own, or a NumPy scalar for rank 0."""
        if context.recorder is not None:
            raise NotImplementedError(
                f"numpy() of variable {self.name!r} inside a function: its value is only known "
                f"when the function runs; use the variable itself{at(user_origin())}"
            )
        if self._reads_otherwise:
            return self.read_value().numpy()
        buffer, cell = self._shared_buffer(_COPIED), self._cell
        try:
            array = self.spec.device.storage.to_host(buffer, own=True)
            return array if array.ndim else array[()]
        finally:
            with _changing:
                if cell.buffer is buffer and cell.shared >= _COPIED:
                    cell.shared -= _COPIED

    def _numpy(self) -> Any:
        """The current value on the host, in an array that nobody may write."""
        return self.spec.device.storage.to_host(self._shared_buffer())

    def _shared_buffer(self, mark: int = _HELD) -> Buffer:
        """The buffer, which nobody writes from now on: who wants to replaces it first. Whoever
        marks it as `_COPIED` takes the mark away afterwards."""
        cell = self._cell
        while True:
            with _changing:
                writer, buffer = cell.writer, self._buffer
                if (
                    writer and writer == threading.get_ident()
                ):  # a handler of a signal, or the program calls
                    return self.spec.device.storage.copy(buffer)
                shared = cell.shared  # from here on nobody begins to write
                cell.shared = shared + _COPIED if mark == _COPIED else shared | _HELD
                if not cell.writer:
                    return buffer
                cell.shared = shared | _HELD  # so that its writer makes room for others
            self.wait_until_whole()

    def wait_until_whole(self) -> bool:
        """Wait for a program of another thread that writes the buffer. False where this thread's
        own program does so.

        The buffer is marked, so that the next program that writes it stops in `make_writable`:
        threads that write again and again leave no moment in which this one would find the buffer
        whole.
        """
        pause, me = 1e-5, threading.get_ident()
        try:
            while (writer := self._cell.writer) != 0:
                if writer == me:
                    return False
                _waiting[me] = self._cell
                with _changing:
                    self._cell.shared |= _HELD
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_WAIT)
            return True
        finally:
            _waiting.pop(me, None)

    # -- writing -----------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Set the value. Returns the variable, but eagerly None where ``read_value=False``.

        Raises:
            ValueError: the shape differs from the variable's.
            TypeError: the value does not convert to the variable's dtype.
        """
        if self.path is not None:
            value = self._cast_as_keras(value)
        tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, self.dtype)
        substitutes = _substituting.values
        if substitutes is not None:
            self._check_value(tensor)
            substitutes.write(self, tensor)
        elif context.recorder is None:
            self._assign_now(tensor)
        else:
            _assign_traced(self, tensor)
        if read_value or context.recorder is not None:
            return self
        return None  # type: ignore[return-value]

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Add `delta` to the value."""
        own = self.path is not None  # a variable of Keras
        value = self + delta if own else self.read_value() + self._delta(delta)
        found = self.assign(value)
        if read_value or context.recorder is not None:
            return found
        return None  # type: ignore[return-value]

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Variable:
        """Subtract `delta` from the value."""
        own = self.path is not None  # a variable of Keras
        value = self - delta if own else self.read_value() - self._delta(delta)
        found = self.assign(value)
        if read_value or context.recorder is not None:
            return found
        return None  # type: ignore[return-value]

    def _cast_as_keras(self, value: Any) -> Any:
        """A value for a variable of Keras: whatever its dtype is, the variable keeps its own."""
        tensor = convert_to_tensor(value, dtype_hint=self.dtype)
        return tensor if tensor.dtype is self.dtype else cast(tensor, self.dtype)

    def _delta(self, delta: Any) -> Tensor:
        tensor = convert_to_tensor(delta, dtype_hint=self.dtype)
        shape = self.shape if self.spec.has_rank else self.read_value().shape
        if not tensor.shape.is_compatible_with(shape):
            raise errors.InvalidArgumentError(
                None, None,
                f"Variable {self.name!r} has shape {shape}; cannot add a value of shape "
                f"{tensor.shape}{at(user_origin())}",
            )  # fmt: skip
        return tensor

    def assign_part(self, key: Any, value: Any) -> Variable:
        """Replace the part ``v[key]``; the value broadcasts to it.

        Raises:
            InvalidArgumentError: a position out of range, or a value that does not broadcast.
            ValueError: a tensor of another dtype.
        """
        return self.assign(set_item(self.read_value(), key, convert_to_tensor(value, self.dtype)))

    # Of several rows with one index each has its effect, in their order.

    def scatter_add(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Add rows to those at their indices.

        Raises (as all that take `IndexedSlices`):
            TypeError: `sparse_delta` is something else.
            ValueError: rows of another dtype.
            InvalidArgumentError: an index out of range, or rows of another shape.
        """
        return self._scatter(tensor_scatter_nd_add, sparse_delta)

    def scatter_sub(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Subtract rows from those at their indices."""
        return self._scatter(tensor_scatter_nd_sub, sparse_delta)

    def scatter_mul(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Multiply the rows at indices by those that are given."""
        return self._scatter(scatter_mul, sparse_delta)

    def scatter_div(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Divide the rows at indices by those that are given."""
        return self._scatter(scatter_div, sparse_delta)

    def scatter_min(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Replace elements of the rows at indices by given ones that are smaller."""
        return self._scatter(tensor_scatter_nd_min, sparse_delta)

    def scatter_max(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Replace elements of the rows at indices by given ones that are larger."""
        return self._scatter(tensor_scatter_nd_max, sparse_delta)

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Replace the rows at indices; the last of several for one place stays."""
        return self._scatter(tensor_scatter_nd_update, sparse_delta)

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Replace rows of each part that the first axes name: all axes of the indices but the last
        are axes of the variable, too."""
        indices = self._slices(sparse_delta).indices
        rows = reshape_to(indices, (*indices.dims, 1))
        return self.scatter_nd_update(batch_positions(rows, indices.ndim - 1), sparse_delta.values)

    def _slices(self, slices: Any) -> IndexedSlices:
        if not isinstance(slices, IndexedSlices):
            raise TypeError(
                f"Variable {self.name!r}: rows are given as td.IndexedSlices, not {slices!r}"
                f"{at(user_origin())}"
            )
        return slices

    def _scatter(
        self, function: Callable[[Tensor, Tensor, Tensor], Tensor], slices: Any
    ) -> Variable:
        """Change the rows at indices by ``function(value, positions, rows)``."""
        indices = self._slices(slices).indices
        value, rows = self.read_value(), convert_to_tensor(slices.values, self.dtype)
        if not rows.ndim and value.ndim:
            rows = broadcast_dims(rows, (*indices.dims, *value.dims[1:]))
        return self.assign(function(value, reshape_to(indices, (*indices.dims, 1)), rows))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Add `updates` to the parts at `indices`; those of one place add up."""
        updates = convert_to_tensor(updates, self.dtype)
        return self.assign(tensor_scatter_nd_add(self.read_value(), indices, updates))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Subtract `updates` from the parts at `indices`."""
        return self.scatter_nd_add(indices, -convert_to_tensor(updates, self.dtype))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replace the parts at `indices`; the last of several for one place stays."""
        updates = convert_to_tensor(updates, self.dtype)
        return self.assign(tensor_scatter_nd_update(self.read_value(), indices, updates))

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replace elements at `indices` by updates that are larger."""
        return self.assign(tensor_scatter_nd_max(self.read_value(), indices, updates))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replace elements at `indices` by updates that are smaller."""
        return self.assign(tensor_scatter_nd_min(self.read_value(), indices, updates))

    def _in_place(self, other: Any) -> NoReturn:
        raise RuntimeError(
            f"Variable {self.name!r} cannot be changed with += and the like: use v.assign_add(x), "
            f"or v = v + x for a new tensor{at(user_origin())}"
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = _in_place

    def _assign_now(self, tensor: Tensor) -> None:
        self._check_value(tensor)
        self._set_buffer(moved(tensor, self.spec.device)._buffer, shared=True)

    def _check_value(self, tensor: Tensor) -> None:
        spec = tensor.spec
        if spec.dtype is not self.spec.dtype:
            raise errors.DtypeError(
                None, None,
                f"Variable {self.name!r} has dtype {self.dtype.name}; cannot assign a tensor of "
                f"dtype {spec.dtype.name}, use td.cast{at(user_origin())}",
            )  # fmt: skip
        if spec.dims != self.spec.dims and not spec.shape.is_compatible_with(self.spec.shape):
            raise errors.InvalidArgumentError(
                None, None,
                f"Variable {self.name!r} has shape {self.shape}; cannot assign a value of shape "
                f"{spec.shape}{at(user_origin())}",
            )  # fmt: skip

    def _set_buffer(self, buffer: Buffer, shared: bool) -> None:
        """Replace the buffer. `shared`: somebody else may hold it."""
        place, cell = self.spec.device.storage.place(buffer, shared), self._cell
        if cell.writer:
            self.wait_until_whole()
        with _changing:
            while True:
                cell.place = place
                self._buffer = buffer
                if cell.buffer is buffer:  # no handler of a signal assigned in between
                    break

    def _use(self, buffer: Buffer, shared: bool = True) -> None:
        """Begin with a buffer. `shared`: somebody else may hold it."""
        storage = self.spec.device.storage
        self._cell = storage.cell(storage.place(buffer, shared))
        self._buffer = buffer
        _cells.add(self._cell)

    # -- compiled programs -------------------------------------------------------------------

    def cell(self) -> Any:
        """The record through which compiled programs reach the buffer; it stays where it is."""
        return self._cell

    def make_writable(self) -> None:
        """Make the buffer this variable's own, copying it if anybody else holds it, or once to
        where large ones are written best."""
        cell, storage = self._cell, self.spec.device.storage
        if _waiting:
            self._let_others_go_first()
        while (cell.shared or cell.readers) and self.wait_until_whole():
            with _changing:
                cell.shared |= _HELD  # from here on nobody begins to write, whatever readers end
                if cell.writer:
                    continue
                if storage.is_alone(self):
                    cell.shared = cell.readers = 0
                else:
                    self._set_buffer(storage.copy(self._buffer), shared=False)
            return

    def overwrite(self, value: Any) -> None:
        """Write an array into the buffer itself, of a variable on the host that nobody else uses:
        unlike `assign` it leaves a buffer that the next program may write."""
        self.make_writable()
        self._buffer[...] = value

    def _let_others_go_first(self) -> None:
        """Give the threads that wait for this variable now the time to use it."""
        cell = self._cell
        threads = [thread for thread, wanted in list(_waiting.items()) if wanted is cell]
        for _ in range(_LOOKS):
            if not any(_waiting.get(thread) is cell for thread in threads):
                break
            time.sleep(_LONGEST_WAIT)

    def stand_in(self) -> Variable:
        """What a trace passes on in place of a variable argument: like it, but not it. It is of the
        same class where a program derived that, with what it has set on it."""
        copy: Variable = object.__new__(type(self) if self._is_of_program() else Variable)
        if self._is_of_program():
            vars(copy).update(vars(self))
        copy.spec = self.spec
        copy._use(self._shared_buffer())
        _keep(copy, **{name: _kept(self, name) for name in _SAID})
        copy._stands_for, copy.told_apart = weakref.ref(self), False
        return copy

    def _let_go(self) -> None:
        """Keep no value: others have it now, and are asked for it."""
        del self._buffer, self._cell

    def copied_to(self, device: Device, kind: type[_Kind]) -> _Kind:
        """A variable of a class like this one, with its value now, on a device."""
        copy = object.__new__(kind)
        value = moved(from_buffer(self._shared_buffer(), self.spec.device), device)
        copy.spec = self.spec.on(device)
        copy._use(value._buffer)
        _keep(copy, **{name: _kept(self, name) for name in _SAID})
        copy._stands_for, copy.told_apart = None, False
        return copy

    def identity(self) -> Variable:
        """The variable itself; what stands in for an argument gives the argument.

        Objects that keep something for each variable, as optimizers do, find it by this. A trace
        in which a stand-in was asked serves calls with the same variables only.
        """
        original = None if self._stands_for is None else self._stands_for()
        if original is None:
            return self
        self.told_apart = True
        return original.identity()

    @property
    def here(self) -> Variable:
        """The variable that is meant where this one is named: itself, but that of the device which
        works where several devices have one each (`treadle.distribute`), and the one that an
        object of a derived class has in an attribute, and hands its own uses to."""
        try:
            _CELL.__get__(self)
        except AttributeError:
            return self._within()
        return self

    def _within(self) -> Variable:
        """The variable that this one was put around: it has none of its own, but names the same."""
        cell = getattr(self, "_cell", None)
        inside = (v for v in vars(self).values() if isinstance(v, Variable) and v is not self)
        return next((v.here for v in inside if getattr(v, "_cell", None) is cell), self)

    # -- printing and identity ---------------------------------------------------------------

    def ref(self) -> Reference:
        return Reference(self.identity())

    def __hash__(self) -> int:
        raise TypeError("Variable is unhashable. Use variable.ref() as the key.")

    def __deepcopy__(self, memo: Any) -> Variable:
        make, how = self.__reduce__()
        memo[id(self)] = copy = make(*how)
        return copy  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled with its value."""
        value = from_buffer(self._shared_buffer(), self.spec.device)
        how = (self.trainable, self.name, self.path, self.synchronization, self.aggregation)
        return _copied, (value, self.constraint, self.spec.shape, *how)


_CELL: Any = Variable.__dict__["_cell"]  # as a variable has it itself


def _copied(
    value: Any, constraint: Any, shape: Any, trainable: bool, name: str, path: str | None,
    synchronization: VariableSynchronization, aggregation: VariableAggregation,
) -> Variable:  # fmt: skip
    """A variable with a value and all else of another one."""
    copy = Variable(
        value, trainable, constraint=constraint, synchronization=synchronization,
        aggregation=aggregation, shape=shape,
    )  # fmt: skip
    copy.name, copy.path = name, path
    return copy


def _assign_traced(variable: Variable, tensor: Tensor) -> None:
    """Assign while a function is traced."""
    recorder: Any = context.recorder
    if variable.spec.has_rank:
        tensor = of_rank(tensor, variable.spec.rank)
    if not variable.spec.may_vary:
        run(ASSIGN, variable, tensor)
        return
    if not variable.spec.has_rank and tensor.ndim != variable.traced_rank:
        if recorder.parent is not None:
            raise ValueError(
                f"assign: variable {variable.name!r} has a value of rank {variable.traced_rank}; "
                f"a branch or loop cannot assign one of rank {tensor.ndim}: assign it outside"
                f"{at(user_origin())}"
            )
        recorder.assigned[id(variable)] = variable, tensor.ndim
    run(ASSIGN_OPEN, variable, tensor)


def _read(variable: Variable) -> Tensor:
    if _substituting.values is not None:
        found = _substituting.values.read(variable)
        if found is not None:
            return found
    if context.recorder is not None:
        spec = variable.spec
        if not spec.may_vary:
            return run(READ, variable)  # type: ignore[no-any-return]
        shape = spec.shape if spec.has_rank else [None] * variable.traced_rank
        return run(READ_OPEN, variable, out=TensorSpec(shape, spec.dtype))  # type: ignore[no-any-return]
    tensor = from_buffer(variable._shared_buffer(), variable.spec.device)
    for tape in context.tapes:
        tape.record(READ, (variable,), {}, (tensor,))
    return tensor


def _convert(variable: Variable, dtype: DType | None) -> Tensor:
    return variable._operand(dtype)


register_converter(Variable, _convert)
