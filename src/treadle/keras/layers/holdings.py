"""What a layer holds in its attributes: variables, layers, metrics and generators of seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

import treadle as td
from treadle.keras import random
from treadle.keras.metrics.base import Metric
from treadle.modes import generation

if TYPE_CHECKING:
    from treadle.keras.layers.base import Layer

Found = dict[int, tuple[td.Variable, bool]]  # variables by ids, with whether they are trained


class Holdings:
    """What the attributes of a layer hold directly, each once, in the order of assignment, as Keras
    lists it. An object of a moment: attributes change.

    Attributes:
        variables: those that `add_weight` made, and those of Keras in attributes.
        modules: layers; in Keras 2 other modules, too.
        plain: variables of `td.Variable` in attributes, and in modules that are no layers. They are
            no weights in Keras 3, and were some in Keras 2.
    """

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        variables: dict[int, td.Variable] = {}
        modules: dict[int, td.Module] = {}
        plain: dict[int, td.Variable] = {}
        added = {id(v): v for v in layer._added_weights}
        for leaf in leaves(layer):
            while id(leaf) in added:  # those that were added before it, too
                one = added.pop(next(iter(added)))
                variables.setdefault(id(one), one)
            if isinstance(leaf, td.Variable):
                weight = generation.is_2 or leaf.path is not None
                (variables if weight else plain).setdefault(id(leaf), leaf)
            elif generation.is_2 or is_layer(leaf):
                modules.setdefault(id(leaf), leaf)
            else:
                plain |= {id(v): v for v in leaf.variables if id(v) not in plain}
        variables |= added
        self.variables, self.modules = list(variables.values()), list(modules.values())
        self.plain = [v for v in plain.values() if id(v) not in variables]

    @property
    def layers(self) -> list[Layer]:
        """The layers among the modules."""
        return [module for module in self.modules if is_layer(module)]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics, and those that the layers in it hold."""
        found = {id(leaf): leaf for leaf in self._listed() if isinstance(leaf, Metric)}
        for layer in self.layers:
            found |= {id(m): m for m in layer._holdings.metrics if id(m) not in found}
        return list(found.values())

    @property
    def generators(self) -> list[random.SeedGenerator]:
        """The generators of seeds."""
        found = [leaf for leaf in self._listed() if isinstance(leaf, random.SeedGenerator)]
        return list({id(leaf): leaf for leaf in found}.values())

    def _listed(self) -> Iterator[Any]:
        """The values of attributes, and what lists, tuples and dicts among them hold."""
        for _, value in self.layer._attribute_items():
            if isinstance(value, dict):
                yield from value.values()
            elif isinstance(value, list | tuple):
                yield from value
            else:
                yield value

    def trained_first(self) -> list[td.Variable]:
        """The variables: those that training changes, or would if they were not frozen, before the
        others."""
        held = {id(v) for v in self.layer._held_variables}
        return sorted(self.variables, key=lambda v: not (v.trainable or id(v) in held))

    def collect_weights(self, found: Found, trainable: bool = True) -> Found:
        """Add every weight once, those of inner layers too, with whether it is trained here."""
        trainable = trainable and self.layer._trainable
        for variable in self.trained_first():
            found.setdefault(id(variable), (variable, trainable and variable.trainable))
        for module in self.modules:
            if is_layer(module):
                module._holdings.collect_weights(found, trainable)
            else:
                for variable in module.variables:
                    found.setdefault(id(variable), (variable, trainable and variable.trainable))
        return found

    def collect_variables(self, found: dict[int, td.Variable]) -> dict[int, td.Variable]:
        """Add the weights and, after those of each layer, the states of its generators."""
        for variable in [*self.trained_first(), *(one.state for one in self.generators)]:
            found.setdefault(id(variable), variable)
        for module in self.modules:
            if is_layer(module):
                module._holdings.collect_variables(found)
            else:
                found.update((id(v), v) for v in module.variables if id(v) not in found)
        return found


def is_layer(module: td.Module) -> TypeGuard[Layer]:
    """Whether it is a `Layer`."""
    return hasattr(type(module), "_holdings")


def leaves(layer: Layer) -> Iterator[Any]:
    """The variables and modules that the attributes hold, and structures in them."""
    for _, value in layer._attribute_items():
        given = [value]
        if isinstance(value, list | tuple | dict) and value:
            given = td.nest.flatten(value)
        yield from (leaf for leaf in given if isinstance(leaf, td.Variable | td.Module))
