"""The update rules, as Keras computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.rows import (
    Gradient,
    add,
    approach,
    each,
    replace,
    subtract,
    whole,
)

Slots = dict[str, td.Variable]
Factors = dict[str, Any]


class SGD(Optimizer):
    """``w -= rate * g``, with momentum ``m = momentum * m - rate * g; w += m``."""

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
        *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"SGD: momentum must be in [0, 1], got {momentum}")
        self.slots = ("momentum",) if momentum else ()
        super().__init__(learning_rate, *general, **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        step = each(lambda g: g * factors["rate"], grad)
        if not self.momentum:
            subtract(variable, step)
            return
        momentum = slots["momentum"]
        velocity = _minus(momentum.read_value() * self.momentum, step)
        momentum.assign(velocity)
        if self.nesterov:
            velocity = _minus(velocity * self.momentum, step)
        variable.assign_add(velocity)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"momentum": self.momentum, "nesterov": self.nesterov}


class Adam(Optimizer):
    """Adam, with its bias correction folded into the rate and epsilon outside the root.

    ``m += (g - m) * (1 - beta_1); v += (g*g - v) * (1 - beta_2);``
    ``w -= rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)``
    """

    slots: tuple[str, ...] = ("momentum", "velocity")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *general: Any,
        **kwargs: Any,
    ) -> None:
        if amsgrad:
            self.slots = (*type(self).slots, "velocity_hat")
        super().__init__(learning_rate, *general, **kwargs)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon, amsgrad

    def _groups(self) -> list[tuple[str, ...]]:
        return [self._rule_slots[:2], self._rule_slots[2:]]

    def factors(self, rate: td.Tensor, step: td.Tensor) -> Factors:
        first = 1.0 - td.pow(td.cast(self.beta_1, step.dtype), step)
        second = 1.0 - td.pow(td.cast(self.beta_2, step.dtype), step)
        return {"rate": rate, "corrected": rate * td.sqrt(second) / first}

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        _follow_moments(slots, grad, self.beta_1, self.beta_2)
        m, v = slots["momentum"].read_value(), slots["velocity"].read_value()
        if self.amsgrad:
            v = td.maximum(slots["velocity_hat"].read_value(), v)
            slots["velocity_hat"].assign(v)
        variable.assign_sub(m * factors["corrected"] / (td.sqrt(v) + self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "amsgrad": self.amsgrad,
        }


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    def __init__(
        self, learning_rate: Any = 0.001, weight_decay: float = 0.004, beta_1: float = 0.9,
        beta_2: float = 0.999, epsilon: float = 1e-7, amsgrad: bool = False, *general: Any,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if weight_decay is None:
            raise ValueError(
                "Argument `weight_decay` must be a float. Received: weight_decay=None"
            )
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay, *general, **kwargs
        )


class RMSprop(Optimizer):
    """``v = rho * v + (1 - rho) * g*g; w -= rate * g / sqrt(v + epsilon)``.

    `centered` subtracts the squared moving mean of the gradient from v; `momentum` accumulates
    the steps.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        *general: Any,
        **kwargs: Any,
    ) -> None:
        momentum_slot = ("momentum",) if momentum > 0 else ()
        self.slots = ("velocity", *momentum_slot, *(("average_gradient",) if centered else ()))
        super().__init__(learning_rate, *general, **kwargs)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered

    def _groups(self) -> list[tuple[str, ...]]:
        names = ("velocity", "momentum", "average_gradient")
        return [(name,) for name in names if name in self.slots]

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        rate: td.Tensor = factors["rate"]
        taken = 1.0 - self.rho
        velocity, spreads = slots["velocity"], [slots["velocity"]]
        squares = each(lambda g: td.square(g) * taken, grad)
        replace(velocity, velocity.read_value() * self.rho, squares)
        if self.centered:
            mean = slots["average_gradient"]
            replace(mean, mean.read_value() * self.rho, each(lambda g: g * taken, grad))
            spreads.append(mean)

        def stepped(g: td.Tensor, velocity: td.Tensor, *mean: td.Tensor) -> td.Tensor:
            spread = velocity + self.epsilon
            if mean:
                spread = spread - td.square(mean[0])
            return rate * g / td.sqrt(spread)

        step = each(stepped, grad, *spreads)
        if self.momentum > 0:
            momentum = slots["momentum"]
            replace(momentum, momentum.read_value() * self.momentum, step)
            step = momentum.read_value()
        subtract(variable, step)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "rho": self.rho,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "centered": self.centered,
        }


class Adagrad(Optimizer):
    """``a += g*g; w -= rate * g / sqrt(a + epsilon)``."""

    slots: tuple[str, ...] = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        *general: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, *general, **kwargs)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def slot_start(self, name: str) -> float:
        return self.initial_accumulator_value

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        total = slots["accumulator"]
        add(total, each(td.square, grad))
        rate, epsilon = factors["rate"], self.epsilon
        subtract(variable, each(lambda g, t: rate * g / td.sqrt(t + epsilon), grad, total))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }


class Adadelta(Optimizer):
    """Steps as large as the steps before, relative to the gradients' sizes.

    ``a = rho * a + (1 - rho) * g*g; d = -sqrt(s + epsilon) / sqrt(a + epsilon) * g;``
    ``s = rho * s + (1 - rho) * d*d; w += rate * d``
    """

    slots: tuple[str, ...] = ("accumulated_grad", "accumulated_delta_var")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, *general: Any,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        self.rho, self.epsilon = rho, epsilon

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        kept, taken, epsilon = self.rho, 1.0 - self.rho, self.epsilon
        spread, steps = slots["accumulated_grad"], slots["accumulated_delta_var"]
        replace(spread, spread.read_value() * kept, each(lambda g: td.square(g) * taken, grad))
        delta = each(
            lambda g, steps, spread: -td.sqrt(steps + epsilon) * g / td.sqrt(spread + epsilon),
            grad, steps, spread,
        )  # fmt: skip
        replace(steps, steps.read_value() * kept, each(lambda d: td.square(d) * taken, delta))
        add(variable, each(lambda d: factors["rate"] * d, delta))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rho": self.rho, "epsilon": self.epsilon}


class Adamax(Optimizer):
    """Adam by the largest gradient instead of the mean square.

    ``m += (g - m) * (1 - beta_1); u = max(beta_2 * u, |g|);``
    ``w -= rate / (1 - beta_1**t) * m / (u + epsilon)``
    """

    slots: tuple[str, ...] = ("momentum", "norm")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def factors(self, rate: td.Tensor, step: td.Tensor) -> Factors:
        first = 1.0 - td.pow(td.cast(self.beta_1, step.dtype), step)
        return {"rate": rate, "corrected": rate / first}

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        approach(slots["momentum"], td.identity, grad, 1.0 - self.beta_1)
        size = whole(each(td.abs, grad), variable)
        norm = td.maximum(slots["norm"].read_value() * self.beta_2, size)
        slots["norm"].assign(norm)
        m = slots["momentum"].read_value()
        variable.assign_sub(factors["corrected"] * m / (norm + self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon,
        }  # fmt: skip


class Nadam(Adamax):
    """Adam with Nesterov's momentum, whose weight grows with the steps:
    ``u_t = beta_1 * (1 - 0.5 * 0.96**t)``.
    """

    slots: tuple[str, ...] = ("momentum", "velocity")
    _u_product: td.Variable | None = None  # of all u_t

    def _make_counters(self) -> None:
        super()._make_counters()
        if self._u_product is None:
            self._u_product = self._owned("u_product", lambda: td.ones([]))

    def _in_file(self, variables: Sequence[td.Variable]) -> list[td.Variable]:
        own = super()._in_file(variables)
        assert self._u_product is not None
        return [*own, self._u_product]

    def finish(self, step: td.Tensor) -> None:
        assert self._u_product is not None
        weight = self._weight(td.cast(step, td.float32))
        self._u_product.assign(self._u_product.read_value() * weight)

    def _weight(self, step: td.Tensor) -> td.Tensor:
        return self.beta_1 * (1.0 - 0.5 * td.pow(td.cast(0.96, step.dtype), step))

    def factors(self, rate: td.Tensor, step: td.Tensor) -> Factors:
        assert self._u_product is not None
        now, after = self._weight(step), self._weight(step + 1.0)
        product = td.cast(self._u_product.read_value(), step.dtype) * now
        return {
            "rate": rate,
            "of_momentum": after / (1.0 - product * after),
            "of_gradient": (1.0 - now) / (1.0 - product),
            "second": 1.0 - td.pow(td.cast(self.beta_2, step.dtype), step),
        }

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        _follow_moments(slots, grad, self.beta_1, self.beta_2)
        m, v = slots["momentum"].read_value(), slots["velocity"].read_value()
        own = each(lambda g: g * factors["of_gradient"], grad)
        step = m * factors["of_momentum"] + whole(own, variable)
        root = td.sqrt(v / factors["second"]) + self.epsilon
        variable.assign_sub(step * factors["rate"] / root)


class Ftrl(Optimizer):
    """Follows the regularized leader: weights come from the sums of all gradients, those whose sum
    stays below `l1_regularization_strength` are 0.

    ``a_new = a + g*g; z += g - (a_new**p - a**p) / rate * w;``
    ``w = (clip(z, -l1, l1) - z) / (a_new**p / rate + 2 * l2 + beta / rate)``
    with ``p = -learning_rate_power``.
    """

    slots: tuple[str, ...] = ("accumulator", "linear")

    def __init__(
        self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0, l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0, *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        least = {
            "initial_accumulator_value": initial_accumulator_value,
            "l1_regularization_strength": l1_regularization_strength,
            "l2_regularization_strength": l2_regularization_strength,
            "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
        }
        for name, value in least.items():
            if value < 0.0:
                raise ValueError(f"Ftrl: {name} must not be negative, got {value}")
        if learning_rate_power > 0.0:
            raise ValueError(
                f"Ftrl: learning_rate_power must not be above 0, got {learning_rate_power}"
            )
        self.learning_rate_power, self.beta = learning_rate_power, beta
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def slot_start(self, name: str) -> float:
        return self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        rate, weight = factors["rate"], variable.read_value()
        before = slots["accumulator"].read_value()
        after = before + whole(each(td.square, grad), variable)
        power, l1 = -self.learning_rate_power, self.l1_regularization_strength
        shrunk = whole(grad, variable) + 2.0 * self.l2_shrinkage_regularization_strength * weight
        grown = td.pow(after, power)
        taken = (grown - td.pow(before, power)) / rate * weight
        linear = slots["linear"].read_value() + shrunk - taken
        l2 = self.l2_regularization_strength + self.beta / (2.0 * rate)
        variable.assign((td.clip_by_value(linear, -l1, l1) - linear) / (grown / rate + 2.0 * l2))
        slots["linear"].assign(linear)
        slots["accumulator"].assign(after)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "learning_rate_power": self.learning_rate_power,
            "initial_accumulator_value": self.initial_accumulator_value,
            "l1_regularization_strength": self.l1_regularization_strength,
            "l2_regularization_strength": self.l2_regularization_strength,
            "l2_shrinkage_regularization_strength": self.l2_shrinkage_regularization_strength,
            "beta": self.beta,
        }


class Lion(Optimizer):
    """``w -= rate * sign(beta_1 * m + (1 - beta_1) * g); m = beta_2 * m + (1 - beta_2) * g``."""

    slots: tuple[str, ...] = ("momentum",)

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, *general: Any,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"Lion: beta_1 must be in (0, 1], got {beta_1}")
        self.beta_1, self.beta_2 = beta_1, beta_2

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        momentum, dense = slots["momentum"].read_value(), whole(grad, variable)
        way = td.sign(momentum * self.beta_1 + dense * (1.0 - self.beta_1))
        variable.assign_sub(factors["rate"] * way)
        slots["momentum"].assign(momentum * self.beta_2 + dense * (1.0 - self.beta_2))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"beta_1": self.beta_1, "beta_2": self.beta_2}


class Lamb(Adam):
    """Adam's step, as long as the weight's norm times the rate.

    ``u = (m / (1 - beta_1**t)) / (sqrt(v / (1 - beta_2**t)) + epsilon);``
    ``w -= rate * norm(w) / norm(u) * u``
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float = 1e-7, *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, *general, **kwargs)

    def factors(self, rate: td.Tensor, step: td.Tensor) -> Factors:
        first = 1.0 - td.pow(td.cast(self.beta_1, step.dtype), step)
        second = 1.0 - td.pow(td.cast(self.beta_2, step.dtype), step)
        return {"rate": rate, "first": first, "second": second}

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        _follow_moments(slots, grad, self.beta_1, self.beta_2)
        m, v = slots["momentum"].read_value(), slots["velocity"].read_value()
        step = m / factors["first"] / (td.sqrt(v / factors["second"]) + self.epsilon)
        norm, length = (
            td.sqrt(td.reduce_sum(td.square(x))) for x in (variable.read_value(), step)
        )
        ratio = td.where((norm > 0.0) & (length > 0.0), norm / length, td.ones_like(norm))
        variable.assign_sub(ratio * factors["rate"] * step)

    def get_config(self) -> dict[str, Any]:
        settings = super().get_config()
        del settings["amsgrad"]
        return settings


class Adafactor(Optimizer):
    """Steps relative to the weights' sizes, whose second moments are kept as the means of rows
    and columns.

    Args:
        relative_step: the rate is at most ``1 / sqrt(iteration)``.
    """

    slots: tuple[str, ...] = ("row", "column", "velocity")

    def __init__(
        self, learning_rate: Any = 0.001, beta_2_decay: float = -0.8, epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3, clip_threshold: float = 1.0, relative_step: bool = True,
        *general: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, *general, **kwargs)
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = beta_2_decay, epsilon_1, epsilon_2
        self.clip_threshold, self.relative_step = clip_threshold, relative_step

    def slot_shape(self, name: str, variable: td.Variable) -> tuple[int, ...]:
        shape = super().slot_shape(name, variable)
        if name == "row":
            return shape[:-1] if len(shape) > 1 else ()
        if name == "column":
            return (*shape[:-2], shape[-1]) if len(shape) > 1 else ()
        return shape

    def factors(self, rate: td.Tensor, step: td.Tensor) -> Factors:
        highest = 1.0 / td.sqrt(step)
        if self._schedule is None and self.relative_step:
            rate = td.minimum(rate, highest)
        kept = 1.0 - td.pow(step, self.beta_2_decay)
        return {"rate": rate, "relative": td.minimum(rate, highest), "kept": kept}

    def update(self, variable: td.Variable, grad: Gradient, slots: Slots, factors: Factors) -> None:
        weight, dense, kept = variable.read_value(), whole(grad, variable), factors["kept"]
        size = td.maximum(td.cast(self.epsilon_2, weight.dtype), _root_mean_square(weight))
        square = td.square(dense) + self.epsilon_1
        velocity = slots["velocity"]
        if len(variable.shape) < 2:
            velocity.assign(kept * velocity.read_value() + (1.0 - kept) * square)
        else:
            row, column = slots["row"], slots["column"]
            row.assign(kept * row.read_value() + (1.0 - kept) * td.reduce_mean(square, -1))
            column.assign(kept * column.read_value() + (1.0 - kept) * td.reduce_mean(square, -2))
            share = row.read_value() / td.reduce_mean(row.read_value(), -1, keepdims=True)
            velocity.assign(td.expand_dims(share, -1) * td.expand_dims(column.read_value(), -2))
        step = dense / td.sqrt(velocity.read_value())
        step = step / td.maximum(1.0, _root_mean_square(step) / self.clip_threshold)
        variable.assign_sub(size * factors["relative"] * step)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "beta_2_decay": self.beta_2_decay, "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2, "clip_threshold": self.clip_threshold,
            "relative_step": self.relative_step,
        }  # fmt: skip


def _root_mean_square(x: td.Tensor) -> td.Tensor:
    return td.sqrt(td.reduce_mean(td.square(x)))


def _follow_moments(slots: Slots, grad: Gradient, beta_1: float, beta_2: float) -> None:
    """Bring the running means of the gradient and of its square up to date."""
    approach(slots["momentum"], td.identity, grad, 1.0 - beta_1)
    approach(slots["velocity"], td.square, grad, 1.0 - beta_2)


def _minus(value: td.Tensor, step: Gradient) -> td.Tensor:
    """``value - step``."""
    if isinstance(step, td.IndexedSlices):
        return td.tensor_scatter_nd_sub(value, td.expand_dims(step.indices, -1), step.values)
    return value - step
