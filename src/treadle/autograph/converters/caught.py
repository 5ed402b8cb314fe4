"""``raise`` in a ``try`` of the same function that catches it becomes a jump to the handler.

Before::

    try:
        if x < 0:
            raise ValueError("negative")
        y = f(x)
    except ValueError:
        y = 0

After::

    caught = 0
    for once in (0,):
        if x < 0:
            caught = 1
            break
        y = f(x)
    if caught == 1:
        y = 0

So the program decides, where only it knows the condition. The ``try`` stays around the loop, for
what else may be raised, unless its handlers read what the body assigns, which no branch of the
graph may assign then. A handler that looks at the exception is written once for each ``raise`` that
it takes, and begins by making that exception; a ``raise`` in it that has none raises this one
again. Left alone are bodies with ``break`` or ``continue`` for a loop around.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Iterator
from typing import Any

import gast

from treadle.autograph.analysis.activity import FUNCTIONS, LOOPS, reads, writes
from treadle.autograph.analysis.jumps import blocks, jumps
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import assign, constant, load, place, store
from treadle.autograph.names import Names

_BLOCKS = ("body", "orelse", "finalbody")


def stage_raises(root: Any, names: Names) -> None:
    """Rewrite the ``try`` statements in a tree, inner ones first."""
    for node in reversed(list(walk(root))):
        for field in _BLOCKS:
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [made for one in block for made in _statement(one, names)]


def _statement(node: Any, names: Names) -> list[Any]:
    if not isinstance(node, gast.Try) or not node.handlers:
        return [node]
    raised = list(_raises(node.body))
    handlers = [_handler(node.handlers, r) for r in raised]
    if not raised or None in handlers or jumps(node.body) - {"return"}:
        return [node]
    caught = names.fresh("caught")
    taken: list[tuple[Any, Any]] = []  # handlers, with the exception of those that look at it
    numbers: dict[int, int] = {}
    for one, handler in zip(raised, handlers, strict=True):
        way = handler, one.exc if _looks(handler) else None
        if way not in taken:
            taken.append(way)
        numbers[id(one)] = taken.index(way) + 1
    once = gast.For(
        store(names.fresh("once")), gast.Tuple([constant(0)], gast.Load()),
        _jumping(node.body, numbers, caught), [], None,
    )  # fmt: skip
    first = node.body[0] if node.body else node
    before = assign([caught], constant(0), first)
    before.leading, node.leading = getattr(node, "leading", []), []
    after: list[Any] = node.orelse
    for number, (handler, error) in reversed(list(enumerate(taken, 1))):
        test = gast.Compare(load(caught), [gast.Eq()], [constant(number)])
        after = [place(gast.If(test, _handling(handler, error, names), after), handler)]
    inner = [place(once, first), *after]
    assigned = writes(node.body) | set(_with_new_items(node.body))
    if any(assigned & reads(h.body) for h in node.handlers):
        node.handlers = []
    if not node.handlers and not node.finalbody:
        return [before, *inner]
    node.body, node.orelse = (inner, []) if not node.handlers else ([inner[0]], after)
    return [before, node]


def _with_new_items(body: list[Any]) -> Iterator[str]:
    """The variables that a block assigns items of."""
    for node in body:
        for part in walk(node):
            if isinstance(part, gast.Subscript) and isinstance(part.ctx, gast.Store):
                base = part.value
                while isinstance(base, gast.Subscript):
                    base = base.value
                if isinstance(base, gast.Name):
                    yield base.id


def _handling(handler: Any, error: Any, names: Names) -> list[Any]:
    """What a handler does with the exception of a ``raise``; None where it does not look at it."""
    body: list[Any] = copy.deepcopy(handler.body)
    if error is None:
        return body
    name = names.fresh("error") if handler.name is None else handler.name.id
    made = error if isinstance(error, gast.Call) else gast.Call(error, [], [])
    for node in (n for part in body for n in walk(part)):
        if isinstance(node, gast.Raise) and node.exc is None:
            node.exc = load(name)
    return [assign([name], copy.deepcopy(made), handler), *body]


def _looks(handler: Any) -> bool:
    """Whether a handler looks at the exception, or raises it again."""
    named = handler.name is not None and handler.name.id in reads(handler.body)
    return named or any(
        isinstance(n, gast.Raise) and n.exc is None for part in handler.body for n in walk(part)
    )


def _raises(body: list[Any]) -> Iterator[Any]:
    """The ``raise`` statements of a block, but for those that a ``try`` inside may catch."""
    for node in body:
        if isinstance(node, gast.Raise):
            yield node
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef)):
            for block in blocks(node):
                if not (isinstance(node, gast.Try) and node.handlers and block is node.body):
                    yield from _raises(block)


def _handler(handlers: list[Any], raised: Any) -> Any:
    """The handler that takes an exception; None where that is not evident."""
    error = raised.exc.func if isinstance(raised.exc, gast.Call) else raised.exc
    if not isinstance(error, gast.Name):
        return None
    for handler in handlers:
        kinds = handler.type.elts if isinstance(handler.type, gast.Tuple) else [handler.type]
        found = [takes(kind, error.id) for kind in kinds]
        if True in found:
            return handler
        if None in found:
            return None
    return None


def takes(kind: Any, raised: str) -> bool | None:
    """Whether an ``except`` of a class takes an exception of another one; None: only the run can
    tell."""
    if kind is None:
        return True
    if not isinstance(kind, gast.Name):
        return None
    if kind.id in (raised, "Exception", "BaseException"):
        return True
    found = [getattr(builtins, name, None) for name in (raised, kind.id)]
    if not all(isinstance(f, type) and issubclass(f, BaseException) for f in found):
        return None
    return issubclass(*found)  # type: ignore[arg-type]


def _jumping(body: list[Any], numbers: dict[int, int], caught: str) -> list[Any]:
    """A block whose exceptions are jumps out of the loop around it."""
    out: list[Any] = []
    for node in body:
        if id(node) in numbers:
            flag = assign([caught], constant(numbers[id(node)]), node)
            return [*out, flag, place(gast.Break(), node)]
        had = any(id(n) in numbers for n in walk(node))
        out.append(node)
        if not had:
            continue
        for block in blocks(node):
            block[:] = _jumping(block, numbers, caught)
        if isinstance(node, LOOPS):
            test = gast.Compare(load(caught), [gast.NotEq()], [constant(0)])
            out.append(place(gast.If(test, [place(gast.Break(), node)], []), node))
    return out
