"""Records: dataclasses whose methods are written when the first one is made.

To write and compile the methods of a dataclass takes most of a millisecond. The compiler has many,
and a process makes few of them: a first call would spend a tenth of its time on the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from treadle.core import locks

T = TypeVar("T", bound=type)

_completing = locks.reentrant_lock()
_OPTIONS = "_record_options"  # of a class whose methods are not written yet


@dataclass_transform(field_specifiers=(dataclasses.field,))
def record(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    """A class decorator like `dataclasses.dataclass`."""
    options = {"frozen": frozen, "eq": eq, "repr": repr}
    return _prepared(options) if cls is None else _prepared(options)(cls)


def _prepared(options: dict[str, bool]) -> Callable[[T], T]:
    def prepare(cls: T) -> T:
        def begin(self: Any, *args: Any, **kwargs: Any) -> None:
            _complete(cls)
            type(self).__init__(self, *args, **kwargs)

        setattr(cls, _OPTIONS, options)
        cls.__init__ = begin  # type: ignore[misc]
        return cls

    return prepare


def _complete(cls: type) -> None:
    """Write the methods of a class and of the records that it derives from."""
    with _completing:
        for base in reversed(cls.__mro__):
            options = base.__dict__.get(_OPTIONS)
            if options is not None:
                made = _init_method(base, options["frozen"])
                dataclasses.dataclass(init=False, **options)(base)
                base.__init__ = made  # type: ignore[misc]
                delattr(base, _OPTIONS)


def _init_method(cls: Any, frozen: bool) -> Any:
    """That of a twin: at no time may the class be without one, as other threads make records."""
    namespace = {k: v for k, v in cls.__dict__.items() if k not in _NOT_THE_TWINS}
    twin: Any = type(cls.__name__, cls.__bases__, namespace | {"__qualname__": cls.__qualname__})
    return dataclasses.dataclass(frozen=frozen, eq=False, repr=False)(twin).__init__


_NOT_THE_TWINS = ("__init__", "__dict__", "__weakref__", _OPTIONS)
