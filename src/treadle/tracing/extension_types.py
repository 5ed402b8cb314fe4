"""`ExtensionType`: classes of the user whose fields hold tensors, with methods of their own.

Objects are structures (`core.nest`): arguments and results of functions, values that branches and
loops give and carry, elements of nested structures. Fields without tensors are part of their type.
"""

from __future__ import annotations

import inspect
import types
import typing
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeSpec, CompositeTensor
from treadle.core.errors import NotFoundError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import equal
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.state import Variable
from treadle.ops.type_specs import type_spec_from_value

Converter = Callable[[Any, str], Any]
_PLAIN = (int, float, bool, str, bytes, type(None))
_RESERVED = ("Spec", "self")
_OF_CLASSES = ("__dict__", "__weakref__", "__module__", "__qualname__", "__annotations__")


class ImmutableMapping(Mapping[Any, Any]):
    """A mapping of a field: it cannot be changed."""

    def __init__(self, items: Any = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class Field:
    """One field of a class.

    Attributes:
        convert: makes the field's value of what a constructor was given.
        holds_tensors: whether its values are part of the structure; else they are of the type.
    """

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name, self.annotation, self.default = name, annotation, default
        self.convert = _converter(annotation, name)
        self.holds_tensors = _holds_tensors(annotation)
        if default is not inspect.Parameter.empty and not self.holds_tensors:
            self.default = self.convert(default, name)


class ExtensionType:
    """Base of classes with typed fields, methods, and tensors in some fields.

    The fields are the class's annotations: `Tensor`, a `TensorSpec`, another extension type, `int`,
    `float`, `bool`, `str`, `bytes`, `DType`, `TensorShape`, and ``Tuple``, ``Mapping``, ``Union``
    and ``Optional`` of these. A constructor converts its arguments to them; then a method
    ``__validate__`` may check them. Objects do not change. A class may have an ``__init__`` of its
    own, which sets the fields. ``Class.Spec`` is the type of its objects, for an `input_signature`;
    a class `Spec` in the body gives it methods, and a constructor of its own.

        class Masked(td.experimental.ExtensionType):
            values: td.Tensor
            mask: td.Tensor

            def total(self):
                return td.reduce_sum(td.where(self.mask, self.values, 0))

    Raises:
        TypeError: for the class, an annotation that is none of these; for an object, arguments that
            are not what the annotations say.
        ValueError: a value of the class without an annotation, or a reserved name.
        AttributeError: a field is assigned or deleted.
    """

    _fields_by_name: ClassVar[dict[str, Field]] = {}
    Spec: ClassVar[type]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._fields_by_name = _fields_of(cls)
        if "__init__" in cls.__dict__:
            cls.__init__ = _completed(cls, cls.__dict__["__init__"])  # type: ignore[method-assign]
        else:
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        cls.Spec = _spec_class(cls, cls.__dict__.get("Spec"))
        name = saved_name(cls)
        if name is not None:
            _by_name[name] = cls
        for kind in (cls, cls.Spec):
            nest.register_node(kind, parts_of, rebuilt, _static)

    def __validate__(self) -> None:
        """Check a new object; for classes to define."""

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_made" in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__} objects do not change: {name!r} cannot be assigned"
                f"{at(user_origin())}"
            )
        if name not in self._fields_by_name:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}{at(user_origin())}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(
            f"{type(self).__name__} objects do not change: {name!r} cannot be deleted"
            f"{at(user_origin())}"
        )

    @property
    def _type_spec(self) -> Any:
        return nest.map_structure(type_spec_from_value, self)

    def __eq__(self, other: Any) -> Any:
        """A bool tensor: whether all fields are equal. False for another type."""
        if type(self) is not type(other) or _static(self) != _static(other):
            return False
        mine, theirs = nest.flatten(self), nest.flatten(other)
        if [_form(x) for x in mine] != [_form(x) for x in theirs]:
            return False
        same = [reduce_all(equal(a, b)) for a, b in zip(mine, theirs, strict=True) if a is not None]
        return reduce_all(convert_to_tensor(same)) if same else True

    def __ne__(self, other: Any) -> Any:
        same = self == other
        return not same if isinstance(same, bool) else ~same

    def __hash__(self) -> int:
        return hash((_static(self), *nest.flatten(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_listed(self)})"


# The classes by their names in saved functions; of one name the class that was made last.
_by_name: weakref.WeakValueDictionary[str, type[ExtensionType]] = weakref.WeakValueDictionary()


def saved_name(cls: type) -> str | None:
    """What a class is called in saved models: the ``__name__`` that its body gives; None without,
    as its objects are not saved then."""
    name = cls.__dict__.get("__name__")
    return None if name is None else str(name)


def class_saved_as(name: str) -> type[ExtensionType]:
    """The class with a `saved_name`.

    Raises:
        NotFoundError: this program has none.
    """
    try:
        return _by_name[name]
    except KeyError:
        raise NotFoundError(
            None, None,
            f"A saved function takes or gives objects of the extension type {name}, which this "
            f"program does not define: define the class before loading{at(user_origin())}",
        ) from None  # fmt: skip


def _form(leaf: Any) -> Any:
    return (leaf.dtype, tuple(leaf.shape)) if isinstance(leaf, Tensor | Variable) else type(leaf)


def _listed(value: Any) -> str:
    return ", ".join(f"{name}={getattr(value, name)!r}" for name in value._fields_by_name)


# -- fields --------------------------------------------------------------------------------------


def _fields_of(cls: type) -> dict[str, Field]:
    """The inherited fields, then those of the class."""
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= base.__dict__.get("_fields_by_name", {})
    own = cls.__dict__.get("__annotations__", {})
    known = {**vars(cls), cls.__name__: cls}  # a field may hold objects of the class itself
    try:
        hints = typing.get_type_hints(cls, localns=known) if own else {}
    except NameError as error:
        raise TypeError(f"{cls.__name__}: an annotation is not defined: {error}") from None
    for name in own:
        if name in _RESERVED or name.startswith("__"):
            raise ValueError(f"{cls.__name__}: the name {name!r} is reserved{at(user_origin())}")
        default = cls.__dict__.get(name, inspect.Parameter.empty)
        fields[name] = Field(name, hints[name], default)
        if name in cls.__dict__:
            delattr(cls, name)
    for name, value in cls.__dict__.items():
        plain = not callable(value) and not hasattr(value, "__get__")
        if plain and not name.startswith("_") and name not in own:
            raise ValueError(
                f"{cls.__name__}: the field {name!r} needs a type annotation{at(user_origin())}"
            )
    return fields


def _is_structure(annotation: Any) -> bool:
    """Whether the values of a field are structures of tensors: objects of an extension type, ragged
    or sparse tensors."""
    kinds = (ExtensionType, CompositeTensor)
    return isinstance(annotation, type) and issubclass(annotation, kinds)


def _holds_tensors(annotation: Any) -> bool:
    if isinstance(annotation, TypeSpec) or _is_structure(annotation):
        return True
    if annotation in (Tensor, Variable):
        return True
    return any(_holds_tensors(part) for part in typing.get_args(annotation))


def _converter(annotation: Any, name: str) -> Converter:
    """How values become values of a field; TypeError for an annotation that cannot be one."""
    if annotation is None:
        annotation = type(None)
    if annotation in _PLAIN or annotation is Variable or _is_structure(annotation):
        return lambda value, place: _instance(value, annotation, place)
    if annotation is Tensor:
        return _tensor
    if isinstance(annotation, TensorSpec):
        return lambda value, place: _of_spec(value, annotation, place)
    if isinstance(annotation, CompositeSpec):
        return lambda value, place: _fitting(value, annotation, place)
    if annotation is dtypes.DType:
        return lambda value, place: dtypes.as_dtype(value)
    if annotation is TensorShape:
        return lambda value, place: TensorShape(value)
    return _container(annotation, name)


def _container(annotation: Any, name: str) -> Converter:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _first_of([(a, _converter(a, name)) for a in args])
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        each = _converter(args[0], name)
        return lambda value, place: tuple(each(v, place) for v in _sequence(value, place))
    if origin is tuple:
        kinds = [_converter(a, name) for a in args if a != ()]
        return lambda value, place: _fixed_tuple(value, kinds, place)
    if isinstance(origin, type) and issubclass(Mapping, origin) and len(args) == 2:
        key, item = (_converter(a, name) for a in args)
        return lambda value, place: ImmutableMapping(
            [(key(k, place), item(v, place)) for k, v in _items(value, place)]
        )
    raise TypeError(
        f"the field {name!r}: {annotation!r} cannot be the type of a field of an extension type: "
        "use Tensor, TensorSpec, an extension type, int, float, bool, str, bytes, DType, "
        "TensorShape, RaggedTensor, SparseTensor, or Tuple, Mapping, Union and Optional of these"
        f"{at(user_origin())}"
    )


def _wrong(value: Any, wanted: str, place: str) -> TypeError:
    return TypeError(f"{place}: expected {wanted}, got {value!r}{at(user_origin())}")


def _instance(value: Any, kind: type, place: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(value, kind.__name__, place)
    return value


def _tensor(value: Any, place: str) -> Any:
    try:
        return convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place}: {error}") from None


def _of_spec(value: Any, spec: TensorSpec, place: str) -> Any:
    try:
        tensor = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place}: {error}") from None
    if not spec.is_compatible_with(tensor):
        raise _wrong(tensor, repr(spec), place)
    return tensor


def _fitting(value: Any, spec: CompositeSpec, place: str) -> Any:
    if not spec.is_compatible_with(value):
        raise _wrong(value, repr(spec), place)
    return value


def _sequence(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, "a tuple", place)
    return value


def _fixed_tuple(value: Any, kinds: Sequence[Converter], place: str) -> tuple[Any, ...]:
    given = _sequence(value, place)
    if len(given) != len(kinds):
        raise _wrong(value, f"a tuple of {len(kinds)} values", place)
    return tuple(kind(v, place) for kind, v in zip(kinds, given, strict=True))


def _items(value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(value, "a mapping", place)
    return value.items()


def _first_of(choices: Sequence[tuple[Any, Converter]]) -> Converter:
    """Of a Union, what the value is an instance of; else the first that it converts to."""

    def convert(value: Any, place: str) -> Any:
        if value is None and any(kind in (None, type(None)) for kind, _ in choices):
            return None
        for _, choice in choices:
            try:
                return choice(value, place)
            except (TypeError, ValueError):
                continue
        raise _wrong(value, " or ".join(str(kind) for kind, _ in choices), place)

    return convert


# -- construction --------------------------------------------------------------------------------


def _signature(fields: Mapping[str, Field]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f.name, kind, default=f.default) for f in fields.values()]
    with_default = [p for p in parameters if p.default is not p.empty]
    keyword = inspect.Parameter.KEYWORD_ONLY
    first = parameters.index(with_default[0]) if with_default else len(parameters)
    late = [p.replace(kind=keyword) for p in parameters[first:] if p.default is p.empty]
    return inspect.Signature([p for p in parameters if p.name not in {q.name for q in late}] + late)


def _constructor(cls: Any) -> Callable[..., None]:
    """An ``__init__`` that takes the fields."""
    signature = _signature(cls._fields_by_name)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}(): {error}{at(user_origin())}") from None
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)
        if type(self).__init__ is __init__:
            _finish(self)

    return __init__


def _completed(cls: Any, init: Callable[..., None]) -> Callable[..., None]:
    """The class's own ``__init__``, after which the fields are converted and checked."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if type(self).__init__ is __init__:
            _finish(self)

    __init__.__wrapped__ = init  # type: ignore[attr-defined]
    return __init__


def _finish(made: Any) -> None:
    for name, field in made._fields_by_name.items():
        if name not in made.__dict__:
            if field.default is inspect.Parameter.empty:
                raise AttributeError(
                    f"{type(made).__name__}: the constructor did not set the field {name!r}"
                    f"{at(user_origin())}"
                )
            made.__dict__[name] = field.default
        place = f"{type(made).__name__}: field {name!r}"
        made.__dict__[name] = field.convert(made.__dict__[name], place)
    made.__dict__["_is_made"] = True
    made.__validate__()


# -- specs ---------------------------------------------------------------------------------------


class ExtensionTypeSpec(CompositeSpec):
    """The type of an extension type's objects: its fields with specs in place of tensors.

    Args:
        args, kwargs: the fields, as for the class.
    """

    _fields_by_name: ClassVar[dict[str, Field]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        try:
            bound = _signature(self._fields_by_name).bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}{at(user_origin())}") from None
        bound.apply_defaults()
        for field, value in bound.arguments.items():
            object.__setattr__(self, field, _field_spec(self._fields_by_name[field], value, name))

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_open" not in self.__dict__ or name not in self._fields_by_name:
            raise AttributeError(f"{type(self).__name__} objects do not change{at(user_origin())}")
        object.__setattr__(self, name, value)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields_by_name)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    __hash__ = CompositeSpec.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_listed(self)})"


def _field_spec(field: Field, value: Any, name: str) -> Any:
    if field.holds_tensors:
        return nest.map_structure(_leaf_spec, value)
    return field.convert(value, f"{name}: field {field.name!r}")


def _leaf_spec(leaf: Any) -> Any:
    return leaf if leaf is None or isinstance(leaf, TypeSpec) else type_spec_from_value(leaf)


def _spec_class(cls: Any, own: type | None) -> type:
    """The class of specs, with the members of the class `Spec` that a program may have written."""
    name = f"{cls.__name__}.Spec"
    written = {k: v for k, v in vars(own).items() if k not in _OF_CLASSES} if own else {}
    if "__init__" in written:
        written["__init__"] = _completed_spec(written["__init__"])
    members = written | {
        "value_type": cls,
        "seen_as": cls,
        "_fields_by_name": cls._fields_by_name,
        "__module__": cls.__module__,
    }
    return type(name, (ExtensionTypeSpec,), members)


def _completed_spec(init: Callable[..., None]) -> Callable[..., None]:
    """The program's own ``__init__``, after which the fields are converted."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "_is_open", True)
        init(self, *args, **kwargs)
        object.__delattr__(self, "_is_open")
        name = type(self).__name__
        for field in self._fields_by_name.values():
            if field.name not in self.__dict__:
                raise AttributeError(
                    f"{name}: the constructor did not set the field {field.name!r}"
                    f"{at(user_origin())}"
                )
            value = _field_spec(field, self.__dict__[field.name], name)
            object.__setattr__(self, field.name, value)

    __init__.__wrapped__ = init  # type: ignore[attr-defined]
    return __init__


# -- structures ----------------------------------------------------------------------------------


def parts_of(value: Any) -> list[Any]:
    fields = value._fields_by_name.values()
    return [getattr(value, f.name) for f in fields if f.holds_tensors]


def _static(value: Any) -> Hashable:
    """The class with the fields that hold no tensors."""
    fields = value._fields_by_name.values()
    kind = getattr(value, "value_type", type(value))
    return kind, tuple(_hashed(getattr(value, f.name)) for f in fields if not f.holds_tensors)


def _hashed(value: Any) -> Hashable:
    if isinstance(value, Mapping):
        return tuple((k, _hashed(v)) for k, v in sorted(value.items(), key=repr))
    if isinstance(value, tuple):
        return tuple(map(_hashed, value))
    return type(value), value


def rebuilt(like: Any, parts: list[Any]) -> Any:
    """An object, or a spec where the parts are specs, that differs in the fields with tensors."""
    kind = getattr(like, "value_type", type(like))
    if any(isinstance(leaf, Spec) for leaf in nest.flatten(parts)):
        kind = kind.Spec
    made = object.__new__(kind)
    given = iter(parts)
    for name, field in like._fields_by_name.items():
        value = next(given) if field.holds_tensors else getattr(like, name)
        object.__setattr__(made, name, value)
    if isinstance(made, ExtensionType):
        made.__dict__["_is_made"] = True
    return made
