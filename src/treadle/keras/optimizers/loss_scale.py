"""LossScaleOptimizer: small gradients of half precision are kept by a factor of the loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import treadle as td
from treadle.keras import serialization
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.variables import is_overwritten

# Arguments of all optimizers that configurations have, with the values that say nothing.
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "weight_decay": (None,), "clipnorm": (None,), "global_clipnorm": (None,),
    "clipvalue": (None,), "use_ema": (None, False), "ema_momentum": (None, 0.99),
    "ema_overwrite_frequency": (None,), "loss_scale_factor": (None,),
    "gradient_accumulation_steps": (None,),
}  # fmt: skip


class LossScaleOptimizer(Optimizer):
    """Another optimizer whose loss is multiplied by a factor that adapts itself.

    Gradients with infinities or NaNs are left out and halve the factor; after
    `dynamic_growth_steps` updates without one it doubles.

    A training step calls ``optimizer.scale_loss(loss)`` and gives `apply_gradients` the gradients
    of that; or, as in Keras 2, it calls `get_scaled_loss`, then `get_unscaled_gradients`, and
    gives their results.

    Args:
        inner_optimizer: the optimizer that updates.
        initial_scale: the first factor.
        dynamic_growth_steps: after how many good updates the factor doubles.
    """

    def __init__(
        self, inner_optimizer: Optimizer, initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000, name: str | None = None, dynamic: bool = True,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not dynamic:
            raise ValueError(
                "LossScaleOptimizer does not support dynamic=False: instead, set "
                "`loss_scale_factor` of the optimizer itself"
            )
        given = [f"`{key}`" for key, value in kwargs.items() if value not in _DEFAULTS.get(key, ())]
        if given:
            raise ValueError(
                f"LossScaleOptimizer does not support arguments: {', '.join(given)}; give them to "
                "the inner optimizer"
            )
        self.inner_optimizer = inner_optimizer
        self.initial_scale, self.dynamic_growth_steps = initial_scale, dynamic_growth_steps
        self._good: td.Variable | None = None  # updates since the factor changed
        self._scale: td.Variable | None = None
        self._unscaled = False  # whether gradients come from `get_unscaled_gradients`
        super().__init__(0.0, name=name)
        inner_optimizer.loss_scale_factor = None  # they would be scaled twice

    def _make_counters(self) -> None:
        self.inner_optimizer._make_counters()
        if self._scale is None:
            start = float(self.initial_scale)
            self._good = self._owned("step_counter", lambda: td.zeros([], td.int64))
            self._scale = self._owned("dynamic_scale", lambda: td.constant(start))

    @property
    def dynamic_scale(self) -> td.Variable:
        """The factor."""
        self._make_counters()
        assert self._scale is not None
        return self._scale

    loss_scale = dynamic_scale  # Keras 2's name

    @property
    def step_counter(self) -> td.Variable:
        """How many updates were made since the factor changed."""
        self._make_counters()
        assert self._good is not None
        return self._good

    @property
    def variables(self) -> list[td.Variable]:
        """The counter, the factor, and those of the inner optimizer."""
        return [self.step_counter, self.dynamic_scale, *self.inner_optimizer.variables]

    def _trackable_children(self) -> dict[str, Any]:
        own = {"step_counter": self.step_counter, "dynamic_scale": self.dynamic_scale}
        return own | {"inner_optimizer": self.inner_optimizer}

    def _in_file(self, variables: Sequence[td.Variable]) -> list[td.Variable]:
        inner = self.inner_optimizer._in_file(variables)
        return [self.step_counter, self.dynamic_scale, *inner]

    @property
    def iterations(self) -> Any:
        """How many updates were made."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The inner optimizer's rate."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    lr = learning_rate

    def build(self, var_list: Iterable[td.Variable]) -> None:
        """Make the inner optimizer's slots of the given weights."""
        self._make_counters()
        self.inner_optimizer.build(var_list)
        self._weights, self.built = self.inner_optimizer._weights, True

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the factor."""
        loss = td.convert_to_tensor(loss)
        return loss * td.cast(self.dynamic_scale.read_value(), loss.dtype)

    get_scaled_loss = scale_loss

    def get_unscaled_gradients(self, grads: Iterable[Any]) -> list[Any]:
        """The gradients over the factor; `apply_gradients` takes them as they are from now on."""
        self._unscaled = True
        return self._over_scale(grads)

    def _over_scale(self, grads: Iterable[Any]) -> list[Any]:
        factor = 1.0 / self.dynamic_scale.read_value()
        return [None if g is None else td.scalar_mul(td.cast(factor, g.dtype), g) for g in grads]

    def _apply(self, given: list[tuple[Any, td.Variable]]) -> td.Variable:
        """Update the variables where all gradients are finite, else halve the factor."""
        pairs = self._with_gradients(given)
        variables = [v for _, v in pairs]
        if not self.built:
            self.build([v for _, v in given])
        for variable in variables:
            self.inner_optimizer._slots_of(variable)
        grads = [g for g, _ in pairs]
        # The gradients of some are no multiples of the loss, but what these are to be.
        kept = [is_overwritten(v) for v in variables]
        values = [g.values if isinstance(g, td.IndexedSlices) else g for g in grads]
        finite = td.reduce_all([td.reduce_all(td.math.is_finite(v)) for v in values])
        good, scale = self.step_counter, self.dynamic_scale

        def update() -> td.Tensor:
            unscaled = grads if self._unscaled else [
                own if stays else scaled
                for own, scaled, stays in zip(grads, self._over_scale(grads), kept, strict=True)
            ]  # fmt: skip
            self.inner_optimizer.apply_gradients(zip(unscaled, variables, strict=True))
            grown = good.read_value() == self.dynamic_growth_steps - 1
            scale.assign(td.where(grown, scale.read_value() * 2.0, scale.read_value()))
            good.assign(td.where(grown, td.zeros_like(good), good.read_value() + 1))
            return td.constant(True)

        def leave_out() -> td.Tensor:
            good.assign(td.zeros_like(good))
            scale.assign(scale.read_value() * 0.5)
            return td.constant(False)

        td.cond(finite, update, leave_out)
        return self.inner_optimizer._calls()

    def finalize_variable_values(self, var_list: Iterable[td.Variable]) -> None:
        """Put the averages of the weights in their place, where the inner optimizer has any."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "inner_optimizer": serialization.serialize_keras_object(self.inner_optimizer),
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Optimizer:
        inner = config["inner_optimizer"]
        made = serialization.deserialize_keras_object(inner, custom_objects)
        return cls(**config | {"inner_optimizer": made})
