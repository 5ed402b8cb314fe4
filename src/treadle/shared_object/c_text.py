"""Names, types, sizes and texts as C has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, SymbolicDim

_KEYWORDS = """
    alignas alignof and asm auto bool break case catch char class const constexpr continue decltype
    default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not nullptr operator or private protected public
    register restrict return short signed sizeof static struct switch template this throw true try
    typedef typeid typename typeof union unsigned using virtual void volatile while xor
"""  # of C and C++

# The types of elements; 16-bit floats are their bits.
_TYPES: dict[DType, str] = {
    dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t",
    dtypes.float32: "float", dtypes.float64: "double",
    dtypes.int8: "int8_t", dtypes.int16: "int16_t", dtypes.int32: "int32_t",
    dtypes.int64: "int64_t", dtypes.uint8: "uint8_t", dtypes.uint16: "uint16_t",
    dtypes.uint32: "uint32_t", dtypes.uint64: "uint64_t", dtypes.bool: "uint8_t",
}  # fmt: skip


_TAKEN = frozenset(_KEYWORDS.split())


class Names:
    """C identifiers for names of any kind, each given once."""

    def __init__(self, *taken: str, in_capitals: bool = False) -> None:
        """
        Args:
            taken: those that are not given.
            in_capitals: names differ in capital letters, too.
        """
        self._key = str.upper if in_capitals else str
        self._taken = {self._key(name) for name in taken}

    def of(self, name: str) -> str:
        """The name, or one like it where C does not take it or it is given already."""
        plain = re.sub(r"\W+", "_", name.removesuffix(":0"), flags=re.ASCII).strip("_") or "value"
        if plain[0].isdigit() or plain in _TAKEN:
            plain = f"{plain}_" if plain in _TAKEN else f"_{plain}"
        found, number = plain, 2
        while self._key(found) in self._taken:
            found, number = f"{plain}_{number}", number + 1
        self._taken.add(self._key(found))
        return found


def element_type(dtype: DType) -> str | None:
    """The C type of elements; None where there is none: strings, complex numbers."""
    return _TYPES.get(dtype)


def literal(text: str) -> str:
    """A string of C: printable ASCII as it is, other bytes as octal numbers."""
    plain = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("?"): "\\?"}
    body = (
        plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in text.encode("utf-8")
    )
    return f'"{"".join(body)}"'


def comment(text: str) -> str:
    """A text within a comment of C."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def size(dim: Dim, symbols: Mapping[str, str]) -> str:
    """A dim as an expression; `symbols` has the variables of C that hold the values of symbols."""
    if not isinstance(dim, SymbolicDim):
        return f"INT64_C({dim})"
    terms = []
    for atoms, count in dim.terms:
        factors = [_atom(atom, symbols) for atom in atoms]
        terms.append(" * ".join(factors if count == 1 and factors else [str(count), *factors]))
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


_OPERATIONS = {"max": "larger", "min": "smaller", "floordiv": "floor_divide", "mod": "modulo"}


def _atom(atom: Any, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        return symbols[atom]
    operation, a, b = atom
    return f"{_OPERATIONS[operation]}({size(a, symbols)}, {size(b, symbols)})"
