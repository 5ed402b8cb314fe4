"""Variables made in the scope of a strategy.

The replicas of a process share its memory, so a variable that all of them see alike is one
variable; what they assign is first made one. A variable whose replicas differ until it is read
(`VariableSynchronization.ON_READ`) has a variable for each replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.distribute.contexts import current, where
from treadle.distribute.replicas import ReplicaContext
from treadle.distribute.values import DistributedValues, ReduceOp, local_values
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from treadle.distribute.strategy import Strategy

_UNDECIDED = (
    "You must specify an aggregation method to update a {kind} in Replica Context. You can do so "
    "by passing an explicit value for argument `aggregation` to td.Variable(..), e.g. "
    "`td.Variable(..., aggregation=td.VariableAggregation.SUM)`: variable {name!r}"
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


def _changing(name: str) -> Any:
    """A method of `Variable` that takes a value as its first argument."""
    plain = getattr(Variable, name)

    def method(self: MirroredVariable, value: Any, *args: Any, **kwargs: Any) -> Any:
        replica = self._replica()
        if replica is not None and self.strategy.num_replicas_in_sync > 1:
            return self._merged(replica, plain, value, args, kwargs)
        if isinstance(value, DistributedValues):
            value = _aggregated(self.strategy, self, value)
        return plain(self, value, *args, **kwargs)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


class MirroredVariable(DistributedVariable):
    """A variable that all replicas see alike.

    What replicas assign, add or scatter is made one as `aggregation` says before it is done once.
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

    def _merged(
        self, replica: ReplicaContext, plain: Any, value: Any, args: Any, kwargs: Any
    ) -> Any:
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                _UNDECIDED.format(kind="MirroredVariable", name=self.name) + at(user_origin())
            )

        def update(strategy: Strategy, given: Any) -> Any:
            plain(self, _aggregated(strategy, self, given), *args, **kwargs)
            return self

        if not isinstance(value, td.IndexedSlices):
            value = td.convert_to_tensor(value, dtype_hint=self.dtype)
        return replica.merge_call(update, (value,))


def _aggregated(strategy: Strategy, variable: Variable, given: Any) -> Any:
    """What the replicas assign to a variable as one value."""
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return strategy._from_first(local_values(given)[0])
    op = ReduceOp.from_variable_aggregation(variable.aggregation)
    return strategy._reduced([given], op)[0]


class SyncOnReadVariable(DistributedVariable):
    """A variable of which each replica has its own, as metrics need: a replica reads and assigns
    its own one. Read outside of replicas it is all of them made one, as `aggregation` says."""

    __slots__ = ("_others",)

    _others: tuple[Variable, ...]

    @property
    def values(self) -> tuple[Variable, ...]:
        return (self, *self._others)

    def value(self) -> Tensor:
        """A replica's own value; outside of replicas all of them as one."""
        replica = self._replica()
        if replica is not None:
            return Variable.value(self.values[replica.number])
        found = where.read.get(id(self))
        if found is None:
            found = self.strategy._values_of([self])[id(self)]
        return found  # type: ignore[no-any-return]

    read_value = value

    def numpy(self) -> Any:
        if context.recorder is not None:
            return Variable.numpy(self)  # which refuses it
        array = self.value().numpy()
        return array if array.ndim else array[()]

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Variable:  # fmt: skip
        """Set a replica's own value; outside of replicas that of all: of a sum each has its share.
        """
        replica = self._replica()
        if replica is not None:
            Variable.assign(self.values[replica.number], value)
            return self
        if isinstance(value, DistributedValues):
            given = list(value.values)
        else:
            tensor = td.convert_to_tensor(value, self.dtype)
            if self.aggregation is VariableAggregation.SUM:
                count = self.strategy.num_replicas_in_sync
                tensor = td.cast(tensor / td.cast(count, tensor.dtype), self.dtype)
            given = [tensor] * len(self.values)
        for variable, new in zip(self.values, given, strict=True):
            Variable.assign(variable, new)
        return self

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
        replica = self._replica()
        change = getattr(Variable, method)
        if replica is not None:
            change(self.values[replica.number], delta)
        elif self.aggregation is VariableAggregation.SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when "
                "aggregation is set to `td.VariableAggregation.SUM`"
                f"{at(user_origin())}"
            )
        else:
            change(self, delta)
        return self


def made_for(strategy: Strategy, made: Variable) -> Variable:
    """The variable of a strategy in place of one that was just made in its scope."""
    if made.synchronization is not VariableSynchronization.ON_READ:
        return MirroredVariable.of(made, strategy)
    found = SyncOnReadVariable.of(made, strategy)
    assert isinstance(found, SyncOnReadVariable)
    found._others = tuple(
        made.copied_to(made.spec.device, Variable) for _ in range(strategy._local_replicas - 1)
    )
    return found
