"""Live variables: which names may still be read after a statement.

Works backwards over the statement tree; loops are iterated to a fixed point, jumps go to the live
set of their target. Names are function-level ones; names that nested functions read count as read.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import gast

from treadle.autograph.analysis.activity import TRIES, activity, reads, writes
from treadle.core.records import record

Names = frozenset[str]
NONE: Names = frozenset()


@record
class Liveness:
    """Live names by statement (`id` of the node).

    Attributes:
        after: live when the statement has ended.
        header: for loops, live where an iteration begins (before the test, or before the target
            is assigned).
        handlers: live at the except and finally blocks that an error in the statement leads to.
    """

    after: dict[int, Names] = field(default_factory=dict)
    header: dict[int, Names] = field(default_factory=dict)
    handlers: dict[int, Names] = field(default_factory=dict)


@record(frozen=True)
class _Targets:
    brk: Names = NONE
    cont: Names = NONE
    error: Names = NONE


def liveness(body: list[Any], live_out: Names = NONE) -> Liveness:
    """Live variables of a function body."""
    found = Liveness()
    _block(body, live_out, _Targets(), found)
    return found


def live_before(body: list[Any], live_out: Names) -> Names:
    """The names that are live where `body` begins, if `live_out` is live where it ends."""
    return _block(body, live_out, _Targets(), Liveness())


def _block(body: list[Any], live: Names, to: _Targets, found: Liveness) -> Names:
    for statement in reversed(body):
        live |= to.error
        found.after[id(statement)] = live
        if to.error:
            found.handlers[id(statement)] = to.error
        live = _statement(statement, live, to, found)
    return live


def _statement(node: Any, live: Names, to: _Targets, found: Liveness) -> Names:
    match node:
        case gast.If():
            branches = _block(node.body, live, to, found) | _block(node.orelse, live, to, found)
            return branches | reads(node.test)
        case gast.While() | gast.For():
            return _loop(node, live, to, found)
        case gast.With():
            inside = _block(node.body, live, to, found)
            return (inside - writes(node.items)) | reads(node.items)
        case gast.Match():
            entry = live
            for case in node.cases:
                entry |= _block(case.body, live, to, found) | reads(case)
            return entry | reads(node.subject)
        case gast.Return() | gast.Raise():
            return frozenset(reads(node)) | to.error
        case gast.Break():
            return to.brk
        case gast.Continue():
            return to.cont
        case _ if isinstance(node, TRIES):
            return _try(node, live, to, found)
    found_here = activity(node)
    return (live - set(found_here.writes)) | set(found_here.reads) | set(found_here.deletes)


def _loop(node: Any, live: Names, to: _Targets, found: Liveness) -> Names:
    leave = _block(node.orelse, live, to, found)
    is_for = isinstance(node, gast.For)
    target = writes(node.target) if is_for else set()
    header = leave | (reads(node.target) if is_for else reads(node.test))
    flags = set(getattr(node, "stops", ()))  # which end a converted loop, and are false before it
    header |= flags
    while True:
        inner = replace(to, brk=live, cont=header)
        begin = header | (_block(node.body, header, inner, found) - target)
        if begin <= header:
            break
        header = begin
    found.header[id(node)] = header
    outside = [node.iter] if is_for else []
    return (header - flags) | reads([*outside, *_options(node)])


def _options(loop: Any) -> list[Any]:
    """The arguments of `set_loop_options`; evaluated once, before the loop."""
    return [loop.options] if hasattr(loop, "options") else []


def _try(node: Any, live: Names, to: _Targets, found: Liveness) -> Names:
    after = _block(node.finalbody, live, to, found)
    # An error goes on behind the finally block: only that block may read new values.
    escape = _block(node.finalbody, to.error, to, Liveness()) if node.finalbody else NONE
    guarded = replace(to, error=to.error | escape)
    rescue = escape
    for handler in node.handlers:
        entry = _block(handler.body, after, guarded, found) | reads(handler.type or [])
        rescue |= entry - writes(handler.name or [])
    ends = _block(node.orelse, after, guarded, found)
    inner = replace(to, error=to.error | rescue)
    return _block(node.body, ends, inner, found) | rescue


__all__ = ["Liveness", "live_before", "liveness"]
