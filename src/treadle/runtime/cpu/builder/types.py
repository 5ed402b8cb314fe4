"""The types of values, and where structs have their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class BuildError(Exception):
    """A function is put together wrongly: types that do not fit, a block without an end."""


@dataclass(frozen=True)
class Type:
    """A number, or nothing.

    Attributes:
        text: LLVM's name of the type.
        bytes: its size in memory, which is its alignment as well.
        family: "i" for integers, "f" for floats, "p" for pointers, "v" for nothing.
    """

    text: str
    bytes: int
    family: str


VOID = Type("void", 0, "v")
I1, I8, I32, I64 = (Type(f"i{bits}", max(1, bits // 8), "i") for bits in (1, 8, 32, 64))
F32, F64 = Type("float", 4, "f"), Type("double", 8, "f")


@dataclass(frozen=True)
class Pointer(Type):
    """An address; `to` is the type or the struct that lies there, None where nobody says."""

    text: str = "ptr"
    bytes: int = 8
    family: str = "p"
    to: Type | Struct | None = None


PTR = Pointer()


@dataclass(frozen=True)
class Signature(Type):
    """The address of a function."""

    text: str = "ptr"
    bytes: int = 8
    family: str = "p"
    result: Type = VOID
    parameters: tuple[Type, ...] = ()


@dataclass(frozen=True)
class Vector(Type):
    """Several numbers side by side."""


def vector(element: Type, lanes: int) -> Vector:
    """A vector; its address need only be aligned as those of its elements are."""
    return Vector(f"<{lanes} x {element.text}>", element.bytes, element.family)


def pointer(to: Type | Struct) -> Pointer:
    return Pointer(to=to)


def function(result: Type, *parameters: Type) -> Signature:
    return Signature(result=result, parameters=parameters)


@dataclass(eq=False)
class Struct:
    """Fields at known offsets of an address.

    Attributes:
        fields: offset and type of every field.
        bytes: from one struct to the next in an array of them; 0 where there are no arrays.
    """

    name: str
    fields: dict[str, tuple[int, Type]] = field(default_factory=dict)
    bytes: int = 0

    def field(self, name: str) -> tuple[int, Type]:
        """Offset and type of a field.

        Raises:
            BuildError: there is none of that name.
        """
        if name not in self.fields:
            known = ", ".join(self.fields)
            raise BuildError(f"{self.name} has no field {name!r}; its fields are {known}")
        return self.fields[name]

    @property
    def pointer(self) -> Pointer:
        """The type of the address of such a struct."""
        return Pointer(to=self)


def words(name: str, fields: Mapping[str, Type]) -> Struct:
    """A struct of fields that take a word of 8 bytes each, in order."""
    placed = {field: (8 * i, type_) for i, (field, type_) in enumerate(fields.items())}
    return Struct(name, placed, 8 * len(placed))


def fits(given: Type, wanted: Type) -> bool:
    """Whether a value of one type may stand where the other is wanted: pointers fit those to the
    same, and pointers to nothing in particular fit all."""
    if given == wanted:
        return True
    return given.family == wanted.family == "p" and PTR in (given, wanted)


def shown(type_: Type) -> str:
    """A type in words, for errors."""
    if isinstance(type_, Pointer) and type_.to is not None:
        to = type_.to
        return f"pointer to {to.name if isinstance(to, Struct) else shown(to)}"
    if isinstance(type_, Signature):
        return f"function({', '.join(map(shown, type_.parameters))}) -> {shown(type_.result)}"
    return type_.text
