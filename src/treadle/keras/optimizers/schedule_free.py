"""AdamW that needs no schedule: weights lie between where steps lead and the mean of those."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.rows import Gradient, whole


class ScheduleFreeAdamW(Optimizer):
    """``z -= rate * g / (sqrt(v / (1 - beta_2^t)) + epsilon); x`` is the mean of all z, and
    ``w = (1 - beta_1) z + beta_1 x``.

    Args:
        beta_1: how near the weights are to the mean.
        beta_2: how much of the mean square of gradients stays with each update.
        epsilon: keeps divisions finite.
        warmup_steps: within so many steps the rate rises from 0.
    """

    slots = ("momentum", "velocity")

    def __init__(
        self, learning_rate: Any = 0.0025, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-8, warmup_steps: int = 0, *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.warmup_steps = warmup_steps

    def _groups(self) -> list[tuple[str, ...]]:
        return [("momentum",), ("velocity",)]

    def _new_slot(self, name: str, variable: td.Variable) -> td.Variable:
        slot = super()._new_slot(name, variable)
        if name == "momentum":  # where steps lead begins at the weight
            with td.init_scope():
                slot.assign(variable.read_value())
        return slot

    def factors(self, rate: td.Tensor, step: td.Tensor) -> dict[str, Any]:
        if self.warmup_steps > 0:
            rate = rate * td.minimum(step / self.warmup_steps, td.ones_like(step))
        return {
            "rate": rate, "part": 1.0 / step,
            "correction": 1.0 - td.pow(td.cast(self.beta_2, step.dtype), step),
        }  # fmt: skip

    def update(
        self, variable: td.Variable, grad: Gradient, slots: dict[str, td.Variable],
        factors: dict[str, Any],
    ) -> None:  # fmt: skip
        gradient = whole(grad, variable)
        end, velocity = slots["momentum"], slots["velocity"]
        before = end.read_value()
        velocity.assign_add((td.square(gradient) - velocity.read_value()) * (1 - self.beta_2))
        spread = td.sqrt(velocity.read_value() / factors["correction"]) + self.epsilon
        end.assign_sub(factors["rate"] * gradient / spread)
        mean = (variable.read_value() - (1 - self.beta_1) * before) / self.beta_1
        mean = (1 - factors["part"]) * mean + factors["part"] * end.read_value()
        variable.assign((1 - self.beta_1) * end.read_value() + self.beta_1 * mean)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon,
            "warmup_steps": self.warmup_steps,
        }  # fmt: skip
