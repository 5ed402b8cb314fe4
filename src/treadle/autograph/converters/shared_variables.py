"""Variables that a branch or loop assigns, and that others than the statements after it read.

A function that was made before reads the variable wherever it is called, also inside the branch or
the loop's body, which becomes a function of its own; one that an iteration makes and keeps reads
what later iterations assign; an ``except`` or ``finally`` block reads what was assigned until the
error. So the branch or body assigns the variable itself, as if it had declared it ``nonlocal``::

    scale = 1.0                                 # scale = 1.0
    add = lambda v: v + scale                   # add = lambda v: v + scale
                                                # for _ in range(n):
    def body(_, x):                             #     scale = 2.0 * scale
        nonlocal scale                          #     x = add(x)
        scale = 2.0 * scale
        x = add(x)
        return x

    x = ag__.for_stmt(range(n), body, x, places=[ag__.outer(lambda: scale)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, TypeAlias

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import (
    FUNCTIONS,
    LOOPS,
    activity,
    free_names,
    writes,
)
from treadle.autograph.analysis.definedness import Definedness
from treadle.autograph.analysis.jumps import BRANCHING, blocks, statements
from treadle.autograph.analysis.liveness import liveness
from treadle.autograph.analysis.walking import walk
from treadle.core.records import record

UsedUp: TypeAlias = "Callable[[Any], tuple[type, ...]]"


def shared_variables(function: Any, used_up: UsedUp, made: Set[str]) -> frozenset[str]:
    """The names of these variables, in a function whose jumps are lowered: what follows an ``if``
    that returns may be a branch of it.

    Args:
        used_up: the kinds of arguments that a call surely does not keep.
        made: variables that the conversion has made: an error comes before they are assigned.
    """
    readers = Readers(function.body, used_up, made)
    return frozenset(
        name
        for node in statements(function.body)
        if isinstance(node, BRANCHING) and not node.in_python
        for name in activity(node).writes
        if readers.share(node, name)
    ) - set(activity(function.body).declared)


def without_value(body: list[Any], names: Set[str], defined: Definedness) -> list[str]:
    """Those of the shared variables `names` that may have no value where a converted statement
    begins to assign them: they hold a marker from the function's beginning on."""
    found: dict[str, None] = {}
    for node in statements(body):
        if isinstance(node, BRANCHING) and not node.in_python and id(node) in defined.before:
            assigned = names & set(activity(node).writes)
            found |= dict.fromkeys(sorted(assigned - defined.before[id(node)].surely))
    return list(found)


def check_reads(body: list[Any], names: Iterable[str]) -> None:
    """Let the functions made in `body` check the variables `names`, which may be markers, where
    they read them."""
    if not names:
        return
    for statement in statements(body):
        skipped = {id(part) for block in blocks(statement) for part in block}
        nodes = [n for n in gast.iter_child_nodes(statement) if id(n) not in skipped]
        nodes = [statement] if isinstance(statement, _DEFINITIONS) else nodes
        while nodes:
            node = nodes.pop()
            if isinstance(node, FUNCTIONS):
                _Checked(free_names(node) & set(names)).inside(node)
            else:
                nodes += gast.iter_child_nodes(node)


class _Checked(gast.NodeTransformer):  # type: ignore[misc]
    """Reads of variables of the function around: ``y`` becomes ``ag__.defined(y)``."""

    def __init__(self, names: Set[str]) -> None:
        self.names = names

    def inside(self, function: Any) -> None:
        if not self.names:
            return
        if isinstance(function, gast.Lambda):
            function.body = self.visit(function.body)
        else:
            function.body = [self.visit(statement) for statement in function.body]

    def visit_Name(self, node: Any) -> Any:
        is_read = node.id in self.names and isinstance(node.ctx, gast.Load)
        return build.operator("defined", node) if is_read else node

    def visit_FunctionDef(self, node: Any) -> Any:
        _Checked(self.names & free_names(node)).inside(node)
        return node

    visit_Lambda = visit_FunctionDef

    def visit_Call(self, node: Any) -> Any:
        return node if build.is_operator(node, "outer") else self.generic_visit(node)


@record(frozen=True)
class _Kept:
    """A function, class or generator that outlives the statement that makes it.

    Attributes:
        node: the piece of syntax.
        names: the variables of the scope around it that it reads or assigns when it is called.
        by: the variables that hold it; none where something else does.
    """

    node: Any
    names: Set[str]
    by: Set[str]


class Readers:
    """Who else reads the variables that the branches and loops of a function body assign."""

    def __init__(self, body: list[Any], used_up: UsedUp, made: Set[str]) -> None:
        self.made = made
        self.live = liveness(body)
        self.loops = [n for n in statements(body) if isinstance(n, LOOPS)]
        passed_on = _passed_on(body, used_up)
        self.shared: dict[str, list[_Kept]] = {}
        for statement in statements(body):
            for kept in _kept(statement, used_up):
                if kept.by & passed_on:
                    kept = _Kept(kept.node, kept.names, frozenset())
                for name in kept.names:
                    self.shared.setdefault(name, []).append(kept)

    def share(self, node: Any, name: str) -> bool:
        """Whether others read the variable `name`, which the branch or loop `node` assigns."""
        if name in self.live.handlers.get(id(node), frozenset()) and name not in self.made:
            return True
        return any(self._reads(kept, node) for kept in self.shared.get(name, ()))

    def _reads(self, kept: _Kept, node: Any) -> bool:
        """Whether a function can be called in `node` or later after `node` has begun to assign
        the variables that it reads."""
        if _is_inside(kept.node, node):  # a branch runs once: what it makes it returns
            return isinstance(node, LOOPS) and (not kept.by or bool(kept.by & self._carried(node)))
        if kept.node.lineno <= node.end_lineno:
            return True
        return any(_is_inside(node, n) and _is_inside(kept.node, n) for n in self.loops)

    def _carried(self, loop: Any) -> Set[str]:
        """The variables that later iterations, or the statements after the loop, read."""
        after = self.live.after[id(loop)]
        return self.live.header.get(id(loop), after) | after


def _passed_on(body: list[Any], used_up: UsedUp) -> set[str]:
    """Names whose values something else may keep: those that are used in other ways than being
    called, or given to a call that keeps nothing."""
    found, harmless = set[str](), set[int]()
    for root in body:
        for node in walk(root):
            if isinstance(node, gast.Call):
                harmless.add(id(node.func))
                if build.is_operator(node, "call") or gast.Lambda in used_up(node):
                    harmless.update(map(id, _arguments(node)))
            elif isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load):
                found |= set() if id(node) in harmless else {node.id}
    return found


def _kept(statement: Any, used_up: UsedUp) -> list[_Kept]:
    """What a statement makes, without those in its blocks."""
    by: Set[str] = frozenset()
    if isinstance(statement, _DEFINITIONS):
        if isinstance(statement, gast.FunctionDef) and not _makes_others(statement):
            by = frozenset({statement.name})  # else what it gives may read the variables, too
        return [_Kept(statement, _names_of(statement), by)]
    if isinstance(statement, gast.Assign | gast.AnnAssign):
        targets = statement.targets if isinstance(statement, gast.Assign) else [statement.target]
        by = writes(targets) if all(isinstance(t, gast.Name) for t in targets) else by
    skipped = {id(part) for block in blocks(statement) for part in block}
    nodes, found = [(statement, by)], list[_Kept]()
    while nodes:
        node, by = nodes.pop()
        if isinstance(node, _LATE):
            found.append(_Kept(node, _names_of(node), by))
            continue
        if isinstance(node, gast.Call):
            by = frozenset()  # the result is another object
            skipped |= {id(a) for a in _not_kept(node, used_up(node))}
            if isinstance(node.func, gast.Lambda):
                skipped.add(id(node.func))
        nodes += [(n, by) for n in gast.iter_child_nodes(node) if id(n) not in skipped]
    return found


def _makes_others(function: Any) -> bool:
    """Whether the user's code of a function, which is converted, makes functions or generators."""
    return any(
        isinstance(n, (*_DEFINITIONS, *_LATE)) and not getattr(n, "generated", False)
        for statement in function.body
        for n in walk(statement)
    )


_DEFINITIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)
_LATE = (gast.Lambda, gast.GeneratorExp)  # what reads variables when it is used
_LAZY = {"enumerate", "filter", "iter", "map", "reversed", "zip"}


def _not_kept(call: Any, kinds: tuple[type, ...]) -> list[Any]:
    """The functions and generators of the `kinds` that a call uses up among those that it is given,
    also by way of Python's iterators: ``sum(map(lambda v: v * v, values))``."""
    found = [part for part in _arguments(call) if isinstance(part, kinds)]
    for part in _arguments(call) if kinds else ():
        if isinstance(part, gast.Call) and getattr(part.func, "id", None) in _LAZY:
            found += _not_kept(part, _LATE)
    return found


def _arguments(call: Any) -> list[Any]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _names_of(node: Any) -> set[str]:
    if isinstance(node, FUNCTIONS):
        return free_names(node) - {getattr(node, "name", None)}
    found = activity(node)
    return set(found.captured) if isinstance(node, gast.ClassDef) else set(found.reads)


def _is_inside(function: Any, node: Any) -> bool:
    return any(n is function for n in walk(node))
