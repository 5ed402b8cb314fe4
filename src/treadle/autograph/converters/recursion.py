"""A function that calls itself, not only last, becomes a loop with a stack, in jitted functions.

Before::

    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

After::

    def fib(n):
        frames, frames_1, callers = [], [], []
        block = 0
        while True:
            if block == 0:
                if n < 2:
                    result, block = n, 3
                else:
                    frames.append(ag__.frame(n)); callers.append(1)
                    n, block = n - 1, 0
            if block == 1:
                ag__.reached(frames)
                (n,) = frames.pop()
                value = ag__.returned(result)
                frames_1.append(ag__.frame(value)); callers.append(2)
                n, block = n - 2, 0
            if block == 2:
                ag__.reached(frames_1)
                (value,) = frames_1.pop()
                value_1 = ag__.returned(result)
                result, block = value + value_1, 3
            if block == 3:
                if len(callers) == 0:
                    break
                block = callers.pop()
        return result

The function's text is cut into blocks at its calls of itself. A call keeps the variables that are
still read after it, those that the function assigns, in a list of its own, and goes to the first
block; the end of a call goes to the block behind it. Statements without such calls and without
``return`` stay as they are. A ``for`` around a call goes through positions. A dict has the results
of functions under `functools.cache`.

This is done where a trace would call the function for ever (`jitted.recursion`): a condition of
Python's is traced call by call, as any other function.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import gast

from treadle.autograph.analysis.activity import FUNCTIONS, reads, writes
from treadle.autograph.analysis.jumps import jumps
from treadle.autograph.analysis.jumps import statements as walk_statements
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import assign, constant, load, operator, place, store
from treadle.autograph.converters.tail_calls import is_itself, is_kept
from treadle.autograph.names import Names

_INNER = (
    *FUNCTIONS, gast.ClassDef, gast.Yield, gast.YieldFrom, gast.Lambda, gast.ListComp, gast.SetComp,
    gast.DictComp, gast.GeneratorExp,
)  # fmt: skip
_PURE = (
    gast.Name, gast.Attribute, gast.Subscript, gast.Constant, gast.Tuple, gast.List, gast.UnaryOp,
    gast.BinOp, gast.expr_context, gast.operator, gast.unaryop,
)  # fmt: skip


class CannotStack(Exception):
    """A function calls itself where this conversion cannot cut it."""


def stack_calls(root: Any, function: types.FunctionType, names: Names) -> None:
    """Rewrite a function, or those that it defines, where they call themselves."""
    if isinstance(root, gast.Lambda):
        return
    found = [n for n in walk(root) if isinstance(n, gast.FunctionDef) and n is not root]
    for node in reversed(found):
        keeps = bool(node.decorator_list) and all(map(_is_cache, node.decorator_list))
        if _calls_itself(node) and (keeps or not node.decorator_list):
            _rewrite(node, names, keeps)
    if is_itself(root.name, function) and _calls_itself(root):
        _rewrite(root, names, is_kept(root.name, function))


def _rewrite(node: Any, names: Names, keeps: bool) -> None:
    body, decorators = node.body, node.decorator_list
    try:
        _Machine(node, names, keeps).rewrite()
    except CannotStack:  # the trace says so
        node.body, node.decorator_list = body, decorators


def _is_cache(decorator: Any) -> bool:
    """Whether a decorator is one of those of `functools` that keep results."""
    if isinstance(decorator, gast.Call):
        decorator = decorator.func
    name = getattr(decorator, "attr", getattr(decorator, "id", None))
    return name in ("cache", "lru_cache")


def _calls_itself(node: Any) -> bool:
    return any(_is_call(n, node.name) for s in node.body for n in walk(s))


def _is_call(node: Any, name: str) -> bool:
    return (
        isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id == name
    )


class _Block:
    """Statements that run one after the other.

    Attributes:
        places: the constants that are to be its number.
    """

    def __init__(self) -> None:
        self.body: list[Any] = []
        self.places: list[Any] = []

    def number(self) -> Any:
        made = constant(0)
        self.places.append(made)
        return made


class _Machine:
    """Cuts one function into blocks.

    Attributes:
        out: where the next statement goes: the body of a block, or of a branch in it.
        order: the blocks.
        loops: for each loop around that is cut the blocks of its next iteration and of its end.
        calls: for each call the block behind it, and the statements that keep and restore.
    """

    def __init__(self, node: Any, names: Names, keeps: bool) -> None:
        self.node, self.names = node, names
        arguments = node.args
        if arguments.vararg or arguments.kwarg:
            raise CannotStack
        self.params = [a.id for a in (*arguments.posonlyargs, *arguments.args)]
        self.params += [a.id for a in arguments.kwonlyargs]
        self.order: list[_Block] = []
        self.loops: list[tuple[_Block, _Block]] = []
        self.calls: list[tuple[_Block, Any, Any, str]] = []
        self.pc, self.result = names.fresh("block"), names.fresh("result")
        self.callers = names.fresh("callers")
        self.kept, self.key = (names.fresh("kept"), names.fresh("key")) if keeps else ("", "")

    # -- the whole -------------------------------------------------------------------------------

    def rewrite(self) -> None:
        node, head = self.node, []
        body = list(node.body)
        while body and (_is_text(body[0]) or isinstance(body[0], gast.Nonlocal)):
            head.append(body.pop(0))
        kept = [n for s in body for n in walk(s) if isinstance(n, (*_INNER, gast.Global))]
        if not body or any(_calls_in(n, node.name) for n in kept):
            raise CannotStack
        if any(isinstance(n, gast.Nonlocal | gast.Global | gast.Yield) for s in body
               for n in walk(s)):  # fmt: skip
            raise CannotStack
        self.entry, self.end = _Block(), _Block()
        self.start(self.entry)
        key = self.look_up(body[0]) if self.kept else None
        if self.statements(copy.deepcopy(body)):
            self.leave(constant(None), body[-1])
        if key is not None:
            key.value = self.changing_parameters()
        self.start(self.end)
        self.keep_variables()
        at = body[0]
        loop = place(gast.While(constant(True), self.dispatch(at), []), at)
        loop.leading, at.leading = getattr(at, "leading", []), []
        frames = [assign([f], gast.List([], gast.Load()), at) for _, _, _, f in self.calls]
        if self.kept:
            frames.append(assign([self.kept], gast.Dict([], []), at))
        node.decorator_list = []
        node.body = [
            *head, *frames, assign([self.callers], gast.List([], gast.Load()), at),
            assign([self.pc], constant(0), at), loop, place(gast.Return(load(self.result)), at),
        ]  # fmt: skip

    def dispatch(self, at: Any) -> list[Any]:
        """The body of the loop: the blocks, each under its number."""
        ended = gast.Compare(operator("len", load(self.callers)), [gast.Eq()], [constant(0)])
        back = gast.Call(gast.Attribute(load(self.callers), "pop", gast.Load()), [], [])
        self.end.body = [
            place(gast.If(ended, [place(gast.Break(), at)], []), at), assign([self.pc], back, at),
        ]  # fmt: skip
        made = []
        for number, block in enumerate(self.order):
            for use in block.places:
                use.value = number
            test = gast.Compare(load(self.pc), [gast.Eq()], [constant(number)])
            made.append(place(gast.If(test, block.body, []), at))
        return made

    def keep_variables(self) -> None:
        """Fill in what each call keeps: what is read after it, but for what never changes."""
        changing = {n for b in self.order for s in b.body for n in writes(s)}
        own = {self.pc, self.result, self.callers, self.kept} | {f for _, _, _, f in self.calls}
        live = _live(self.order)
        for after, keep, restore, frames in self.calls:
            kept = sorted((live[id(after)] & changing) - own)
            if not kept:  # nothing to keep
                kept = [self.pc]
            keep.value = gast.Call(
                gast.Attribute(load(frames), "append", gast.Load()),
                [operator("frame", *map(load, kept))], [],
            )  # fmt: skip
            restore.targets = [gast.Tuple([store(n) for n in kept], gast.Store())]
            restore.value = gast.Call(gast.Attribute(load(frames), "pop", gast.Load()), [], [])

    # -- statements ------------------------------------------------------------------------------

    def start(self, block: _Block) -> None:
        self.order.append(block)
        self.out = block.body

    def goto(self, block: _Block, at: Any) -> None:
        jump = assign([self.pc], block.number(), at)
        jump.goes_to = block
        self.out.append(jump)

    def leave(self, value: Any, at: Any) -> None:
        self.out.append(assign([self.result], value, at))
        if self.kept:
            item = gast.Subscript(load(self.kept), load(self.key), gast.Store())
            self.out.append(place(gast.Assign([item], load(self.result), None), at))
        self.goto(self.end, at)

    def look_up(self, at: Any) -> Any:
        """Where results are kept, the function begins by looking for its own. Gives the statement
        that makes the key, whose value is still to be made."""
        key = assign([self.key], constant(None), at)
        item = gast.Subscript(load(self.kept), load(self.key), gast.Load())
        test = gast.Compare(load(self.key), [gast.In()], [load(self.kept)])
        made = place(gast.If(test, [assign([self.result], item, at)], []), at)
        self.out += [key, made]
        self.out = made.body
        self.goto(self.end, at)
        self.out = made.orelse
        return key

    def changing_parameters(self) -> Any:
        """The parameters that calls give other values: the rest is the same in all of them."""
        every = [s for b in self.order for s in walk_statements(b.body)]
        found = {n for s in every if hasattr(s, "gives_parameters") for n in writes(s)}
        names = [p for p in self.params if p in found]
        if not names:
            raise CannotStack
        return load(names[0]) if len(names) == 1 else gast.Tuple([*map(load, names)], gast.Load())

    def statements(self, body: list[Any]) -> bool:
        """Cut statements; gives whether what follows them is reached."""
        return all(self.statement(node) for node in body)

    def statement(self, node: Any) -> bool:
        if self.stays(node):
            self.out.append(node)
            return not isinstance(node, gast.Raise)
        if isinstance(node, gast.Return):
            return self.returned(node)
        if isinstance(node, gast.Break | gast.Continue):
            self.goto(self.loops[-1][isinstance(node, gast.Break)], node)
            return False
        if isinstance(node, gast.If):
            return self.branches(node)
        if isinstance(node, gast.While):
            return self.repeated(node)
        if isinstance(node, gast.For):
            return self.counted(node)
        field = _FIELDS.get(type(node))
        if field is None:
            raise CannotStack
        if isinstance(node, gast.AugAssign) and not isinstance(node.target, gast.Name):
            raise CannotStack  # the item is read before the call
        if isinstance(node, gast.AugAssign):
            node = _as_assignment(node)
        value = self.expression(getattr(node, field), node)
        setattr(node, field, value)
        if not (isinstance(node, gast.Expr) and isinstance(value, gast.Name)):
            self.out.append(node)
        return True

    def stays(self, node: Any) -> bool:
        """Whether a statement is no place to cut, and leaves no block."""
        left = jumps([node])
        return not left and not _calls_in(node, self.node.name)

    def returned(self, node: Any) -> bool:
        value = constant(None) if node.value is None else node.value
        if _is_call(value, self.node.name) and not self.kept:
            self.enter(value, node)
        else:
            self.leave(self.expression(value, node), node)
        return False

    def branches(self, node: Any) -> bool:
        node.test = self.expression(node.test, node)
        then, otherwise = node.body, node.orelse
        made = place(gast.If(node.test, [], []), node)
        made.leading = getattr(node, "leading", [])
        self.out.append(made)
        join = _Block()
        self.out = made.body
        first = self.statements(then)
        ends = [self.out] if first else []
        self.out = made.orelse
        second = self.statements(otherwise)
        ends += [self.out] if second else []
        if not made.body:
            made.body.append(place(gast.Pass(), node))
        if len(ends) < 2:
            if ends:
                self.out = ends[0]
            return bool(ends)
        for self.out in ends:
            self.goto(join, node)
        self.start(join)
        return True

    def repeated(self, node: Any) -> bool:
        head, end = _Block(), _Block()
        self.goto(head, node)
        self.start(head)
        test = self.expression(node.test, node)
        self.iteration(node, test, [], head, end)
        return True

    def iteration(
        self, node: Any, test: Any, first: list[Any], head: _Block, end: _Block
    ) -> None:
        made = place(gast.If(test, [], []), node)
        self.out.append(made)
        self.out = made.body
        self.out += first
        self.loops.append((head, end))
        if self.statements(node.body):
            self.goto(head, node)
        self.loops.pop()
        self.out = made.orelse
        if self.statements(node.orelse):
            self.goto(end, node)
        self.start(end)

    def counted(self, node: Any) -> bool:
        """A ``for``, by position."""
        i = self.names.fresh("i")
        if isinstance(node.iter, gast.Call) and getattr(node.iter.func, "id", "") == "range":
            test, item, step = self.of_range(node, i)
        else:
            test, item, step = self.of_items(node, i)
        head, end = _Block(), _Block()
        self.goto(head, node)
        self.start(head)
        first = [
            place(gast.Assign([node.target], item, None), node),
            assign([i], gast.BinOp(load(i), gast.Add(), step), node),
        ]
        self.iteration(node, test, first, head, end)
        return True

    def of_range(self, node: Any, i: str) -> tuple[Any, Any, Any]:
        args = [self.expression(a, node) for a in node.iter.args]
        if node.iter.keywords or not args or any(isinstance(a, gast.Starred) for a in args):
            raise CannotStack
        start, stop, *rest = [constant(0), *args] if len(args) == 1 else args
        step = _whole(rest[0]) if rest else 1
        if not step:
            raise CannotStack
        last = self.names.fresh("stop")
        self.out += [assign([i], start, node), assign([last], stop, node)]
        test = gast.Compare(load(i), [gast.Lt() if step > 0 else gast.Gt()], [load(last)])
        return test, load(i), constant(step)

    def of_items(self, node: Any, i: str) -> tuple[Any, Any, Any]:
        """Items are read by position again and again, as a list's iterator does it."""
        source, item = self.items(node.iter, i)
        if any(writes(node.body) & reads(s) for s in source) or not all(map(self.is_kept, source)):
            raise CannotStack
        self.out.append(assign([i], constant(0), node))
        sizes = [operator("len", operator("by_position", copy.deepcopy(s))) for s in source]
        tests: list[Any] = [gast.Compare(load(i), [gast.Lt()], [size]) for size in sizes]
        test = tests[0] if len(tests) == 1 else gast.BoolOp(gast.And(), tests)
        return test, item, constant(1)

    def items(self, source: Any, i: str) -> tuple[list[Any], Any]:
        """What is gone through, and the item at a position."""
        name = getattr(source.func, "id", "") if isinstance(source, gast.Call) else ""
        if name == "enumerate" and len(source.args) == 1 and not source.keywords:
            found, item = self.items(source.args[0], i)
            return found, gast.Tuple([load(i), item], gast.Load())
        if name == "zip" and source.args and not source.keywords:
            pairs = [self.items(a, i) for a in source.args]
            parts = [item for _, item in pairs]
            return [s for found, _ in pairs for s in found], gast.Tuple(parts, gast.Load())
        return [source], gast.Subscript(copy.deepcopy(source), load(i), gast.Load())

    def is_kept(self, source: Any) -> bool:
        """Whether an expression gives the same object whenever it is asked for."""
        if not all(isinstance(n, _PURE) for n in walk(source)):
            return False
        bases = {n.value.id for n in walk(source)
                 if isinstance(n, gast.Subscript) and isinstance(n.value, gast.Name)}  # fmt: skip
        stored = [n for s in self.node.body for n in walk(s) if isinstance(n, gast.Subscript)
                  and not isinstance(n.ctx, gast.Load)]  # fmt: skip
        return not any(isinstance(n.value, gast.Name) and n.value.id in bases for n in stored)

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, node: Any, at: Any) -> Any:
        """An expression without calls of the function, which are done before."""
        if not _calls_in(node, self.node.name):
            return node
        if _is_call(node, self.node.name):
            return self.call(node, at)
        if isinstance(node, gast.BoolOp):
            return self.operands(node, at)
        if isinstance(node, gast.IfExp):
            return self.choice(node, at)
        if isinstance(node, gast.NamedExpr | gast.Starred | gast.Compare) and (
            not isinstance(node, gast.Compare) or len(node.ops) > 1
        ):
            raise CannotStack
        self.compute_operands(node, at)
        return node

    def compute_operands(self, node: Any, at: Any) -> None:
        """Compute the operands of an expression up to the last one with a call of the function, in
        their order: those before it are kept in variables."""
        parts = _operands(node)
        last = max(k for k, (_, v) in enumerate(parts) if _calls_in(v, self.node.name))
        for k, (put, value) in enumerate(parts[: last + 1]):
            made = self.expression(value, at)
            if k < last and not isinstance(made, gast.Constant | gast.Name):
                name = self.names.fresh("value")
                self.out.append(assign([name], made, at))
                made = load(name)
            put(made)

    def call(self, node: Any, at: Any) -> Any:
        """A call of the function, and the variable that has its result."""
        after = _Block()
        frames = self.names.fresh("frames")
        values = self.arguments(node, at)
        keep = place(gast.Expr(constant(None)), at)
        restore = place(gast.Assign([store(frames)], constant(None), None), at)
        self.calls.append((after, keep, restore, frames))
        caller = gast.Call(
            gast.Attribute(load(self.callers), "append", gast.Load()), [after.number()], []
        )
        self.out += [keep, place(gast.Expr(caller), at)]
        keep.keeps = after
        self.jump(values, at)
        self.start(after)
        reached = operator("reached", load(frames))
        self.out += [place(gast.Expr(reached), at), restore]
        name = self.names.fresh("value")
        self.out.append(assign([name], operator("returned", load(self.result)), at))
        return load(name)

    def enter(self, node: Any, at: Any) -> None:
        """A call at the end of the function: whoever waits for this one waits for that one."""
        self.jump(self.arguments(node, at), at)

    def jump(self, values: list[tuple[str, Any]], at: Any) -> None:
        pairs = [(n, v) for n, v in values if not (isinstance(v, gast.Name) and v.id == n)]
        if pairs:
            names, given = zip(*pairs, strict=True)
            value = given[0] if len(pairs) == 1 else gast.Tuple(list(given), gast.Load())
            made = assign(list(names), value, at)
            made.gives_parameters = True
            self.out.append(made)
        self.goto(self.entry, at)

    def arguments(self, node: Any, at: Any) -> list[tuple[str, Any]]:
        """The parameters of a call with their values."""
        if any(isinstance(a, gast.Starred) for a in node.args):
            raise CannotStack
        call = copy.copy(node)
        call.func = constant(None)
        call.args, call.keywords = list(node.args), [copy.copy(k) for k in node.keywords]
        if _calls_in(call, self.node.name):
            self.compute_operands(call, at)
        own = self.node.args
        positional = [a.id for a in (*own.posonlyargs, *own.args)]
        given = dict(zip(positional, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords}
        if len(call.args) > len(positional) or not given.keys() <= set(self.params):
            raise CannotStack
        defaults = dict(zip(positional[::-1], own.defaults[::-1], strict=False))
        defaults |= {a.id: d for a, d in zip(own.kwonlyargs, own.kw_defaults, strict=True) if d}
        for name in self.params:
            if name not in given:
                if not isinstance(defaults.get(name), gast.Constant):
                    raise CannotStack
                given[name] = defaults[name]
        return [(name, given[name]) for name in self.params]

    def operands(self, node: Any, at: Any) -> Any:
        """``a and f(x)``."""
        name = self.names.fresh("test")
        first, *others = node.values
        self.out.append(assign([name], self.expression(first, at), at))
        test: Any = load(name)
        if isinstance(node.op, gast.Or):
            test = gast.UnaryOp(gast.Not(), test)
        rest = others[0] if len(others) == 1 else gast.BoolOp(node.op, others)
        self.branches(place(gast.If(test, [assign([name], rest, at)], []), at))
        return load(name)

    def choice(self, node: Any, at: Any) -> Any:
        name = self.names.fresh("value")
        sides = [[assign([name], v, at)] for v in (node.body, node.orelse)]
        self.branches(place(gast.If(node.test, *sides), at))
        return load(name)


_FIELDS = {
    gast.Assign: "value", gast.AugAssign: "value", gast.AnnAssign: "value", gast.Expr: "value",
    gast.Assert: "test",
}  # fmt: skip


def _is_text(node: Any) -> bool:
    return isinstance(node, gast.Expr) and isinstance(node.value, gast.Constant)


def _calls_in(node: Any, name: str) -> bool:
    return any(_is_call(n, name) for n in walk(node))


def _as_assignment(node: Any) -> Any:
    value = gast.BinOp(load(node.target.id), node.op, node.value)
    return place(gast.Assign([store(node.target.id)], value, None), node)


def _whole(node: Any) -> int:
    """The value of a constant step; 0 for anything else."""
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        return -_whole(node.operand)
    return node.value if isinstance(node, gast.Constant) and type(node.value) is int else 0


def _operands(node: Any) -> list[tuple[Callable[[Any], None], Any]]:
    """The parts of an expression in the order of their evaluation, each with what replaces it."""
    found: list[tuple[Callable[[Any], None], Any]] = []
    for field, value in gast.iter_fields(node):
        if isinstance(value, list):
            for k, part in enumerate(value):
                if isinstance(part, gast.keyword):
                    found.append((_setter(part, "value"), part.value))
                elif isinstance(part, gast.AST) and not isinstance(part, gast.cmpop):
                    found.append((_item_setter(value, k), part))
        elif isinstance(value, gast.AST) and not isinstance(value, _NO_OPERANDS):
            found.append((_setter(node, field), value))
    return found


_NO_OPERANDS = (gast.expr_context, gast.operator, gast.unaryop, gast.boolop, gast.cmpop)


def _setter(node: Any, field: str) -> Callable[[Any], None]:
    return lambda made: setattr(node, field, made)


def _item_setter(parts: list[Any], k: int) -> Callable[[Any], None]:
    def put(made: Any) -> None:
        parts[k] = made

    return put


# -- which variables are read later ----------------------------------------------------------------


def _live(order: list[_Block]) -> dict[int, set[str]]:
    """The variables that each block, or those behind it, read before they assign them."""
    live: dict[int, set[str]] = {id(block): set() for block in order}
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            now = _before(block.body, set(), live)
            changed |= now != live[id(block)]
            live[id(block)] = now
    return live


def _before(body: list[Any], later: set[str], live: dict[int, set[str]]) -> set[str]:
    """What is read later than the beginning of some statements, by what is read after them."""
    for node in reversed(body):
        if hasattr(node, "goes_to"):
            later = set(live[id(node.goes_to)])
        elif hasattr(node, "keeps"):
            later = later | live[id(node.keeps)]
        elif isinstance(node, gast.If):
            sides = [_before(side, later, live) for side in (node.body, node.orelse)]
            later = reads(node.test).union(*sides)
        elif isinstance(node, gast.Assign | gast.AnnAssign):
            later = (later - writes(node)) | reads(node)
        else:
            later = later | reads(node)
    return later
