"""Definite and possible assignment: which names surely, and which perhaps, have a value.

Works forward over the statement tree. ``None`` stands for code that is not reached.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import gast

from treadle.autograph.analysis.activity import TRIES, activity, writes
from treadle.autograph.analysis.walking import walk
from treadle.core.records import record

Names = frozenset[str]
NONE: Names = frozenset()


@record(frozen=True)
class State:
    """`surely` holds names assigned on every path, `perhaps` those assigned on some path."""

    surely: Names
    perhaps: Names


@record
class Definedness:
    """States by statement, the loads that may find a name without a value, and the names that a
    marker is assigned to instead of deleting them."""

    before: dict[int, State] = field(default_factory=dict)
    doubtful: dict[int, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)


def definedness(body: list[Any], arguments: Names, local: Names) -> Definedness:
    """Definite assignment through a function body whose parameters are `arguments`."""
    found = Definedness()
    _Walk(found, local).block(body, State(arguments, arguments))
    return found


def assigned_on_all_paths(body: list[Any]) -> Names | None:
    """Names that `body` surely assigns when it falls off its end; None if it never does."""
    end = _Walk(Definedness(), NONE).block(body, State(NONE, NONE))
    return None if end is None else end.surely


def _join(a: State | None, b: State | None) -> State | None:
    if a is None or b is None:
        return b if a is None else a
    return State(a.surely & b.surely, a.perhaps | b.perhaps)


class _Walk:
    def __init__(self, found: Definedness, local: Names) -> None:
        self.found = found
        self.local = local
        self.breaks: list[State | None] = []

    def block(self, body: list[Any], state: State | None) -> State | None:
        for statement in body:
            if state is None:
                return None
            known = self.found.before.get(id(statement))
            self.found.before[id(statement)] = _join(known, state) or state
            state = self.statement(statement, state)
        return state

    def check(self, code: Any, state: State) -> None:
        """Note the loads in `code` of local names that are not surely assigned."""
        bound = activity(code).writes if isinstance(code, gast.AST) else {}
        for node in walk(code) if isinstance(code, gast.AST) else ():
            if (
                isinstance(node, gast.Name)
                and isinstance(node.ctx, gast.Load)
                and node.id in self.local
                and node.id not in state.surely
                and node.id not in bound
            ):
                self.found.doubtful[id(node)] = node.id

    def bind(self, state: State, names: set[str]) -> State:
        return State(state.surely | names, state.perhaps | names)

    def statement(self, node: Any, state: State) -> State | None:
        match node:
            case gast.If():
                self.check(node.test, state)
                state = self.bind(state, writes(node.test))
                return _join(self.block(node.body, state), self.block(node.orelse, state))
            case gast.While() | gast.For():
                return self.loop(node, state)
            case gast.With():
                for item in node.items:
                    self.check(item.context_expr, state)
                return self.block(node.body, self.bind(state, writes(node.items)))
            case gast.Match():
                return self.match(node, state)
            case gast.Return() | gast.Raise():
                self.check(node, state)
                return None
            case gast.Break():
                self.breaks[-1] = _join(self.breaks[-1], state)
                return None
            case gast.Continue():
                return None
            case gast.Assign() if hasattr(node, "deleted"):
                self.found.deleted.add(node.deleted)
                return State(state.surely - {node.deleted}, state.perhaps | {node.deleted})
            case gast.Delete():
                gone = set(activity(node).deletes)
                return State(state.surely - gone, state.perhaps - gone)
            case gast.FunctionDef() | gast.ClassDef():
                return self.bind(state, {node.name})
            case _ if isinstance(node, TRIES):
                return self.attempt(node, state)
        self.check(node, state)
        return self.bind(state, writes(node))

    def loop(self, node: Any, state: State) -> State | None:
        is_for = isinstance(node, gast.For)
        if is_for:
            self.check(node.iter, state)
        possible = writes(node.body) | (writes(node.target) if is_for else set())
        start = State(state.surely, state.perhaps | possible)
        if not is_for:
            self.check(node.test, start)
            start = self.bind(start, writes(node.test))
        self.breaks.append(None)
        self.block(node.body, self.bind(start, writes(node.target)) if is_for else start)
        broken = self.breaks.pop()
        endless = not is_for and isinstance(node.test, gast.Constant) and node.test.value
        endless = endless and not getattr(node, "stops", ())  # flags end it too
        end = None if endless else self.block(node.orelse, start)
        return _join(end, broken)

    def match(self, node: Any, state: State) -> State | None:
        self.check(node.subject, state)
        end: State | None = state
        for case in node.cases:
            bound = writes(case.pattern)
            end = _join(end, self.block(case.body, self.bind(state, bound)))
        return end

    def attempt(self, node: Any, state: State) -> State | None:
        end = self.block(node.body, state)
        if end is not None:
            end = self.block(node.orelse, end)
        rescue = State(state.surely, state.perhaps | writes(node.body))
        for handler in node.handlers:
            inside = self.bind(rescue, writes(handler.name) if handler.name else set())
            end = _join(end, self.block(handler.body, inside))
        if not node.finalbody:
            return end
        last = self.block(node.finalbody, _join(end, rescue) or rescue)
        return None if end is None or last is None else self.bind(end, writes(node.finalbody))


__all__ = ["Definedness", "State", "assigned_on_all_paths", "definedness"]
