"""Muon: matrices are updated by their momentum with all its singular values made equal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.rows import Gradient, whole
from treadle.keras.variables import path_of


class Muon(Optimizer):
    """Momentum that is made nearly orthogonal by Newton-Schulz iterations, for matrices; AdamW for
    other weights.

    Args:
        adam_beta_1, adam_beta_2, epsilon, adam_weight_decay: of AdamW.
        exclude_layers: patterns; weights whose names have one of them are AdamW's.
        exclude_embeddings: weights whose names have "embedding" are AdamW's.
        muon_a, muon_b, muon_c: the polynomial of the iterations.
        adam_lr_ratio: AdamW's learning rate, as a part of Muon's.
        momentum: how much of the momentum stays with each update.
        ns_steps: how many iterations.
        nesterov: look ahead along the momentum.
        rms_rate: the size of updates is this times the root of the longer side; None: 1.
    """

    slots = ("momentum", "velocity")

    def __init__(
        self, learning_rate: Any = 0.001, adam_beta_1: float = 0.9, adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004, epsilon: float = 1e-7,
        weight_decay: float | None = 0.004, clipnorm: float | None = None,
        clipvalue: float | None = None, global_clipnorm: float | None = None,
        use_ema: bool = False, ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None, loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None, name: str | None = None,
        exclude_layers: Sequence[str] | None = None, exclude_embeddings: bool = True,
        muon_a: float = 3.4445, muon_b: float = -4.775, muon_c: float = 2.0315,
        adam_lr_ratio: float = 1, momentum: float = 0.95, ns_steps: int = 5, nesterov: bool = True,
        rms_rate: float | None = 0.2, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm, use_ema,
            ema_momentum, ema_overwrite_frequency, loss_scale_factor, gradient_accumulation_steps,
            name, **kwargs,
        )  # fmt: skip
        self.adam_beta_1, self.adam_beta_2, self.epsilon = adam_beta_1, adam_beta_2, epsilon
        self.adam_weight_decay = adam_weight_decay
        self.exclude_layers = list(exclude_layers or [])
        self.exclude_embeddings = exclude_embeddings
        self.muon_a, self.muon_b, self.muon_c = muon_a, muon_b, muon_c
        self.adam_lr_ratio, self.momentum, self.ns_steps = adam_lr_ratio, momentum, ns_steps
        self.nesterov, self.rms_rate = nesterov, rms_rate

    def _is_adams(self, variable: td.Variable) -> bool:
        if len(variable.shape) != 2:
            return True
        if self.exclude_embeddings and "embedding" in path_of(variable).lower():
            return True
        return any(re.search(pattern, path_of(variable)) for pattern in self.exclude_layers)

    def slot_names(self, variable: td.Variable) -> tuple[str, ...]:
        adams = self._is_adams(variable)
        return tuple(name for name in self.slots if adams or name != "velocity")

    def decay_of(self, variable: td.Variable) -> float | None:
        return self.adam_weight_decay if self._is_adams(variable) else self.weight_decay

    def factors(self, rate: td.Tensor, step: td.Tensor) -> dict[str, Any]:
        first = 1.0 - td.pow(td.cast(self.adam_beta_1, step.dtype), step)
        second = 1.0 - td.pow(td.cast(self.adam_beta_2, step.dtype), step)
        return {"rate": rate, "corrected": rate * self.adam_lr_ratio * td.sqrt(second) / first}

    def update(
        self, variable: td.Variable, grad: Gradient, slots: dict[str, td.Variable],
        factors: dict[str, Any],
    ) -> None:  # fmt: skip
        gradient, momentum = whole(grad, variable), slots["momentum"]
        velocity = slots.get("velocity")
        if velocity is not None:
            momentum.assign_add((gradient - momentum.read_value()) * (1 - self.adam_beta_1))
            more = td.square(gradient) - velocity.read_value()
            velocity.assign_add(more * (1 - self.adam_beta_2))
            spread = td.sqrt(velocity.read_value()) + self.epsilon
            variable.assign_sub(momentum.read_value() * factors["corrected"] / spread)
            return
        momentum.assign_add(gradient + momentum.read_value() * (self.momentum - 1))
        now = momentum.read_value()
        moved = self.zeropower_via_newtonschulz5(
            gradient + self.momentum * now if self.nesterov else now, self.ns_steps
        )
        variable.assign_sub(factors["rate"] * self.lr_adjust(moved))

    def lr_adjust(self, x: td.Tensor) -> td.Tensor:
        """An update times `rms_rate` and the root of the longer side, unless that rate is None."""
        if self.rms_rate is None:
            return x
        longer = max(size or 0 for size in x.shape.as_list())
        return x * float(longer**0.5 * self.rms_rate)

    def zeropower_via_newtonschulz5(self, x: Any, steps: int) -> td.Tensor:
        """A matrix with the singular vectors of x and singular values near 1.

        Args:
            x: a matrix.
            steps: of Newton and Schulz's iteration.
        """
        x = td.convert_to_tensor(x)
        tall = x.shape[0] > x.shape[1]
        x = td.transpose(x) if tall else x
        x = x / (td.sqrt(td.reduce_sum(td.square(x))) + 1e-7)
        for _ in range(steps):
            square = td.matmul(x, x, transpose_b=True)
            change = self.muon_b * square + self.muon_c * td.matmul(square, square)
            x = self.muon_a * x + td.matmul(change, x)
        return td.transpose(x) if tall else x

    def get_config(self) -> dict[str, Any]:
        names = (
            "adam_beta_1", "adam_beta_2", "epsilon", "exclude_layers", "muon_a", "muon_b", "muon_c",
            "adam_lr_ratio", "momentum", "ns_steps", "nesterov", "exclude_embeddings",
            "adam_weight_decay", "rms_rate",
        )  # fmt: skip
        return super().get_config() | {name: getattr(self, name) for name in names}
