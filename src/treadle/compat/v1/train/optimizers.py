"""Optimizers: operations that change variables by the gradients of a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.initializers import constant_initializer
from treadle.compat.v1.recording import writes_into
from treadle.compat.v1.scopes import in_scope
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import (
    Variable,
    grouped,
    trainable_variables,
    writing,
)
from treadle.core.origin import at, user_origin


class Optimizer:
    """What all optimizers have: `minimize`, which is `compute_gradients` and `apply_gradients`.

    A class of one says by `_slots` which variables it keeps for each variable, by `_settings` which
    numbers its update takes, and by `_update` how a variable changes.

    Args:
        use_locking: accepted for TensorFlow programs.
        name: of its operations and variables.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2

    def __init__(self, use_locking: bool = False, name: str | None = None) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._name = name
        self._made: dict[str, dict[Any, Any]] = {}
        self._shared: dict[str, Any] = {}

    # -- what classes say --------------------------------------------------------------------

    def _slots(self) -> dict[str, float]:
        """The variables for each variable, with their initial values."""
        return {}

    def _powers(self) -> dict[str, float]:
        """Variables of one number, by their initial values."""
        return {}

    def _settings(self) -> tuple[Any, ...]:
        """The numbers and tensors of the update."""
        return ()

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        """Change a variable and its slots, all of treadle's."""
        raise NotImplementedError

    def _finish(self) -> list[Any]:
        """Operations after all variables are changed."""
        return []

    # -- for users ---------------------------------------------------------------------------

    def get_name(self) -> str:
        return self._name

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None, gate_gradients: int = 1,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        name: str | None = None, grad_loss: Any = None,
    ) -> Any:  # fmt: skip
        """An operation that makes a loss smaller.

        Args:
            loss: a tensor; a function of it where calls are made at once.
            global_step: a variable that grows by one.
            var_list: the variables to change; the trainable ones where omitted.

        Raises:
            ValueError: the loss depends on none of the variables.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops,
            grad_loss,
        )  # fmt: skip
        if not any(g is not None for g, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {[str(v) for _, v in pairs]} and loss "
                f"{loss}.{at(user_origin())}"
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = 1,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:  # fmt: skip
        """Pairs of a gradient, or None, and its variable.

        Raises:
            ValueError: there are no variables.
        """
        if gate_gradients not in (0, 1, 2):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH. Not {gate_gradients}"
            )
        if callable(loss) and element(loss) is None:
            with td.GradientTape() as tape:
                value = loss()
            chosen = list(var_list if var_list is not None else tape.watched_variables())
            return list(zip(tape.gradient(value, chosen, grad_loss), chosen, strict=True))
        if var_list is None:
            graph = get_default_graph()
            var_list = trainable_variables() + graph.get_collection("trainable_resource_variables")
        chosen = [var_list] if not isinstance(var_list, Iterable) or isinstance(
            var_list, Variable
        ) else list(td.nest.flatten(list(var_list)))  # fmt: skip
        if not chosen:
            raise ValueError("No variables to optimize.")
        found = functions.gradients(loss, chosen, grad_loss)
        return list(zip(found, chosen, strict=True))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """An operation that changes variables by gradients.

        Raises:
            ValueError: there are none.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        given = [(g, v) for g, v in pairs if g is not None]
        if not given:
            names = [v.name for _, v in pairs]
            raise ValueError(f"No gradients provided for any variable: {names}.{at(user_origin())}")
        graph = writes_into([g for g, _ in given])
        if graph is None:
            return self._apply_now(given, global_step)
        with graph.as_default():
            for initial, _ in (self._powers().items() if self._powers() else ()):
                self._power(graph, initial)
            slots = {v: [self._slot(v, n, x) for n, x in self._slots().items()] for _, v in given}
            with graph.control_dependencies(None):
                pass
            with graph.name_scope(name or self._name) as scope:
                settings = self._settings()
                powers = [self._shared[n] for n in self._powers()]
                updates = []
                for g, v in given:
                    updates.append(
                        self._written(v, g, slots[v], (*settings, *powers), f"update_{v.op.name}")
                    )
                with graph.control_dependencies(updates):
                    after = self._finish()
                    if global_step is not None:
                        after.append(_count(global_step, name="count"))
                train = grouped(graph, [*updates, *after], scope)
        if train not in graph.get_collection_ref(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, train)
        return train

    def _written(self, v: Any, g: Any, slots: list[Any], settings: Any, name: str) -> Any:
        change = _updating(self, getattr(v, "constraint", None))
        operation = change(v, g, slots, list(settings), name=name)
        operation.attributes["writes"] = (v.handle, *(s.handle for s in slots))
        return operation

    def _apply_now(self, given: Any, global_step: Any) -> None:
        for n, x in self._powers().items():
            if n not in self._shared:
                self._shared[n] = td.Variable(x, trainable=False, name=n)
        powers = [self._shared[n] for n in self._powers()]
        for g, v in given:
            slots = [self._slot_now(v, n, x) for n, x in self._slots().items()]
            _apply(self, getattr(v, "constraint", None), v, g, slots, [*self._settings(), *powers])
        self._finish()
        if global_step is not None:
            global_step.assign_add(1)

    # -- its variables -----------------------------------------------------------------------

    def get_slot_names(self) -> list[str]:
        """The names of the variables that it keeps for each variable."""
        return sorted(self._slots())

    def get_slot(self, var: Any, name: str) -> Any:
        """The variable that it keeps for a variable, or None."""
        return self._made.get(name, {}).get(_key(var))

    def variables(self) -> list[Any]:
        """All variables that it keeps."""
        found = (v for of in self._made.values() for v in of.values())
        return sorted([*found, *self._shared.values()], key=lambda v: v.name)

    def _slot_now(self, var: Any, name: str, initial: float) -> Any:
        made = self._made.setdefault(name, {})
        if _key(var) not in made:
            start = td.fill(var.shape, td.cast(initial, var.dtype))
            number = list(self._slots()).index(name)
            whole = f"{var.name.removesuffix(':0')}/{self._name}{f'_{number}' if number else ''}"
            made[_key(var)] = td.Variable(start, trainable=False, name=whole)
        return made[_key(var)]

    def _slot(self, var: Any, name: str, initial: float) -> Any:
        made = self._made.setdefault(name, {})
        if var not in made:
            graph, shape = var.graph, plain(var.shape)
            scope, graph._scope = graph._scope, ""
            try:
                made[var] = Variable(
                    lambda: constant_initializer(initial)(shape, var.dtype), False,
                    name=in_scope(f"{var.op.name}/{self._name}"), dtype=var.dtype,
                )  # fmt: skip
            finally:
                graph._scope = scope
        return made[var]

    def _power(self, graph: Any, name: str) -> Any:
        if name not in self._shared:
            scope, graph._scope = graph._scope, ""
            try:
                self._shared[name] = Variable(
                    np.float32(self._powers()[name]), False, name=in_scope(name)
                )
            finally:
                graph._scope = scope
        return self._shared[name]


def _key(var: Any) -> Any:
    """What a variable is known by; one that is no part of a graph has no hash of its own."""
    return var.identity().ref() if isinstance(var, td.Variable) else var


def _updating(optimizer: Optimizer, constraint: Any) -> Callable[..., Any]:
    """The call of a graph that changes a variable, as its constraint has it."""

    def update(var: Any, grad: Any, slots: Any, settings: Any) -> None:
        if not isinstance(grad, td.IndexedSlices):
            grad = td.convert_to_tensor(grad)
        _apply(optimizer, constraint, var, grad, slots, settings)

    update.__name__ = f"Apply{type(optimizer).__name__.removesuffix('Optimizer')}"
    return writing(update, update.__name__)


def _apply(
    optimizer: Optimizer, constraint: Any, var: Any, grad: Any, slots: Any, settings: Any
) -> None:
    """Change a variable by a gradient, as its constraint has it."""
    if constraint is not None and _is_sparse(grad):
        raise RuntimeError(
            f"Cannot use a constraint function on a sparse variable.{at(user_origin())}"
        )
    optimizer._update(var, grad, slots, settings)
    if constraint is not None:
        var.assign(constraint(var.read_value()))


def _counted(step: Any) -> Any:
    step.assign_add(td.cast(1, step.dtype))
    return step.read_value()


_count = writing(_counted, "AssignAdd")


def _number(value: Any, var: Any) -> Any:
    """A setting in a variable's dtype."""
    return td.cast(value, var.dtype)


def _is_sparse(grad: Any) -> bool:
    return isinstance(grad, td.IndexedSlices)


def _changes(grad: Any) -> tuple[Any, Any]:
    """A gradient and the rows that it is for; None for the rows where it is for all."""
    return _rows(grad) if _is_sparse(grad) else (td.convert_to_tensor(grad), None)


def _rows(grad: Any) -> Any:
    """Rows with those of equal indices added, so that each is changed once."""
    indices, positions = td.unique(grad.indices)
    count = td.shape(indices)[0]
    return td.math.unsorted_segment_sum(grad.values, positions, count), indices


class GradientDescentOptimizer(Optimizer):
    """``var -= learning_rate * gradient``."""

    def __init__(self, learning_rate: Any, use_locking: bool = False,
                 name: str = "GradientDescent") -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _settings(self) -> tuple[Any, ...]:
        return (_called(self._learning_rate),)

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        rate = _number(settings[0], var)
        if _is_sparse(grad):
            var.scatter_sub(td.IndexedSlices(rate * grad.values, grad.indices))
        else:
            var.assign_sub(rate * grad)


class MomentumOptimizer(Optimizer):
    """``accum = momentum * accum + gradient; var -= learning_rate * accum``."""

    def __init__(self, learning_rate: Any, momentum: Any, use_locking: bool = False,
                 name: str = "Momentum", use_nesterov: bool = False) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum, self._nesterov = learning_rate, momentum, use_nesterov

    def _slots(self) -> dict[str, float]:
        return {"momentum": 0.0}

    def _settings(self) -> tuple[Any, ...]:
        return _called(self._learning_rate), _called(self._momentum)

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        (accumulation,), (rate, momentum) = slots, (_number(s, var) for s in settings)
        if _is_sparse(grad):
            values, rows = _rows(grad)
            new = momentum * td.gather(accumulation, rows) + values
            accumulation.scatter_update(td.IndexedSlices(new, rows))
            step = values + momentum * new if self._nesterov else new
            var.scatter_sub(td.IndexedSlices(rate * step, rows))
            return
        new = momentum * accumulation + grad
        accumulation.assign(new)
        var.assign_sub(rate * (grad + momentum * new if self._nesterov else new))


class AdamOptimizer(Optimizer):
    """Adam (Kingma et al., 2014)."""

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
                 epsilon: Any = 1e-08, use_locking: bool = False, name: str = "Adam") -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._beta2 = learning_rate, beta1, beta2
        self._epsilon = epsilon

    def _slots(self) -> dict[str, float]:
        return {"m": 0.0, "v": 0.0}

    def _powers(self) -> dict[str, float]:
        return {"beta1_power": _called(self._beta1), "beta2_power": _called(self._beta2)}

    def _settings(self) -> tuple[Any, ...]:
        return tuple(
            map(_called, (self._learning_rate, self._beta1, self._beta2, self._epsilon))
        )

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        m, v = slots
        rate, beta1, beta2, epsilon, power1, power2 = (_number(s, var) for s in settings)
        rate = rate * td.sqrt(1 - power2) / (1 - power1)
        if _is_sparse(grad):
            values, rows = _rows(grad)
            new_m, new_v = beta1 * m, beta2 * v
            new_m = td.tensor_scatter_nd_add(new_m, rows[:, None], (1 - beta1) * values)
            new_v = td.tensor_scatter_nd_add(new_v, rows[:, None], (1 - beta2) * values * values)
        else:
            new_m = m + (grad - m) * (1 - beta1)
            new_v = v + (grad * grad - v) * (1 - beta2)
        m.assign(new_m)
        v.assign(new_v)
        var.assign_sub(rate * new_m / (td.sqrt(new_v) + epsilon))

    def _finish(self) -> list[Any]:
        found = []
        for name, factor in (("beta1_power", self._beta1), ("beta2_power", self._beta2)):
            power = self._shared[name]
            if isinstance(power, td.Variable):
                power.assign(power * _called(factor))
            else:
                found.append(_multiplied(power, _called(factor)))
        return found


def _times(variable: Any, factor: Any) -> Any:
    variable.assign(variable * factor)
    return variable.read_value()


_multiplied = writing(_times, "Assign")


class AdagradOptimizer(Optimizer):
    """Adagrad (Duchi et al., 2011)."""

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1,
                 use_locking: bool = False, name: str = "Adagrad") -> None:  # fmt: skip
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate, self._initial = learning_rate, initial_accumulator_value

    def _slots(self) -> dict[str, float]:
        return {"accumulator": self._initial}

    def _settings(self) -> tuple[Any, ...]:
        return (_called(self._learning_rate),)

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        (accumulator,), rate = slots, _number(settings[0], var)
        if _is_sparse(grad):
            values, rows = _rows(grad)
            new = td.gather(accumulator, rows) + values * values
            accumulator.scatter_update(td.IndexedSlices(new, rows))
            var.scatter_sub(td.IndexedSlices(rate * values / td.sqrt(new), rows))
            return
        new = accumulator + grad * grad
        accumulator.assign(new)
        var.assign_sub(rate * grad / td.sqrt(new))


class AdadeltaOptimizer(Optimizer):
    """Adadelta (Zeiler, 2012)."""

    def __init__(self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-8,
                 use_locking: bool = False, name: str = "Adadelta") -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._learning_rate, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _slots(self) -> dict[str, float]:
        return {"accum": 0.0, "accum_update": 0.0}

    def _settings(self) -> tuple[Any, ...]:
        return tuple(map(_called, (self._learning_rate, self._rho, self._epsilon)))

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        accum, updates = slots
        rate, rho, epsilon = (_number(s, var) for s in settings)
        grad, rows = _changes(grad)
        new, before = _part(accum, rows) * rho + grad * grad * (1 - rho), _part(updates, rows)
        step = td.sqrt(before + epsilon) / td.sqrt(new + epsilon) * grad
        _replace(accum, rows, new)
        _replace(updates, rows, before * rho + step * step * (1 - rho))
        _replace(var, rows, _part(var, rows) - rate * step)


class RMSPropOptimizer(Optimizer):
    """RMSProp (Hinton, 2012)."""

    def __init__(self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0,
                 epsilon: Any = 1e-10, use_locking: bool = False, centered: bool = False,
                 name: str = "RMSProp") -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._learning_rate, self._decay, self._momentum = learning_rate, decay, momentum
        self._epsilon, self._centered = epsilon, centered

    def _slots(self) -> dict[str, float]:
        return {"rms": 1.0, **({"mg": 0.0} if self._centered else {}), "momentum": 0.0}

    def _settings(self) -> tuple[Any, ...]:
        return tuple(
            map(_called, (self._learning_rate, self._decay, self._momentum, self._epsilon))
        )

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        rms, *means, momentums = slots
        rate, decay, momentum, epsilon = (_number(s, var) for s in settings)
        grad, rows = _changes(grad)
        before = _part(rms, rows)
        new = before + (grad * grad - before) * (1 - decay)
        _replace(rms, rows, new)
        below = new + epsilon
        if self._centered:
            before = _part(means[0], rows)
            mean = before + (grad - before) * (1 - decay)
            _replace(means[0], rows, mean)
            below = new - mean * mean + epsilon
        step = _part(momentums, rows) * momentum + rate * grad / td.sqrt(below)
        _replace(momentums, rows, step)
        _replace(var, rows, _part(var, rows) - step)


class FtrlOptimizer(Optimizer):
    """FTRL-proximal (McMahan et al., 2013)."""

    def __init__(self, learning_rate: Any, learning_rate_power: float = -0.5,
                 initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, use_locking: bool = False,
                 name: str = "Ftrl", accum_name: Any = None, linear_name: Any = None,
                 l2_shrinkage_regularization_strength: float = 0.0, beta: float = 0.0) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0 or initial_accumulator_value < 0:
            raise ValueError("learning_rate_power must be <= 0, initial_accumulator_value >= 0")
        if min(l1_regularization_strength, l2_regularization_strength,
               l2_shrinkage_regularization_strength) < 0:  # fmt: skip
            raise ValueError("Regularization strengths must be >= 0")
        self._learning_rate, self._power_ = learning_rate, learning_rate_power
        self._initial, self._l1 = initial_accumulator_value, l1_regularization_strength
        self._l2, self._shrinkage = l2_regularization_strength, l2_shrinkage_regularization_strength
        self._beta = beta

    def _slots(self) -> dict[str, float]:
        return {"accum": self._initial, "linear": 0.0}

    def _settings(self) -> tuple[Any, ...]:
        return (_called(self._learning_rate),)

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        accum, linear = slots
        rate, (grad, rows) = _number(settings[0], var), _changes(grad)
        value, before = _part(var, rows), _part(accum, rows)
        shrunk = grad + 2.0 * self._shrinkage * value
        new = before + grad * grad
        powers = [td.pow(x, -self._power_) for x in (new, before)]
        new_linear = _part(linear, rows) + shrunk - (powers[0] - powers[1]) / rate * value
        below = (powers[0] + self._beta) / rate + 2.0 * self._l2
        above = td.sign(new_linear) * self._l1 - new_linear
        _replace(accum, rows, new)
        _replace(linear, rows, new_linear)
        found = td.where(td.abs(new_linear) > self._l1, above / below, td.zeros_like(above))
        _replace(var, rows, found)


def _shrunk(value: Any, rate: Any, l1: float, l2: float) -> Any:
    """A value after a step of `rate` along penalties of its absolute value and its square."""
    kept = td.sign(value) * td.maximum(td.abs(value) - rate * l1, td.zeros_like(value))
    return (kept if l1 else value) / (1.0 + rate * l2)


class ProximalGradientDescentOptimizer(GradientDescentOptimizer):
    """Gradient descent with penalties of the absolute values and squares of the variables."""

    def __init__(self, learning_rate: Any, l1_regularization_strength: float = 0.0,
                 l2_regularization_strength: float = 0.0, use_locking: bool = False,
                 name: str = "ProximalGradientDescent") -> None:  # fmt: skip
        super().__init__(learning_rate, use_locking, name)
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        rate, (grad, rows) = _number(settings[0], var), _changes(grad)
        stepped = _part(var, rows) - rate * grad
        _replace(var, rows, _shrunk(stepped, rate, self._l1, self._l2))


class ProximalAdagradOptimizer(AdagradOptimizer):
    """Adagrad with penalties of the absolute values and squares of the variables."""

    def __init__(self, learning_rate: Any, initial_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
                 use_locking: bool = False, name: str = "ProximalAdagrad") -> None:  # fmt: skip
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        (accumulator,), rate = slots, _number(settings[0], var)
        values, rows = _changes(grad)
        new = _part(accumulator, rows) + values * values
        _replace(accumulator, rows, new)
        rates = rate / td.sqrt(new)
        stepped = _part(var, rows) - rates * values
        _replace(var, rows, _shrunk(stepped, rates, self._l1, self._l2))


class AdagradDAOptimizer(Optimizer):
    """Adagrad of dual averages (Duchi et al., 2011): for sparse linear models.

    Args:
        global_step: how many steps there were.
    """

    def __init__(self, learning_rate: Any, global_step: Any,
                 initial_gradient_squared_accumulator_value: float = 0.1,
                 l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
                 use_locking: bool = False, name: str = "AdagradDA") -> None:  # fmt: skip
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError("initial_gradient_squared_accumulator_value must be positive")
        super().__init__(use_locking, name)
        self._learning_rate, self._step = learning_rate, global_step
        self._initial = initial_gradient_squared_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _slots(self) -> dict[str, float]:
        return {
            "gradient_accumulator": 0.0, "gradient_squared_accumulator": self._initial
        }  # fmt: skip

    def _settings(self) -> tuple[Any, ...]:
        return _called(self._learning_rate), self._step

    def _update(self, var: Any, grad: Any, slots: Sequence[Any], settings: Sequence[Any]) -> None:
        sums, squares = slots
        rate = _number(settings[0], var)
        steps = _number(td.convert_to_tensor(settings[1]), var) + 1.0
        values, rows = _changes(grad)
        total, total_squares = _part(sums, rows) + values, _part(squares, rows) + values * values
        zero = td.zeros_like(total)
        kept = td.sign(total) * td.maximum(td.abs(total) - self._l1 * steps, zero)
        below = self._l2 * steps * rate + td.sqrt(total_squares)
        _replace(sums, rows, total)
        _replace(squares, rows, total_squares)
        _replace(var, rows, -rate * (kept if self._l1 else total) / below)


def _part(variable: Any, rows: Any) -> Any:
    """The rows of a variable, or all of it."""
    return variable.read_value() if rows is None else td.gather(variable, rows)


def _replace(variable: Any, rows: Any, value: Any) -> None:
    """Assign to the rows of a variable, or to all of it."""
    if rows is None:
        variable.assign(value)
    else:
        variable.scatter_update(td.IndexedSlices(value, rows))


class SyncReplicasOptimizer(Optimizer):
    """Another optimizer: there is one worker here."""

    def __init__(
        self, opt: Optimizer, replicas_to_aggregate: int, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(name=kwargs.get("name", "sync_replicas"))
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.apply_gradients(*args, **kwargs)


def _called(value: Any) -> Any:
    return value() if callable(value) else value


def clipped(grads_and_vars: Any, clip: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Pairs whose gradients are changed by a function."""
    return [(None if g is None else clip(g), v) for g, v in grads_and_vars]


