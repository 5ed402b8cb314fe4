"""The arguments of a layer's call: their shapes, whether it trains, and masks."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import treadle as td
from treadle.keras import learning_phase
from treadle.keras.masks import mask_of
from treadle.modes import during, generation, is_mode

if TYPE_CHECKING:
    from treadle.keras.layers.base import Layer


class _CallState(threading.local):
    """The layers being called: the `training` values, innermost last, and the outermost layer."""

    training: tuple[Any, ...] = ()
    outermost: Layer | None = None
    only_shapes: bool = False  # whether they are called to learn shapes and dtypes alone


calls = is_mode(_CallState())


def only_shapes() -> during:
    """A block in which layers are called to learn the shapes and dtypes of their results."""
    return during(calls, "only_shapes", True)


def training_of_the_call() -> Any:
    """Whether the innermost layer that is being called trains, as far as that was said."""
    return calls.training[-1] if calls.training else learning_phase.trains()


class Parameters(NamedTuple):
    """What matters of the signature of `call` or `build`."""

    names: tuple[str, ...]  # of what may be given by position
    training_at: int | None  # the position of `training`; None: keyword only or absent
    takes_training: bool
    trains: bool  # the default of `training`, False where there is none
    masks: tuple[tuple[str, str], ...]  # a parameter that takes a mask, and whose mask that is

    def by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by the names of their parameters."""
        return dict(zip(self.names, args, strict=False)) | dict(kwargs)

    def with_training(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """The keyword arguments with `training`, where it is taken, and whether the call trains."""
        position = self.training_at
        if position is not None and len(args) > position:
            return kwargs, args[position]
        training = kwargs.pop("training", None)
        if training is None:
            training = training_of_the_call()
        if self.takes_training:
            kwargs["training"] = self.trains if training is None else training
        return kwargs, training

    def with_masks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """The keyword arguments with the masks that are taken, and the mask of the first one."""
        given = self.by_name(args, kwargs)
        for name, of in self.masks:
            if given.get(name) is None and name not in self.names[: len(args)]:
                found = td.nest.map_structure(mask_of, given.get(of))
                if any(mask is not None for mask in td.nest.flatten(found)):
                    kwargs[name] = given[name] = found
        first = given.get("mask")
        if first is None and args:
            first = td.nest.map_structure(mask_of, args[0])
        return kwargs, first

    def refuse_other_shapes(self, call: Parameters, layer: Layer) -> None:
        """Refuse those of a `build` that are not shapes of those of `call`.

        Raises:
            ValueError: one of them is not.
        """
        for name in self.names:
            if not name.endswith("_shape"):
                fault = f"the argument `{name}`, which does not end in `_shape`"
            elif name.removesuffix("_shape") not in call.names:
                fault = f"`{name}`, but `call()` does not have argument `{name[:-6]}`"
            else:
                continue
            raise ValueError(
                f"For a `build()` method with more than one argument, all arguments should be the "
                f"shapes of arguments of `call()`, named after them with the suffix `_shape`. For "
                f"layer '{layer.name}' of class {type(layer).__name__} found {fault}."
            )


_signatures: dict[Any, Parameters] = {}


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """What matters of a method's signature."""
    key = getattr(function, "__func__", function)
    found = _signatures.get(key)
    if found is None:
        parameters = inspect.signature(function).parameters
        names = tuple(n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD)
        position = names.index("training") if "training" in names else None
        masks = [(f"{n}_mask", n) for n in names if f"{n}_mask" in parameters]
        if "mask" in parameters and names:
            masks.append(("mask", names[0]))
        takes = "training" in parameters
        trains = takes and parameters["training"].default is True
        # In Keras 2 what takes any argument takes `training`, too.
        if generation.is_2 and not str(function.__module__).startswith("treadle."):
            takes = takes or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        found = Parameters(names, position, takes, trains, tuple(masks))
        _signatures[key] = found
    return found


def shape_of(value: Any) -> Any:
    """The shape of a tensor as a tuple; None of what has none."""
    return tuple(value.shape) if hasattr(value, "shape") else None


def shapes_of(value: Any) -> Any:
    """The shapes of what a structure holds."""
    return td.nest.map_structure(shape_of, value)


def as_lists(shape: Any) -> Any:
    """A shape, or a structure of shapes, as lists."""
    if isinstance(shape, dict):
        return {name: as_lists(inner) for name, inner in shape.items()}
    if isinstance(shape, list | tuple | td.TensorShape):
        return [as_lists(inner) for inner in shape]
    return shape if shape is None else int(shape)


def of_lists(listed: Any) -> Any:
    """The shape, or the structure of shapes, of `as_lists`."""
    if isinstance(listed, dict):
        return {name: of_lists(inner) for name, inner in listed.items()}
    if any(isinstance(inner, list | dict) for inner in listed):
        return [of_lists(inner) for inner in listed]
    return tuple(listed)
