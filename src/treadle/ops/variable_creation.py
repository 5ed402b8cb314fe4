"""What takes part when a variable is made: creators of the program and of strategies, or nobody."""

from __future__ import annotations

import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable
from typing import Any

from treadle.core.context import naming, placing, recording, taping
from treadle.core.devices import HOST, Device
from treadle.core.interrupts import during


class Created(ABCMeta):
    """The class of `Variable`, whose calls go through the creators of `variable_creator_scope`.
    Those of classes that users derive from it do not, as in TensorFlow. It is an `ABCMeta`, also
    as there, so that classes may derive from `Variable` and from abstract classes."""

    # No class is registered as a variable's: `isinstance` is as fast as for other classes.
    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        creators = naming.creators
        if not creators or not cls.__module__.startswith("treadle."):
            return super().__call__(*args, **kwargs)
        create: Callable[..., Any] = functools.partial(_create, super().__call__)
        for creator in creators:
            create = functools.partial(creator, create)
        given = inspect.signature(cls.__init__).bind(None, *args, **kwargs)  # type: ignore[misc]
        given.apply_defaults()
        _, *values = given.arguments.items()
        named = dict(values)
        return create(**(named | named.pop("kwargs", {})))


def _create(make: Callable[..., Any], next_creator: Any = None, **kwargs: Any) -> Any:
    """The last of the creators."""
    return make(**kwargs)


def variable_creator_scope(variable_creator: Callable[..., Any]) -> during:
    """Variables that the block makes are made by a function.

    Args:
        variable_creator: ``variable_creator(next_creator, **kwargs)`` gets all arguments of
            `Variable` by name, and gives a variable: in general that of ``next_creator(**kwargs)``
            with some of them changed. That of an inner block is called first, and the next creator
            is that of the block around it.
    """
    return during(naming, "creators", (*naming.creators, variable_creator))


class making_alone:
    """Variables that the block makes are seen by no program: neither a trace, a tape, a name scope
    nor a creator of variables around, such as a strategy's, takes part. They are on `device`."""

    __slots__ = ("_blocks",)

    def __init__(self, device: Device = HOST) -> None:
        self._blocks = (
            recording(None), taping(()), placing(device), during(naming, "creators", ()),
            during(naming, "scope", ""),
        )  # fmt: skip

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__(*error)
