"""Functions under construction: blocks with parameters, and the ways from one to the next.

A block's parameters stand for LLVM's phis: every jump to the block says what they are then.

    with f.loop(i=0, total=0) as loop:
        loop.run_while(loop["i"].slt(count))
        loop.again(loop["i"] + 1, loop["total"] + numbers[loop["i"]])
    f.ret(loop["total"])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from treadle.runtime.cpu.builder.types import (
    I1,
    I64,
    PTR,
    VOID,
    BuildError,
    Pointer,
    Signature,
    Type,
)  # fmt: skip
from treadle.runtime.cpu.builder.values import Instructions, Operand, Value


class Edge:
    """A way to a block, with what its parameters are when it is taken."""

    def __init__(self, block: Block, arguments: tuple[Value, ...]) -> None:
        self.block, self.arguments = block, arguments


class Block:
    """Instructions without branches but at their end. ``block["name"]`` is a parameter, and
    ``block(x, y)`` the way to it with these values of its parameters."""

    def __init__(self, fn: Function, name: str, parameters: Mapping[str, Type]) -> None:
        self.fn, self.name = fn, name
        self.parameters = {
            each: Value(fn, f"%{name}.{each}", type_) for each, type_ in parameters.items()
        }
        self.lines: list[str] = []
        self.incoming: list[tuple[str, tuple[Value, ...]]] = []
        self.begun = False

    def __getitem__(self, name: str) -> Value:
        return self.parameters[name]

    def __call__(self, *arguments: Operand) -> Edge:
        if len(arguments) != len(self.parameters):
            raise BuildError(f"{self.name} takes {len(self.parameters)} values: {arguments}")
        pairs = zip(arguments, self.parameters.values(), strict=True)
        return Edge(self, tuple(self.fn.operand(a, p.type) for a, p in pairs))

    def text(self) -> list[str]:
        phis = []
        for i, parameter in enumerate(self.parameters.values()):
            ways = ", ".join(f"[{values[i].text}, %{name}]" for name, values in self.incoming)
            phis.append(f"  {parameter.text} = phi {parameter.type.text} {ways}")
        return [f"{self.name}:", *phis, *self.lines]


Target: TypeAlias = "Block | Edge"


class Callee:
    """A function that can be called by its name."""

    def __init__(self, name: str, type_: Signature) -> None:
        self.name, self.type = name, type_


class Loop:
    """A loop that is being written; ``loop["i"]`` is what it carries, at its head and after it."""

    def __init__(self, fn: Function, head: Block, exit_: Block) -> None:
        self.fn, self.head, self.exit = fn, head, exit_

    def __getitem__(self, name: str) -> Value:
        return self.head[name]

    def run_while(self, condition: Value) -> None:
        """Leave the loop where the condition does not hold."""
        self.fn.require(condition, self.exit)

    def leave_if(self, condition: Value) -> None:
        """Leave the loop where the condition holds."""
        self.fn.refuse(condition, self.exit)

    def next(self, *carried: Operand) -> Edge:
        """The way to the next iteration, with these values."""
        return self.head(*carried)

    def again(self, *carried: Operand) -> None:
        """The next iteration, with these values."""
        self.fn.jump(self.next(*carried))

    def again_if(self, condition: Value, *carried: Operand) -> None:
        """The next iteration where the condition holds, else the end."""
        self.fn.branch(condition, self.next(*carried), self.exit)


class Function(Instructions):
    """The body of one function."""

    def __init__(self, name: str, type_: Signature, names: tuple[str, ...]) -> None:
        super().__init__(name)
        self.type = type_
        pairs = zip(names, type_.parameters, strict=True)
        self.parameters = {each: Value(self, f"%{each}", kind) for each, kind in pairs}
        self.declarations: dict[str, None] = {}
        self._blocks: list[Block] = []
        self._names: set[str] = set()
        self._open: Block | None = None
        self._targets: dict[str, Block] = {}
        self.begin(self.block("entry"))

    # ---- values

    def const(self, number: Operand, type_: Type = I64) -> Value:
        return self.operand(number, type_)

    def emit(self, text: str) -> None:
        """Add an instruction without a result.

        Raises:
            BuildError: no block is open.
        """
        if self._open is None:
            raise BuildError(f"{self.name}: no block is open for {text}")
        self._open.lines.append("  " + text)

    def alloca(self, type_: Type, count: Operand = 1, align: int = 8) -> Value:
        """Room for `count` of them on the stack, until the function returns."""
        number = self.operand(count, I64)
        room = f"[{count} x {type_.text}]" if isinstance(count, int) else type_.text
        many = "" if isinstance(count, int) else f", i64 {number.text}"
        return self.value(f"alloca {room}{many}, align {align}", Pointer(type_))

    def global_(self, name: str, type_: Type) -> Value:
        """The address of a variable of the module (`Unit.variable`)."""
        return Value(self, f"@{name}", Pointer(type_))

    def address(self, callee: Callee) -> Value:
        """A function as a value."""
        return Value(self, f"@{callee.name}", callee.type)

    # ---- calls

    def call(self, callee: Callee | Value, *arguments: Operand) -> Value:
        """Call a function by its name or its address.

        Raises:
            BuildError: the number or the types of the arguments are not the function's.
        """
        type_ = callee.type
        if not isinstance(type_, Signature):
            raise BuildError(f"{callee} is no function")
        name = f"@{callee.name}" if isinstance(callee, Callee) else callee.text
        if len(arguments) != len(type_.parameters):
            raise BuildError(f"{name} takes {len(type_.parameters)} arguments: {arguments}")
        pairs = zip(arguments, type_.parameters, strict=True)
        given = ", ".join(f"{kind.text} {self.operand(a, kind).text}" for a, kind in pairs)
        text = f"call {type_.result.text} {name}({given})"
        if type_.result == VOID:
            self.emit(text)
            return Value(self, "", VOID)
        return self.value(text, type_.result)

    def intrinsic(self, name: str, result: Type, *arguments: Value | tuple[int, Type]) -> Value:
        """Call one of LLVM's own functions: ``intrinsic("llvm.smin.i64", I64, a, b)``. Numbers come
        with their types."""
        given = [a if isinstance(a, Value) else self.operand(*a) for a in arguments]
        kinds = tuple(v.type for v in given)
        self.declarations[f"{result.text} @{name}({', '.join(k.text for k in kinds)})"] = None
        return self.call(Callee(name, Signature(result, kinds)), *given)

    def smin(self, a: Value, b: Operand) -> Value:
        return self.intrinsic("llvm.smin.i64", I64, a, self.operand(b, I64))

    def smax(self, a: Value, b: Operand) -> Value:
        return self.intrinsic("llvm.smax.i64", I64, a, self.operand(b, I64))

    def umin(self, a: Value, b: Operand) -> Value:
        return self.intrinsic("llvm.umin.i64", I64, a, self.operand(b, I64))

    def umax(self, a: Value, b: Operand) -> Value:
        return self.intrinsic("llvm.umax.i64", I64, a, self.operand(b, I64))

    def product(self, a: Value, b: Value, signed: bool) -> tuple[Value, Value]:
        """The product of words, and whether it has more bits than a word."""
        name = f"llvm.{'s' if signed else 'u'}mul.with.overflow.i64"
        both = Type("{i64, i1}", 0, "v")
        pair = self.intrinsic(name, both, a, b)
        text = f"extractvalue {both.text} {pair.text}, "
        return self.value(f"{text}0", I64), self.value(f"{text}1", I1)

    def copy(self, to: Value, source: Value, count: Value) -> None:
        """Copy bytes between places that do not overlap."""
        self.declarations["void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        a, b, n = self.operand(to, PTR), self.operand(source, PTR), self.operand(count, I64)
        aligned = [f" align {_alignment(p)}" if _alignment(p) > 1 else "" for p in (a, b)]
        self.emit(
            f"call void @llvm.memcpy.p0.p0.i64(ptr{aligned[0]} {a.text}, ptr{aligned[1]} {b.text}, "
            f"i64 {n.text}, i1 false)"
        )

    def clear(self, to: Value, count: Value) -> None:
        """Set bytes to zero."""
        self.declarations["void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        a, n = self.operand(to, PTR), self.operand(count, I64)
        self.emit(f"call void @llvm.memset.p0.i64(ptr {a.text}, i8 0, i64 {n.text}, i1 false)")

    # ---- blocks

    @property
    def is_open(self) -> bool:
        """Whether there is a block that instructions go to."""
        return self._open is not None

    def block(self, name: str, **parameters: Type) -> Block:
        """A block to be written later; its name gets a number where there is one like it."""
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}.{count}"
        self._names.add(unique)
        return Block(self, unique, parameters)

    def begin(self, block: Block) -> Block:
        """What follows belongs to the block.

        Raises:
            BuildError: the block before has no end, or this one was written already.
        """
        if self._open is not None:
            raise BuildError(f"{self.name}: {self._open.name} has no end before {block.name}")
        if block.begun:
            raise BuildError(f"{self.name}: {block.name} is written twice")
        block.begun, self._open = True, block
        self._blocks.append(block)
        return block

    def _end(self, text: str, *ways: Edge) -> None:
        before = self._open
        self.emit(text)
        assert before is not None
        self._open = None
        for way in ways:
            self._targets[way.block.name] = way.block
            way.block.incoming.append((before.name, way.arguments))

    def jump(self, target: Target) -> None:
        way = _edge(target)
        self._end(f"br label %{way.block.name}", way)

    def branch(self, condition: Value, then: Target, otherwise: Target) -> None:
        test = self.operand(condition, I1)
        (yes, no), detours = self._apart(_edge(then), _edge(otherwise))
        text = f"br i1 {test.text}, label %{yes.block.name}, label %{no.block.name}"
        self._end(text, yes, no)
        self._write(detours)

    def switch(self, value: Value, cases: Mapping[int, Target], otherwise: Target) -> None:
        """Go where the number says."""
        targets = [otherwise, *cases.values()]
        (rest, *ways), detours = self._apart(*(_edge(target) for target in targets))
        kind, pairs = value.type.text, zip(cases, ways, strict=True)
        listed = "".join(f"\n    {kind} {number}, label %{w.block.name}" for number, w in pairs)
        text = f"switch {kind} {value.text}, label %{rest.block.name} [{listed}\n  ]"
        self._end(text, rest, *ways)
        self._write(detours)

    def _apart(self, *ways: Edge) -> tuple[list[Edge], list[tuple[Block, Edge]]]:
        """Ways from one block to the same other one with other values lead through blocks of their
        own, as LLVM tells ways apart by the block they come from."""
        found: dict[str, tuple[Value, ...]] = {}
        taken, detours = [], []
        for way in ways:
            if found.setdefault(way.block.name, way.arguments) != way.arguments:
                detour = self.block(f"{way.block.name}.way")
                detours.append((detour, way))
                taken.append(detour())
            else:
                taken.append(way)
        return taken, detours

    def _write(self, detours: list[tuple[Block, Edge]]) -> None:
        for block, way in detours:
            self.begin(block)
            self.jump(way)

    def ret(self, value: Operand = None) -> None:
        """Return; without a value from functions that give nothing, null from those that give a
        pointer."""
        kind = self.type.result
        if kind == VOID and value is None:
            self._end("ret void")
            return
        self._end(f"ret {kind.text} {self.operand(value, kind).text}")

    # ---- structured ways

    def require(self, condition: Value, otherwise: Target, name: str = "so") -> None:
        """Go on where the condition holds, else to the block."""
        follows = self.block(name)
        self.branch(condition, follows, otherwise)
        self.begin(follows)

    def refuse(self, condition: Value, target: Target, name: str = "so") -> None:
        """Go to the block where the condition holds, else on."""
        follows = self.block(name)
        self.branch(condition, target, follows)
        self.begin(follows)

    @contextmanager
    def when(self, condition: Value, name: str = "when") -> Iterator[None]:
        """What is written inside runs only where the condition holds."""
        then, after = self.block(name), self.block(f"{name}.after")
        self.branch(condition, then, after)
        self.begin(then)
        yield
        if self.is_open:
            self.jump(after)
        self.begin(after)

    @contextmanager
    def loop(self, name: str = "loop", **carried: Operand) -> Iterator[Loop]:
        """A loop that carries values; numbers are words. Its body ends with `again`, and what
        follows runs after the loop."""
        starts = [v if isinstance(v, Value) else self.operand(v, I64) for v in carried.values()]
        kinds = {each: v.type for each, v in zip(carried, starts, strict=True)}
        head, exit_ = self.block(name, **kinds), self.block(f"{name}.end")
        self.jump(head(*starts))
        self.begin(head)
        yield Loop(self, head, exit_)
        if self.is_open:
            raise BuildError(f"{self.name}: the loop {name} does not say what comes again")
        self.begin(exit_)

    # ---- text

    def text(self, linkage: str, attributes: str) -> str:
        """The function in LLVM's language.

        Raises:
            BuildError: a block has no end, is jumped to but not written, or never reached.
        """
        if self._open is not None:
            raise BuildError(f"{self.name}: {self._open.name} has no end")
        missing = [name for name, block in self._targets.items() if not block.begun]
        if missing:
            raise BuildError(f"{self.name}: nobody writes {', '.join(missing)}")
        for block in self._blocks[1:]:
            if not block.incoming:
                raise BuildError(f"{self.name}: nothing leads to {block.name}")
        listed = ", ".join(f"{v.type.text} {v.text}" for v in self.parameters.values())
        head = " ".join(
            part
            for part in (
                "define", linkage, f"{self.type.result.text} @{self.name}({listed})", attributes,
                "#0 {",
            )
            if part
        )  # fmt: skip
        return "\n".join([head, *(line for b in self._blocks for line in b.text()), "}", ""])


def _edge(target: Target) -> Edge:
    return target if isinstance(target, Edge) else target()


def _alignment(pointer: Value) -> int:
    """What the type says about an address."""
    to = pointer.type.to if isinstance(pointer.type, Pointer) else None
    return to.bytes if isinstance(to, Type) else 1
