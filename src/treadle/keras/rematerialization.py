"""RematScope: layers whose results are computed again for gradients, rather than kept."""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import treadle as td
from treadle.keras.stateless import StatelessScope
from treadle.modes import during, is_mode

_MODES = ("full", "activations", "larger_than", "list_of_layers", None)


class _Scopes(threading.local):
    """The innermost scope of the running thread."""

    innermost: RematScope | None = None


_scopes = is_mode(_Scopes())


class RematScope:
    """A block: layers that are made in it compute their results again for gradients.

    Args:
        mode: "full": all layers; "activations": only the activation functions of layers;
            "larger_than": layers whose results have more than `output_size_threshold` elements;
            "list_of_layers": those that `layer_names` has; None: none, within another scope.
        output_size_threshold: for "larger_than".
        layer_names: for "list_of_layers".

    Raises:
        ValueError: there is no such mode.
    """

    def __init__(
        self, mode: str | None = "full", output_size_threshold: int = 1024,
        layer_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        if mode not in _MODES:
            raise ValueError(
                f"Invalid mode '{mode}'. Supported modes are: 'full', 'activations', 'larger_than',"
                " 'list_of_layers', or  None."
            )
        self.mode, self.output_size_threshold = mode, output_size_threshold
        self.layer_names = list(layer_names or ())
        self._block = during(_scopes, "innermost", self)

    def __enter__(self) -> RematScope:
        self._block.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._block.__exit__(*error)

    def applied(self, layer: Any, call: Callable[..., Any], args: Any) -> Callable[..., Any]:
        """A layer's `call`, computed again for gradients where the mode says so.

        Args:
            args: what the layer is called on.
        """
        if self.mode == "activations":
            return _with_activation(layer, call)
        wanted = self.mode == "full"
        if self.mode == "list_of_layers":
            wanted = layer.name in self.layer_names
        elif self.mode == "larger_than":
            wanted = _size(layer, args) > self.output_size_threshold
        return _again(layer, call) if wanted else call


def scope() -> RematScope | None:
    """The innermost scope, in which a layer is made."""
    found = _scopes.innermost
    return None if found is None or found.mode is None else found


def _again(layer: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's `call`, computed again for gradients: with the states of random numbers and the
    statistics that it began with, which it changes only once."""

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        states = [(v, v.read_value()) for v in layer.non_trainable_variables]
        calls = itertools.count()

        @functools.wraps(call)
        def once(*given: Any, **named: Any) -> Any:
            if not next(calls):
                return call(*given, **named)
            with StatelessScope(states):
                return call(*given, **named)

        return td.recompute_grad(once)(*args, **kwargs)

    return called


def _with_activation(layer: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    own = getattr(layer, "activation", None)
    if own is None:
        return call

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        layer.activation = td.recompute_grad(own)
        try:
            return call(*args, **kwargs)
        finally:
            layer.activation = own

    return called


def _size(layer: Any, args: Any) -> int:
    """How many elements a layer's results have; unknown sizes count as one."""
    shapes = [tuple(x.shape) for x in td.nest.flatten(args[:1])]
    given = shapes[0] if len(shapes) == 1 else shapes
    return _count(layer.compute_output_shape(given))


def _count(shapes: Any) -> int:
    """How many elements there are in results of shapes."""
    if isinstance(shapes, Mapping):
        return sum(map(_count, shapes.values()))
    if all(size is None or isinstance(size, int) for size in shapes):
        return math.prod(size or 1 for size in shapes)
    return sum(map(_count, shapes))
