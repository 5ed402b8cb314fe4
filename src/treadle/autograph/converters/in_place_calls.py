"""What only jitted functions have in the graph: dicts and sets with keys that only the run knows,
and functions that change a list, such as ``heapq.heappush(heap, x)``.

Methods that only deques have become operators: such a deque is a list there.

A call that changes a variable's object is marked with the variable (`may_change`): in a branch or
loop this is an assignment to it, as is ``x.append(v)`` (`items`); in an operand that may not be
evaluated both become statements (`sequencing`). Calls of methods that take a key, items of dicts
items at positions that the text does not tell, and comprehensions of dicts and sets are marked as
`keyed`: they become operators (`expressions`).
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import constant, operator
from treadle.autograph.converters.items import MUTATING

_METHODS = frozenset({
    "add", "appendleft", "difference_update", "discard", "intersection_update", "popleft",
    "symmetric_difference_update",
})
_OF_DEQUES = frozenset({"appendleft", "popleft"})  # fmt: skip
_KEYED = frozenset({
    "add", "append", "clear", "count", "discard", "extend", "get", "index", "insert", "join", "pop",
    "remove", "setdefault", "sort", "update",
})  # fmt: skip
_VIEWS = frozenset({"items", "keys", "values"})
_DICTS = frozenset({"Counter", "Dict", "OrderedDict", "defaultdict", "dict"})
_FUNCTIONS = frozenset({
    "heapify", "heappop", "heappush", "heappushpop", "heapreplace",
    "insort", "insort_left", "insort_right", "shuffle",
})  # fmt: skip


def mark_changes(root: Any) -> None:
    """Mark the calls and items in a tree."""
    _Chosen().visit(root)
    dicts = {name for node in walk(root) for name in _dicts(node)}
    for node in walk(root):
        if isinstance(node, gast.Subscript):
            node.keyed = not _is_fixed(node.slice) or getattr(node.value, "id", None) in dicts
        if isinstance(node, gast.SetComp | gast.DictComp) and len(node.generators) == 1:
            node.keyed = True
        if isinstance(node, gast.Call):
            owner = _changed(node)
            if isinstance(owner, gast.Name):
                node.may_change = owner
            elif isinstance(node.func, gast.Attribute) and node.func.attr in MUTATING:
                owner = node.func.value
                if isinstance(owner, gast.Subscript):  # rows[i].append(x) changes the rows
                    owner = node.may_change = _base(owner)
            if isinstance(owner, gast.Name):
                node.changed_name = owner.id
            node.keyed = isinstance(node.func, gast.Attribute) and (
                node.func.attr in _KEYED or node.func.attr in _VIEWS
            )
            if isinstance(node.func, gast.Attribute) and node.func.attr in _OF_DEQUES:
                node.func = operator("method", node.func.value, constant(node.func.attr))


class _Chosen(gast.NodeTransformer):  # type: ignore[misc]
    """``(a if c else b).pop()`` becomes ``a.pop() if c else b.pop()``."""

    def visit_Call(self, node: Any) -> Any:
        node = self.generic_visit(node)
        chosen = node.func.value if isinstance(node.func, gast.Attribute) else None
        if not isinstance(chosen, gast.IfExp) or node.func.attr not in MUTATING:
            return node
        sides = []
        for owner in (chosen.body, chosen.orelse):
            call = copy.deepcopy(node)
            call.func.value = owner
            sides.append(call)
        return gast.copy_location(gast.IfExp(chosen.test, *sides), node)


def _base(node: Any) -> Any:
    while isinstance(node, gast.Subscript):
        node = node.value
    return node


def _makes_dict(function: Any) -> bool:
    """Whether a call makes a dict, also one of Numba's: ``Dict.empty(...)``."""
    if isinstance(function, gast.Attribute) and function.attr == "empty":
        function = function.value
    name = getattr(function, "attr", getattr(function, "id", None))
    return name in _DICTS


def _is_fixed(key: Any) -> bool:
    return not any(isinstance(n, gast.Name | gast.Call) for n in walk(key))


def _dicts(node: Any) -> list[str]:
    """The variables that a statement gives a dict."""
    if not isinstance(node, gast.Assign | gast.AnnAssign):
        return []
    value = node.value
    named = isinstance(value, gast.Call) and _makes_dict(value.func)
    if not named and not isinstance(value, gast.Dict | gast.DictComp):
        return []
    targets = node.targets if isinstance(node, gast.Assign) else [node.target]
    return [t.id for t in targets if isinstance(t, gast.Name)]


def _changed(call: Any) -> Any:
    function = call.func
    if isinstance(function, gast.Attribute):
        if function.attr in _METHODS:
            return function.value
        name = function.attr
    else:
        name = getattr(function, "id", None)
    return call.args[0] if name in _FUNCTIONS and call.args else None
