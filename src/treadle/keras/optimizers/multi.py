"""MultiOptimizer: weights are updated by several optimizers, each weight by its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, NoReturn

import treadle as td
from treadle.keras import serialization
from treadle.keras.optimizers.base import Optimizer
from treadle.keras.optimizers.loss_scale import LossScaleOptimizer
from treadle.keras.variables import path_of


class OptimizerMap(MutableMapping[str, Optimizer]):
    """Optimizers by the paths of the weights that they update.

    Keys are paths, or regular expressions that match whole paths. Other weights have the default.

    Args:
        default_optimizer: that of weights which no key matches.
        optimizer_map: optimizers by keys, to begin with.

    Raises:
        TypeError: the default is no optimizer, or `optimizer_map` no dict.
        ValueError: one of the dict may not be added; or, when an optimizer is looked up, several
            keys match.
    """

    def __init__(
        self, default_optimizer: Optimizer, optimizer_map: dict[str, Optimizer] | None = None
    ) -> None:
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(
                "default_optimizer must be a Keras Optimizer instance. Received: "
                f"{default_optimizer}"
            )
        if optimizer_map is not None and not isinstance(optimizer_map, dict):
            raise TypeError(f"optimizer_map must be a dictionary. Received: {optimizer_map}")
        self._default_optimizer = default_optimizer
        self._optimizer_map: dict[str, Optimizer] = {}
        self.update(optimizer_map or {})

    @property
    def default_optimizer(self) -> Optimizer:
        """The optimizer of weights that no key matches."""
        return self._default_optimizer

    def __getitem__(self, key: str) -> Optimizer:
        """The optimizer of a path.

        Raises:
            ValueError: several keys match it.
        """
        if key in self._optimizer_map:
            return self._optimizer_map[key]
        found = [pattern for pattern in self._optimizer_map if re.fullmatch(pattern, key)]
        if len(found) > 1:
            raise ValueError(f"Multiple optimizers assigned to variable {key}: the keys {found}")
        return self._optimizer_map[found[0]] if found else self._default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        """Add an optimizer.

        Raises:
            ValueError: the key is there already or no string; or it is no optimizer that may be
                one of several.
        """
        if key in self._optimizer_map:
            raise ValueError(
                f"'{key}' already exists in the OptimizerMap with value "
                f"{self._optimizer_map[key]}. Please make sure to not use duplicated keys."
            )
        if not isinstance(key, str):
            raise ValueError(f"key must be a string. Received: {key}")
        if not isinstance(optimizer, Optimizer):
            raise ValueError(f"optimizer must be a Keras Optimizer instance. Received: {optimizer}")
        if isinstance(optimizer, _OF_OTHERS):
            raise ValueError(f"optimizer cannot be {type(optimizer).__name__}.")
        self._optimizer_map[key] = optimizer

    def __delitem__(self, key: str) -> None:
        del self._optimizer_map[key]

    def __contains__(self, key: object) -> bool:
        return key in self._optimizer_map

    def __iter__(self) -> Iterator[str]:
        return iter(self._optimizer_map)

    def __len__(self) -> int:
        return len(self._optimizer_map)

    def __call__(self, variable: td.Variable) -> Optimizer:
        """The optimizer of a weight."""
        return self[path_of(variable)]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal map."""
        return {
            "default_optimizer": serialization.serialize_keras_object(self._default_optimizer),
            "optimizer_map": serialization.serialize_keras_object(self._optimizer_map),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Any = None) -> OptimizerMap:
        """A map from what `get_config` gave."""
        found = serialization.deserialize_keras_object(dict(config), custom_objects)
        return cls(**found)


class MultiOptimizer(Optimizer):
    """Several optimizers, of which each weight has one.

    Rates, norms to clip to and the like are those of the single ones, which are in `optimizers`.

    Args:
        optimizer_map: an `OptimizerMap`; or a function of a weight that gives its optimizer, which
            is asked once for each.
        loss_scale_factor: what `scale_loss` multiplies the loss by, in place of the factors of the
            single ones.
        name: the optimizer's name.

    Raises:
        ValueError: when it is built, a weight's optimizer is none, or one of others itself.
    """

    def __init__(
        self, optimizer_map: Callable[[Any], Optimizer], loss_scale_factor: float | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._optimizer_map = optimizer_map
        self._inner_optimizers: list[Optimizer] = []
        # id of a weight -> (the weight, its optimizer)
        self._chosen: dict[int, tuple[td.Variable, Optimizer]] = {}
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        if isinstance(optimizer_map, OptimizerMap):
            for optimizer in (*optimizer_map.values(), optimizer_map.default_optimizer):
                self._join(optimizer)

    def _join(self, optimizer: Optimizer) -> None:
        if all(known is not optimizer for known in self._inner_optimizers):
            optimizer.loss_scale_factor = self.loss_scale_factor
            self._inner_optimizers.append(optimizer)

    def _of(self, variable: td.Variable) -> Optimizer:
        """The optimizer of a weight."""
        weight = variable.identity()
        if id(weight) not in self._chosen:
            found = self._optimizer_map(weight)
            if not isinstance(found, Optimizer):
                raise ValueError(
                    f"Optimizer for variable {path_of(weight)} is not an Optimizer instance: "
                    f"{found!r}"
                )
            if isinstance(found, _OF_OTHERS):
                raise ValueError(
                    f"{type(found).__name__} cannot be used inside an MultiOptimizer."
                )
            self._join(found)
            self._chosen[id(weight)] = weight, found
        return self._chosen[id(weight)][1]

    def _shared_out(self, variables: Iterable[td.Variable]) -> list[list[td.Variable]]:
        """For each of the optimizers its weights."""
        chosen = [(self._of(v), v) for v in variables]
        return [[v for of, v in chosen if of is each] for each in self._inner_optimizers]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The single ones: those of the map, and those that the function gave so far."""
        return self._inner_optimizers

    @property
    def loss_scale_factor(self) -> float | None:
        """What `scale_loss` multiplies the loss by; the single ones have the same."""
        return self._loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        self._loss_scale_factor = value
        for optimizer in self._inner_optimizers:
            optimizer.loss_scale_factor = value

    @property
    def learning_rate(self) -> Any:
        """Each of the single ones has its own.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            "Learning rate cannot be accessed on a MultiOptimizer. Access the learning rate on the "
            "individual sub-optimizers instead."
        )

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        raise AttributeError(
            "Learning rate cannot be set on a MultiOptimizer. Set the learning rate on the "
            "individual sub-optimizers instead."
        )

    lr = learning_rate

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> NoReturn:
        """Each of the single ones decays weights.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            "Weights are excluded from the decay of the individual sub-optimizers: call "
            "exclude_from_weight_decay of those in `optimizers`"
        )

    @property
    def variables(self) -> list[td.Variable]:
        """The counter, and the variables of the single ones."""
        return super().variables + [v for each in self._inner_optimizers for v in each.variables]

    def __reduce__(self) -> Any:
        values = [v.numpy() for v in (self._iterations, self._rate) if v is not None]
        given = self._optimizer_map, self.loss_scale_factor, self.name
        return _unpickled, (given, values)

    def __deepcopy__(self, memo: Any) -> Optimizer:
        made: Any = super().__deepcopy__(memo)
        made._chosen = {id(weight): (weight, of) for weight, of in made._chosen.values()}
        return made  # type: ignore[no-any-return]

    def _trackable_children(self) -> dict[str, Any]:
        return super()._trackable_children() | {"_inner_optimizers": self._inner_optimizers}

    def _in_file(self, variables: Sequence[td.Variable]) -> list[td.Variable]:
        own = super()._in_file(variables)
        shares = self._shared_out(variables)
        for optimizer, share in zip(self._inner_optimizers, shares, strict=True):
            own += optimizer._in_file(share)
        return own

    def build(self, var_list: Iterable[td.Variable]) -> None:
        """Give each weight its optimizer, and make the slots of all."""
        variables = list(var_list)
        shares = self._shared_out(variables)
        for optimizer, share in zip(self._inner_optimizers, shares, strict=True):
            if share:
                optimizer.build(share)
        super().build(variables)

    def _slots_of(self, variable: td.Variable) -> dict[str, td.Variable]:
        return self._of(variable)._slots_of(variable)

    def _apply(self, given: list[tuple[Any, td.Variable]]) -> td.Variable:
        pairs = self._with_gradients(given)
        if not self.built:
            self.build([v for _, v in given])
        self._shared_out([v for _, v in pairs])  # all optimizers are known from here on
        for optimizer in self._inner_optimizers:
            own = [(grad, v) for grad, v in pairs if self._of(v) is optimizer]
            if own:
                optimizer._apply(own)
        return self._calls().assign_add(1)

    def averages(self) -> list[tuple[td.Variable, td.Variable]]:
        """The weights with their averages, of the single ones whose `use_ema` is True."""
        return [pair for optimizer in self._inner_optimizers for pair in optimizer.averages()]

    def finalize_variable_values(self, var_list: Iterable[td.Variable]) -> None:
        """Put the averages of weights in their place, where their optimizers keep some."""
        shares = self._shared_out(var_list)
        for optimizer, share in zip(self._inner_optimizers, shares, strict=True):
            optimizer.finalize_variable_values(share)

    def get_config(self) -> dict[str, Any]:
        return {
            "optimizer_map": serialization.serialize_keras_object(self._optimizer_map),
            "loss_scale_factor": self.loss_scale_factor,
            "name": self.name,
        }


# Those that hand gradients on to others.
_OF_OTHERS = (LossScaleOptimizer, MultiOptimizer)


def _unpickled(given: tuple[Any, ...], values: list[Any]) -> MultiOptimizer:
    """The optimizer that was pickled."""
    made = MultiOptimizer(*given)
    kept = [v for v in (made._iterations, made._rate) if v is not None]
    for variable, value in zip(kept, values, strict=False):
        variable.assign(value)
    return made
