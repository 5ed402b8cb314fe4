"""From the text that `treadle.kernel.printer` writes back to kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, SymbolicDim, compound
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import (
    COMBINES,
    REDUCTIONS,
    SCANS,
    Affine,
    Apply,
    Axis,
    Buffer,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    const,
)  # fmt: skip
from treadle.kernel.printer import INFIX, KINDS

_PATTERN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<bits>0x[0-9a-f]+)
  | (?P<number>-?(?:inf\b|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
  | (?P<name>[A-Za-z_%][\w.'%]*)
  | (?P<mark>//|==|!=|<=|>=|<<|>>|[-+*/%<>&|^()\[\]{}:,=])
    """,
    re.VERBOSE,
)
_FUNCTIONS = {mark: fn for fn, mark in INFIX.items()}
_COMPOUNDS = ("floordiv", "mod", "max", "min")
T = TypeVar("T")


class KernelSyntaxError(ValueError):
    """The text is not a kernel; the message gives the line."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse_kernel(text: str) -> Kernel:
    """The kernel that `text` describes.

    Raises:
        KernelSyntaxError: the text is malformed or names an unknown axis, buffer, value, function
            or dtype.
    """
    return _Parser(_tokenize(text)).kernel()


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position, line = 0, 1
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise KernelSyntaxError(f"line {line}: unexpected {text[position : position + 20]!r}")
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    return [*tokens, _Token("end", "the end of the text", line)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at = tokens, 0
        self.axes: dict[str, Axis] = {}
        self.buffers: dict[str, Buffer] = {}
        self.values: dict[str, Expr] = {}

    # ---- tokens
    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)].text

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1].text

    def accept(self, text: str) -> bool:
        found = self.peek() == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}")

    def kind(self, kind: str) -> str:
        if self.tokens[self.at].kind != kind:
            self.fail(f"expected a {kind}")
        return self.next()

    def fail(self, message: str) -> NoReturn:
        token = self.tokens[self.at]
        raise KernelSyntaxError(f"line {token.line}: {message}, found {token.text!r}")

    def listed(self, item: Callable[[], T], end: str) -> list[T]:
        """Items between commas, up to and with the mark that ends them."""
        found: list[T] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(item())
        return found

    def known(self, table: dict[str, T], what: str) -> T:
        name = self.peek()
        if name not in table:
            self.fail(f"expected {what}")
        self.at += 1
        return table[name]

    # ---- the kernel
    def kernel(self) -> Kernel:
        kinds = {}
        while self.peek() in KINDS:
            kinds[self.next()] = True
        self.expect("kernel")
        self.expect("(")
        buffers = self.listed(self.buffer, ")")
        self.expect("for")
        if self.accept("one"):
            self.expect("point")
            self.expect("{")
        else:
            self.listed(self.axis, "{")
        stores: list[Store] = []
        while not self.accept("}"):
            if self.peek(1) == ":":
                self.definition()
            else:
                stores.append(self.store())
        if self.tokens[self.at].kind != "end":
            self.fail("expected the end of the text")
        return Kernel(tuple(self.axes.values()), tuple(buffers), tuple(stores), **kinds)

    def buffer(self) -> Buffer:
        name = self.kind("name")
        self.expect(":")
        dtype = self.dtype()
        self.expect("[")
        self.buffers[name] = Buffer(name, dtype, tuple(self.listed(self.dim, "]")))
        return self.buffers[name]

    def axis(self) -> Axis:
        name = self.kind("name")
        self.expect("<")
        self.axes[name] = Axis(name, self.dim())
        return self.axes[name]

    def definition(self) -> None:
        name = self.kind("name")
        self.expect(":")
        dtype = self.dtype()
        self.expect("=")
        value = self.expr()
        if value.dtype is not dtype:
            self.fail(f"{name} is {value.dtype.short}, not {dtype.short}")
        self.values[name] = value

    def store(self) -> Store:
        buffer, index = self.place()
        unique = self.accept("unique")
        combine = self.next() if self.peek() in COMBINES else "set"
        self.expect("=")
        return Store(buffer, index, self.expr(), combine, unique)

    def place(self) -> tuple[Buffer, tuple[Index, ...]]:
        buffer = self.known(self.buffers, "a buffer")
        self.expect("[")
        return buffer, tuple(self.listed(self.index, "]"))

    def dtype(self) -> DType:
        return self.known(dtypes.BY_SHORT, "a dtype")

    # ---- dims and indices
    def dim(self) -> Dim:
        """A sum of products of symbols, ints and ``floordiv(a, b)`` forms."""
        total: Dim = 0
        sign = -1 if self.accept("-") else 1
        while True:
            term = self.atom()
            while self.accept("*"):
                term = term * self.atom()
            total = total + term * sign
            if self.peek() not in ("+", "-"):
                return total
            sign = 1 if self.next() == "+" else -1

    def atom(self) -> Dim:
        if self.tokens[self.at].kind == "number":
            return int(self.next())
        name = self.kind("name")
        if not self.accept("("):
            return SymbolicDim.symbol(name)
        if name not in _COMPOUNDS:
            self.fail(f"{name} is no operation on sizes")
        a, b = self.listed(self.dim, ")")
        return compound(name, a, b)

    def index(self) -> Index:
        """An affine index, or an expression."""
        number = self.tokens[self.at].kind == "number"
        if self.peek() in self.axes or (number and self.peek(1) != ":"):
            return self.affine()
        start = self.at
        try:
            return self.expr()
        except KernelSyntaxError:  # a size may begin as an expression does: ``min(B, 3)``
            self.at = start
            return self.affine()

    def affine(self) -> Affine:
        terms: list[tuple[Axis, Dim]] = []
        while self.peek() in self.axes:
            axis = self.axes[self.next()]
            coefficient: Dim = 1
            if self.accept("*"):
                if self.accept("("):
                    coefficient = self.dim()
                    self.expect(")")
                else:
                    coefficient = int(self.kind("number"))
            terms.append((axis, coefficient))
            if not self.accept("+"):
                return Affine(tuple(terms))
        return Affine(tuple(terms), self.dim())

    # ---- expressions
    def expr(self) -> Expr:
        text, after = self.peek(), self.peek(1)
        if self.accept("("):
            return self.parenthesis()
        if self.tokens[self.at].kind == "number" or text in ("True", "False", "bits"):
            return self.constant()
        if text == "iota" and after == "(":
            self.at += 2
            axis = self.known(self.axes, "an axis")
            self.expect(")")
            self.expect(":")
            return Iota(axis, self.dtype())
        if text == "dim" and after == "(":
            self.at += 2
            size = self.dim()
            self.expect(")")
            self.expect(":")
            return Extent(size, self.dtype())
        if text == "scan" and after in SCANS:
            return self.scan()
        if text in REDUCTIONS and (after == ":" or (after == "[" and self.is_called())):
            return self.reduce()
        if after == "(" or (text == "cast" and after == "<"):
            return self.call()
        if after == "[":
            return Load(*self.place())
        return self.known(self.values, "a value")

    def is_called(self) -> bool:
        """Whether ``name[...]`` is followed by an operand: a reduction, not a load."""
        depth, ahead = 0, 1
        while True:
            text = self.peek(ahead)
            depth += (text == "[") - (text == "]")
            ahead += 1
            if not depth or self.tokens[min(self.at + ahead, len(self.tokens) - 1)].kind == "end":
                return self.peek(ahead) == "("

    def parenthesis(self) -> Expr:
        """``(a + b)`` or ``(x[i] if valid else fill)``."""
        first = self.expr()
        if self.accept("if"):
            valid = self.expr()
            self.expect("else")
            fill = self.constant()
            self.expect(")")
            if not isinstance(first, Load):
                self.fail("only loads have a mask")
            return Load(first.buffer, first.index, valid, fill)
        if self.peek() not in _FUNCTIONS:
            self.fail("expected an operator")
        fn = _FUNCTIONS[self.next()]
        second = self.expr()
        self.expect(")")
        return self.applied(fn, (first, second), None)

    def constant(self) -> Const:
        text = self.next()
        bits = None
        if text == "bits":
            self.expect("(")
            bits = bytes.fromhex(self.kind("bits")[2:])
            self.expect(")")
        self.expect(":")
        dtype = self.dtype()
        if bits is not None:
            return const(np.frombuffer(bits, dtype.np_dtype)[0], dtype)
        if text in ("True", "False"):
            return const(text == "True", dtype)
        is_int = text.lstrip("-").isdigit()
        return const(int(text) if is_int else float(text), dtype)

    def scan(self) -> Scan:
        self.expect("scan")
        op = self.next()
        exclusive, reverse = self.accept("exclusive"), self.accept("reverse")
        self.expect("[")
        axis = self.known(self.axes, "an axis")
        self.expect("]")
        self.expect("(")
        value = self.expr()
        self.expect(")")
        return Scan(op, axis, value, exclusive, reverse)

    def reduce(self) -> Reduce:
        op = self.next()
        dtype = self.dtype() if self.accept(":") else None
        self.expect("[")
        over = self.listed(lambda: self.known(self.axes, "an axis"), "]")
        self.expect("(")
        value = self.expr()
        self.expect(")")
        return Reduce(op, tuple(over), value, dtype)

    def call(self) -> Expr:
        fn, target = self.next(), None
        if fn not in FUNCTIONS:
            self.at -= 1
            self.fail("expected a function")
        if self.accept("<"):
            target = self.dtype()
            self.expect(">")
        self.expect("(")
        return self.applied(fn, tuple(self.listed(self.expr, ")")), target)

    def applied(self, fn: str, args: tuple[Expr, ...], target: DType | None) -> Expr:
        try:
            return Apply(fn, args, target)
        except TypeError as error:
            self.fail(str(error))
