"""Records: dataclasses whose methods are made when the first record is.

To write and compile the methods of a dataclass takes most of a millisecond, and to find its fields
a tenth of one. The compiler has many, and a process makes records of few: a first call would spend
a tenth of its time on them. Here only ``__init__`` is written out, for classes of which more than a
few records are made; the other methods are the same functions for all classes. `dataclasses.fields`
and `dataclasses.replace` take records, whose fields may not be an ``InitVar``.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any, TypeVar, dataclass_transform

from treadle.core import locks

T = TypeVar("T", bound=type)

_completing = locks.reentrant_lock()
_OPTIONS = "_record_options"  # of a class whose methods are not there yet
_FEW = 50  # records of a class that cost less than to write out its ``__init__`` for them


@dataclass_transform(field_specifiers=(dataclasses.field,))
def record(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> Any:
    """A class decorator like `dataclasses.dataclass`."""
    options = {"frozen": frozen, "eq": eq, "repr": repr}
    return _prepared(options) if cls is None else _prepared(options)(cls)


def _prepared(options: dict[str, bool]) -> Callable[[T], T]:
    def prepare(cls: T) -> T:
        def begin(self: Any, *args: Any, **kwargs: Any) -> None:
            _complete(cls)
            cls.__init__(self, *args, **kwargs)  # type: ignore[misc]

        setattr(cls, _OPTIONS, options)
        cls.__init__ = begin  # type: ignore[misc]
        return cls

    return prepare


def _complete(cls: type) -> None:
    """Give a class and the records that it derives from their methods."""
    with _completing:
        for base in reversed(cls.__mro__):
            options = base.__dict__.get(_OPTIONS)
            if options is not None:
                _give_methods(base, **options)
                delattr(base, _OPTIONS)


def _give_methods(cls: Any, frozen: bool, eq: bool, repr: bool) -> None:
    """``__init__`` comes last: other threads may be about to make records."""
    own = set(cls.__dict__)
    cls.__dataclass_fields__ = _fields(cls)
    found = tuple(cls.__dataclass_fields__.values())
    methods: dict[str, Any] = {
        "__match_args__": tuple(f.name for f in found if f.init and not f.kw_only)
    }
    if repr:
        methods["__repr__"] = _repr_method([f.name for f in found if f.repr])
    if eq:
        key = _key([f.name for f in found if f.compare])
        methods["__eq__"] = _eq_method(key)
        methods["__hash__"] = (lambda self: hash(key(self))) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if cls.__dictoffset__:
        cls.__init__ = _first_init(cls, found, frozen)
    else:  # it has slots
        cls.__init__ = _written_init(cls, found, frozen)


@dataclasses.dataclass(init=False, eq=False, repr=False)
class _Example:
    """A dataclass, whose field has the mark that `dataclasses` knows fields by."""

    value: Any


_MARK = dataclasses.fields(_Example)[0]._field_type  # type: ignore[attr-defined]


def _fields(cls: Any) -> dict[str, Any]:
    """The fields of a class by name: those of the classes that it derives from, then its own.

    Raises:
        ValueError: a default value may be changed, as a list may.
    """
    missing = dataclasses.MISSING
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= base.__dict__.get("__dataclass_fields__", {})
    for name, kind in cls.__dict__.get("__annotations__", {}).items():
        if str(kind).removeprefix("typing.").startswith("ClassVar"):
            continue
        default = getattr(cls, name, missing)
        field: Any = default
        if not isinstance(default, dataclasses.Field):
            is_slot = type(default) is MemberDescriptorType
            field = dataclasses.field(default=missing if is_slot else default)
        elif field.default is missing:
            delattr(cls, name)
        else:
            setattr(cls, name, field.default)
        if field.default is not missing and type(field.default).__hash__ is None:
            raise ValueError(f"{cls.__qualname__}.{name}: a default value may not be changeable")
        field.name, field.type, field._field_type = name, kind, _MARK
        field.kw_only = field.kw_only is True
        found[name] = field
    return found


def _first_init(cls: Any, found: tuple[Any, ...], frozen: bool) -> Any:
    """An ``__init__`` for a few records. It leaves calls that do not fit to the written one, which
    tells what is wrong."""
    missing = dataclasses.MISSING
    arguments = tuple(f.name for f in found if f.init and not f.kw_only)
    known = {f.name for f in found if f.init}
    constants = {f.name: f.default for f in found if f.init and f.default is not missing}
    makers = {f.name: f.default_factory for f in found if f.default_factory is not missing}
    needed = known - constants.keys() - makers.keys()
    finishes = hasattr(cls, "__post_init__")
    left = _FEW

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        given = dict(zip(arguments, args, strict=False)) | kwargs
        once = len(given) == len(args) + len(kwargs)
        if left < 0 or not once or not needed <= given.keys() <= known:
            cls.__init__ = _written_init(cls, found, frozen)
            cls.__init__(self, *args, **kwargs)
            return
        made = {name: make() for name, make in makers.items() if name not in given}
        self.__dict__.update(constants | made | given)
        if finishes:
            self.__post_init__()

    return __init__


def _written_init(cls: Any, found: tuple[Any, ...], frozen: bool) -> Any:
    names: dict[str, Any] = {"missing": dataclasses.MISSING, "put": object.__setattr__}
    parameters: list[str] = ["self"]
    keywords: list[str] = []
    lines: list[str] = []
    for field in found:
        name, value = field.name, field.name
        made = field.default_factory is not dataclasses.MISSING
        if made:
            names[f"make_{name}"] = field.default_factory
            value = f"make_{name}()"
        if field.init:
            default = ""
            if made:
                default, value = "=missing", f"{value} if {name} is missing else {name}"
            elif field.default is not dataclasses.MISSING:
                names[f"default_{name}"] = field.default
                default = f"=default_{name}"
            (keywords if field.kw_only else parameters).append(name + default)
        elif not made:
            continue  # the class's default, or left to __post_init__
        lines.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    if keywords:
        parameters += ["*", *keywords]
    body = "".join(f"\n    {line}" for line in lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):{body}", names)
    method = names["__init__"]
    method.__qualname__, method.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return method


def _key(names: list[str]) -> Callable[[Any], Any]:
    """A function that gives the values of the fields that are compared."""
    return operator.attrgetter(*names) if names else lambda self: ()


def _eq_method(key: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def equals(self: Any, other: Any) -> Any:
        return key(self) == key(other) if type(other) is type(self) else NotImplemented

    return equals


def _repr_method(names: list[str]) -> Callable[[Any], str]:
    def text(self: Any) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        return f"{type(self).__qualname__}({', '.join(parts)})"

    return text


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")
