"""Routines of rows as CUDA C.

They are the functions in a subset of Python that processors run (`runtime/routines`), with the same
meaning. Every step is a variable of its own, so that steps happen in the order in which they are
written.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.runtime.gpu.scalars import constant, element_type
from treadle.runtime.routines.subset import (
    BOOL,
    COMPARISONS,
    I64,
    KINDS,
    OPERATORS,
    UNARY,
    Kind,
    Operand,
    RoutineError,
    Typed,
    definition_of,
)

_INFIX = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_RELATION = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_OF_FLOATS = ("ceil", "copysign", "cos", "exp", "floor", "log", "log1p", "pow", "sin", "sqrt")


class RowText:
    """Functions, each after those that it calls.

    Args:
        prefix: what their names begin with.
        names: what names stand for that are neither variables nor functions: kinds and constants.
    """

    def __init__(self, prefix: str, names: Mapping[str, Any]) -> None:
        self.prefix, self.names = prefix, names
        self.functions: dict[str, str] = {}

    def add(self, function: Callable[..., Any]) -> tuple[str, list[tuple[str, Kind]], Kind | None]:
        """Add a function: its name, its parameters and the type of its result."""
        definition = definition_of(function)
        writer = _Writer(self, function)
        parameters = [(a.arg, writer.annotation(a.annotation)) for a in definition.args.args]
        has_result = not isinstance(definition.returns, ast.Constant)
        result = writer.annotation(definition.returns) if has_result else None
        name = f"{self.prefix}_{function.__module__.rpartition('.')[2]}_{function.__name__}"
        if name not in self.functions:
            text = writer.write(definition, parameters, result, name)
            self.functions[name] = text  # those that it calls are there
        return name, parameters, result

    @property
    def text(self) -> str:
        return "\n".join(self.functions.values())


def c_type(kind: Kind) -> str:
    if kind.family == "p":
        return f"{c_type(kind.element)} *"
    return element_type(_dtype(kind))


def kind_of(dtype: DType) -> Kind:
    """The kind of the elements of an array; bools are bytes."""
    return KINDS["u8" if dtype.is_bool else f"{dtype.kind}{8 * dtype.size}"]


def _dtype(kind: Kind) -> DType:
    family = {"i": "int", "u": "uint", "f": "float", "b": "bool"}[kind.family]
    return dtypes.as_dtype(family if kind.family == "b" else f"{family}{kind.bits}")


class _Writer:
    """Writes one function.

    Attributes:
        slots: its variables, whose types are known by their first values.
        declared: the lines that declare them.
    """

    def __init__(self, module: RowText, function: Callable[..., Any]) -> None:
        self.module, self.names = module, module.names
        self.globals, self.where = function.__globals__, function.__qualname__
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.slots: dict[str, Kind] = {}
        self.result: Kind | None = None
        self.depth, self.count = 1, 0

    def write(
        self, definition: ast.FunctionDef, parameters: Sequence[tuple[str, Kind]],
        result: Kind | None, name: str,
    ) -> str:  # fmt: skip
        self.result = result
        for parameter, kind in parameters:
            self.slots[parameter] = kind
        self.body(definition.body)
        listed = ", ".join(f"{c_type(kind)} p_{own}" for own, kind in parameters)
        head = f"TD_DEVICE {'void' if result is None else c_type(result)} {name}({listed}) {{"
        return "\n".join([head, *self.declared, *self.lines, "}"])

    def fail(self, node: ast.AST, message: str) -> RoutineError:
        return RoutineError(f"{self.where}: {message}: {ast.unparse(node)}")

    def annotation(self, node: ast.expr | None) -> Kind:
        match node:
            case ast.Name(name):
                return self.kind(node, name)
            case ast.Subscript(ast.Name("Array" | "Apart"), element):
                return Kind("p", 64, self.annotation(element))
        raise self.fail(node or ast.Pass(), "not a type")

    def kind(self, node: ast.AST, name: str) -> Kind:
        found = self.names.get(name, KINDS.get(name))
        if not isinstance(found, Kind):
            raise self.fail(node, f"{name} is not a type")
        return found

    # -- lines

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def open(self, head: str) -> None:
        self.line(f"{head} {{")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def step(self, kind: Kind, text: str) -> Typed:
        """A value that is computed here."""
        name = self.fresh()
        self.line(f"{c_type(kind)} const {name} = {text};")
        return Typed(name, kind)

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether what follows is reached."""
        return all(self.statement(statement) for statement in statements)

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                found = [self.value(v) for v in values]
                for target, one in zip(targets, found, strict=True):
                    self.store(target, one)
            case ast.Assign([target], value):
                self.store(target, self.value(value))
            case ast.AnnAssign(ast.Name(name), annotation, value) if value is not None:
                self.assign(name, self.typed(self.value(value), self.annotation(annotation)))
            case ast.AugAssign(target, op, value):
                loaded = ast.parse(ast.unparse(target), mode="eval").body
                self.store(target, self.binary(node, op, self.value(loaded), self.value(value)))
            case ast.If(test, then, other):
                return self.choice(test, then, other)
            case ast.While(test, inner, []):
                self.while_loop(test, inner)
            case ast.For(ast.Name(name), ast.Call(ast.Name(way), bounds), inner, []) if (
                way in ("range", "lanes", "singly")
            ):
                self.for_loop(name, [self.value(b) for b in bounds], inner)
            case ast.Break() | ast.Continue():
                self.line("break;" if isinstance(node, ast.Break) else "continue;")
                return False
            case ast.Return(None):
                self.line("return;")
                return False
            case ast.Return(value) if value is not None and self.result is not None:
                self.line(f"return {self.typed(self.value(value), self.result).text};")
                return False
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.value(value)
            case _:
                raise self.fail(node, "not a statement of the subset")
        return True

    def store(self, target: ast.expr, value: Operand) -> None:
        match target:
            case ast.Name(name):
                self.assign(name, value)
            case ast.Subscript(array, index):
                place, kind = self.place(array, index)
                self.line(f"{place} = {self.typed(value, kind).text};")
            case _:
                raise self.fail(target, "not a place")

    def assign(self, name: str, value: Operand) -> None:
        if name not in self.slots:
            if isinstance(value, float):
                raise RoutineError(f"{self.where}: {name} = {value} has no type")
            kind = value.kind if isinstance(value, Typed) else _kind_of(value)
            self.slots[name] = kind
            self.declared.append(f"  {c_type(kind)} p_{name};")
        self.line(f"p_{name} = {self.typed(value, self.slots[name]).text};")

    def choice(self, test: ast.expr, then: list[ast.stmt], other: list[ast.stmt]) -> bool:
        condition = self.value(test)
        if not isinstance(condition, Typed):
            return self.body(then if condition else other)
        self.open(f"if ({condition.text})")
        first = self.body(then)
        self.close()
        self.open("else")
        second = self.body(other)
        self.close()
        return first or second

    def while_loop(self, test: ast.expr, inner: list[ast.stmt]) -> None:
        self.open("while (true)")
        condition = self.value(test)
        if isinstance(condition, Typed):
            self.line(f"if (!{condition.text}) break;")
        self.body(inner)
        self.close()

    def for_loop(self, name: str, bounds: list[Operand], inner: list[ast.stmt]) -> None:
        start, stop, step = {1: [0, *bounds, 1], 2: [*bounds, 1], 3: bounds}[len(bounds)]
        if isinstance(step, Typed):
            raise RoutineError(f"{self.where}: the step of a range must be a constant")
        counter, relation = self.fresh(), "<" if step > 0 else ">"
        first, last = self.typed(start, I64).text, self.typed(stop, I64).text
        kind = c_type(I64)
        self.open(
            f"for ({kind} {counter} = {first}; {counter} {relation} {last}; {counter} += {step})"
        )
        self.assign(name, Typed(counter, I64))
        self.body(inner)
        self.close()

    # -- expressions

    def typed(self, value: Operand, kind: Kind) -> Typed:
        """A value of that type; literals take it."""
        if isinstance(value, Typed):
            if value.kind != kind:
                raise RoutineError(f"{self.where}: {value.kind} where {kind} is needed")
            return value
        return Typed(f"({constant(value, _dtype(kind))})", kind)

    def value(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant(value) if isinstance(value, bool | int | float):
                return value
            case ast.Name(name):
                return self.name(node, name)
            case ast.BinOp(left, op, right):
                return self.binary(node, op, self.value(left), self.value(right))
            case ast.UnaryOp(op, inner):
                return self.unary(node, op, self.value(inner))
            case ast.Compare(left, [op], [right]):
                return self.compare(op, self.value(left), self.value(right))
            case ast.BoolOp(op, values):
                return self.both(isinstance(op, ast.And), values)
            case ast.Subscript(array, index):
                place, kind = self.place(array, index)
                return self.step(kind, place)
            case ast.Call(ast.Name(name), arguments):
                return self.call(node, name, arguments)
        raise self.fail(node, "not an expression of the subset")

    def name(self, node: ast.AST, name: str) -> Operand:
        if name in self.slots:
            return self.step(self.slots[name], f"p_{name}")
        found = self.names.get(name, self.globals.get(name))
        if isinstance(found, bool | int | float):
            return found
        raise self.fail(node, f"{name} has no value")

    def place(self, array: ast.expr, index: ast.expr) -> tuple[str, Kind]:
        base = self.value(array)
        if not isinstance(base, Typed) or base.kind.family != "p":
            raise self.fail(array, "not an array")
        return f"{base.text}[{self.typed(self.value(index), I64).text}]", base.kind.element

    def pair(self, a: Operand, b: Operand) -> tuple[Typed, Typed]:
        if isinstance(a, Typed):
            return a, self.typed(b, a.kind)
        assert isinstance(b, Typed)
        return self.typed(a, b.kind), b

    def binary(self, node: ast.AST | None, op: ast.operator, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            folded: int | float = OPERATORS[type(op)](a, b)
            return folded
        x, y = self.pair(a, b)
        kind = c_type(x.kind)
        return self.step(x.kind, f"({kind})({x.text} {_INFIX[type(op)]} {y.text})")

    def unary(self, node: ast.AST, op: ast.unaryop, x: Operand) -> Operand:
        if not isinstance(x, Typed):
            folded: int | float = UNARY[type(op)](x)
            return folded
        sign = {ast.USub: "-", ast.Not: "!", ast.Invert: "~"}.get(type(op))
        if sign is None:
            raise self.fail(node, "not an operator of the subset")
        if x.kind is BOOL:
            sign = "!"
        return self.step(x.kind, f"({c_type(x.kind)})({sign}{x.text})")

    def compare(self, op: ast.cmpop, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            return bool(COMPARISONS[type(op)](a, b))
        x, y = self.pair(a, b)
        return self.step(BOOL, f"{x.text} {_RELATION[type(op)]} {y.text}")

    def both(self, is_and: bool, values: list[ast.expr]) -> Operand:
        """``and`` and ``or``: what follows is only computed where it decides."""
        first = self.value(values[0])
        if len(values) == 1:
            return first
        if not isinstance(first, Typed):
            return self.both(is_and, values[1:]) if bool(first) == is_and else first
        found = self.fresh()
        self.line(f"bool {found} = {first.text};")
        self.open(f"if ({'' if is_and else '!'}{found})")
        self.line(f"{found} = {self.typed(self.both(is_and, values[1:]), BOOL).text};")
        self.close()
        return Typed(found, BOOL)

    # -- calls

    def call(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Operand:
        kind = self.names.get(name, KINDS.get(name))
        if isinstance(kind, Kind):
            return self.convert(self.value(arguments[0]), kind)
        if name in ("view", "bits"):
            given, second = self.value(arguments[0]), arguments[1]
            assert isinstance(given, Typed) and isinstance(second, ast.Name)
            element = self.kind(node, second.id)
            if name == "view":
                pointer = Kind("p", 64, element)
                return self.step(pointer, f"({c_type(pointer)}){given.text}")
            return self.step(element, f"td_bits<{c_type(element)}>({given.text})")
        if name == "local":
            return self.local(node, *arguments)
        values = [self.value(a) for a in arguments]
        match name, values:
            case "at", [array, index] if isinstance(array, Typed):
                return self.step(array.kind, f"{array.text} + {self.typed(index, I64).text}")
            case "select", [condition, a, b]:
                return self.choose(condition, a, b)
            case ("min" | "max"), [a, b]:
                return self.extreme(name, a, b)
            case "abs", [x]:
                return self.absolute(x)
            case "isnan", [x] if isinstance(x, Typed):
                return self.step(BOOL, f"{x.text} != {x.text}")
        if name in _OF_FLOATS:
            first = next(v for v in values if isinstance(v, Typed))
            given_texts = ", ".join(self.typed(v, first.kind).text for v in values)
            return self.step(first.kind, f"td_{name}({given_texts})")
        function = self.globals.get(name)
        if not inspect.isfunction(function):
            raise self.fail(node, f"{name} is no function of the subset")
        return self.call_function(function, values)

    def local(self, node: ast.Call, element: ast.expr, count: ast.expr) -> Typed:
        """An array of this call's own."""
        size, kind = self.value(count), self.annotation(element)
        if isinstance(size, Typed):
            raise self.fail(node, "the size must be a constant")
        name = f"a_{self.fresh()}"
        self.declared.append(f"  {c_type(kind)} {name}[{size}];")
        return Typed(name, Kind("p", 64, kind))

    def call_function(self, function: Callable[..., Any], values: list[Operand]) -> Operand:
        name, parameters, result = self.module.add(function)
        pairs = zip(values, parameters, strict=True)
        given = f"{name}({', '.join(self.typed(v, kind).text for v, (_, kind) in pairs)})"
        if result is None:
            self.line(f"{given};")
            return 0
        return self.step(result, given)

    def convert(self, value: Operand, kind: Kind) -> Typed:
        if not isinstance(value, Typed):
            return self.typed(value, kind)
        return self.step(kind, f"({c_type(kind)}){value.text}")

    def choose(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        if not isinstance(condition, Typed):
            return a if condition else b
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            a = self.typed(a, I64)
        x, y = self.pair(a, b)
        return self.step(x.kind, f"{condition.text} ? {x.text} : {y.text}")

    def extreme(self, name: str, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            return min(a, b) if name == "min" else max(a, b)
        x, y = self.pair(a, b)
        relation = "<" if name == "min" else ">"
        return self.step(x.kind, f"{x.text} {relation} {y.text} ? {x.text} : {y.text}")

    def absolute(self, x: Operand) -> Operand:
        if not isinstance(x, Typed):
            return abs(x)
        if x.kind.family == "f":
            return self.step(x.kind, f"td_abs({x.text})")
        return self.step(x.kind, f"({c_type(x.kind)})({x.text} < 0 ? -{x.text} : {x.text})")


def _kind_of(value: bool | int | float) -> Kind:
    """The type of a variable that begins with a literal."""
    return BOOL if isinstance(value, bool) else I64
