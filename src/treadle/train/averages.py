"""``td.train.ExponentialMovingAverage``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.context import recording
from treadle.core.tensor import Reference
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.state import Variable


class ExponentialMovingAverage:
    """Averages of variables in which older values count for less and less:
    ``average -= (1 - decay) * (average - variable)``.

    Args:
        decay: what is left of an average in an update, a number or a scalar tensor.
        num_updates: a count; with it the decay is at most ``(1 + count) / (10 + count)``, so that
            averages move faster in the beginning.
        zero_debias: taken for TensorFlow's programs: averages of variables begin with their values.
        name: the end of the averages' names.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:  # fmt: skip
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[Reference, Variable] = {}

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Sequence[Variable] | None = None) -> None:
        """Update the averages of variables, and make those that are not there yet.

        Raises:
            TypeError: something else than variables of floats.
            ValueError: no list is given.
        """
        if var_list is None:
            raise ValueError("ExponentialMovingAverage.apply: give the list of variables")
        for variable in var_list:
            if not isinstance(variable, Variable):
                raise TypeError(
                    "td.train.ExponentialMovingAverage does not support non-Variable tensors: "
                    f"{variable!r}"
                )
            if not variable.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {variable.name}")
        decay = cast(convert_to_tensor(self._decay), dtypes.float32)
        if self._num_updates is not None:
            count = cast(convert_to_tensor(self._num_updates), dtypes.float32)
            decay = minimum(decay, (1.0 + count) / (10.0 + count))
        for variable in var_list:
            average = self._average(variable)
            taken = cast(1.0 - decay, variable.dtype)
            average.assign_sub((average.read_value() - variable.read_value()) * taken)

    def _average(self, variable: Variable) -> Variable:
        found = self._averages.get(variable.ref())
        if found is None:
            name = self.average_name(variable)
            with recording(None):
                found = Variable(variable.identity().read_value(), trainable=False, name=name)
            self._averages[variable.ref()] = found
        return found

    def average(self, var: Variable) -> Variable | None:
        """The average of a variable, itself a variable; None where there is none."""
        return self._averages.get(var.ref())

    def average_name(self, var: Variable) -> str:
        """The name that the average of a variable has or would have."""
        found = self.average(var)
        if found is not None:
            return found.name.removesuffix(":0")
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Sequence[Variable] | None = None) -> Any:
        """Variables by the names under which a checkpoint has their averages, or themselves where
        they have none.

        Args:
            moving_avg_variables: those that have averages; the ones of `apply` when omitted.
        """
        known = moving_avg_variables
        if known is None:
            known = [reference.deref() for reference in self._averages]
        return {self.average_name(variable): variable for variable in known}
