"""Variables made in the scope of a strategy.

The replicas of a process share its memory, so a variable that all of them see alike is one
variable; what they assign is first made one. Where replicas have devices of their own it is one on
each of them (`VariableOfDevices`), to which the same is done everywhere. A variable whose replicas
differ until it is read (`VariableSynchronization.ON_READ`), or that is not trained and has no
aggregation, has a variable for each replica.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

import treadle as td
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.strategies import where
from treadle.core.tensor import Tensor
from treadle.distribute.contexts import current
from treadle.distribute.replicas import ReplicaContext
from treadle.distribute.values import DistributedValues, ReduceOp, local_values, selected
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from treadle.distribute.strategy import Strategy

_DIFFERENT = (
    "The replicas assign different values to variable {name!r}, which all of them see alike: give "
    "it an aggregation that makes them one, td.Variable(..., "
    "aggregation=td.VariableAggregation.MEAN), or trainable=False, with which each replica has its "
    "own{place}"
)


class DistributedVariable(Variable):
    """A variable made in the scope of a strategy."""

    __slots__ = ("strategy",)

    strategy: Strategy

    @classmethod
    def of(cls, made: Variable, strategy: Strategy) -> DistributedVariable:
        """The variable of a strategy in place of one that was just made."""
        variable = object.__new__(cls)
        for name in Variable.__slots__:
            if name != "__weakref__":
                setattr(variable, name, getattr(made, name))
        variable.strategy = strategy
        return variable

    @property
    def values(self) -> tuple[Variable, ...]:
        """The variable of each replica of this process."""
        return (self,) * self.strategy._local_replicas

    def _replica(self) -> ReplicaContext | None:
        """The replica of this variable's strategy that runs."""
        frame = current()
        return frame.replica if frame.strategy is self.strategy else None

    def _number(self) -> int | None:
        """The number of the replica in this process that runs, or whose device works."""
        frame = current()
        if frame.strategy is not self.strategy:
            return None
        return frame.number if frame.replica is None else frame.replica.number


def _changing(name: str) -> Any:
    """A method of `Variable` that takes a value as its first argument."""
    plain = getattr(Variable, name)

    def method(self: MirroredVariable, value: Any, *args: Any, **kwargs: Any) -> Any:
        replica = self._replica()
        if replica is not None and self.strategy.num_replicas_in_sync > 1 and not self._apart:
            return self._merged(replica, plain, value, args, kwargs)
        if isinstance(value, DistributedValues):
            value = _aggregated(self.strategy, self, value)
        return self._changed_to(plain, value, args, kwargs)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


class MirroredVariable(DistributedVariable):
    """A variable that all replicas see alike.

    What replicas assign, add or scatter is made one as `aggregation` says before it is done once;
    without an aggregation they all have to give the same.
    """

    __slots__ = ()

    assign = _changing("assign")
    assign_add = _changing("assign_add")
    assign_sub = _changing("assign_sub")
    scatter_add = _changing("scatter_add")
    scatter_sub = _changing("scatter_sub")
    scatter_mul = _changing("scatter_mul")
    scatter_div = _changing("scatter_div")
    scatter_min = _changing("scatter_min")
    scatter_max = _changing("scatter_max")
    scatter_update = _changing("scatter_update")

    @property
    def _apart(self) -> bool:
        """Whether a replica that assigns it changes a copy of its own: as TensorFlow does without
        an aggregation, where no other replica has the copy."""
        return (
            self.aggregation is VariableAggregation.NONE and self.strategy._local_replicas == 1
        )

    def _merged(
        self, replica: ReplicaContext, plain: Any, value: Any, args: Any, kwargs: Any
    ) -> Any:
        place = at(user_origin())

        def update(strategy: Strategy, given: Any) -> Any:
            if self.aggregation is VariableAggregation.NONE:
                new = self._agreed(given, place)
            else:
                new = _aggregated(strategy, self, given)
            self._changed_to(plain, new, args, kwargs)
            return self

        if not isinstance(value, td.IndexedSlices):
            value = td.convert_to_tensor(value, dtype_hint=self.dtype)
        return replica.merge_call(update, (replica.own(value),))

    def _agreed(self, given: Any, place: str) -> Any:
        """What the replicas assign to a variable without an aggregation. TensorFlow has a copy for
        each replica; the replicas of one memory share it, so all have to assign the same."""
        first, *others = local_values(given)
        for other in others:
            for one, two in zip(_parts(first), _parts(other), strict=True):
                message = _DIFFERENT.format(name=self.name.removesuffix(":0"), place=place)
                td.debugging.Assert(_are_alike(one, two), [message])
        return first

    def _changed_to(self, plain: Any, value: Any, args: Any, kwargs: Any) -> Any:
        """Change it by a method of `Variable`, where all replicas have met."""
        return plain(self, value, *args, **kwargs)


class _PartedVariable(DistributedVariable):
    """A variable that is one for each replica of this process."""

    __slots__ = ("_own",)

    _own: tuple[Variable, ...]

    @property
    def values(self) -> tuple[Variable, ...]:
        return self._own

    @property
    def here(self) -> Variable:
        return self._own[self._number() or 0]

    @property
    def current_spec(self) -> TensorSpec:
        return self.here.current_spec

    def cell(self) -> Any:
        return self.here.cell()

    def _shared_buffer(self, *args: Any) -> Any:
        return self._own[0]._shared_buffer(*args)


class VariableOfDevices(_PartedVariable, MirroredVariable):
    """A variable that all replicas see alike, on the device of each of them."""

    __slots__ = ()

    @property
    def _apart(self) -> bool:
        return self.aggregation is VariableAggregation.NONE

    def read_value(self) -> Tensor:
        """The value on the device that works, on the first one where none does."""
        return self.here.read_value()

    def numpy(self) -> Any:
        return self._own[0].numpy()

    def _changed_to(self, plain: Any, value: Any, args: Any, kwargs: Any) -> Any:
        number = self._number()
        if number is not None:
            plain(self._own[number], value, *args, **kwargs)
            return self
        for i, variable in enumerate(self._own):
            with self.strategy._working(i):
                plain(variable, selected(i, value), *args, **kwargs)
        return self


class PartOfVariable(Variable):
    """What one device has of a variable of several.

    Attributes:
        whole: the variable of all devices, as long as it lives.
    """

    __slots__ = ("whole",)

    whole: weakref.ref[DistributedVariable]

    def identity(self) -> Variable:
        return self.whole() or self


def _parts(value: Any) -> list[Any]:
    return [value.values, value.indices] if isinstance(value, td.IndexedSlices) else [value]


def _are_alike(one: Tensor, two: Tensor) -> Any:
    """Whether replicas computed one value, up to the last bits, which may depend on what a value is
    computed together with."""
    if tuple(one.shape) != tuple(two.shape) and one.shape.is_fully_defined():
        return False
    same = td.equal(one, two)
    if one.dtype.is_floating:
        scale = td.maximum(td.abs(one), td.abs(two))
        near = td.abs(one - two) <= 16 * np.finfo(one.dtype.as_numpy_dtype).eps * scale
        same = same | near | (td.math.is_nan(one) & td.math.is_nan(two))
    return td.reduce_all(same)


def _aggregated(strategy: Strategy, variable: Variable, given: Any) -> Any:
    """What the replicas assign to a variable as one value."""
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return strategy._from_first(local_values(given)[0])
    op = ReduceOp.from_variable_aggregation(variable.aggregation)
    return strategy._reduced([given], op)[0]


class _OwnVariable(_PartedVariable):
    """A variable of which each replica has its own, which it reads and assigns."""

    __slots__ = ()

    def _one(self) -> Tensor:
        """What it is read as outside of replicas."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """A replica's own value; outside of replicas one for all of them."""
        number = self._number()
        return self._one() if number is None else self._own[number].read_value()

    def numpy(self) -> Any:
        if context.recorder is not None:
            return Variable.numpy(self)  # which refuses it
        found = self.read_value().numpy()
        return found[()] if isinstance(found, np.ndarray) and not found.ndim else found

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Variable:  # fmt: skip
        """Set a replica's own value; outside of replicas that of all."""
        number = self._number()
        if number is not None:
            self._own[number].assign(value)
            return self
        if isinstance(value, DistributedValues):
            given = list(value.values)
        else:
            given = [self._part(td.convert_to_tensor(value, self.dtype))] * len(self._own)
        for i, (variable, new) in enumerate(zip(self._own, given, strict=True)):
            with self.strategy._working(i):
                variable.assign(new)
        return self

    def _part(self, value: Tensor) -> Tensor:
        """What each replica gets of a value that is assigned outside of replicas."""
        return value

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Variable:  # fmt: skip
        """Add to a replica's own value."""
        return self._changed("assign_add", delta)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Variable:  # fmt: skip
        """Subtract from a replica's own value."""
        return self._changed("assign_sub", delta)

    def _changed(self, method: str, delta: Any) -> Variable:
        number = self._number()
        if number is None:
            getattr(Variable, method)(self, delta)
        else:
            getattr(self._own[number], method)(delta)
        return self


class UnsyncedVariable(_OwnVariable):
    """A variable that is not trained and has no aggregation: each replica has its own. Outside of
    replicas it is read as that of the first one in this process."""

    __slots__ = ()

    def _one(self) -> Tensor:
        return self._own[0].read_value()


class SyncOnReadVariable(_OwnVariable):
    """A variable of which each replica has its own, as metrics need. Where it is read outside of
    replicas it is all of them made one, as `aggregation` says; of a sum that is assigned there each
    has its share."""

    __slots__ = ()

    def _one(self) -> Tensor:
        found = where.read.get(id(self))
        if found is None:
            found = self.strategy._values_of([self])[id(self)]
        return local_values(found)[0]  # type: ignore[no-any-return]

    def _part(self, value: Tensor) -> Tensor:
        if self.aggregation is not VariableAggregation.SUM:
            return value
        count = self.strategy.num_replicas_in_sync
        return td.cast(value / td.cast(count, value.dtype), self.dtype)

    def _changed(self, method: str, delta: Any) -> Variable:
        if self._number() is None and self.aggregation is VariableAggregation.SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when "
                "aggregation is set to `td.VariableAggregation.SUM`"
                f"{at(user_origin())}"
            )
        return super()._changed(method, delta)


def made_for(strategy: Strategy, made: Variable) -> Variable:
    """The variable of a strategy in place of one that was just made in its scope."""
    devices = strategy._replica_devices
    kind: type[DistributedVariable] = VariableOfDevices if devices else MirroredVariable
    if made.synchronization is VariableSynchronization.ON_READ:
        kind = SyncOnReadVariable
    elif made.aggregation is VariableAggregation.NONE and not made.trainable:
        kind = UnsyncedVariable
    found: DistributedVariable = _laid_over(type(made), kind).of(made, strategy)
    if devices:
        assert isinstance(found, _PartedVariable)
        found._own = tuple(_part_on(made, device, found) for device in devices)
        found._let_go()
    elif isinstance(found, _OwnVariable):
        device, replicas = made.spec.device, range(strategy._local_replicas)
        found._own = tuple(made.copied_to(device, Variable) for _ in replicas)
        found._let_go()
    return found


@functools.cache
def _laid_over(upper: type[Variable], kind: type[DistributedVariable]) -> Any:
    """The class of a strategy's variables that do besides what a class of layers does."""
    if not upper._is_layer:
        return kind
    return type(f"{upper.__name__}Of{kind.__name__}", (upper, kind), {"__slots__": ()})


def _part_on(made: Variable, device: Any, whole: DistributedVariable) -> Variable:
    """What a device has of a variable."""
    part = made.copied_to(device, PartOfVariable)
    part.whole = weakref.ref(whole)
    return part
