"""``keras.optimizers.legacy`` as Keras 2 has it: optimizers whose subclasses make slots and apply
gradients themselves. Libraries derive their optimizers from these."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import treadle as td
from treadle.core.origin import at, user_origin
from treadle.keras import initializers, serialization
from treadle.keras.optimizers import base
from treadle.keras.optimizers.schedules import LearningRateSchedule

_CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")


class _Listed(list[Any]):
    """A list that is called to get it, as the method of Keras 2 was."""

    def __call__(self) -> list[Any]:
        return self


class Optimizer(base.Optimizer):
    """Base of optimizers of Keras 2.

    A subclass sets its hyperparameters in `__init__` (`_set_hyper`), makes slots in
    `_create_slots` and changes a variable in `_resource_apply_dense` and `_resource_apply_sparse`.

    Args:
        name: the optimizer's name.
        gradient_aggregator: accepted; the gradients of replicas are added up.
        gradient_transformers: functions of a list of gradients and variables that give another.
        kwargs: `clipnorm`, `clipvalue`, `global_clipnorm`; `lr` and `decay`, which are
            hyperparameters.

    Raises:
        TypeError: there are other arguments.
    """

    _HAS_AGGREGATE_GRAD = True
    _hyper: dict[str, Any]

    def __init__(
        self, name: str, gradient_aggregator: Any = None,
        gradient_transformers: Sequence[Callable[[Any], Any]] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        object.__setattr__(self, "_hyper", {})
        if not isinstance(name, str):
            raise ValueError(f"an optimizer needs a name, not {name!r}{at(user_origin())}")
        clips = {clip: kwargs.pop(clip, None) for clip in _CLIPS}
        decay, rate = kwargs.pop("decay", 0.0), kwargs.pop("lr", None)
        if kwargs:
            raise TypeError(
                f"{type(self).__name__} got unsupported arguments: {', '.join(sorted(kwargs))}"
            )
        if decay < 0.0:
            raise ValueError(f"decay cannot be less than 0. Received: decay={decay}.")
        super().__init__(0.0, name=name, **clips)
        self._name, self._initial_decay, self._use_locking = name, decay, True
        self.gradient_transformers = list(gradient_transformers or ())
        if rate is not None:
            self._set_hyper("learning_rate", rate)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Keep an object for checkpoints, as the attribute of that name, and give it back."""
        setattr(self, name, trackable)
        return trackable

    # -- hyperparameters -------------------------------------------------------------------------

    def _set_hyper(self, name: str, value: Any) -> None:
        known = self._hyper.get(name)
        if isinstance(known, td.Variable) and not callable(value):
            known.assign(td.cast(value, known.dtype))
        else:
            self._hyper[name] = value

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        """The hyperparameter; a schedule itself, what a function gives. With a dtype a tensor."""
        self._create_hypers()
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return value
        if callable(value):
            value = value()
        return value if dtype is None else td.cast(value, dtype)

    def _create_hypers(self) -> None:
        """Numbers become variables, so that functions see when they are changed."""
        for name, value in self._hyper.items():
            if not (td.is_tensor(value) or isinstance(value, td.Variable) or callable(value)):
                with td.init_scope():
                    start = td.convert_to_tensor(value)  # True is a bool: not all are floats
                    self._hyper[name] = self._owned(name, lambda start=start: start)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_hyper", ()):
            return self._get_hyper(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = "learning_rate" if name == "lr" else name
        if name in self._hyper:
            self._set_hyper(name, value)
        else:
            object.__setattr__(self, name, value)

    @property
    def learning_rate(self) -> Any:
        """The rate, a variable that may be assigned, or the schedule."""
        return self.__getattr__("learning_rate")

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._set_hyper("learning_rate", value)

    lr = learning_rate

    def _decayed_lr(self, var_dtype: Any) -> td.Tensor:
        """The rate at the present iteration."""
        rate = self._get_hyper("learning_rate", var_dtype)
        step = td.cast(self.iterations, var_dtype)
        if isinstance(rate, LearningRateSchedule):
            rate = td.cast(rate(step), var_dtype)
        if self._initial_decay > 0.0:
            rate = rate / (1.0 + self._initial_decay * step)
        found: td.Tensor = rate
        return found

    def _serialize_hyperparameter(self, name: str) -> Any:
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return serialization.serialize_keras_object(value)
        if callable(value):
            return value()
        return value.numpy().item() if hasattr(value, "numpy") else value

    # -- variables -------------------------------------------------------------------------------

    def _make_counters(self) -> None:
        if self._iterations is None:
            self._iterations = self._owned("iteration", lambda: td.zeros([], td.int64))

    @property
    def iterations(self) -> Any:
        """How many updates were made, an int64 variable, which may be replaced before the first."""
        return self._calls()

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self._iterations is not None and self.built:
            raise RuntimeError("Cannot set `iterations` to a new Variable after the Optimizer "
                               "weights have been created.")  # fmt: skip
        self._iterations = variable

    def add_slot(
        self, var: td.Variable, slot_name: str, initializer: Any = "zeros", shape: Any = None
    ) -> td.Variable:
        """The slot of a variable by that name, made if need be."""
        weight = var.identity()
        slots = self._slots.setdefault(id(weight), (weight, {}))[1]
        if slot_name not in slots:
            dims = tuple(d or 0 for d in (var.shape if shape is None else td.TensorShape(shape)))

            def start() -> td.Tensor:
                named = isinstance(initializer, str)
                given = initializers.get(initializer) if named else initializer
                value = given(dims, dtype=var.dtype) if callable(given) else given
                return td.cast(value, var.dtype)

            with td.init_scope():
                slots[slot_name] = self._owned(base._label(weight, slot_name), start)
        return slots[slot_name]

    def get_slot(self, var: td.Variable, slot_name: str) -> td.Variable:
        """The slot of a variable.

        Raises:
            KeyError: it has none of that name.
        """
        return self._slots[id(var.identity())][1][slot_name]

    def get_slot_names(self) -> list[str]:
        """The names of all slots."""
        return list(dict.fromkeys(name for _, slots in self._slots.values() for name in slots))

    def add_weight(
        self, name: str, shape: Any, dtype: Any = None, initializer: Any = "zeros",
        trainable: bool = False, synchronization: Any = None, aggregation: Any = None,
    ) -> td.Variable:  # fmt: skip
        """A variable of the optimizer that belongs to no weight."""
        return self.add_variable(shape, initializer, dtype, name)

    def _create_slots(self, var_list: Sequence[td.Variable]) -> None:
        """Make the slots of variables; a subclass calls `add_slot`."""

    def _create_all_weights(self, var_list: Iterable[td.Variable]) -> None:
        self._make_counters()
        self._create_hypers()
        self._create_slots(list(var_list))

    def build(self, variables: Iterable[td.Variable]) -> None:
        """Make the counter, the hyperparameters and the slots of variables."""
        variables = list(variables)
        known = {id(v) for v in self._weights}
        self._weights += [w for v in variables if id(w := v.identity()) not in known]
        self._create_all_weights(variables)
        self.built = True

    def _slots_of(self, variable: td.Variable) -> dict[str, td.Variable]:
        found = self._slots.get(id(variable.identity()))
        return {} if found is None else found[1]

    @property
    def weights(self) -> list[td.Variable]:
        """The counter and the slots, in the order in which they were made."""
        slots = [slot for _, slots in self._slots.values() for slot in slots.values()]
        return [v for v in (self._iterations,) if v is not None] + slots + self._own_variables

    @property
    def variables(self) -> Any:
        """`weights`, which may be called, too."""
        return _Listed(self.weights)

    def get_weights(self) -> list[Any]:
        """The values of `weights` as arrays."""
        return [variable.numpy() for variable in self.weights]

    # -- updates ---------------------------------------------------------------------------------

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[tuple[Any, td.Variable]]:
        if not callable(loss) and tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        if callable(loss):
            with td.GradientTape() as tape:
                if not callable(var_list):
                    tape.watch(var_list)
                loss = loss()
        variables = td.nest.flatten(var_list() if callable(var_list) else var_list)
        return list(zip(tape.gradient(loss, variables, grad_loss), variables, strict=True))

    def minimize(  # type: ignore[override]
        self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None,
        tape: Any = None,
    ) -> Any:  # fmt: skip
        """Take the gradient of `loss` (a function, or a tensor with its `tape`) and apply it."""
        pairs = self._compute_gradients(loss, var_list, grad_loss, tape)
        return self.apply_gradients(pairs, name=name)

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """The gradients of a tensor of a function or of a graph."""
        found: list[Any] = td.gradients(loss, params)
        return found

    def apply_gradients(
        self, grads_and_vars: Any, name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:  # fmt: skip
        """Update each variable by its gradient; pairs whose gradient is None are left out.

        Returns:
            `iterations`, increased by one.
        """
        return super().apply_gradients(grads_and_vars, name)

    def _apply(self, given: list[tuple[Any, td.Variable]]) -> Any:
        pairs = self._with_gradients(given)
        variables = [v for _, v in pairs]
        self.build(variables)
        grads = self._clipped([g for g, _ in pairs])
        pairs = list(zip(grads, variables, strict=True))
        for transform in self.gradient_transformers:
            pairs = transform(pairs)
        state = self._prepare(variables)
        for grad, variable in pairs:
            self._update_variable(grad, variable, state)
        self.iterations.assign_add(1)
        return self.iterations

    def _update_variable(self, grad: Any, variable: td.Variable, state: Any) -> None:
        is_rows = isinstance(grad, td.IndexedSlices)
        apply = self._resource_apply_sparse if is_rows else self._resource_apply_dense
        kwargs = {"apply_state": state} if _takes_state(apply) else {}
        if is_rows:
            self._resource_apply_sparse_duplicate_indices(
                grad.values, variable, grad.indices, **kwargs
            )
        else:
            apply(grad, variable, **kwargs)
        if variable.constraint is not None:
            variable.assign(variable.constraint(variable.read_value()))

    def _prepare(self, var_list: Sequence[td.Variable]) -> dict[Any, dict[str, Any]]:
        """What all updates of a step share, by devices and dtypes."""
        state: dict[Any, dict[str, Any]] = {}
        for place in dict.fromkeys((v.device, v.dtype) for v in var_list):
            state[place] = {}
            self._prepare_local(*place, state)
        return state

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        if "learning_rate" in self._hyper:
            apply_state[var_device, var_dtype]["lr_t"] = td.identity(self._decayed_lr(var_dtype))

    def _fallback_apply_state(self, var_device: Any, var_dtype: Any) -> dict[str, Any]:
        state: dict[Any, dict[str, Any]] = {(var_device, var_dtype): {}}
        self._prepare_local(var_device, var_dtype, state)
        return state[var_device, var_dtype]

    def _coefficients(self, var: td.Variable, apply_state: Any) -> dict[str, Any]:
        """What `_prepare_local` says for a variable."""
        found = (apply_state or {}).get((var.device, var.dtype))
        return found or self._fallback_apply_state(var.device, var.dtype)

    def _resource_apply_dense(self, grad: Any, handle: td.Variable, apply_state: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _resource_apply_dense()")

    def _resource_apply_sparse(
        self, grad: Any, handle: td.Variable, indices: Any, apply_state: Any
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _resource_apply_sparse()")

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Any, handle: td.Variable, indices: Any, **kwargs: Any
    ) -> Any:
        """An update by rows of which several may have one index: they are added up."""
        rows, places = td.unique(indices)
        sums = td.math.unsorted_segment_sum(grad, places, td.shape(rows)[0])
        return self._resource_apply_sparse(sums, handle, rows, **kwargs)

    def _resource_scatter_add(self, x: td.Variable, i: Any, v: Any) -> td.Tensor:
        return x.scatter_add(td.IndexedSlices(v, i)).read_value()

    def _resource_scatter_update(self, x: td.Variable, i: Any, v: Any) -> td.Tensor:
        return x.scatter_update(td.IndexedSlices(v, i)).read_value()

    # -- configuration ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The name and how gradients are clipped; a subclass adds its hyperparameters."""
        clips = {clip: getattr(self, clip) for clip in _CLIPS}
        return {"name": self._name, **{k: v for k, v in clips.items() if v is not None}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """An optimizer from what `get_config` gave."""
        given = dict(config)
        if "lr" in given:
            given["learning_rate"] = given.pop("lr")
        if isinstance(given.get("learning_rate"), dict):
            given["learning_rate"] = serialization.deserialize_keras_object(
                given["learning_rate"], custom_objects
            )
        return cls(**given)


def _takes_state(apply: Callable[..., Any]) -> bool:
    return "apply_state" in inspect.signature(apply).parameters


class _Rule(Optimizer):
    """An optimizer whose arguments are hyperparameters, and that treats rows as it treats all."""

    _names: tuple[str, ...] = ()
    _flags: tuple[str, ...] = ()

    def _keep(self, given: dict[str, Any]) -> None:
        for name in ("learning_rate", *self._names):
            self._set_hyper(name, given[name])
        for name in self._flags:
            setattr(self, name, given[name])

    def get_config(self) -> dict[str, Any]:
        hypers = {n: self._serialize_hyperparameter(n) for n in ("learning_rate", *self._names)}
        flags = {name: getattr(self, name) for name in self._flags}
        return super().get_config() | hypers | {"decay": self._initial_decay} | flags

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> None:
        changes = self._changed(grad, var, lambda v: v.read_value(), apply_state)
        for variable, value in changes:
            variable.assign(value)

    def _resource_apply_sparse(
        self, grad: Any, var: Any, indices: Any, apply_state: Any = None
    ) -> None:
        changes = self._changed(grad, var, lambda v: td.gather(v, indices), apply_state)
        for variable, rows in list(changes):
            self._resource_scatter_update(variable, indices, rows)

    def _changed(
        self, grad: Any, var: Any, read: Callable[[Any], Any], apply_state: Any
    ) -> Iterator[tuple[td.Variable, Any]]:
        """The variable and its slots with their new values, of all elements or of the rows that
        `read` gives."""
        raise NotImplementedError

    def _now(self, name: str, var: td.Variable) -> Any:
        return self._get_hyper(name, var.dtype)


class SGD(_Rule):
    """Gradient descent, with momentum."""

    _names, _flags = ("momentum",), ("nesterov",)

    def __init__(
        self, learning_rate: Any = 0.01, momentum: Any = 0.0, nesterov: bool = False,
        name: str = "SGD", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, **kwargs)
        self._momentum = callable(momentum) or td.is_tensor(momentum) or momentum > 0
        rate = kwargs.get("lr", learning_rate)
        self._keep({"learning_rate": rate, "momentum": momentum, "nesterov": nesterov})

    def _create_slots(self, var_list: Sequence[td.Variable]) -> None:
        for var in var_list if self._momentum else ():
            self.add_slot(var, "momentum")

    def _changed(self, grad: Any, var: Any, read: Any, apply_state: Any) -> Any:
        rate = self._coefficients(var, apply_state)["lr_t"]
        if not self._momentum:
            yield var, read(var) - rate * grad
            return
        slot, momentum = self.get_slot(var, "momentum"), self._now("momentum", var)
        speed = momentum * read(slot) - rate * grad
        yield slot, speed
        yield var, read(var) + (momentum * speed - rate * grad if self.nesterov else speed)


class Adam(_Rule):
    """Adam, and with `amsgrad` AMSGrad. Rows that are not read keep their moments' decay, as all
    rows' moments decay with each step."""

    _names, _flags = ("beta_1", "beta_2"), ("epsilon", "amsgrad")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: Any = 0.9, beta_2: Any = 0.999,
        epsilon: float | None = 1e-7, amsgrad: bool = False, name: str = "Adam", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, **kwargs)
        epsilon = td.keras.backend.epsilon() if epsilon is None else epsilon
        self._keep({
            "learning_rate": kwargs.get("lr", learning_rate), "beta_1": beta_1, "beta_2": beta_2,
            "epsilon": epsilon, "amsgrad": amsgrad,
        })  # fmt: skip

    def _create_slots(self, var_list: Sequence[td.Variable]) -> None:
        for name in ("m", "v", "vhat") if self.amsgrad else ("m", "v"):
            for var in var_list:
                self.add_slot(var, name)

    def _prepare_local(self, var_device: Any, var_dtype: Any, apply_state: Any) -> None:
        super()._prepare_local(var_device, var_dtype, apply_state)
        found = apply_state[var_device, var_dtype]
        step = td.cast(self.iterations + 1, var_dtype)
        one, two = (td.identity(self._get_hyper(n, var_dtype)) for n in ("beta_1", "beta_2"))
        powers = td.pow(one, step), td.pow(two, step)
        found |= {
            "lr": found["lr_t"] * td.sqrt(1 - powers[1]) / (1 - powers[0]),
            "epsilon": td.convert_to_tensor(self.epsilon, var_dtype),
            "beta_1_t": one, "beta_1_power": powers[0], "one_minus_beta_1_t": 1 - one,
            "beta_2_t": two, "beta_2_power": powers[1], "one_minus_beta_2_t": 1 - two,
        }  # fmt: skip

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> None:
        state = self._coefficients(var, apply_state)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m.assign(m * state["beta_1_t"] + grad * state["one_minus_beta_1_t"])
        v.assign(v * state["beta_2_t"] + td.square(grad) * state["one_minus_beta_2_t"])
        self._move(var, m, v, state)

    def _resource_apply_sparse(
        self, grad: Any, var: Any, indices: Any, apply_state: Any = None
    ) -> None:
        state = self._coefficients(var, apply_state)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m.assign(m * state["beta_1_t"])
        self._resource_scatter_add(m, indices, grad * state["one_minus_beta_1_t"])
        v.assign(v * state["beta_2_t"])
        self._resource_scatter_add(v, indices, td.square(grad) * state["one_minus_beta_2_t"])
        self._move(var, m, v, state)

    def _move(self, var: Any, m: Any, v: Any, state: dict[str, Any]) -> None:
        if self.amsgrad:
            greatest = self.get_slot(var, "vhat")
            greatest.assign(td.maximum(greatest, v))
            v = greatest
        var.assign_sub(state["lr"] * m / (td.sqrt(v) + state["epsilon"]))


class RMSprop(_Rule):
    """Steps that are divided by the root of a running average of squared gradients."""

    _names, _flags = ("rho", "momentum"), ("epsilon", "centered")

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.9, momentum: Any = 0.0,
        epsilon: float = 1e-7, centered: bool = False, name: str = "RMSprop", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, **kwargs)
        self._momentum = callable(momentum) or td.is_tensor(momentum) or momentum > 0
        self._keep({
            "learning_rate": kwargs.get("lr", learning_rate), "rho": rho, "momentum": momentum,
            "epsilon": epsilon, "centered": centered,
        })  # fmt: skip

    def _create_slots(self, var_list: Sequence[td.Variable]) -> None:
        wanted = {"rms": True, "momentum": self._momentum, "mg": self.centered}
        for name in (name for name, needed in wanted.items() if needed):
            for var in var_list:
                self.add_slot(var, name)

    def _changed(self, grad: Any, var: Any, read: Any, apply_state: Any) -> Any:
        rate = self._coefficients(var, apply_state)["lr_t"]
        rho, slot = self._now("rho", var), self.get_slot(var, "rms")
        squares = rho * read(slot) + (1 - rho) * td.square(grad)
        yield slot, squares
        if self.centered:
            slot = self.get_slot(var, "mg")
            average = rho * read(slot) + (1 - rho) * grad
            yield slot, average
            squares = squares - td.square(average)
        # As in Keras 2, the small number is below the root only with momentum.
        if not self._momentum:
            yield var, read(var) - rate * grad / (td.sqrt(squares) + self.epsilon)
            return
        slot = self.get_slot(var, "momentum")
        speed = self._now("momentum", var) * read(slot) + rate * grad / td.sqrt(
            squares + self.epsilon
        )
        yield slot, speed
        yield var, read(var) - speed


class Adagrad(_Rule):
    """Steps that are divided by the root of the sum of squared gradients."""

    _names, _flags = (), ("initial_accumulator_value", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7, name: str = "Adagrad", **kwargs: Any,
    ) -> None:  # fmt: skip
        if initial_accumulator_value < 0.0:
            raise ValueError(
                "initial_accumulator_value must be non-negative: "
                f"{initial_accumulator_value}"
            )
        super().__init__(name, **kwargs)
        self._keep({
            "learning_rate": kwargs.get("lr", learning_rate), "epsilon": epsilon,
            "initial_accumulator_value": initial_accumulator_value,
        })  # fmt: skip

    def _create_slots(self, var_list: Sequence[td.Variable]) -> None:
        start = initializers.Constant(self.initial_accumulator_value)
        for var in var_list:
            self.add_slot(var, "accumulator", start)

    def _changed(self, grad: Any, var: Any, read: Any, apply_state: Any) -> Any:
        rate, slot = self._coefficients(var, apply_state)["lr_t"], self.get_slot(var, "accumulator")
        total = read(slot) + td.square(grad)
        yield slot, total
        yield var, read(var) - rate * grad / (td.sqrt(total) + self.epsilon)


OWN: dict[str, type[Optimizer]] = {
    kind.__name__: kind for kind in (SGD, Adam, RMSprop, Adagrad, Optimizer)
}


def choosing(of_keras_3: Callable[..., Any]) -> Callable[..., Any]:
    """`keras.optimizers.get` or `deserialize` with Keras 2's argument `use_legacy_optimizer`: names
    and configs are then those of the optimizers here."""
    by_name = {name.lower(): kind for name, kind in OWN.items() if kind is not Optimizer}

    @functools.wraps(of_keras_3)
    def chosen(identifier: Any, *args: Any, use_legacy_optimizer: bool = False, **more: Any) -> Any:
        is_config = isinstance(identifier, dict)
        name = identifier.get("class_name") if is_config else identifier
        kind = by_name.get(str(name).lower()) if use_legacy_optimizer else None
        if kind is None:
            return of_keras_3(identifier, *args, **more)
        return kind.from_config(identifier["config"]) if is_config else kind()  # type: ignore[call-arg]

    return chosen
