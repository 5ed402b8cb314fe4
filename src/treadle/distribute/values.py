"""Values of which each replica has one, and how several are made one."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import treadle as td
from treadle.core.composite_spec import CompositeSpec
from treadle.core.nest import register_node
from treadle.core.origin import at, user_origin
from treadle.ops.state import VariableAggregation


class ReduceOp(enum.Enum):
    """How the values of replicas are made one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> ReduceOp:
        """What a variable's aggregation asks for.

        Raises:
            ValueError: it is neither SUM nor MEAN.
        """
        found = ReduceOp.__members__.get(aggregation.name)
        if found is None:
            raise ValueError(f"Could not convert from `VariableAggregation` {aggregation} to "
                             f"`ReduceOp` type{at(user_origin())}")  # fmt: skip
        return found


def reduce_op(value: Any) -> ReduceOp:
    """A ReduceOp, which may be given by its name.

    Raises:
        ValueError: there is no such name.
    """
    if isinstance(value, str):
        value = ReduceOp.__members__.get(value.upper(), value)
    if not isinstance(value, ReduceOp):
        raise ValueError(
            f"reduce_op must be td.distribute.ReduceOp.SUM or .MEAN, got {value!r}"
            f"{at(user_origin())}"
        )
    return value


class DistributedValues:
    """A value for each of the replicas of this process.

    Attributes:
        values: the value of each replica, in their order.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)

    def __repr__(self) -> str:
        listed = ",\n".join(f"  {i}: {value!r}" for i, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n{listed}\n}}"


class PerReplica(DistributedValues):
    """What each replica has: results of `Strategy.run`, elements of distributed datasets.

    It is a structure (`td.nest`) of the values, so functions take and give it.
    """

    @property
    def _type_spec(self) -> PerReplicaSpec:
        return PerReplicaSpec(*map(_spec_of, self.values))


class PerReplicaSpec(CompositeSpec):
    """The type of a `PerReplica`, for an ``input_signature``.

    Args:
        value_specs: the structure of specs of each replica's value.
    """

    __slots__ = ("values",)

    value_type = seen_as = PerReplica

    def __init__(self, *value_specs: Any) -> None:
        self.values = value_specs

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self.values))})"


class Mirrored(DistributedValues):
    """A value that all replicas have."""


def _spec_of(value: Any) -> Any:
    return td.nest.map_structure(lambda x: td.TensorSpec.from_tensor(x), value)


register_node(PerReplica, lambda x: list(x.values), lambda _, new: PerReplica(new), lambda _: "")
register_node(
    PerReplicaSpec, lambda x: list(x.values), lambda _, new: PerReplicaSpec(*new), lambda _: ""
)


def selected(number: int, value: Any, kinds: tuple[type, ...] = (DistributedValues,)) -> Any:
    """A structure with the values that a replica of this process has.

    Args:
        kinds: of what has a value for each replica.
    """
    if isinstance(value, kinds):
        return value.values[number]  # type: ignore[attr-defined]
    if isinstance(value, Mapping):
        items = {k: selected(number, v, kinds) for k, v in value.items()}
        return items if type(value) is dict else type(value)(items)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(selected(number, v, kinds) for v in value))
    if type(value) in (list, tuple):
        return type(value)(selected(number, v, kinds) for v in value)
    return value


def regrouped(values: Sequence[Any]) -> Any:
    """A structure of what the replicas of this process have, from one structure of each.

    Raises:
        ValueError: the structures differ.
    """
    first = values[0]
    if len(values) == 1:
        return first
    if isinstance(first, Mapping):
        _check(all(isinstance(v, Mapping) and v.keys() == first.keys() for v in values), values)
        items = {k: regrouped([v[k] for v in values]) for k in first}
        return items if type(first) is dict else type(first)(items)  # type: ignore[call-arg]
    if isinstance(first, list | tuple):
        _check(all(type(v) is type(first) and len(v) == len(first) for v in values), values)
        parts = [regrouped(column) for column in zip(*values, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if all(v is first for v in values):
        return first
    return PerReplica(values)


def _check(fits: bool, values: Sequence[Any]) -> None:
    if not fits:
        raise ValueError(
            f"The replicas give structures that differ: {values!r}{at(user_origin())}"
        )


def local_values(value: Any) -> tuple[Any, ...]:
    """The values of the replicas of this process; a value that is no distributed one alone."""
    return value.values if isinstance(value, DistributedValues) else (value,)


def added(values: Sequence[Any], op: ReduceOp) -> Any:
    """The sum or mean of values, added in their order. Of `td.IndexedSlices` the rows are put one
    after the other."""
    if isinstance(values[0], td.IndexedSlices):
        rows = td.concat([v.values for v in values], 0)
        if op is ReduceOp.MEAN:
            rows = rows / td.cast(len(values), rows.dtype)
        indices = td.concat([v.indices for v in values], 0)
        return td.IndexedSlices(rows, indices, values[0].dense_shape)
    total = td.convert_to_tensor(values[0])
    for value in values[1:]:
        total = total + value
    return total if op is ReduceOp.SUM else divided(total, len(values))


def divided(total: Any, count: int) -> Any:
    """A sum over so many replicas as their mean, which is a float."""
    return total / td.cast(count, total.dtype)
