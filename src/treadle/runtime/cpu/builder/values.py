"""Values of a function under construction: using one adds an instruction to the open block."""

from __future__ import annotations

from typing import TypeAlias

from treadle.runtime.cpu.builder.types import (
    F32,
    F64,
    I1,
    I8,
    I64,
    PTR,
    BuildError,
    Pointer,
    Struct,
    Type,
    fits,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import float_text

Operand: TypeAlias = "Value | int | float | None"  # numbers take the type wanted, None is null


class Instructions:
    """What values need of the function that they belong to: somewhere to add instructions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0

    def emit(self, text: str) -> None:
        """Add an instruction without a result."""
        raise NotImplementedError

    def value(self, text: str, type_: Type) -> Value:
        """Add an instruction with a result of that type."""
        self._count += 1
        name = f"%v{self._count}"
        self.emit(f"{name} = {text}")
        return Value(self, name, type_)

    def operand(self, given: Operand, wanted: Type) -> Value:
        """A value or number as an operand of that type.

        Raises:
            BuildError: it has another type, or belongs to another function.
        """
        if not isinstance(given, Value):
            return _constant(self, given, wanted)
        if given.fn is not self:
            raise BuildError(f"{given} belongs to {given.fn.name}, not to {self.name}")
        if not fits(given.type, wanted):
            raise BuildError(f"{self.name}: {given} where {wanted} is needed")
        return given


class Value:
    """A value in a register, or a constant.

    ``p["name"]`` reads a field of the struct that a pointer leads to, ``p[i]`` an element of the
    array; ``p["name"] = x`` and ``p[i] = x`` write them; `place` and `at` give their addresses.
    """

    __slots__ = ("fn", "text", "type")

    def __init__(self, fn: Instructions, text: str, type_: Type) -> None:
        self.fn, self.text, self.type = fn, text, type_

    def __repr__(self) -> str:
        return f"{self.type} {self.text}"

    def __bool__(self) -> bool:
        raise BuildError(f"{self} is known at run time only: use `when` or `require`")

    # ---- arithmetic

    def _binary(self, integers: str, floats: str, other: Operand) -> Value:
        name = {"i": integers, "f": floats}.get(self.type.family, "")
        if not name:
            raise BuildError(f"there is no such operation of {self.type}")
        right = self.fn.operand(other, self.type)
        return self.fn.value(f"{name} {self.type.text} {self.text}, {right.text}", self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("sub", "fsub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("", "fdiv", other)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("shl", "", other)

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", "", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", "", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", "", other)

    def __neg__(self) -> Value:
        if self.type.family != "f":
            return self.fn.operand(0, self.type) - self
        return self.fn.value(f"fneg {self.type.text} {self.text}", self.type)

    def __invert__(self) -> Value:
        return self ^ (True if self.type == I1 else -1)

    def __rsub__(self, other: Operand) -> Value:
        return self.fn.operand(other, self.type) - self

    def __rlshift__(self, other: Operand) -> Value:
        return self.fn.operand(other, self.type) << self

    def sdiv(self, other: Operand) -> Value:
        """The quotient of signed integers, rounded towards 0."""
        return self._binary("sdiv", "", other)

    def lshr(self, other: Operand) -> Value:
        """Shifted right, with zeros from the left."""
        return self._binary("lshr", "", other)

    # ---- comparisons: `s` of signed, `u` of unsigned integers

    def _compare(self, predicate: str, other: Operand) -> Value:
        right = self.fn.operand(other, self.type)
        if self.type.family == "f":
            name = {"eq": "fcmp oeq", "ne": "fcmp une"}.get(predicate, "")
        elif self.type.family == "p" and predicate not in ("eq", "ne"):
            name = ""
        else:
            name = f"icmp {predicate}"
        if not name:
            raise BuildError(f"{self.type} is not compared by {predicate}")
        return self.fn.value(f"{name} {self.type.text} {self.text}, {right.text}", I1)

    def eq(self, other: Operand) -> Value:
        return self._compare("eq", other)

    def ne(self, other: Operand) -> Value:
        return self._compare("ne", other)

    def slt(self, other: Operand) -> Value:
        return self._compare("slt", other)

    def sle(self, other: Operand) -> Value:
        return self._compare("sle", other)

    def sgt(self, other: Operand) -> Value:
        return self._compare("sgt", other)

    def sge(self, other: Operand) -> Value:
        return self._compare("sge", other)

    def ult(self, other: Operand) -> Value:
        return self._compare("ult", other)

    def ule(self, other: Operand) -> Value:
        return self._compare("ule", other)

    def ugt(self, other: Operand) -> Value:
        return self._compare("ugt", other)

    def uge(self, other: Operand) -> Value:
        return self._compare("uge", other)

    def select(self, yes: Operand, no: Operand) -> Value:
        """`yes` where this condition holds, else `no`; at least one of them is a value, or both
        are words."""
        condition = self.fn.operand(self, I1)
        typed = yes if isinstance(yes, Value) else no
        wanted = typed.type if isinstance(typed, Value) else I64
        a, b = self.fn.operand(yes, wanted), self.fn.operand(no, wanted)
        kind = wanted.text
        return self.fn.value(
            f"select i1 {condition.text}, {kind} {a.text}, {kind} {b.text}", wanted
        )

    # ---- conversions

    def _convert(self, instruction: str, families: str, to: Type) -> Value:
        if self.type.family != families[0] or to.family != families[1]:
            raise BuildError(f"{instruction} does not make {to} of {self.type}")
        return self.fn.value(f"{instruction} {self.type.text} {self.text} to {to.text}", to)

    def trunc(self, to: Type) -> Value:
        """The low bits of an integer."""
        return self._convert("trunc", "ii", to)

    def sext(self, to: Type) -> Value:
        """A signed integer in more bits."""
        return self._convert("sext", "ii", to)

    def zext(self, to: Type) -> Value:
        """An unsigned integer in more bits."""
        return self._convert("zext", "ii", to)

    def to_float(self, to: Type) -> Value:
        """The float that is nearest to a signed integer."""
        return self._convert("sitofp", "if", to)

    def narrow(self) -> Value:
        """A double rounded to a float."""
        return self._convert("fptrunc", "ff", F32)

    def widen(self) -> Value:
        """A float as a double."""
        return self._convert("fpext", "ff", F64)

    def bitcast(self, to: Type) -> Value:
        """The same bits as a number of another type."""
        if "p" in (self.type.family, to.family):
            raise BuildError(f"the bits of {self} are no {to}")
        return self.fn.value(f"bitcast {self.type.text} {self.text} to {to.text}", to)

    def to_word(self) -> Value:
        """An address as an integer."""
        return self._convert("ptrtoint", "pi", I64)

    def to_pointer(self, to: Type = PTR) -> Value:
        """An integer as an address."""
        return self._convert("inttoptr", "ip", to)

    def as_pointer(self, to: Type | Struct) -> Value:
        """The same address, of something else."""
        if self.type.family != "p":
            raise BuildError(f"{self} is no pointer")
        return Value(self.fn, self.text, Pointer(to))

    # ---- memory

    def _target(self) -> Type | Struct:
        if not isinstance(self.type, Pointer) or self.type.to is None:
            raise BuildError(f"{self} does not lead to anything known")
        return self.type.to

    def place(self, field: str) -> Value:
        """The address of a field."""
        struct = self._target()
        if not isinstance(struct, Struct):
            raise BuildError(f"{self} has no fields")
        offset, type_ = struct.field(field)
        return self.skip(offset, type_)

    def at(self, index: Operand) -> Value:
        """The address of an element of the array that begins here."""
        target = self._target()
        if isinstance(target, Struct):
            if not target.bytes:
                raise BuildError(f"there are no arrays of {target.name}")
            return self.skip(self.fn.operand(index, I64) * target.bytes, target)
        number = self.fn.operand(index, I64)
        if number.text == "0":
            return self
        place = f"getelementptr {target.text}, ptr {self.text}, i64 {number.text}"
        return self.fn.value(place, self.type)

    def skip(self, count: Operand, to: Type | Struct = I8) -> Value:
        """The address so many bytes further on, of something of type `to`."""
        number = self.fn.operand(count, I64)
        if number.text == "0":
            return self.as_pointer(to)
        if self.type.family != "p":
            raise BuildError(f"{self} is no pointer")
        text = f"getelementptr i8, ptr {self.text}, i64 {number.text}"
        return self.fn.value(text, Pointer(to))

    def load(self, order: str = "") -> Value:
        """What lies at the address; `order` makes it an atomic load."""
        type_ = self._target()
        if not isinstance(type_, Type):
            raise BuildError(f"{self} leads to a struct: read its fields")
        kind = f"{'atomic ' if order else ''}{type_.text}"
        end = f"{' ' if order else ''}{order}, align {type_.bytes}"
        return self.fn.value(f"load {kind}, ptr {self.text}{end}", type_)

    def store(self, value: Operand, order: str = "") -> None:
        """Write to the address; `order` makes it an atomic store."""
        type_ = self._target()
        if not isinstance(type_, Type):
            raise BuildError(f"{self} leads to a struct: write its fields")
        given = self.fn.operand(value, type_)
        kind = f"{'atomic ' if order else ''}{type_.text} {given.text}"
        end = f"{' ' if order else ''}{order}, align {type_.bytes}"
        self.fn.emit(f"store {kind}, ptr {self.text}{end}")

    def __getitem__(self, index: str | Operand) -> Value:
        return self._element(index).load()

    def __setitem__(self, index: str | Operand, value: Operand) -> None:
        self._element(index).store(value)

    def _element(self, index: str | Operand) -> Value:
        return self.place(index) if isinstance(index, str) else self.at(index)

    # ---- atomic changes: they give what was there before

    def _change(self, operation: str, value: Operand, order: str) -> Value:
        type_ = self._target()
        if not isinstance(type_, Type):
            raise BuildError(f"{self} leads to a struct")
        given = self.fn.operand(value, type_)
        return self.fn.value(
            f"atomicrmw {operation} ptr {self.text}, {type_.text} {given.text} {order}", type_
        )

    def exchange(self, value: Operand, order: str) -> Value:
        return self._change("xchg", value, order)

    def fetch_add(self, value: Operand, order: str) -> Value:
        return self._change("add", value, order)

    def fetch_sub(self, value: Operand, order: str) -> Value:
        return self._change("sub", value, order)

    def fetch_max(self, value: Operand, order: str) -> Value:
        return self._change("max", value, order)

    def replace(self, old: Operand, new: Operand, order: str, otherwise: str) -> Value:
        """Whether `old` was there, and `new` is there now; the orders for both cases."""
        type_ = self._target()
        if not isinstance(type_, Type):
            raise BuildError(f"{self} leads to a struct")
        a, b = (self.fn.operand(x, type_).text for x in (old, new))
        kind = type_.text
        pair = self.fn.value(
            f"cmpxchg ptr {self.text}, {kind} {a}, {kind} {b} {order} {otherwise}", type_
        )
        return self.fn.value(f"extractvalue {{{kind}, i1}} {pair.text}, 1", I1)


def _constant(fn: Instructions, given: int | float | None, wanted: Type) -> Value:
    """A number or null in the type wanted.

    Raises:
        BuildError: the type has no such value.
    """
    if given is None:
        text = "null" if wanted.family == "p" else ""
    elif wanted.family == "f":
        text = float_text(float(given), 8 * wanted.bytes)
    elif wanted == I1:
        text = {0: "false", 1: "true"}.get(int(given), "")
    else:
        text = str(given) if wanted.family == "i" and isinstance(given, int) else ""
    if not text:
        raise BuildError(f"{given} is no {wanted}")
    return Value(fn, text, wanted)
