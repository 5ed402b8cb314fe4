"""if, while and for become calls of operators that take functions.

Before::

    if x > 0:
        y = x * x
    else:
        y = -x
    while y > 1:
        y = y / 2
        n += 1

After::

    y = ag__.if_stmt(x > 0, lambda: x * x, lambda: -x)

    def body(y, n):
        y = y / 2
        n += 1
        return y, n

    y, n = ag__.while_stmt(lambda y, n: y > 1, body, y, n)

State goes in as arguments and comes out as results: variables that are assigned inside and read
afterwards or in the next iteration. All others are reached through the enclosing scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import activity, reads, writes
from treadle.autograph.analysis.definedness import Definedness, assigned_on_all_paths
from treadle.autograph.analysis.jumps import BRANCHING, always_jumps, blocks, statements
from treadle.autograph.analysis.liveness import Liveness, live_before
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import load, operator, thunk
from treadle.autograph.converters.deletions import restore_deletions
from treadle.autograph.converters.outer import Outer
from treadle.autograph.names import Names
from treadle.autograph.unparsing import unparse

_WIDTH = 80  # of a branch as a lambda


class Functional:
    """Rewrites the converted statements of one function.

    Attributes:
        managed: variables that may hold an `undefined` marker.
        entry: variables that must be marked undefined where the function begins.
    """

    def __init__(
        self, live: Liveness, defined: Definedness, names: Names, outer: Outer, unset: Iterable[str]
    ) -> None:
        self.outer = outer
        self.live = live
        self.defined = defined
        self.names = names
        self.managed = set(unset)
        self.entry = dict.fromkeys(unset)
        self.carried: list[list[str]] = []  # the state of the loops around

    def block(self, body: list[Any]) -> list[Any]:
        out: list[Any] = []
        for node in body:
            out.extend(self.statement(node))
        return out

    def statement(self, node: Any) -> list[Any]:
        if not isinstance(node, BRANCHING) or node.in_python:
            for block in blocks(node):
                block[:] = self.block(block)
            if getattr(node, "guard", None):
                self.guard(node)
            if isinstance(node, gast.If):
                _drop_empty_branch(node)
            return [node]
        if id(node) not in self.defined.before:
            return []  # never reached
        return (
            _If(self, node).convert() if isinstance(node, gast.If) else _Loop(self, node).convert()
        )

    def guard(self, node: Any) -> None:
        """Leave `node` to Python, with an error should its condition be a tensor."""
        reason = build.constant(node.guard)
        if isinstance(node, gast.For):
            node.iter = operator("python_iterable", node.iter, reason)
        else:
            node.test = operator("python_bool", node.test, reason)

    def given(self, name: str, at: Any) -> Any:
        """The value of `name` before the branches or body of `at`; a marker where it has none."""
        state = self.defined.before[id(at)]
        walrus = _always_assigned(at.test) if isinstance(at, gast.If) else ()
        if name in state.surely or name in walrus:
            return load(name)
        self.managed.add(name)
        if any(name in carried for carried in self.carried):
            return load(name)
        if name in state.perhaps:
            self.entry[name] = None
            return load(name)
        return build.undefined("return value" if name in self.names.given else name)

    def places(self, node: Any, bound: set[str]) -> dict[str, Any]:
        """The ``places=`` argument: attributes and items assigned inside."""
        found = self.outer.places(node)
        for place in activity(node).places.values():
            parts = (
                [place.value] if isinstance(place, gast.Attribute) else [place.value, place.slice]
            )
            if bound & reads(parts) or any(isinstance(n, gast.Call) for n in walk(place)):
                continue
            if isinstance(place, gast.Attribute):
                options = {"items": build.constant(True)} if hasattr(place, "items_only") else {}
                name = build.constant(place.attr)
                found.append(operator("attribute", place.value, name, **options))
            elif not isinstance(place.slice, gast.Slice | gast.Tuple):
                found.append(operator("item", place.value, place.slice))
        return {"places": gast.List(found, gast.Load())} if found else {}


class _If:
    def __init__(self, owner: Functional, node: Any) -> None:
        self.owner, self.node = owner, node
        self.returns = getattr(node, "returns", False)
        live = frozenset() if self.returns else owner.live.after[id(node)]
        self.assigned = writes([*node.body, *node.orelse])
        found = activity([*node.body, *node.orelse]).writes
        self.ordered = [n for n in found if n not in owner.outer.declared]
        self.written = [writes(node.body), writes(node.orelse)]
        self.outputs = [n for n in self.ordered if n in live]
        self.places = owner.places([*node.body, *node.orelse], self.assigned)
        after = frozenset(self.outputs)
        self.needs = [
            writes(b) & live_before(b, frozenset() if always_jumps(b) else after)
            for b in (node.body, node.orelse)
        ]
        self.surely = [assigned_on_all_paths(b) for b in (node.body, node.orelse)]
        inside = [*statements(node.body), *statements(node.orelse)]
        self.updated = {n.updates for n in inside if hasattr(n, "updates")}

    def convert(self) -> list[Any]:
        node = self.node
        bodies = [self.owner.block(node.body), self.owner.block(node.orelse)]
        short = [self.expression(b, k) for k, b in enumerate(bodies)]
        call = self.call(short, bodies)
        if any(self.is_wide(branch) for branch in short):
            short = [None if self.is_wide(branch) else branch for branch in short]
            call = self.call(short, bodies)
        made = self.definitions(short, bodies)
        final = self.final(call)
        (made[0] if made else final).leading = getattr(node, "leading", [])
        if getattr(node, "trailing", ""):
            final.trailing = node.trailing
        if getattr(node, "closing", None):
            final.closing = node.closing
        return [*made, final]

    def inputs(self, short: list[Any]) -> list[str]:
        """Variables that a branch written as a ``def`` both takes and assigns."""
        wanted = set().union(*(self.needs[k] for k in (0, 1) if short[k] is None))
        wanted |= self.updated & set().union(*self.needs)  # the operator must see these objects
        return [n for n in self.ordered if n in wanted]

    def call(self, short: list[Any], bodies: list[list[Any]]) -> Any:
        inputs = self.inputs(short)
        branches = [
            load(self.names(k)) if short[k] is None else thunk(short[k], inputs) for k in (0, 1)
        ]
        state = [self.owner.given(n, self.node) for n in inputs]
        filled = {"filled": build.constant(True)} if hasattr(self.node, "filled") else {}
        return operator("if_stmt", self.node.test, *branches, *state, **self.places, **filled)

    def names(self, k: int) -> str:
        return self.owner.names.helper(("then", "otherwise")[k])

    def definitions(self, short: list[Any], bodies: list[list[Any]]) -> list[Any]:
        inputs = self.inputs(short)
        made = []
        for k in (0, 1):
            if short[k] is None:
                restore_deletions(bodies[k], {*inputs, *self.outputs})
                declared = self.owner.outer.declarations(bodies[k], self.node)
                body = [*declared, *self.finish(bodies[k], k)]
                made.append(build.function(self.names(k), inputs, body, self.node))
        return made

    def finish(self, body: list[Any], k: int) -> list[Any]:
        """A branch as a function body: it returns the outputs."""
        body = [n for n in body if not _is_empty(n)] if self.outputs else body
        if always_jumps(body):
            return body
        at = body[-1] if body else self.node
        if self.returns:
            return [*body, build.returns(build.constant(None), at)]
        if not self.outputs:
            return body or [build.place(gast.Pass(), at)]
        results = [self.output(n, k) for n in self.outputs]
        return _with_result(body, self.outputs, results, at)

    def output(self, name: str, k: int) -> Any:
        """An output's value where branch `k` ends."""
        surely = self.surely[k]
        assigned = name in self.written[k]
        if assigned or (surely is not None and name in surely):
            return load(name)
        return self.owner.given(name, self.node)

    def expression(self, body: list[Any], k: int) -> Any:
        """The branch as one expression, or None where it needs statements."""
        if any(_has_comments(n) for n in body):
            return None
        body = [n for n in body if not _is_empty(n)]
        if self.returns:
            if not body:
                return build.constant(None)
            if len(body) == 1 and isinstance(body[0], gast.Return):
                return _plain(body[0].value or build.constant(None))
            return None
        if not self.outputs:
            return build.constant(None) if not body else None
        assigned = _assignments(body)
        if any(hasattr(n, "changes") for b in body for n in walk(b)):
            return None
        if assigned is None or not set(assigned) <= set(self.outputs):
            return None
        order = [n for n in self.outputs if n in assigned]
        if order != list(assigned):
            return None
        results = [assigned.get(n) or self.owner.given(n, self.node) for n in self.outputs]
        return _plain(build.values(results))

    def final(self, call: Any) -> Any:
        if self.returns:
            return build.place(gast.Return(call), self.node)
        if self.outputs:
            return build.assign(self.outputs, call, self.node)
        return build.place(gast.Expr(call), self.node)

    def is_wide(self, branch: Any) -> bool:
        """Whether the branch as a lambda does not fit a line of its own."""
        return branch is not None and len(unparse(branch)) + int(self.node.col_offset) > _WIDTH


class _Loop:
    def __init__(self, owner: Functional, node: Any) -> None:
        self.owner, self.node = owner, node
        self.is_for = isinstance(node, gast.For)
        self.after = owner.live.after[id(node)]
        self.stops: list[str] = node.stops
        carried = owner.live.header[id(node)]
        inside = activity([node.target, *node.body] if self.is_for else node.body)
        wanted = (self.after | carried | set(self.stops)) & set(inside.writes)
        self.state = [n for n in inside.writes if n in wanted - owner.outer.declared]
        code = [node.target, *node.body] if self.is_for else node.body
        self.places = owner.places(code, set(inside.writes))

    def convert(self) -> list[Any]:
        node = self.node
        body, parameter = self.body()
        name = self.owner.names.helper("body")
        params = ([parameter] if parameter else []) + self.state
        definition = build.function(name, params, body, node)
        definition.leading = getattr(node, "leading", [])
        inits = [self.initial(n) for n in self.state]
        until = {"until": thunk(self.until(), self.state)} if self.stops else {}
        if self.is_for:
            head = [node.iter, load(name)]
        else:
            head = [thunk(node.test, self.state), load(name)]
        kind = "for_stmt" if self.is_for else "while_stmt"
        options = {"options": node.options} if hasattr(node, "options") else {}
        call = operator(kind, *head, *inits, **until, **self.places, **options)
        final = self.final(call)
        for comment in ("trailing", "closing"):
            if getattr(node, comment, None):
                setattr(final, comment, getattr(node, comment))
        return [definition, final]

    def body(self) -> tuple[list[Any], str | None]:
        """The body's statements, and its parameter for the loop's item."""
        node = self.node
        self.owner.carried.append(self.state)
        body = self.owner.block(node.body)
        self.owner.carried.pop()
        restore_deletions(body, set(self.state))
        body = [n for n in body if not _is_empty(n)]
        parameter = None
        if self.is_for:
            target = node.target
            assigned = {*self.state, *self.owner.outer.declared}
            if isinstance(target, gast.Name) and target.id not in assigned:
                parameter = target.id
            else:
                parameter = self.owner.names.fresh("item")
                body.insert(0, build.place(gast.Assign([target], load(parameter), None), node))
        at = body[-1] if body else node
        if self.state:
            results = [load(n) for n in self.state]
            body = _with_result(body, self.state, results, at)
        body = [*self.owner.outer.declarations(body, node), *body]
        return body or [build.place(gast.Pass(), node)], parameter

    def initial(self, name: str) -> Any:
        return build.constant(False) if name in self.stops else self.owner.given(name, self.node)

    def until(self) -> Any:
        flags = [load(n) for n in self.stops]
        if len(flags) == 1:
            return flags[0]
        return operator("or_", *(thunk(f) for f in flags))

    def final(self, call: Any) -> Any:
        if not self.after & set(self.state):
            return build.place(gast.Expr(call), self.node)
        unused = self.owner.names.helper("_")
        results = [n if n in self.after else unused for n in self.state]
        return build.assign(results, call, self.node)


_OPPOSITE = {gast.Eq: gast.NotEq, gast.NotEq: gast.Eq, gast.Is: gast.IsNot, gast.IsNot: gast.Is,
             gast.In: gast.NotIn, gast.NotIn: gast.In}  # fmt: skip


def _drop_empty_branch(node: Any) -> None:
    """``if a: pass`` with an else, which a `continue` leaves behind, becomes ``if not a:``."""
    if node.orelse and all(_is_empty(n) for n in node.body):
        node.test = _negated(node.test)
        node.body, node.orelse = node.orelse, []


def _negated(test: Any) -> Any:
    if isinstance(test, gast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return gast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
        return test.operand
    return gast.UnaryOp(gast.Not(), test)


def _is_empty(node: Any) -> bool:
    return isinstance(node, gast.Pass) and not _has_comments(node)


def _has_comments(node: Any) -> bool:
    lines = [*getattr(node, "leading", ()), *getattr(node, "closing", ())]
    return bool(getattr(node, "trailing", "")) or any(text for _, text in lines)


def _assignments(body: list[Any]) -> dict[str, Any] | None:
    """name -> expression, where `body` only assigns independent expressions to names."""
    found: dict[str, Any] = {}
    for node in body:
        if not (isinstance(node, gast.Assign) and len(node.targets) == 1):
            return None
        target = node.targets[0]
        if (
            not isinstance(target, gast.Name)
            or target.id in found
            or reads(node.value) & set(found)
        ):
            return None
        found[target.id] = node.value
    return found


def _plain(value: Any) -> Any:
    """`value` if it can stand in a lambda: no assignment expressions."""
    bad = (gast.NamedExpr, gast.Await, gast.Yield, gast.YieldFrom, gast.Starred)
    return None if any(isinstance(n, bad) for n in walk(value)) else value


def _with_result(body: list[Any], names: list[str], results: list[Any], at: Any) -> list[Any]:
    """`body` followed by ``return results``; joined with a last assignment of just these."""
    same = all(isinstance(r, gast.Name) and r.id == n for r, n in zip(results, names, strict=True))
    last = body[-1] if body else None
    if (
        same
        and isinstance(last, gast.Assign)
        and len(last.targets) == 1
        and _is_call(last.value)
        and unparse(last.targets[0]) == unparse(build.targets(names))
    ):
        final = build.returns(last.value, last)
        final.leading = getattr(last, "leading", [])
        final.trailing = getattr(last, "trailing", "")
        final.closing = getattr(last, "closing", [])
        return [*body[:-1], final]
    return [*body, build.returns(build.values(results), at)]


def _is_call(node: Any) -> bool:
    """A call of a control flow operator."""
    return (
        isinstance(node, gast.Call)
        and isinstance(node.func, gast.Attribute)
        and isinstance(node.func.value, gast.Name)
        and node.func.value.id == build.AG
    )


_OWN_SCOPE = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


def _always_assigned(test: Any) -> set[str]:
    """The names that an expression assigns in any case; an `if` evaluates it first."""
    if isinstance(test, gast.NamedExpr):
        return {test.target.id} | _always_assigned(test.value)
    if isinstance(test, gast.BoolOp):
        parts = test.values[:1]
    elif isinstance(test, gast.Compare):
        parts = [test.left, test.comparators[0]]
    elif isinstance(test, gast.IfExp):
        parts = [test.test]
    elif isinstance(test, _OWN_SCOPE):
        parts = []
    else:
        parts = list(gast.iter_child_nodes(test))
    return set().union(*map(_always_assigned, parts))
