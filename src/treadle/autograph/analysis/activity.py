"""Which names a piece of code reads and writes in its own function's scope."""

from __future__ import annotations

from ast import AST
from collections.abc import Callable, Iterable
from typing import Any

import gast

from treadle.autograph.unparsing import unparse
from treadle.core.locks import cached_property

FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)
LOOPS = (gast.For, gast.While)
TRIES = (gast.Try, gast.TryStar) if hasattr(gast, "TryStar") else (gast.Try,)

Node = Any  # gast has no types of its own


class Activity:
    """The names read and written by some code, in order of first appearance.

    Attributes:
        reads: names loaded, including those that nested functions load from this scope.
        writes: names bound here: assignments, targets, imports, definitions, walrus.
        deletes: names deleted.
        declared: names in `global` and `nonlocal` statements.
        captured: names that nested functions share with this scope (read or nonlocal).
        places: attributes and items that are assigned, as nodes, by their text.
        assigned: the same nodes, each with whether a statement assigns it (else an operator).
    """

    def __init__(self) -> None:
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.deletes: dict[str, None] = {}
        self.declared: dict[str, None] = {}
        self.captured: dict[str, None] = {}
        self.assigned: list[tuple[Node, bool]] = []

    @cached_property
    def places(self) -> dict[str, Node]:
        """The text of an expression takes longer to write than all names to find, and few ask."""
        found: dict[str, Node] = {}
        for node, by_statement in self.assigned:
            text = unparse(node)
            known = found.get(text)
            if known is None or (by_statement and hasattr(known, "items_only")):
                found[text] = node
        return found


def activity(code: Node | Iterable[Node]) -> Activity:
    """The names that `code` (a node or a list of nodes) reads and writes."""
    found = Activity()
    visitor = _Visitor(found)
    for node in [code] if isinstance(code, gast.AST) else code:
        visitor.visit(node)
    return found


def reads(code: Node | Iterable[Node]) -> set[str]:
    return set(activity(code).reads)


def writes(code: Node | Iterable[Node]) -> set[str]:
    return set(activity(code).writes)


def parameters(arguments: Node) -> list[str]:
    """The parameter names of a function, in the order of its signature."""
    names = [*arguments.posonlyargs, *arguments.args, arguments.vararg]
    names += [*arguments.kwonlyargs, arguments.kwarg]
    return [a.id for a in names if a is not None]


def scope_of(function: Node) -> Activity:
    """The activity of a function's own body."""
    body = function.body if isinstance(function.body, list) else [function.body]
    return activity(body)


def local_names(function: Node) -> set[str]:
    """Parameters and every name bound in the function that is not declared global or nonlocal."""
    inner = scope_of(function)
    bound = {*parameters(function.args), *inner.writes, *inner.deletes}
    return bound - set(inner.declared)


def free_names(function: Node) -> set[str]:
    """The names a function takes from the scopes around it."""
    inner = scope_of(function)
    outer = {*inner.reads, *(n for n in inner.declared)}
    return outer - local_names(function)


class _Visitor:
    """Goes through a tree as `gast.NodeVisitor` does, in less than half the time: a conversion asks
    for the names of every statement many times."""

    def __init__(self, found: Activity) -> None:
        self.found = found

    def visit(self, node: Node) -> None:
        kind = type(node)
        method = _METHODS.get(kind)
        if method is None:
            method = getattr(_Visitor, f"visit_{kind.__name__}", _Visitor.generic_visit)
            _METHODS[kind] = method
        method(self, node)

    def generic_visit(self, node: Node) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, AST):
                self.visit(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, AST):
                        self.visit(item)

    def visit_Constant(self, node: Node) -> None:
        pass

    visit_Load = visit_Store = visit_Del = visit_Constant

    def visit_Name(self, node: Node) -> None:
        if isinstance(node.ctx, gast.Load):
            self.found.reads[node.id] = None
        elif isinstance(node.ctx, gast.Del):
            self.found.deletes[node.id] = None
        else:
            self.found.writes[node.id] = None

    def visit_Attribute(self, node: Node) -> None:
        self._place(node)
        self._changes(node)
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def _changes(self, node: Node) -> None:
        if hasattr(node, "changes"):  # a method or deletion that changes a variable's object
            self.found.writes[node.changes] = None

    def _place(self, node: Node) -> None:
        if isinstance(node.ctx, gast.Store):
            self.found.assigned.append((node, True))

    def visit_Call(self, node: Node) -> None:
        self.generic_visit(node)
        self._changes(node)
        if hasattr(node, "assigns"):  # an operator that assigns an attribute's items
            self.found.assigned.append((node.assigns, False))

    def visit_AugAssign(self, node: Node) -> None:
        if isinstance(node.target, gast.Name):
            self.found.reads[node.target.id] = None
        self.generic_visit(node)

    def visit_AnnAssign(self, node: Node) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_ExceptHandler(self, node: Node) -> None:
        self.generic_visit(node)

    def visit_alias(self, node: Node) -> None:
        self.found.writes[node.asname or node.name.split(".")[0]] = None

    def visit_Global(self, node: Node) -> None:
        self.found.declared.update(dict.fromkeys(node.names))

    visit_Nonlocal = visit_Global

    def visit_MatchAs(self, node: Node) -> None:
        if node.name is not None:
            self.found.writes[node.name] = None
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: Node) -> None:
        if node.rest is not None:
            self.found.writes[node.rest] = None
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Node) -> None:
        for part in (*node.decorator_list, *_defaults(node.args)):
            self.visit(part)
        self._capture(node)
        self.found.writes[node.name] = None

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: Node) -> None:
        for part in _defaults(node.args):
            self.visit(part)
        self._capture(node)

    def visit_ClassDef(self, node: Node) -> None:
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(part)
        inner = activity(node.body)
        outer = dict.fromkeys(n for n in inner.reads if n not in inner.writes)
        self.found.reads.update(outer)
        self.found.captured.update(outer)
        self.found.writes[node.name] = None

    def _capture(self, node: Node) -> None:
        itself = {getattr(node, "name", None)}  # it is bound before a recursive call
        names = dict.fromkeys(sorted(free_names(node) - itself))
        self.found.reads.update(names)
        self.found.captured.update(names)

    def visit_ListComp(self, node: Node) -> None:
        inner = Activity()
        visitor = _Visitor(inner)
        targets: set[str] = set()
        for generator in node.generators:
            visitor.visit(generator)
            targets |= writes(generator.target)
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                visitor.visit(getattr(node, part))
        self.found.reads.update(dict.fromkeys(n for n in inner.reads if n not in targets))
        self.found.captured.update(dict.fromkeys(n for n in inner.captured if n not in targets))
        self.found.writes.update(dict.fromkeys(n for n in inner.writes if n not in targets))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


def _defaults(arguments: Node) -> list[Node]:
    return [d for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None]


_METHODS: dict[type, Callable[[_Visitor, Node], None]] = {}  # by the type of the node
