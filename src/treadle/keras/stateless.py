"""Layers, metrics and optimizers as functions of the values of their variables.

``stateless_call`` and the like run a method while given values stand for those of the variables,
and give what the method would have assigned. The variables keep their own values, and gradients go
to the values that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import treadle as td
from treadle.module import substituting


class StatelessScope:
    """A block in which values stand for those of variables, and assignments are only noted.

    Args:
        state_mapping: pairs of a variable and its value.
        collect_losses: whether `add_loss` keeps losses.
        initialize_variables: accepted for Keras programs.

    Raises:
        ValueError: a pair is none of a variable and a value of its shape.

        with keras.StatelessScope(state_mapping=[(v, 5.0)]) as scope:
            v.assign(v + 1.0)
        scope.get_current_value(v)  # 6.0; the variable has its value still
    """

    def __init__(
        self, state_mapping: Any = None, collect_losses: bool = False,
        initialize_variables: bool = True,
    ) -> None:  # fmt: skip
        self.collect_losses, self.losses = collect_losses, list[Any]()
        self._values: dict[int, td.Tensor] = {}
        self._kept: list[td.Variable] = []
        pairs = state_mapping.items() if hasattr(state_mapping, "items") else state_mapping or ()
        for variable, value in pairs:
            if not isinstance(variable, td.Variable):
                raise ValueError(
                    "Invalid reference variable in StatelessScope: all keys in argument `mapping` "
                    f"must be Variable instances. Received instead: {variable!r}"
                )
            if value is not None:
                given = td.convert_to_tensor(value, dtype_hint=variable.dtype)
                self.write(variable, td.cast(given, variable.dtype))

    def read(self, variable: td.Variable) -> td.Tensor | None:
        """The value that stands for a variable's, or None."""
        return self._values.get(id(variable.identity()))

    def write(self, variable: td.Variable, value: td.Tensor) -> None:
        """Let a value stand for a variable's from now on.

        Raises:
            ValueError: it has another shape.
        """
        if not variable.shape.is_compatible_with(value.shape):
            raise ValueError(
                "Invalid variable value in StatelessScope: all values in argument `mapping` must "
                f"be tensors with a shape that matches the corresponding variable shape. For the "
                f"variable {variable.name} of shape {variable.shape} a value of shape "
                f"{value.shape} was given"
            )
        self._kept.append(variable)  # its id stays its own
        self._values[id(variable.identity())] = value

    def add_loss(self, loss: Any) -> None:
        """Keep a loss, where they are collected."""
        self.losses.append(loss)

    def add_update(self, update: tuple[td.Variable, Any]) -> None:
        """Take note of a variable's new value."""
        variable, value = update
        self.write(variable, td.cast(value, variable.dtype))

    def get_current_value(self, variable: td.Variable) -> td.Tensor | None:
        """The value that stands for a variable's, None if there is none."""
        return self.read(variable)

    def __enter__(self) -> StatelessScope:
        self._block = substituting(self)
        self._block.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._block.__exit__(*error)

    def values_of(self, variables: Iterable[td.Variable]) -> list[td.Tensor]:
        """The values of variables at the end of the block."""
        found = []
        for variable in variables:
            value = self.read(variable)
            found.append(variable.read_value() if value is None else value)
        return found


def pairs_of(
    owner: Any, name: str, variables: Sequence[td.Variable], values: Sequence[Any], what: str
) -> list[tuple[td.Variable, Any]]:
    """Variables and the values that stand for theirs.

    Args:
        owner: whose variables they are.
        name: of the argument that holds the values.
        what: how the owner calls the variables.

    Raises:
        ValueError: there is not one value for each variable.
    """
    if len(values) != len(variables):
        raise ValueError(
            f"Argument `{name}` must be a list of tensors corresponding 1:1 to "
            f"{type(owner).__name__}().{what}. Received list with length {len(values)}, but "
            f"expected {len(variables)} variables."
        )
    return list(zip(variables, values, strict=True))
