"""Functions of tensors that also take what `keras.Input` gives, where a call of them is a step of a
functional model.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from treadle.keras import naming
from treadle.keras.layers import symbolic
from treadle.keras.layers.functions import Operation

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Kind:
    """A function of `keras.ops`, and Keras's class of its calls.

    Args:
        module: the module of Keras that has the class: one of its `ops`, or another one's path.
        name: of the class.
        function: what computes.
        tensors: the parameters that belong to a call; the others are settings of the operation.
    """

    def __init__(
        self, module: str, name: str, function: Callable[..., Any], tensors: tuple[str, ...]
    ) -> None:
        self.module, self.name, self.function = module, name, function
        self.tensors = tensors
        self.signature = inspect.signature(function)
        kinds = {p.name: p.kind for p in self.signature.parameters.values()}
        self.more = next((n for n, k in kinds.items() if k is inspect.Parameter.VAR_POSITIONAL), "")
        self.named = next((n for n, k in kinds.items() if k is inspect.Parameter.VAR_KEYWORD), "")
        self._first = list(kinds)[: list(kinds).index(self.more)] if self.more else []
        self._taken = [name for name in tensors if name not in (self.more, self.named)]

    def step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make an operation of a call, and call it on its tensors."""
        bound = self.signature.bind(*args, **kwargs)
        given = dict(bound.arguments)
        more = given.pop(self.more, ())
        named = given.pop(self.named, {}) if self.named else {}
        bound.apply_defaults()
        settings = {
            name: value for name, value in bound.arguments.items()
            if name not in self.tensors and name not in (self.more, self.named)
        }  # fmt: skip
        listed: list[Any] = []
        for name in self._taken:
            if name not in given or len(listed) < self._taken.index(name):
                continue
            listed.append(given[name])
        keywords = {name: given[name] for name in self._taken[len(listed) :] if name in given}
        return FunctionOperation(self, settings)(*listed, *more, **keywords, **named)

    def apply(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Any:
        """Compute what a call of an operation gives."""
        given = {**settings, **dict(zip(self._taken, args, strict=False)), **kwargs}
        first = [given.pop(name) for name in self._first]
        return self.function(*first, *args[len(self._taken) :], **given)


KINDS: dict[str, Kind] = {}


class FunctionOperation(Operation):
    """A call of a function of `keras.ops` on what `keras.Input` gave.

    Args:
        kind: the function.
        settings: its arguments that are no tensors.
    """

    def __init__(self, kind: Kind, settings: Mapping[str, Any]) -> None:
        super().__init__(name=naming.unique_name(kind.name))
        self.kind, self.settings = kind, dict(settings)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self.kind.apply(args, kwargs, self.settings)

    def get_config(self) -> dict[str, Any]:
        """The name and the settings."""
        return {"name": self.name, **self.settings}

    @property
    def _saved_as(self) -> tuple[str, str]:
        module = self.kind.module
        return f"keras.src.{module if '.' in module else 'ops.' + module}", self.kind.name


def restored(class_name: str, config: Mapping[str, Any]) -> FunctionOperation:
    """The operation of a class of Keras and what its `get_config` gave.

    Raises:
        ValueError: there is none of that name.
    """
    kind = KINDS.get(class_name)
    if kind is None:
        raise ValueError(f"The operation {class_name!r} of Keras is not supported")
    settings = {k: v for k, v in config.items() if k in kind.signature.parameters}
    operation = FunctionOperation(kind, settings)
    operation._name = config["name"]
    return operation


def operation(
    module: str, *tensors: str, name: str | None = None
) -> Callable[[_Function], _Function]:
    """Decorator: the function also takes what `keras.Input` gives.

    Args:
        module: the module of Keras that has the class of its calls: one of its `ops`, as "numpy" or
            "nn", or the path of another one.
        tensors: the parameters that are part of a call, in Keras's order; the others are settings.
        name: the name of Keras's class; the function's in camel case when omitted.
    """

    def decorated(function: _Function) -> _Function:
        words = function.__name__.split("_")
        class_name = name or "".join(w[:1].upper() + w[1:] for w in words)
        kind = Kind(module, class_name, function, tensors)
        KINDS[kind.name] = kind

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if symbolic.among(args, kwargs):
                return kind.step(args, kwargs)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorated
