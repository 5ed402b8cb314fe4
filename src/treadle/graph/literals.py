"""Attribute values, dims and specs as text, and back.

numbers, strings, None, (tuples), [lists], {'dicts': 1}    as in Python
f32                       a dtype
f32[2](1.0, 2.0)          a small array
f32[784, 10](#3fa2...)    a larger one, by digest; its bytes stand in a data line
<B*10 + 1>                a symbolic dim
tensor f32[B], list f32[], ref f32[2]    a spec
named Point(x=1, y=2)     a named tuple
region 'f_0' (True,)      the name of a region that stands behind the node
typed 'ragged' {'a': 1}   an object of a type that was registered here, by its parts
"""

from __future__ import annotations

import ast
import binascii
import collections
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.digests import digest
from treadle.core.dtypes import DType
from treadle.core.shapes import (
    UNKNOWN_RANK,
    Dim,
    SymbolicDim,
    TensorShape,
    compound,
    fresh_symbol,
)
from treadle.core.spec import BufferSpec, ListSpec, ResourceSpec, Spec, TensorSpec, spec_text
from treadle.graph.ir import NamedRegion
from treadle.graph.tokens import GraphSyntaxError, Reader

NDArray = np.ndarray[Any, Any]

INLINE_ELEMENTS = 16

_SPECS: dict[str, Any] = {
    "tensor": TensorSpec, "list": ListSpec, "ref": ResourceSpec, "buffer": BufferSpec,
}  # fmt: skip
# Types whose objects are written by their parts: by the names that they have in texts.
_readers: dict[str, Callable[[dict[str, Any]], Any]] = {}
_writers: dict[type, tuple[str, Callable[[Any], dict[str, Any] | None]]] = {}

_NAMES = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}


def register_typed(
    name: str,
    kinds: Sequence[type],
    parts: Callable[[Any], dict[str, Any] | None],
    build: Callable[[dict[str, Any]], Any],
) -> None:
    """Let objects of some classes, or of classes derived from them, have a text.

    Args:
        name: what they are called there.
        parts: an object as a dict of values that have a text; None for one that has none.
        build: the object of such a dict.
    """
    _readers[name] = build
    _writers.update((kind, (name, parts)) for kind in kinds)


class DataSection:
    """The arrays too large to print inline, by digest."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray] = {}

    def add(self, array: NDArray) -> str:
        digest = array_digest(array)
        self.arrays[digest] = array
        return digest

    def opaque(self, value: Any) -> str:
        """The text of an object that has none, which does not parse."""
        return f"object {str(value)!r}"

    def contents(self) -> dict[str, bytes]:
        """The bytes of the arrays, as the parser takes them."""
        return {digest: _bytes(array) for digest, array in self.arrays.items()}

    def lines(self) -> list[str]:
        """``data #digest '<base64>'`` lines."""
        return [
            f"data #{digest} '{binascii.b2a_base64(data, newline=False).decode()}'"
            for digest, data in self.contents().items()
        ]


def array_digest(array: NDArray) -> str:
    """A digest of dtype, shape and bytes."""
    head = f"{dtypes.from_numpy(array.dtype).short}{array.shape}".encode()
    return digest(head + _bytes(array), 24)


def _bytes(array: NDArray) -> bytes:
    """The elements; strings as Python writes them."""
    return repr(array.reshape(-1).tolist()).encode() if array.dtype.hasobject else array.tobytes()


def _array_of(data: bytes, dtype: np.dtype[Any]) -> NDArray:
    """The elements that `_bytes` gave."""
    if dtype.hasobject:
        return np.array(ast.literal_eval(data.decode()), dtype)
    return np.frombuffer(data, dtype).copy()


# -- printing --------------------------------------------------------------------------------


def literal_text(value: Any, data: DataSection) -> str:
    """`value` as text. Of objects of other types `data` decides."""
    for kinds, text in _PRINTERS:
        if isinstance(value, kinds):
            return text(value, data)
    for kind in type(value).__mro__:
        if kind in _writers:
            name, parts = _writers[kind]
            found = parts(value)
            if found is not None:
                return f"typed {name!r} {_dict_text(found, data)}"
            break
    return data.opaque(value)


def _float_text(value: float, data: DataSection) -> str:
    return repr(float(value))


def _complex_text(value: complex, data: DataSection) -> str:
    return f"complex({float(value.real)!r}, {float(value.imag)!r})"


def _tuple_text(value: tuple[Any, ...], data: DataSection) -> str:
    items = [literal_text(v, data) for v in value]
    if hasattr(value, "_fields"):
        fields = zip(value._fields, items, strict=True)
        return f"named {type(value).__name__}({', '.join(f'{k}={v}' for k, v in fields)})"
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _list_text(value: list[Any], data: DataSection) -> str:
    return f"[{', '.join(literal_text(v, data) for v in value)}]"


def _dict_text(value: dict[Any, Any], data: DataSection) -> str:
    items = [f"{literal_text(k, data)}: {literal_text(v, data)}" for k, v in value.items()]
    return "{" + ", ".join(items) + "}"


def _slice_text(value: slice, data: DataSection) -> str:
    return "slice" + _tuple_text((value.start, value.stop, value.step), data)


def _shape_text(value: TensorShape, data: DataSection) -> str:
    return "shape" + _tuple_text(value.exact, data)


def _spec_literal(value: Spec, data: DataSection) -> str:
    return f"tensor {spec_text(value)}" if isinstance(value, TensorSpec) else spec_text(value)


def _array_text(array: NDArray, data: DataSection) -> str:
    dtype = dtypes.from_numpy(array.dtype)
    head = f"{dtype.short}[{', '.join(map(str, array.shape))}]"
    if array.size <= INLINE_ELEMENTS:
        elements = [_element_text(e, data) for e in array.reshape(-1)]
        if _bytes(_elements_array(elements, dtype, array.shape)) == _bytes(array):
            return f"{head}({', '.join(elements)})"
    return f"{head}(#{data.add(array)})"


def _element_text(element: Any, data: DataSection) -> str:
    if isinstance(element, bytes):
        return repr(element)
    if element.dtype.kind == "c":
        return _complex_text(element, data)
    if element.dtype.kind in "fV":
        short = str(element)  # the shortest digits for this dtype
        return short if short in ("inf", "-inf", "nan") else repr(float(short))
    return str(element)


def _elements_array(elements: list[str], dtype: DType, shape: tuple[int, ...]) -> NDArray:
    values = [_python_element(e) for e in elements]
    return np.array(values, dtype=dtype.np_dtype).reshape(shape)


def _python_element(text: str) -> Any:
    if text.startswith("complex("):
        real, imag = text[8:-1].split(", ")
        return complex(float(real), float(imag))
    if text in ("inf", "-inf", "nan", "-nan"):
        return float(text)
    return ast.literal_eval(text)


def _region_text(value: NamedRegion, data: DataSection) -> str:
    return f"region {str(value)!r} {_tuple_text(value.present, data)}"


_PRINTERS: list[tuple[Any, Callable[[Any, DataSection], str]]] = [
    (NamedRegion, _region_text),
    ((bool, int, str, bytes, type(None)), lambda value, data: repr(value)),
    (np.ndarray, _array_text),
    (np.generic, lambda value, data: _array_text(np.asarray(value), data)),
    (float, _float_text),
    (complex, _complex_text),
    (tuple, _tuple_text),
    (list, _list_text),
    (dict, _dict_text),
    (slice, _slice_text),
    (type(...), lambda value, data: "..."),
    (DType, lambda value, data: value.short),
    (SymbolicDim, lambda value, data: f"<{value}>"),
    (TensorShape, _shape_text),
    (Spec, _spec_literal),
]


# -- parsing ---------------------------------------------------------------------------------


class LiteralParser:
    """Reads literals from tokens.

    Args:
        data: gives the bytes of arrays printed by digest.
        fresh_symbols: whether symbolic dims get new names, the same one for the same name.
    """

    def __init__(
        self, reader: Reader, data: Mapping[str, bytes], fresh_symbols: bool = False
    ) -> None:
        self.reader = reader
        self.data = data
        self.symbols: dict[str, Dim] | None = {} if fresh_symbols else None

    def literal(self) -> Any:
        reader, token = self.reader, self.reader.peek()
        if token.kind == "number":
            return _number(reader.next().text)
        if token.kind == "string":
            return ast.literal_eval(reader.next().text)
        if token.text == "(":
            return self.sequence("(", ")")
        if token.text == "[":
            return list(self.sequence("[", "]"))
        if token.text == "{":
            return self.dictionary()
        if token.text == "<":
            reader.next()
            dim = self.dim()
            reader.expect(">")
            return dim
        if reader.accept("..."):
            return ...
        return self.word()

    def word(self) -> Any:
        reader = self.reader
        if reader.peek().text in _SPECS:
            return self.spec()
        name = reader.expect_kind("word").text
        if name in _NAMES:
            return _NAMES[name]
        if name in dtypes.BY_SHORT:
            return self.array(name) if reader.at("[") else dtypes.BY_SHORT[name]
        if name in ("complex", "slice", "shape"):
            parts = self.sequence("(", ")")
            return {"complex": complex, "slice": slice}.get(name, lambda *d: TensorShape(d))(*parts)
        if name == "named":
            return self.named_tuple()
        if name == "typed":
            return self.typed()
        if name == "region":
            return NamedRegion(self.literal(), present=self.sequence("(", ")"))
        if name == "b" and reader.peek().kind == "string":
            return ast.literal_eval("b" + reader.next().text)
        if name == "object":
            text = reader.next().text
            reader.fail(f"the attribute {text} is a Python object and has no text form")
        return reader.fail(f"unknown name {name!r}")

    def sequence(self, opening: str, closing: str) -> tuple[Any, ...]:
        self.reader.expect(opening)
        items = []
        while not self.reader.accept(closing):
            items.append(self.literal())
            if not self.reader.at(closing):
                self.reader.expect(",")
        return tuple(items)

    def dictionary(self) -> dict[Any, Any]:
        self.reader.expect("{")
        result = {}
        while not self.reader.accept("}"):
            key = self.literal()
            self.reader.expect(":")
            result[key] = self.literal()
            if not self.reader.at("}"):
                self.reader.expect(",")
        return result

    def named_tuple(self) -> Any:
        name, fields = self.reader.expect_kind("word").text, {}
        self.reader.expect("(")
        while not self.reader.accept(")"):
            field = self.reader.expect_kind("word").text
            self.reader.expect("=")
            fields[field] = self.literal()
            if not self.reader.at(")"):
                self.reader.expect(",")
        return _named_tuple(name, tuple(fields))(**fields)

    def typed(self) -> Any:
        name = self.literal()
        if name not in _readers:
            self.reader.fail(f"unknown type {name!r}")
        return _readers[name](self.dictionary())

    def array(self, short: str) -> NDArray:
        dtype = dtypes.BY_SHORT[short].np_dtype
        shape = self.sequence("[", "]")
        if self.reader.peek(1).kind == "digest":
            self.reader.expect("(")
            digest = self.reader.next().text[1:]
            self.reader.expect(")")
            if digest not in self.data:
                raise GraphSyntaxError(f"the text has no data line for array #{digest}")
            return _array_of(self.data[digest], dtype).reshape(shape)
        return np.array(self.sequence("(", ")"), dtype).reshape(shape)

    # -- specs and dims ----------------------------------------------------------------------

    def spec(self) -> Spec:
        """``f32[2, B]``, with ``list`` or ``ref`` before it for lists and variables."""
        reader = self.reader
        kind = _SPECS[reader.next().text] if reader.peek().text in _SPECS else TensorSpec
        short = reader.expect_kind("word").text
        if short not in dtypes.BY_SHORT:
            reader.fail(f"unknown dtype {short!r}")
        if reader.accept("<"):
            reader.expect("unknown")
            reader.expect(">")
            return kind(UNKNOWN_RANK, dtypes.BY_SHORT[short])
        reader.expect("[")
        dims: list[Dim] = []
        while not reader.accept("]"):
            dims.append(self.dim())
            if not reader.at("]"):
                reader.expect(",")
        return kind(dims, dtypes.BY_SHORT[short])

    def dim(self) -> Dim:
        """A sum of products of symbols, ints and ``floordiv(a, b)`` forms."""
        if self.reader.at("?", "*", "**"):  # dims that a shape leaves open
            return SymbolicDim.symbol(self.reader.next().text)
        total: Dim = 0
        sign = -1 if self.reader.accept("-") else 1
        while True:
            total = total + self.product() * sign
            if self.reader.accept("+"):
                sign = 1
            elif self.reader.accept("-"):
                sign = -1
            else:
                return total

    def product(self) -> Dim:
        result = self.atom()
        while self.reader.accept("*"):
            result = result * self.atom()
        return result

    def atom(self) -> Dim:
        reader = self.reader
        if reader.peek().kind == "number":
            return int(reader.next().text)
        name = reader.expect_kind("word").text
        if not reader.accept("("):
            return self.symbol(name)
        a = self.dim()
        reader.expect(",")
        b = self.dim()
        reader.expect(")")
        return compound(name, a, b)


    def symbol(self, name: str) -> Dim:
        if self.symbols is None:
            return SymbolicDim.symbol(name)
        if name not in self.symbols:
            self.symbols[name] = fresh_symbol(name.rstrip("0123456789"))
        return self.symbols[name]


@functools.lru_cache(1 << 8)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """The class of named tuples that are read; one for each name and fields."""
    return collections.namedtuple(name, fields)


def _number(text: str) -> int | float:
    is_int = text.lstrip("-").isdigit()
    return int(text) if is_int else float(text)
