"""Metric: a running value in variables, updated batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras import (
    config,
    dtype_policies,
    initializers,
    naming,
    serialization,
    stateless,
)
from treadle.keras.variables import copied, owned


class Metric:
    """Base of metrics: `update_state` adds a batch, `result` gives the value, `reset_state`
    starts anew. Calling the metric updates it and gives the result.

    Args:
        dtype: what it computes in; a policy, or its name. A string that comes first and is no such
            name is the metric's: Keras 2 had the name first.
        name: the metric's name; numbered by class when omitted.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _direction: str | None = None  # "up" where higher values are better, "down" where lower ones

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        metric: Any = super().__new__(cls)
        metric._arguments = args, kwargs  # for `get_config`
        return metric

    def __init__(self, dtype: Any = None, name: Any = None) -> None:
        if isinstance(dtype, str) and not dtype_policies.is_known(dtype):
            dtype, name = name, dtype
        self.name = name or naming.unique_name(type(self).__name__)
        self._dtype = dtype_policies.computed_in(dtype)
        self._variables: list[td.Variable] = []

    def add_variable(self, *args: Any, **kwargs: Any) -> td.Variable:
        """A new state variable, set to zeros by `reset_state`.

        Args:
            shape, initializer, name: as for a layer's weight. A string that comes first is the
                name, which Keras 2 had before the shape.
            dtype: `keras.config.floatx()` when omitted, whichever the metric computes in.
        """
        if args and isinstance(args[0], str):
            given = dict(zip(("name", "shape"), args, strict=False))
            return self._new_variable(**(given | kwargs))
        return self._new_variable(*args, **kwargs)

    def _new_variable(
        self, shape: Any = (), initializer: Any = "zeros", dtype: Any = None,
        name: str | None = None, aggregation: Any = None,
    ) -> td.Variable:  # fmt: skip
        kind, dims = dtype or config.floatx(), tuple(shape)
        make = initializers.get("zeros" if initializer is None else initializer)
        path = f"{self.name.replace('/', '>')}/{name or naming.unique_name('variable')}"
        variable = owned(
            path, lambda: make(dims, dtype=kind), trainable=False,
            synchronization=td.VariableSynchronization.ON_READ,
            aggregation=aggregation or td.VariableAggregation.SUM,
        )  # fmt: skip
        self._variables.append(variable)
        return variable

    def add_weight(self, *args: Any, **kwargs: Any) -> td.Variable:
        """`add_variable`, as Keras 2 called it too."""
        return self.add_variable(*args, **kwargs)

    @property
    def dtype(self) -> str:
        """What the metric computes in."""
        return self._dtype

    @property
    def variables(self) -> list[td.Variable]:
        """The state, that of metrics held in attributes included."""
        found = {id(v): v for v in self._variables}
        for name, value in vars(self).items():
            held = [] if name == "_arguments" else td.nest.flatten(value)
            for leaf in held if isinstance(value, list | tuple | dict) else [value]:
                if isinstance(leaf, td.Variable):
                    found.setdefault(id(leaf), leaf)
                elif isinstance(leaf, Metric):
                    found.update((id(v), v) for v in leaf.variables)
        return list(found.values())

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define update_state()")

    def result(self) -> Any:
        """The value so far."""
        raise NotImplementedError(f"{type(self).__name__} must define result()")

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable in self.variables:
            variable.assign(td.zeros(variable.shape, variable.dtype))

    reset_states = reset_state

    def stateless_update_state(
        self, metric_variables: Sequence[Any], *args: Any, **kwargs: Any
    ) -> list[td.Tensor]:
        """The values of the variables after a batch, which keep their own.

        Args:
            metric_variables: values that stand for those of `variables`.
            args, kwargs: for `update_state`.

        Raises:
            ValueError: there is not one value for each variable.
        """
        with self._scope(metric_variables) as scope:
            self.update_state(*args, **kwargs)
        return scope.values_of(self.variables)

    def stateless_result(self, metric_variables: Sequence[Any]) -> Any:
        """`result` with values that stand for those of `variables`."""
        with self._scope(metric_variables):
            return self.result()

    def stateless_reset_state(self) -> list[td.Tensor]:
        """The values of `variables` after a `reset_state`, which keep their own."""
        with stateless.StatelessScope() as scope:
            self.reset_state()
        return scope.values_of(self.variables)

    def _scope(self, values: Sequence[Any]) -> stateless.StatelessScope:
        pairs = stateless.pairs_of(self, "metric_variables", self.variables, values, "variables")
        return stateless.StatelessScope(pairs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.update_state(*args, **kwargs)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal metric."""
        args, kwargs = self._arguments
        given = serialization.arguments_of(self, args, kwargs)
        own = {"name": self.name, "dtype": self.dtype}
        kind = type(self)
        return given | {k: v for k, v in own.items() if serialization.takes(kind, k)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """A metric from what `get_config` gave."""
        return cls(**serialization.arguments_from(cls, config))

    def __reduce__(self) -> Any:
        """Pickled are the arguments and the state."""
        return _unpickled, (type(self), self.get_config(), [v.numpy() for v in self.variables])

    def __deepcopy__(self, memo: Any) -> Metric:
        made: Metric = copied(self, memo)
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _unpickled(kind: type[Metric], config: dict[str, Any], values: list[Any]) -> Metric:
    """The metric that was pickled."""
    made = kind.from_config(config)
    for variable, value in zip(made.variables, values, strict=False):
        variable.assign(value)
    return made


def numbers(value: Any, dtype: Any) -> td.Tensor:
    """A tensor of the dtype."""
    return td.cast(td.convert_to_tensor(value), dtype)
