"""Functions in a subset of Python (`runtime/routines/subset.py`), as LLVM text."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.runtime.cpu.elements import float_function
from treadle.runtime.cpu.lanes import Lanes
from treadle.runtime.cpu.llvm_text import Function, Module, float_text
from treadle.runtime.routines.subset import (
    BOOL,
    COMPARISONS,
    I64,
    KINDS,
    OPERATORS,
    UNARY,
    Kind,
    Names,
    Operand,
    RoutineError,
    Typed,
    definition_of,
)


def add_function(
    module: Module, function: Callable[..., Any], names: Names
) -> tuple[str, list[tuple[str, Kind]], Kind | None]:  # fmt: skip
    """Add a function, and those it calls, to a module.

    Args:
        names: what names stand for that are neither variables nor functions: kinds and constants.

    Returns:
        Its symbol, its parameters and the type of its result.
    """
    definition = definition_of(function)
    writer = _Writer(module, function, names)
    parameters = [
        (a.arg, writer.annotation(a.annotation)) for a in definition.args.args if a.annotation
    ]
    has_result = not isinstance(definition.returns, ast.Constant)
    result = writer.annotation(definition.returns) if has_result else None
    symbol = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    if symbol not in module.functions:
        module.functions[symbol] = ""  # its place, and the mark that it is being written
        text = writer.write(definition, parameters, result, symbol)
        module.functions[symbol] = text
    return symbol, parameters, result


def _is_apart(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Subscript(ast.Name("Apart")):
            return True
    return False


class _Loop(NamedTuple):
    after: str
    again: str


class _Writer:
    """Writes one function."""

    def __init__(
        self, module: Module, function: Callable[..., Any], names: Names
    ) -> None:
        self.module, self.names = module, names
        self.globals = function.__globals__
        self.where = function.__qualname__
        self.fn = Function(module)
        self.slots: dict[str, Typed] = {}
        self.loops: list[_Loop] = []
        self.result: Kind | None = None
        self.open = True  # whether the block being written has no end yet

    def write(
        self, definition: ast.FunctionDef, parameters: list[tuple[str, Kind]],
        result: Kind | None, symbol: str,
    ) -> str:  # fmt: skip
        self.result = result
        for name, kind in parameters:
            self.assign(name, Typed(f"%{name}", kind))
        self.body(definition.body)
        if self.open:
            self.fn.emit("ret void" if result is None else "unreachable")
        apart = {a.arg for a in definition.args.args if _is_apart(a.annotation)}
        listed = ", ".join(
            f"{kind.text}{' noalias' if name in apart else ''} %{name}" for name, kind in parameters
        )
        head = f"define internal {result.text if result else 'void'} @{symbol}({listed}) #0 {{"
        return self.fn.text(head)

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

    # -- statements

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self.open:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign([ast.Name(name)], value):
                self.assign(name, self.value(value))
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
                self.choice(test, then, other)
            case ast.While(test, inner, []):
                self.while_loop(test, inner)
            case ast.For(ast.Name(name), ast.Call(ast.Name(way), bounds), inner, []) if (
                way in ("range", "lanes", "singly")
            ):
                self.for_loop(name, [self.value(b) for b in bounds], inner, way)
            case ast.Break():
                self.jump(self.loops[-1].after)
            case ast.Continue():
                self.jump(self.loops[-1].again)
            case ast.Return(None):
                self.fn.emit("ret void")
                self.open = False
            case ast.Return(value) if value is not None and self.result is not None:
                self.fn.emit(f"ret {self.shown(self.typed(self.value(value), self.result))}")
                self.open = False
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                self.value(value)
            case _:
                raise self.fail(node, "not a statement of the subset")

    def store(self, target: ast.expr, value: Operand) -> None:
        match target:
            case ast.Name(name):
                self.assign(name, value)
            case ast.Subscript(array, index):
                address, kind = self.place(array, index)
                self.fn.emit(f"store {self.shown(self.typed(value, kind))}, ptr {address}")
            case _:
                raise self.fail(target, "not a place")

    def assign(self, name: str, value: Operand) -> None:
        if name not in self.slots:
            kind = value.kind if isinstance(value, Typed) else _kind_of(value)
            if isinstance(value, float):
                raise RoutineError(f"{self.where}: {name} = {value} has no type")
            self.slots[name] = Typed(self.fn.alloca(kind.text), kind)
        slot = self.slots[name]
        self.fn.emit(f"store {self.shown(self.typed(value, slot.kind))}, ptr {slot.text}")

    def jump(self, label: str) -> None:
        if self.open:
            self.fn.branch(label)
        self.open = False

    def label(self, name: str) -> None:
        self.fn.label(name)
        self.open = True

    def choice(self, test: ast.expr, then: list[ast.stmt], other: list[ast.stmt]) -> None:
        condition = self.value(test)
        if not isinstance(condition, Typed):
            self.body(then if condition else other)
            return
        k = self.fn.unique()
        self.fork(condition, f"then{k}", f"else{k}")
        for label, statements in ((f"then{k}", then), (f"else{k}", other)):
            self.label(label)
            self.body(statements)
            self.jump(f"after{k}")
        self.label(f"after{k}")

    def fork(self, condition: Typed, then: str, other: str) -> None:
        if condition.kind is not BOOL:
            raise RoutineError(f"{self.where}: a condition must be a comparison")
        self.fn.emit(f"br i1 {condition.text}, label %{then}, label %{other}")

    def while_loop(self, test: ast.expr, inner: list[ast.stmt]) -> None:
        k = self.fn.unique()
        self.jump(f"head{k}")
        self.label(f"head{k}")
        condition = self.value(test)
        if isinstance(condition, Typed):
            self.fork(condition, f"body{k}", f"after{k}")
        else:
            self.fn.branch(f"body{k}")
        self.label(f"body{k}")
        self.loop_body(inner, _Loop(f"after{k}", f"head{k}"))
        self.jump(f"head{k}")
        self.label(f"after{k}")

    def for_loop(
        self, name: str, bounds: list[Operand], inner: list[ast.stmt], way: str
    ) -> None:
        start, stop, step = {1: [0, *bounds, 1], 2: [*bounds, 1], 3: bounds}[len(bounds)]
        if isinstance(step, Typed):
            raise RoutineError(f"{self.where}: the step of a range must be a constant")
        k = self.fn.unique()
        counter, last = f"for {k}", self.typed(stop, I64)
        self.assign(counter, self.typed(start, I64))
        self.jump(f"head{k}")
        self.label(f"head{k}")
        now = self.load(counter)
        more = self.compare(ast.Lt() if step > 0 else ast.Gt(), now, last)
        assert isinstance(more, Typed)
        self.fork(more, f"body{k}", f"after{k}")
        self.label(f"body{k}")
        self.assign(name, now)
        self.loop_body(inner, _Loop(f"after{k}", f"next{k}"))
        self.jump(f"next{k}")
        self.label(f"next{k}")
        self.assign(counter, self.binary(None, ast.Add(), self.load(counter), step))
        self.jump(f"head{k}{self.loop_mark(way)}")
        self.label(f"after{k}")

    def loop_mark(self, way: str) -> str:
        """The mark of a loop that becomes vectors and is not written out before, or of one that
        does not become vectors."""
        if way == "range":
            return ""
        notes = self.module.globals
        notes.setdefault("!10", '!10 = !{!"llvm.loop.unroll.disable"}')
        notes.setdefault("!11", '!11 = !{!"llvm.loop.vectorize.enable", i1 false}')
        number = 12 + len(notes)
        note = "!10" if way == "lanes" else "!11"
        notes[f"!{number}"] = f"!{number} = distinct !{{!{number}, {note}}}"
        return f", !llvm.loop !{number}"

    def loop_body(self, inner: list[ast.stmt], loop: _Loop) -> None:
        self.loops.append(loop)
        self.body(inner)
        self.loops.pop()

    # -- expressions

    def shown(self, value: Typed) -> str:
        return f"{value.kind.text} {value.text}"

    def load(self, name: str) -> Typed:
        slot = self.slots[name]
        return Typed(self.fn.value(f"load {slot.kind.text}, ptr {slot.text}"), slot.kind)

    def typed(self, value: Operand, kind: Kind) -> Typed:
        """A value of that type; literals take it."""
        if isinstance(value, Typed):
            if value.kind != kind:
                raise RoutineError(f"{self.where}: {value.kind} where {kind} is needed")
            return value
        if kind.family == "f":
            if kind.bits == 16:
                raise RoutineError(f"{self.where}: literals of 16 bits")
            return Typed(float_text(float(value), kind.bits), kind)
        if kind is BOOL:
            return Typed("true" if value else "false", kind)
        if value != int(value):
            raise RoutineError(f"{self.where}: {value} is no integer")
        return Typed(str(int(value)), kind)

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
                address, kind = self.place(array, index)
                return Typed(self.fn.value(f"load {kind.text}, ptr {address}"), kind)
            case ast.Call(ast.Name(name), arguments):
                return self.call(node, name, arguments)
        raise self.fail(node, "not an expression of the subset")

    def name(self, node: ast.AST, name: str) -> Operand:
        if name in self.slots:
            return self.load(name)
        found = self.names.get(name, self.globals.get(name))
        if isinstance(found, bool | int | float):
            return found
        raise self.fail(node, f"{name} has no value")

    def place(self, array: ast.expr, index: ast.expr) -> tuple[str, Kind]:
        base = self.value(array)
        if not isinstance(base, Typed) or base.kind.family != "p":
            raise self.fail(array, "not an array")
        position = self.typed(self.value(index), I64)
        kind = base.kind.element
        return self.fn.value(
            f"getelementptr inbounds {kind.text}, ptr {base.text}, i64 {position.text}"
        ), kind

    def pair(self, a: Operand, b: Operand) -> tuple[Typed, Typed]:
        if isinstance(a, Typed):
            return a, self.typed(b, a.kind)
        assert isinstance(b, Typed)
        return self.typed(a, b.kind), b

    def binary(self, node: ast.AST | None, op: ast.operator, a: Operand, b: Operand) -> Operand:
        names = _BINARY.get(type(op))
        if names is None:
            raise self.fail(node or op, "not an operator of the subset")
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            folded: int | float = OPERATORS[type(op)](a, b)
            return folded
        x, y = self.pair(a, b)
        instruction = names.get("i" if x.kind.family == "b" else x.kind.family, "")
        if not instruction:
            raise self.fail(node or op, f"no such operator of {x.kind.text}")
        if x.kind.family == "f":
            instruction += " contract"
        elif x.kind.family == "i" and instruction in ("add", "sub", "mul"):
            instruction += " nsw"
        return Typed(self.fn.value(f"{instruction} {self.shown(x)}, {y.text}"), x.kind)

    def unary(self, node: ast.AST, op: ast.unaryop, x: Operand) -> Operand:
        if not isinstance(x, Typed):
            folded: int | float = UNARY[type(op)](x)
            return folded
        match op:
            case ast.USub() if x.kind.family == "f":
                return Typed(self.fn.value(f"fneg {self.shown(x)}"), x.kind)
            case ast.USub():
                return self.binary(node, ast.Sub(), 0, x)
            case ast.Not() if x.kind is BOOL:
                return Typed(self.fn.value(f"xor {self.shown(x)}, true"), x.kind)
            case ast.Invert():
                return Typed(self.fn.value(f"xor {self.shown(x)}, -1"), x.kind)
        raise self.fail(node, "not an operator of the subset")

    def compare(self, op: ast.cmpop, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            return bool(COMPARISONS[type(op)](a, b))
        x, y = self.pair(a, b)
        name = _COMPARE[type(op)]
        if x.kind.family == "f":
            text = f"fcmp {'u' if name == 'ne' else 'o'}{name}"
        elif name in ("eq", "ne"):
            text = f"icmp {name}"
        else:
            text = f"icmp {'s' if x.kind.family == 'i' else 'u'}{name}"
        return Typed(self.fn.value(f"{text} {self.shown(x)}, {y.text}"), BOOL)

    def both(self, is_and: bool, values: list[ast.expr]) -> Operand:
        """``and`` and ``or``: what follows is only computed where it decides."""
        first = self.value(values[0])
        if len(values) == 1:
            return first
        if not isinstance(first, Typed):
            return self.both(is_and, values[1:]) if bool(first) == is_and else first
        k = self.fn.unique()
        found = self.fn.alloca("i1")
        self.fn.emit(f"store i1 {first.text}, ptr {found}")
        ways = [f"more{k}", f"known{k}"]
        self.fork(first, *(ways if is_and else ways[::-1]))
        self.label(f"more{k}")
        rest = self.typed(self.both(is_and, values[1:]), BOOL)
        self.fn.emit(f"store i1 {rest.text}, ptr {found}")
        self.jump(f"known{k}")
        self.label(f"known{k}")
        return Typed(self.fn.value(f"load i1, ptr {found}"), BOOL)

    # -- calls

    def call(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Operand:
        kind = self.names.get(name, KINDS.get(name))
        if isinstance(kind, Kind):
            return self.convert(node, self.value(arguments[0]), kind)
        if name in ("view", "bits"):
            given = self.value(arguments[0])
            second = arguments[1]
            assert isinstance(given, Typed) and isinstance(second, ast.Name)
            element = self.kind(node, second.id)
            if name == "view":
                return Typed(given.text, Kind("p", 64, element))
            if given.kind.text == element.text:
                return Typed(given.text, element)
            cast = f"bitcast {self.shown(given)} to {element.text}"
            return Typed(self.fn.value(cast), element)
        if name == "local":
            return self.local(node, *arguments)
        values = [self.value(a) for a in arguments]
        inner = _FUNCTIONS.get(name)
        if inner is not None:
            return inner(self, values)
        function = self.globals.get(name)
        if not inspect.isfunction(function):
            raise self.fail(node, f"{name} is no function of the subset")
        return self.call_function(function, values)

    def local(self, node: ast.Call, element: ast.expr, count: ast.expr) -> Typed:
        """An array of this call's own."""
        size, kind = self.value(count), self.annotation(element)
        if isinstance(size, Typed):
            raise self.fail(node, "the size must be a constant")
        return Typed(self.fn.alloca(f"[{size} x {kind.text}], align 64"), Kind("p", 64, kind))

    def call_function(self, function: Callable[..., Any], values: list[Operand]) -> Operand:
        symbol, parameters, result = add_function(self.module, function, self.names)
        given = ", ".join(
            self.shown(self.typed(v, kind)) for v, (_, kind) in zip(values, parameters, strict=True)
        )
        if result is None:
            self.fn.emit(f"call void @{symbol}({given})")
            return 0
        return Typed(self.fn.value(f"call {result.text} @{symbol}({given})"), result)

    def convert(self, node: ast.AST, value: Operand, kind: Kind) -> Typed:
        if not isinstance(value, Typed):
            return self.typed(value, kind)
        old = value.kind
        if old.text == kind.text:
            return Typed(value.text, kind)
        if old.family == "f" and kind.family == "f":
            name = "fpext" if old.bits < kind.bits else "fptrunc"
        elif old.family == "f":
            name = "fptosi" if kind.family == "i" else "fptoui"
        elif kind.family == "f":
            name = "sitofp" if old.family == "i" else "uitofp"
        elif kind.bits < old.bits:
            name = "trunc"
        else:
            name = "sext" if old.family == "i" else "zext"
        return Typed(self.fn.value(f"{name} {self.shown(value)} to {kind.text}"), kind)

    def choose(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        if not isinstance(condition, Typed):
            return a if condition else b
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            a = self.typed(a, I64)
        x, y = self.pair(a, b)
        chosen = f"select i1 {condition.text}, {self.shown(x)}, {self.shown(y)}"
        return Typed(self.fn.value(chosen), x.kind)

    def extreme(self, op: ast.cmpop, a: Operand, b: Operand) -> Operand:
        if not isinstance(a, Typed) and not isinstance(b, Typed):
            return min(a, b) if isinstance(op, ast.Lt) else max(a, b)
        return self.choose(self.compare(op, a, b), *self.pair(a, b))

    def absolute(self, x: Operand) -> Operand:
        if not isinstance(x, Typed):
            return abs(x)
        if x.kind.family == "f":
            return self.intrinsic("fabs", [x])
        return self.choose(self.compare(ast.Lt(), x, 0), self.unary(ast.Pass(), ast.USub(), x), x)

    def intrinsic(self, name: str, values: list[Operand]) -> Operand:
        first = next(v for v in values if isinstance(v, Typed))
        kind = first.kind
        listed = ", ".join([kind.text] * len(values))
        given = ", ".join(self.shown(self.typed(v, kind)) for v in values)
        symbol = f"{kind.text} @llvm.{name}.f{kind.bits}"
        return Typed(self.fn.call(f"{symbol}({listed})", given), kind)

    def elementary(self, name: str, values: list[Operand]) -> Operand:
        """A function of the kernel table on numbers of float32 or float64."""
        first = next(v for v in values if isinstance(v, Typed))
        numbers = [self.typed(v, first.kind).text for v in values]
        return Typed(float_function(name)(Lanes(self.fn, 0, first.kind.bits), *numbers), first.kind)

    def address(self, array: Operand, index: Operand) -> Operand:
        assert isinstance(array, Typed)
        position = self.typed(index, I64).text
        element = array.kind.element.text
        return Typed(
            self.fn.value(f"getelementptr inbounds {element}, ptr {array.text}, i64 {position}"),
            array.kind,
        )


def _kind_of(value: bool | int | float) -> Kind:
    """The type of a variable that begins with a literal."""
    return BOOL if isinstance(value, bool) else I64


_BINARY: dict[type, dict[str, str]] = {
    ast.Add: {"i": "add", "u": "add", "f": "fadd"},
    ast.Sub: {"i": "sub", "u": "sub", "f": "fsub"},
    ast.Mult: {"i": "mul", "u": "mul", "f": "fmul"},
    ast.Div: {"f": "fdiv"},
    ast.FloorDiv: {"i": "udiv", "u": "udiv"},
    ast.Mod: {"i": "urem", "u": "urem"},
    ast.LShift: {"i": "shl", "u": "shl"},
    ast.RShift: {"i": "ashr", "u": "lshr"},
    ast.BitAnd: {"i": "and", "u": "and"},
    ast.BitOr: {"i": "or", "u": "or"},
    ast.BitXor: {"i": "xor", "u": "xor"},
}
_COMPARE: dict[type, str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[_Writer, list[Operand]], Operand]] = {
    "at": lambda w, v: w.address(*v),
    "select": lambda w, v: w.choose(*v),
    "min": lambda w, v: w.extreme(ast.Lt(), *v),
    "max": lambda w, v: w.extreme(ast.Gt(), *v),
    "abs": lambda w, v: w.absolute(*v),
    "sqrt": lambda w, v: w.intrinsic("sqrt", v),
    "copysign": lambda w, v: w.intrinsic("copysign", v),
    "isnan": lambda w, v: w.compare(ast.NotEq(), v[0], v[0]),
}
for _name in ("ceil", "cos", "exp", "floor", "log", "log1p", "pow", "sin"):
    _FUNCTIONS[_name] = functools.partial(lambda name, w, v: w.elementary(name, v), _name)
