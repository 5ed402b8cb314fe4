"""The types of values, and where structs have their fields."""

from __future__ import annotations

from collections.abc import Mapping


class BuildError(Exception):
    """A function is put together wrongly: types that do not fit, a block without an end."""


class Type:
    """A number, or nothing. Types are equal where they say the same.

    Attributes:
        text: LLVM's name of the type.
        bytes: its size in memory, which is its alignment as well.
        family: "i" for integers, "f" for floats, "p" for pointers, "v" for nothing.
    """

    def __init__(self, text: str, bytes: int, family: str, *details: object) -> None:
        self.text, self.bytes, self.family = text, bytes, family
        self._key = (text, *details)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text


VOID = Type("void", 0, "v")
I1, I8, I32, I64 = (Type(f"i{bits}", max(1, bits // 8), "i") for bits in (1, 8, 32, 64))
F32, F64 = Type("float", 4, "f"), Type("double", 8, "f")


class Pointer(Type):
    """An address; `to` is the type or the struct that lies there, None where nobody says."""

    def __init__(self, to: Type | Struct | None = None) -> None:
        super().__init__("ptr", 8, "p", to)
        self.to = to

    def __str__(self) -> str:
        return "ptr" if self.to is None else f"pointer to {self.to}"


class Signature(Type):
    """The address of a function."""

    def __init__(self, result: Type, parameters: tuple[Type, ...]) -> None:
        super().__init__("ptr", 8, "p", result, *parameters)
        self.result, self.parameters = result, parameters

    def __str__(self) -> str:
        return f"function({', '.join(map(str, self.parameters))}) -> {self.result}"


class Struct:
    """Fields at known offsets of an address.

    Attributes:
        fields: offset and type of every field.
        bytes: from one struct to the next in an array of them; 0 where there are no arrays.
    """

    def __init__(
        self, name: str, fields: Mapping[str, tuple[int, Type]] | None = None, bytes: int = 0
    ) -> None:
        self.name, self.bytes = name, bytes
        self.fields = dict(fields or {})

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
        return Pointer(self)

    def __str__(self) -> str:
        return self.name


PTR = Pointer()


def pointer(to: Type | Struct) -> Pointer:
    return Pointer(to)


def function(result: Type, *parameters: Type) -> Signature:
    return Signature(result, parameters)


def vector(element: Type, lanes: int) -> Type:
    """Several numbers side by side; its address need only be aligned as those of its elements."""
    return Type(f"<{lanes} x {element.text}>", element.bytes, element.family)


def words(name: str, fields: Mapping[str, Type]) -> Struct:
    """A struct of fields that take a word of 8 bytes each, in order."""
    placed = {field: (8 * i, type_) for i, (field, type_) in enumerate(fields.items())}
    return Struct(name, placed, 8 * len(placed))


def fits(given: Type, wanted: Type) -> bool:
    """Whether a value of one type may stand where the other is wanted: pointers fit those to the
    same, and pointers to nothing in particular fit all."""
    if given is wanted or given == wanted:
        return True
    return given.family == wanted.family == "p" and PTR in (given, wanted)
