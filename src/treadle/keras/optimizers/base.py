"""Optimizer: gradients processed, slots made on first use, one update rule per subclass."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np

import treadle as td
from treadle.keras import initializers, naming, replicas, serialization
from treadle.keras.optimizers.rows import Gradient, whole
from treadle.keras.optimizers.schedules import LearningRateSchedule
from treadle.keras.optimizers.update_programs import UpdatePrograms
from treadle.keras.variables import copied, is_overwritten, owned, path_of
from treadle.module import operation_scope

# The slots that every optimizer may have, in Keras's order.
_FOR_ALL = ("average", "gradient_accumulator")

# Replicas share the state of an optimizer: updates are made once for all of them.
_ONE = td.VariableAggregation.ONLY_FIRST_REPLICA

# The names of slots in checkpoints of Keras 2.
_KERAS_2 = {
    "m": "momentum", "v": "velocity", "vhat": "velocity_hat", "rms": "velocity",
    "mg": "average_gradient", "accum_grad": "accumulated_grad",
    "accum_var": "accumulated_delta_var",
}  # fmt: skip


class Optimizer:
    """Base of optimizers.

    Args:
        learning_rate: a number, a tensor, a schedule (a function of the iteration), or a function
            without arguments.
        weight_decay: the fraction of each weight that an update takes away, times the rate.
        clipnorm: the largest norm of each gradient.
        clipvalue: the largest absolute value in each gradient.
        global_clipnorm: the largest norm of all gradients together.
        use_ema: keep a running average of each weight, which `finalize_variable_values` (at the
            end of `fit`) puts in its place.
        ema_momentum: how much of the average stays with each update.
        ema_overwrite_frequency: put the averages in place after so many updates, too.
        loss_scale_factor: what `scale_loss` multiplies the loss by; gradients are divided by it.
        gradient_accumulation_steps: make one update from the mean of the gradients of so many
            calls.
        name: the optimizer's name.
        lr: Keras 2's name of the learning rate.

    Those after the rate are the last arguments of each optimizer, in this order.

    Subclasses say which slot variables a weight needs (`slots`) and how it changes (`update`).
    Those of programs may do as in Keras 3: make variables in `build` and define `update_step`.
    """

    slots: tuple[str, ...] = ()

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
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
        if gradient_accumulation_steps is not None and gradient_accumulation_steps < 2:
            raise ValueError(
                "gradient_accumulation_steps must be an int from 2 on, got "
                f"{gradient_accumulation_steps}"
            )
        if use_ema and not 0 <= ema_momentum <= 1:
            raise ValueError(f"ema_momentum must be in [0, 1], got {ema_momentum}")
        if use_ema and ema_overwrite_frequency is not None and ema_overwrite_frequency < 1:
            raise ValueError(
                f"ema_overwrite_frequency must be positive, got {ema_overwrite_frequency}"
            )
        if isinstance(learning_rate, str):
            raise ValueError(
                f"{type(self).__name__}: learning_rate is a number, a schedule or a function, not "
                f"{learning_rate!r}"
            )
        self.name = name or naming.unique_name(type(self).__name__)
        self.weight_decay, self.clipnorm = weight_decay, clipnorm
        self.clipvalue, self.global_clipnorm = clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum = use_ema, ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.slots = (
            *(("average",) if use_ema else ()),
            *(("gradient_accumulator",) if gradient_accumulation_steps else ()),
            *self.slots,
        )
        self.built = False
        self._weights: list[td.Variable] = []  # that were built for
        self._own_variables: list[td.Variable] = []  # made by `add_variable`
        self._programs = UpdatePrograms()
        self._undecayed: set[int] = set()
        self._undecayed_names: list[str] = []
        self._schedule = _schedule(learning_rate)
        self._start_rate = None if self._schedule else learning_rate
        self._rate: td.Variable | None = None
        self._iterations: td.Variable | None = None
        # id of a weight -> (the weight, its slots by name)
        self._slots: dict[int, tuple[td.Variable, dict[str, td.Variable]]] = {}
        if not td.inside_function():
            self._make_counters()

    # -- state -----------------------------------------------------------------------------------

    def _owned(self, name: str, value: Any) -> td.Variable:
        """A variable of the optimizer. A function being traced, in which the optimizer is built,
        needs no second trace for it: what it starts from does not depend on the function, and later
        calls find it. Those of weights that come when it is built count as the function's own."""
        path = f"{self.name}/{name}"
        is_lifted = td.inside_function() and not self.built
        with td.init_scope() if is_lifted else nullcontext():
            return owned(path, value, trainable=False, aggregation=_ONE)

    def _make_counters(self) -> None:
        if self._iterations is None:
            self._iterations = self._owned("iteration", lambda: td.zeros([], td.int64))
        if self._rate is None and self._schedule is None:
            rate = self._start_rate
            self._rate = self._owned("learning_rate", lambda: td.cast(rate, td.float32))

    @property
    def iterations(self) -> Any:
        """How many updates were made, an int64 scalar."""
        count = self._calls()
        steps = self.gradient_accumulation_steps
        return count if steps is None else count.read_value() // steps

    def _calls(self) -> td.Variable:
        """How often gradients were applied."""
        self._make_counters()
        assert self._iterations is not None
        return self._iterations

    @property
    def learning_rate(self) -> Any:
        """The rate: a variable that may be assigned, or the schedule's current value."""
        calls = self._calls()
        return self._schedule(calls) if self._schedule else self._rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._make_counters()
        if callable(value):
            self._schedule, self._rate = _schedule(value), None
        elif self._schedule is not None:
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its "
                "`learning_rate` constructor argument, hence its learning rate is not settable. "
                "Give the learning rate as a float to be able to set it."
            )
        else:
            assert self._rate is not None
            self._rate.assign(td.cast(value, td.float32))

    lr = learning_rate

    @property
    def variables(self) -> list[td.Variable]:
        """The counter, the rate and all slots."""
        own = [v for v in (self._iterations, self._rate) if v is not None]
        slots = [s for _, slots in self._slots.values() for s in slots.values()]
        return own + slots + self._own_variables

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign arrays, in the order of `variables`.

        Raises:
            ValueError: the optimizer has no slots yet, or other arrays are given.
        """
        if not self.built:
            raise ValueError(
                "You are calling `set_weights()` on an optimizer that has not yet been built. "
                "Please call `optimizer.build(trainable_variables)` to create the optimizer "
                "weights before calling `set_weights()`."
            )
        own = self.variables
        if len(own) != len(weights):
            raise ValueError(f"The optimizer has {len(own)} variables, got {len(weights)} arrays")
        for variable, value in zip(own, weights, strict=True):
            if tuple(variable.shape) != np.shape(value):
                raise ValueError(
                    f"Optimizer variable {path_of(variable)} has shape {tuple(variable.shape)} not "
                    f"compatible with provided weight shape {np.shape(value)}."
                )
            variable.assign(value)

    def __reduce__(self) -> Any:
        """Pickled are the arguments, the counter and the rate; slots belong to weights."""
        kept = [v for v in (self._iterations, self._rate) if v is not None]
        return _unpickled, (type(self), self.get_config(), [v.numpy() for v in kept])

    def __deepcopy__(self, memo: Any) -> Optimizer:
        made: Optimizer = copied(self, memo)
        made._slots = {id(weight): (weight, slots) for weight, slots in made._slots.values()}
        return made

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
        return self._slots_of(variable).get(name)

    def _groups(self) -> list[tuple[str, ...]]:
        """The slots in the order in which files of Keras have them: all of a group for the first
        weight, then for the next one."""
        return [self._rule_slots]

    @property
    def _rule_slots(self) -> tuple[str, ...]:
        """The slots of the update rule."""
        return tuple(name for name in self.slots if name not in _FOR_ALL)

    def _in_file(self, variables: Sequence[td.Variable]) -> list[td.Variable]:
        """The counter, the rate and the slots of the given weights in the order of Keras's files.
        """
        self.build(variables)
        own = [v for v in (self._iterations, self._rate) if v is not None]
        for group in [*((name,) for name in _FOR_ALL if name in self.slots), *self._groups()]:
            slots = [self._slots_of(v) for v in variables]
            own += [found[name] for found in slots for name in group if name in found]
        return own

    def build(self, var_list: Iterable[td.Variable]) -> None:
        """Make the slots of the given weights now instead of on the first update."""
        self._make_counters()
        known = {id(v) for v in self._weights}
        for variable in var_list:
            self._slots_of(variable)
            if id(variable.identity()) not in known:
                self._weights.append(variable.identity())
        self.built = True

    def add_variable(
        self, shape: Any, initializer: Any = "zeros", dtype: Any = None, aggregation: str = "none",
        layout: Any = None, name: str | None = None,
    ) -> td.Variable:  # fmt: skip
        """A new variable of the optimizer, for `build` of subclasses.

        Args:
            aggregation, layout: how other backends of Keras keep it on several devices.
        """
        make, kind = initializers.get(initializer), td.as_dtype(dtype or td.float32)
        made = self._owned(
            name or naming.unique_name("variable"), lambda: make(tuple(shape), dtype=kind)
        )
        self._own_variables.append(made)
        return made

    def add_variable_from_reference(
        self, reference_variable: td.Variable, name: str | None = None, initializer: Any = "zeros"
    ) -> td.Variable:
        """`add_variable` with the shape and dtype of a weight."""
        label = _label(reference_variable, name or "var")
        shape, dtype = reference_variable.shape, reference_variable.dtype
        return self.add_variable(shape, initializer, dtype, name=label)

    def add_optimizer_variables(
        self, trainable_variables: Iterable[td.Variable], name: Any, initializer: Any = "zeros"
    ) -> Any:
        """A variable for each weight: a list, or a tuple of lists for several names."""
        names = [name] if isinstance(name, str) else list(name)
        makers = initializer if isinstance(initializer, list) else [initializer] * len(names)
        made: tuple[list[td.Variable], ...] = tuple([] for _ in names)
        for variable in trainable_variables:
            for found, label, make in zip(made, names, makers, strict=True):
                found.append(self.add_variable_from_reference(variable, label, make))
        return made[0] if isinstance(name, str) else made

    def _get_variable_index(self, variable: td.Variable) -> int:
        weight = variable.identity()
        return next(n for n, known in enumerate(self._weights) if known is weight)

    def assign(self, variable: td.Variable, value: Any) -> None:
        """``variable.assign``, as subclasses of Keras's optimizers call it."""
        variable.assign(value)

    def assign_add(self, variable: td.Variable, value: Any) -> None:
        """``variable.assign_add``."""
        variable.assign_add(value)

    def assign_sub(self, variable: td.Variable, value: Any) -> None:
        """``variable.assign_sub``."""
        variable.assign_sub(value)

    def exclude_from_weight_decay(
        self, var_list: Iterable[td.Variable] | None = None,
        var_names: Iterable[str] | None = None,
    ) -> None:  # fmt: skip
        """Let these weights, and those whose names contain one of the given patterns, not decay."""
        self._undecayed = {id(v.identity()) for v in var_list or ()}
        self._undecayed_names = list(var_names or ())

    def _decays(self, variable: td.Variable) -> bool:
        named = any(re.search(pattern, path_of(variable)) for pattern in self._undecayed_names)
        return not named and id(variable.identity()) not in self._undecayed

    def _slots_of(self, variable: td.Variable) -> dict[str, td.Variable]:
        if not self.slots:
            return {}
        weight = variable.identity()
        found = self._slots.get(id(weight))
        if found is None:
            names = self.slot_names(weight)
            if is_overwritten(weight):
                names = tuple(name for name in names if name == "gradient_accumulator")
            slots = {name: self._new_slot(name, weight) for name in names}
            found = self._slots[id(weight)] = (weight, slots)
        return found[1]

    def _new_slot(self, name: str, variable: td.Variable) -> td.Variable:
        shape, dtype = self.slot_shape(name, variable), variable.dtype
        value = 0.0 if name in _FOR_ALL else self.slot_start(name)
        return self._owned(_label(variable, name), lambda: td.fill(shape, td.cast(value, dtype)))

    def slot_names(self, variable: td.Variable) -> tuple[str, ...]:
        """The slots of a weight; `slots` where all weights have the same."""
        return self.slots

    def slot_shape(self, name: str, variable: td.Variable) -> tuple[int, ...]:
        """The shape of a slot; that of its weight."""
        return tuple(d or 0 for d in variable.shape)

    def slot_start(self, name: str) -> float:
        """The value that a slot starts from."""
        return 0.0

    # -- updating --------------------------------------------------------------------------------

    def minimize(self, loss: Any, var_list: Any, tape: Any = None) -> td.Variable:
        """Take the gradient of `loss` (a function, or a tensor with its `tape`) and apply it to
        variables: one, a list of them, or a function that gives it."""
        if callable(loss):
            with td.GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("minimize: a loss that is a tensor needs the tape that recorded it")
        variables = td.nest.flatten(var_list() if callable(var_list) else var_list)
        return self.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def apply(
        self, grads: Sequence[Any], trainable_variables: Sequence[td.Variable] | None = None
    ) -> None:
        """`apply_gradients` with two lists; without variables those that `build` was given."""
        if trainable_variables is None:
            if len(grads) != len(self._weights):
                raise ValueError(
                    f"apply: {len(grads)} gradients for {len(self._weights)} weights: give the "
                    "variables, or build the optimizer with them"
                )
            trainable_variables = self._weights
        self.apply_gradients(zip(grads, trainable_variables, strict=True))

    def stateless_apply(
        self, optimizer_variables: Sequence[Any], grads: Sequence[Any],
        trainable_variables: Sequence[Any],
    ) -> NoReturn:  # fmt: skip
        """Keras has it for other backends than TensorFlow only.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "stateless_apply is not supported with the TensorFlow backend (as it is incompatible "
            "with tf.distribute): use apply on variables"
        )

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, td.Variable]], name: str | None = None
    ) -> td.Variable:
        """Update each variable by its gradient; pairs whose gradient is None are left out. Where
        several replicas call it (`td.distribute.Strategy.run`) their gradients are added up.

        Returns:
            `iterations`, increased by one.

        Raises:
            ValueError: no variable has a gradient, or a gradient has another shape.
        """
        given = list(grads_and_vars)
        variables = [v for _, v in given]
        updated: td.Variable = replicas.update_once(
            [g for g, _ in given],
            lambda sums: self._apply(list(zip(sums, variables, strict=True))),
        )
        return updated

    def _apply(self, given: list[tuple[Any, td.Variable]]) -> td.Variable:
        """`apply_gradients` of the sums over all replicas."""
        pairs = self._with_gradients(given)
        if not self.built:
            self.build([v for _, v in given])
        pairs = self._without_overwritten(pairs)
        if not pairs:
            self._calls().assign_add(1)
            return self._calls()
        variables = [v for _, v in pairs]
        for variable in variables:
            self._slots_of(variable)
        grads = [g for g, _ in pairs]
        if self.loss_scale_factor is not None:
            grads = [td.scalar_mul(1.0 / self.loss_scale_factor, g) for g in grads]
        if not self._programs.run(self, grads, variables):
            self.update_all(grads, variables)
        return self._calls()

    def _without_overwritten(
        self, pairs: list[tuple[Any, td.Variable]]
    ) -> list[tuple[Any, td.Variable]]:
        """Put gradients in the place of variables that are to be them, and leave those out. Where
        gradients are added up, the largest ones of the calls of an update count."""
        steps = self.gradient_accumulation_steps
        for grad, variable in pairs:
            if not is_overwritten(variable):
                continue
            if replicas.count() > 1:
                raise NotImplementedError(
                    f"{type(self).__name__}: several replicas cannot change "
                    f"{path_of(variable)!r}, which is to be its gradient: train layers in the mode "
                    "'float8' with one replica"
                )
            new = grad
            if steps is not None:
                kept = self._slots_of(variable)["gradient_accumulator"]
                most = td.maximum(grad, kept.read_value())
                last = (self._calls().read_value() + 1) % steps == 0
                kept.assign(td.where(last, td.zeros_like(grad), most))
                new = td.where(last, most, grad)
            variable.assign(new)
        return [(g, v) for g, v in pairs if not is_overwritten(v)]

    def update_all(self, grads: list[Gradient], variables: list[td.Variable]) -> None:
        """All that a call of `apply_gradients` changes, whose gradients have been looked at."""
        with operation_scope(self.name):
            if self.gradient_accumulation_steps is None:
                self._step(grads, variables)
            else:
                self._accumulate(grads, variables, self.gradient_accumulation_steps)
            if self.use_ema:
                self._average()
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable.read_value()))
        self._calls().assign_add(1)

    def _step(self, grads: list[Gradient], variables: list[td.Variable]) -> None:
        """One update of each variable."""
        rate = td.convert_to_tensor(self.learning_rate)
        step = td.convert_to_tensor(self.iterations) + 1
        common: dict[Any, Any] = {}
        for grad, variable in zip(self._clipped(grads), variables, strict=True):
            dtype = variable.dtype
            if dtype.name not in common:
                common[dtype.name] = self.factors(td.cast(rate, dtype), td.cast(step, dtype))
            self._update_one(variable, td.cast(grad, dtype), common[dtype.name])
        self.finish(step)

    def finish(self, step: td.Tensor) -> None:
        """Called when all variables are updated, for state that belongs to none of them."""

    def _accumulate(self, grads: list[Gradient], variables: list[td.Variable], steps: int) -> None:
        """Add gradients up; every so many calls make an update of their mean."""
        kept = [self._slots_of(v)["gradient_accumulator"] for v in variables]
        sums = [
            td.cast(whole(g, v), v.dtype) + slot.read_value()
            for g, v, slot in zip(grads, variables, kept, strict=True)
        ]

        def update() -> td.Tensor:
            self._step([total / steps for total in sums], variables)
            for slot in kept:
                slot.assign(td.zeros_like(slot))
            return td.constant(True)

        def add() -> td.Tensor:
            for slot, total in zip(kept, sums, strict=True):
                slot.assign(total)
            return td.constant(False)

        td.cond((self._calls().read_value() + 1) % steps == 0, update, add)

    def _average(self) -> None:
        """Bring the averages of the weights up to date."""
        iterations = td.convert_to_tensor(self.iterations)
        for variable in self._averaged():
            average = self._slots_of(variable)["average"]
            kept = td.cast(iterations != 0, variable.dtype) * self.ema_momentum
            average.assign(kept * average.read_value() + (1.0 - kept) * variable.read_value())
        if self.ema_overwrite_frequency is None:
            return

        def overwrite() -> td.Tensor:
            self.finalize_variable_values(self._weights)
            return td.constant(True)

        now = (iterations + 1) % self.ema_overwrite_frequency == 0
        td.cond(now, overwrite, lambda: td.constant(False))

    def averages(self) -> list[tuple[td.Variable, td.Variable]]:
        """The weights with their averages, where `use_ema` is True."""
        return [(v, self._slots_of(v)["average"]) for v in self._averaged()]

    def _averaged(self) -> list[td.Variable]:
        """The weights whose averages are kept."""
        return [v for v in self._weights if self.use_ema and not is_overwritten(v)]

    def finalize_variable_values(self, var_list: Iterable[td.Variable]) -> None:
        """Put the averages of the weights in their place, where there are any."""
        if self.use_ema:
            for variable in var_list:
                if not is_overwritten(variable):
                    variable.assign(self._slots_of(variable)["average"].read_value())

    def scale_loss(self, loss: Any) -> Any:
        """The loss times `loss_scale_factor`, where there is one."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def _with_gradients(
        self, pairs: list[tuple[Any, td.Variable]]
    ) -> list[tuple[Any, td.Variable]]:
        kept = [(_as_gradient(g), v) for g, v in pairs if g is not None]
        if not kept:
            names = ", ".join(v.path or v.name for _, v in pairs) or "an empty list"
            raise ValueError(f"No gradients provided for any variable: {names}")
        missing = [v.path or v.name for g, v in pairs if g is None]
        if missing:
            warnings.warn(
                f"Gradients do not exist for variables {missing} when minimizing the loss. If "
                "using `model.compile()`, did you forget to provide a `loss` argument?",
                stacklevel=2,
            )
        for grad, variable in kept:
            same = type(grad) is td.Tensor and grad.dims == variable.spec.dims
            if not same and not grad.shape.is_compatible_with(variable.shape):
                raise ValueError(
                    f"The gradient of {variable.path or variable.name!r} has shape {grad.shape}, "
                    f"the variable has shape {variable.shape}"
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
        part = self.decay_of(variable)
        if part and self._decays(variable):
            decay = factors["rate"] * part
            value = variable.read_value()
            variable.assign(value - value * decay)
        self.update(variable, grad, self._slots_of(variable), factors)

    def decay_of(self, variable: td.Variable) -> float | None:
        """The weight decay of a weight; `weight_decay` where all have the same."""
        return self.weight_decay

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
        self.update_step(whole(grad, variable), variable, factors["rate"])

    def update_step(
        self, gradient: td.Tensor, variable: td.Variable, learning_rate: td.Tensor
    ) -> None:
        """Update a weight, as subclasses of Keras 3 define it; or as `update` does."""
        if type(self).update is Optimizer.update:
            raise NotImplementedError(
                f"{type(self).__name__} must define update() or update_step()"
            )
        rate = td.cast(td.convert_to_tensor(learning_rate), variable.dtype)
        step = td.cast(td.convert_to_tensor(self.iterations) + 1, variable.dtype)
        given = td.convert_to_tensor(gradient, variable.dtype)
        self.update(variable, given, self._slots_of(variable), self.factors(rate, step))

    # -- configuration ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal optimizer."""
        if self._schedule is not None:
            rate = serialization.serialize_keras_object(self._schedule)
        else:
            rate = float(np.asarray(td.convert_to_tensor(self.learning_rate)))
        return {
            "name": self.name,
            "learning_rate": rate,
            "weight_decay": self.weight_decay,
            "clipnorm": self.clipnorm,
            "clipvalue": self.clipvalue,
            "global_clipnorm": self.global_clipnorm,
            "use_ema": self.use_ema,
            "ema_momentum": self.ema_momentum,
            "ema_overwrite_frequency": self.ema_overwrite_frequency,
            "loss_scale_factor": self.loss_scale_factor,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Optimizer:
        """An optimizer from what `get_config` gave."""
        rate = ("learning_rate",)
        return cls(**serialization.arguments_from(cls, config, rate, custom_objects))


def _schedule(rate: Any) -> Callable[[Any], Any] | None:
    """A rate that changes, as a function of the iteration; None for a number."""
    if not callable(rate) or isinstance(rate, LearningRateSchedule):
        return rate if callable(rate) else None
    parameters = inspect.signature(rate).parameters.values()
    takes_one = any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)
    return rate if takes_one else lambda step: rate()


def _unpickled(kind: type[Optimizer], config: dict[str, Any], values: list[Any]) -> Optimizer:
    """The optimizer that was pickled."""
    made = kind.from_config(config)
    kept = [v for v in (made._iterations, made._rate) if v is not None]
    for variable, value in zip(kept, values, strict=False):
        variable.assign(value)
    return made


def _label(variable: td.Variable, name: str) -> str:
    """The name of what an optimizer keeps for a weight."""
    return f"{path_of(variable).replace('/', '_')}_{name}"


def _as_gradient(value: Any) -> Gradient:
    return value if isinstance(value, td.IndexedSlices) else td.convert_to_tensor(value)


def _scaled_to_norm(grad: Gradient, limit: float, group: Sequence[Gradient]) -> Gradient:
    """`grad` scaled so that the norm of `group` does not exceed `limit`."""
    values = [g.values if isinstance(g, td.IndexedSlices) else g for g in group]
    total = td.add_n([td.reduce_sum(td.square(v)) for v in values])
    return td.scalar_mul(limit / td.maximum(td.sqrt(total), limit), grad)
