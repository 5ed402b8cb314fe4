"""Optimizer: gradients processed, slots made on first use, one update rule per subclass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import naming, serialization
from treadle.keras.optimizers.rows import Gradient

# The names of slots in checkpoints of Keras 2.
_KERAS_2 = {
    "m": "momentum", "v": "velocity", "vhat": "velocity_hat", "rms": "velocity",
    "mg": "average_gradient", "accum_grad": "accumulated_grad",
    "accum_var": "accumulated_delta_var",
}  # fmt: skip


class Optimizer:
    """Base of optimizers.

    Args:
        learning_rate: a number, a tensor, or a schedule: a function of the iteration.
        weight_decay: the fraction of each weight that an update takes away, times the rate.
        clipnorm: the largest norm of each gradient.
        clipvalue: the largest absolute value in each gradient.
        global_clipnorm: the largest norm of all gradients together.
        name: the optimizer's name.
        lr: Keras 2's name of the learning rate.

    Subclasses say which slot variables a weight needs (`slots`) and how it changes (`update`).
    """

    slots: tuple[str, ...] = ()

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        learning_rate = kwargs.pop("lr", learning_rate)  # Keras 2's name
        if kwargs.pop("decay", None):
            warnings.warn(
                f"{type(self).__name__}: decay is ignored, as in Keras 3; give a schedule as the "
                "learning rate, such as keras.optimizers.schedules.InverseTimeDecay",
                stacklevel=3,
            )
        if kwargs:
            unknown = ", ".join(sorted(kwargs))
            raise TypeError(f"{type(self).__name__} got unsupported arguments: {unknown}")
        if sum(c is not None for c in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError("Give only one of clipnorm, clipvalue and global_clipnorm")
        self.name = name or naming.unique_name(type(self).__name__)
        self.weight_decay, self.clipnorm = weight_decay, clipnorm
        self.clipvalue, self.global_clipnorm = clipvalue, global_clipnorm
        self._schedule = learning_rate if callable(learning_rate) else None
        self._start_rate = None if self._schedule else learning_rate
        self._rate: td.Variable | None = None
        self._iterations: td.Variable | None = None
        # id of a weight -> (the weight, its slots by name)
        self._slots: dict[int, tuple[td.Variable, dict[str, td.Variable]]] = {}
        if td.executing_eagerly():
            self._make_counters()

    # -- state -----------------------------------------------------------------------------------

    def _make_counters(self) -> None:
        if self._iterations is None:
            self._iterations = td.Variable(
                lambda: td.zeros([], td.int64), trainable=False, name="iteration"
            )
        if self._rate is None and self._schedule is None:
            rate = self._start_rate
            self._rate = td.Variable(
                lambda: td.cast(rate, td.float32), trainable=False, name="learning_rate"
            )

    @property
    def iterations(self) -> td.Variable:
        """How many updates were made, an int64 scalar."""
        self._make_counters()
        assert self._iterations is not None
        return self._iterations

    @property
    def learning_rate(self) -> Any:
        """The rate: a variable that may be assigned, or the schedule's current value."""
        self._make_counters()
        return self._schedule(self.iterations) if self._schedule else self._rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._make_counters()
        if callable(value):
            self._schedule, self._rate = value, None
        elif self._schedule is not None:
            self._schedule, self._start_rate = None, value
            self._make_counters()
        else:
            assert self._rate is not None
            self._rate.assign(td.cast(value, td.float32))

    lr = learning_rate

    @property
    def variables(self) -> list[td.Variable]:
        """The counter, the rate and all slots."""
        own = [v for v in (self._iterations, self._rate) if v is not None]
        return own + [s for _, slots in self._slots.values() for s in slots.values()]

    # What checkpoints find here; Keras 2 had other names.

    def _trackable_children(self) -> dict[str, Any]:
        found = {k: v for k, v in vars(self).items() if isinstance(v, td.Variable)}
        rate = found.pop("_rate", None)
        return found if rate is None else found | {"_learning_rate": rate}

    def _trackable_aliases(self, name: str) -> tuple[str, ...]:
        return {"_iterations": ("iter",), "_learning_rate": ("learning_rate",)}.get(name, ())

    def _trackable_slots(self) -> Iterator[tuple[td.Variable, str, td.Variable]]:
        for variable, slots in list(self._slots.values()):
            yield from ((variable, name, slot) for name, slot in slots.items())

    def _trackable_slot(self, variable: td.Variable, name: str) -> td.Variable | None:
        """A slot of a weight, made if need be; None where this optimizer has none of that name."""
        name = _KERAS_2.get(name, name)
        return self._slots_of(variable)[name] if name in self.slots else None

    def _groups(self) -> list[tuple[str, ...]]:
        """The slots in the order in which files of Keras have them: all of a group for the first
        weight, then for the next one."""
        return [self.slots]

    def _in_file(self, variables: Sequence[td.Variable]) -> list[td.Variable]:
        """The counter, the rate and the slots of the given weights in the order of Keras's files.
        """
        self.build(variables)
        own = [v for v in (self._iterations, self._rate) if v is not None]
        for group in self._groups():
            own += [self._slots_of(v)[name] for v in variables for name in group]
        return own

    def build(self, var_list: Iterable[td.Variable]) -> None:
        """Make the slots of the given weights now instead of on the first update."""
        self._make_counters()
        for variable in var_list:
            self._slots_of(variable)

    def _slots_of(self, variable: td.Variable) -> dict[str, td.Variable]:
        if not self.slots:
            return {}
        weight = variable.identity()
        found = self._slots.get(id(weight))
        if found is None:
            slots = {name: self._new_slot(name, weight) for name in self.slots}
            found = self._slots[id(weight)] = (weight, slots)
        return found[1]

    def _new_slot(self, name: str, variable: td.Variable) -> td.Variable:
        shape, dtype, value = tuple(variable.shape), variable.dtype, self.slot_start(name)
        label = f"{variable.name.removesuffix(':0')}/{name}"
        return td.Variable(
            lambda: td.fill(shape, td.cast(value, dtype)), trainable=False, name=label
        )

    def slot_start(self, name: str) -> float:
        """The value that a slot starts from."""
        return 0.0

    # -- updating --------------------------------------------------------------------------------

    def minimize(self, loss: Any, var_list: Any, tape: Any = None) -> td.Variable:
        """Take the gradient of `loss` (a function, or a tensor with its `tape`) and apply it."""
        if callable(loss):
            with td.GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("minimize: a loss that is a tensor needs the tape that recorded it")
        variables = list(var_list() if callable(var_list) else var_list)
        return self.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[td.Variable]) -> None:
        """`apply_gradients` with two lists."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, td.Variable]], name: str | None = None
    ) -> td.Variable:
        """Update each variable by its gradient; pairs whose gradient is None are left out.

        Returns:
            `iterations`, increased by one.

        Raises:
            ValueError: no variable has a gradient, or a gradient has another shape.
        """
        pairs = self._with_gradients(list(grads_and_vars))
        self._make_counters()
        for _, variable in pairs:
            self._slots_of(variable)
        grads = self._clipped([g for g, _ in pairs])
        rate = td.convert_to_tensor(self.learning_rate)
        step = self.iterations.value() + 1
        common: dict[Any, Any] = {}
        for grad, (_, variable) in zip(grads, pairs, strict=True):
            dtype = variable.dtype
            if dtype.name not in common:
                common[dtype.name] = self.factors(td.cast(rate, dtype), td.cast(step, dtype))
            self._update_one(variable, td.cast(grad, dtype), common[dtype.name])
        self.iterations.assign(step)
        return self.iterations

    def _with_gradients(
        self, pairs: list[tuple[Any, td.Variable]]
    ) -> list[tuple[Any, td.Variable]]:
        kept = [(_as_gradient(g), v) for g, v in pairs if g is not None]
        if not kept:
            names = ", ".join(v.name for _, v in pairs) or "an empty list"
            raise ValueError(f"No gradients provided for any variable: {names}")
        for grad, variable in kept:
            if not grad.shape.is_compatible_with(variable.shape):
                raise ValueError(
                    f"The gradient of {variable.name!r} has shape {grad.shape}, the variable has "
                    f"shape {variable.shape}"
                )
        return kept

    def _clipped(self, grads: list[Gradient]) -> list[Gradient]:
        """Of gradients that are rows, the rows are clipped."""
        if self.clipvalue is not None:
            return [td.clip_by_value(g, -self.clipvalue, self.clipvalue) for g in grads]
        if self.clipnorm is not None:
            return [_scaled_to_norm(g, self.clipnorm, [g]) for g in grads]
        if self.global_clipnorm is not None:
            return [_scaled_to_norm(g, self.global_clipnorm, grads) for g in grads]
        return grads

    def _update_one(self, variable: td.Variable, grad: Gradient, factors: dict[str, Any]) -> None:
        if self.weight_decay:
            decay = factors["rate"] * self.weight_decay
            value = variable.value()
            variable.assign(value - value * decay)
        self.update(variable, grad, self._slots_of(variable), factors)
        if variable.constraint is not None:
            variable.assign(variable.constraint(variable.value()))

    def factors(self, rate: td.Tensor, step: td.Tensor) -> dict[str, Any]:
        """Scalars that all updates of a step share; `rate` must be among them."""
        return {"rate": rate}

    def update(
        self, variable: td.Variable, grad: Gradient, slots: dict[str, td.Variable],
        factors: dict[str, Any],
    ) -> None:  # fmt: skip
        """Assign the variable and its slots.

        Args:
            grad: a tensor; or `td.IndexedSlices` where only rows of the variable were read.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update()")

    # -- configuration ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimizer."""
        rate = self._schedule or float(np.asarray(td.convert_to_tensor(self.learning_rate)))
        return {
            "name": self.name,
            "learning_rate": rate,
            "weight_decay": self.weight_decay,
            "clipnorm": self.clipnorm,
            "clipvalue": self.clipvalue,
            "global_clipnorm": self.global_clipnorm,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Optimizer:
        """An optimizer from what `get_config` gave."""
        return cls(**{key: serialization.deserialize_keras_object(v) for key, v in config.items()})


def _as_gradient(value: Any) -> Gradient:
    return value if isinstance(value, td.IndexedSlices) else td.convert_to_tensor(value)


def _scaled_to_norm(grad: Gradient, limit: float, group: Sequence[Gradient]) -> Gradient:
    """`grad` scaled so that the norm of `group` does not exceed `limit`."""
    values = [g.values if isinstance(g, td.IndexedSlices) else g for g in group]
    total = td.add_n([td.reduce_sum(td.square(v)) for v in values])
    return td.scalar_mul(limit / td.maximum(td.sqrt(total), limit), grad)
