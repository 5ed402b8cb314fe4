"""Assignment to items of variables and attributes, which may hold tensors.

==========================  ============================================================
before                      after
==========================  ============================================================
``x[k] = v``                ``x = ag__.set_item(x, k, v)``
``x[k] += v``               ``x = ag__.update_item(x, k, "+=", v)``
``x[k][j] = v``             ``x = ag__.set_item(x, ag__.path(k, j), v)``
``o.x[k] = v``              ``ag__.set_attribute_item(o, "x", k, v)``
``x[0], x[1] = a``          ``item, item_1 = a`` and the two assignments
``for x[k] in xs:``         ``for item in xs:`` and the assignment
``x.append(v)``             itself; in a branch or loop x becomes part of its state
``del x[k]``                as well
==========================  ============================================================

Left alone are keys that only mappings have (text), variables that evidently hold Python's own
containers and are not in a branch or loop that may depend on a tensor, and variables of other
functions. In jitted functions, whose objects change in place, ``ag__.set_item(x, k, v)`` alone
changes these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import activity, reads, writes
from treadle.autograph.analysis.evident import (
    is_python_iterable,
    is_python_test,
    may_be_rolled,
)
from treadle.autograph.analysis.jumps import BRANCHING, blocks, jumps
from treadle.autograph.analysis.walking import walk
from treadle.autograph.names import Names

# Methods by which Python's containers change in place.
MUTATING = {
    "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
    "sort", "update",
}  # fmt: skip

_OPERATORS = {
    gast.Add: "+=", gast.Sub: "-=", gast.Mult: "*=", gast.Div: "/=", gast.FloorDiv: "//=",
    gast.Mod: "%=", gast.Pow: "**=", gast.MatMult: "@=", gast.BitAnd: "&=", gast.BitOr: "|=",
    gast.BitXor: "^=", gast.LShift: "<<=", gast.RShift: ">>=",
}  # fmt: skip
_COMMENTS = ("leading", "trailing", "closing")


class Items:
    """Rewrites the statements of one function; nested functions are converted on their own.

    Args:
        local: the function's own variables.
        containers: those that hold nothing but Python's own containers.
        names: gives names for temporary variables.
        obstacle: whether an assignment to a name would keep a branch or loop from being converted.
        is_harmless: whether a call cannot change the user's objects.
        slice_is_builtin: whether the name ``slice`` is Python's.
    """

    def __init__(
        self,
        local: Collection[str],
        containers: Collection[str],
        names: Names,
        obstacle: Callable[[Any, str], bool],
        is_harmless: Callable[[Any], bool],
        slice_is_builtin: bool,
    ) -> None:
        self.local = local
        self.containers = containers
        self.names = names
        self.obstacle = obstacle
        self.is_harmless = is_harmless
        self.slice_is_builtin = slice_is_builtin
        self.around: list[Any] = []  # branches and loops that may depend on a tensor

    def block(self, body: list[Any]) -> None:
        body[:] = [made for node in body for made in self.statement(node)]

    def statement(self, node: Any) -> list[Any]:
        staged = isinstance(node, BRANCHING) and not _is_python(node)
        if staged:
            self.around.append(node)
        for inner in blocks(node):
            self.block(inner)
        if staged:
            self.around.pop()
        self.mark_methods(node)
        if isinstance(node, gast.For):
            return self.loop(node)
        if isinstance(node, gast.Assign):
            return self.assign(node)
        if isinstance(node, gast.AnnAssign) and node.value is not None:
            return self.assign(node) if self.wants(node.target) else [node]
        return self.update(node) if isinstance(node, gast.AugAssign) else [node]

    # -- targets that are rewritten --------------------------------------------------------------

    def wants(self, target: Any) -> bool:
        """Whether an assignment to `target` is one to an item that is to be rewritten."""
        if isinstance(target, gast.Tuple | gast.List):
            return any(map(self.wants, target.elts))
        if isinstance(target, gast.Starred):
            return self.wants(target.value)
        if not isinstance(target, gast.Subscript) or _is_text(target.slice):
            return False
        base = _base(target)
        if isinstance(base, gast.Attribute):
            return True
        if not isinstance(base, gast.Name):
            return False
        keyed = bool(getattr(target, "keyed", False))
        if base.id not in self.local:
            return keyed
        alone = base.id in self.containers and not self.around and target.value is base
        if alone and not keyed:
            return False
        return keyed or self.may_assign(base.id)

    def may_assign(self, name: str) -> bool:
        return not any(self.obstacle(node, name) for node in self.around)

    def mark_methods(self, node: Any) -> None:
        """``x.append(v)`` and ``del x[k]`` in a statement count as assignments to x."""
        if not self.around:
            return
        inner = {id(n) for block in blocks(node) for s in block for n in walk(s)}
        for found in walk(node):
            name = _changed_in_place(found) if id(found) not in inner else None
            if name is not None and name in self.local and self.may_assign(name):
                found.changes = name

    # -- statements ------------------------------------------------------------------------------

    def assign(self, node: Any) -> list[Any]:
        targets = node.targets if isinstance(node, gast.Assign) else [node.target]
        if not any(map(self.wants, targets)):
            return [node]
        value, out = node.value, []
        simple = len(targets) == 1 and isinstance(targets[0], gast.Subscript)
        if not simple or self.must_come_first(value, targets[0]):
            if len(targets) > 1 or simple:
                name = self.names.fresh("value")
                out.append(build.assign([name], value, node))
                value = build.load(name)
            for target in targets:
                out += self.unpack(target, value, node)
        else:
            out.append(self.item(targets[0], value, node))
        return _with_comments(out, node)

    def unpack(self, target: Any, value: Any, at: Any) -> list[Any]:
        """``target = value``, with temporary variables for items inside of a tuple."""
        if isinstance(target, gast.Subscript) and self.wants(target):
            return [self.item(target, value, at)]
        after: list[tuple[Any, str]] = []
        replaced = self.replace(target, after, _keys_read(target)) if self.wants(target) else target
        out = [build.place(gast.Assign([replaced], value, None), at)]
        for inner, name in after:
            out += self.unpack(inner, build.load(name), at)
        return out

    def replace(self, target: Any, after: list[tuple[Any, str]], used: set[str]) -> Any:
        """A target with temporary names for its items; `after` gets pairs of item and name."""
        if isinstance(target, gast.Tuple | gast.List):
            elements = [self.replace(e, after, used) for e in target.elts]
            return type(target)(elements, gast.Store())
        if isinstance(target, gast.Starred):
            return gast.Starred(self.replace(target.value, after, used), gast.Store())
        if isinstance(target, gast.Name) and (not after or target.id not in used):
            return target
        if not after and not self.wants(target):
            return target
        name = self.names.fresh("item")
        after.append((target, name))
        return build.store(name)

    def update(self, node: Any) -> list[Any]:
        target = node.target
        if not self.wants(target):
            return [node]
        if not self.has_effects(node.value):
            symbol = build.constant(_OPERATORS[type(node.op)])
            return _with_comments([self.item(target, node.value, node, symbol)], node)
        out = []
        for part in _keys(target):
            if self.has_effects(part.slice):
                name = self.names.fresh("key")
                out.append(build.assign([name], part.slice, node))
                part.slice = build.load(name)
        name = self.names.fresh("item")
        out.append(build.assign([name], _loaded(target), node))
        out.append(build.place(gast.AugAssign(build.store(name), node.op, node.value), node))
        return _with_comments([*out, self.item(target, build.load(name), node)], node)

    def loop(self, node: Any) -> list[Any]:
        if self.wants(node.target):
            self.around.append(node)
            name = self.names.fresh("item")
            node.body[:0] = self.unpack(node.target, build.load(name), node)
            node.target = build.store(name)
            self.around.pop()
        return [node]

    def item(self, target: Any, value: Any, at: Any, symbol: Any = None) -> Any:
        """One assignment to an item, or an update of it by the operator `symbol`."""
        keys = [self.key(part.slice) for part in _keys(target)]
        key = keys[0] if len(keys) == 1 else build.operator("path", *keys)
        rest = [key, value] if symbol is None else [key, symbol, value]
        base = _base(target)
        kind = "set" if symbol is None else "update"
        if isinstance(base, gast.Name):
            made = build.operator(f"{kind}_item", build.load(base.id), *rest)
            if base.id not in self.local or not self.may_assign(base.id):
                return build.place(gast.Expr(made), at)
            statement = build.assign([base.id], made, at)
            statement.updates = base.id
            return statement
        owner = [base.value, build.constant(base.attr)]
        call = build.operator(f"{kind}_attribute_item", *owner, *rest)
        call.assigns = gast.Attribute(base.value, base.attr, gast.Store())
        call.assigns.items_only = True
        return build.place(gast.Expr(call), at)

    def key(self, key: Any) -> Any:
        """An index as an expression: slices become calls of ``slice``."""
        if isinstance(key, gast.Slice):
            parts = [p or gast.Constant(None, None) for p in (key.lower, key.upper, key.step)]
            made = build.operator("slice", *(parts if key.step is not None else parts[:2]))
            if self.slice_is_builtin:
                made.func = build.load("slice")
            return made
        if isinstance(key, gast.Tuple):
            return gast.Tuple([self.key(e) for e in key.elts], gast.Load())
        return key

    # -- order of evaluation ---------------------------------------------------------------------

    def must_come_first(self, value: Any, target: Any) -> bool:
        """Whether evaluating `value`, as Python does, before the target may make a difference."""
        if writes(value) & reads([target]):
            return True
        base = _base(target)
        owner = base.value if isinstance(base, gast.Attribute) else base
        return self.has_effects(value) and any(map(_depends, [owner, *_slices(target)]))

    def has_effects(self, code: Any) -> bool:
        """Whether evaluating an expression may change the user's objects."""
        return any(
            isinstance(n, gast.NamedExpr) or (isinstance(n, gast.Call) and not self.is_harmless(n))
            for n in walk(code)
        )


def _is_python(node: Any) -> bool:
    """Whether a branch or loop evidently is Python's own, and every iteration runs in full."""
    if isinstance(node, gast.For):
        python = is_python_iterable(node.iter) and not may_be_rolled(node.iter)
        return python and not jumps(node.body)
    return is_python_test(node.test) and not (isinstance(node, gast.While) and jumps(node.body))


def _depends(part: Any) -> bool:
    """Whether an expression may give something else after some other code has run."""
    simple = (gast.Name, gast.Constant, gast.Slice, gast.Tuple, gast.UnaryOp, gast.BinOp,
              gast.operator, gast.unaryop, gast.expr_context)  # fmt: skip
    return not all(isinstance(n, simple) for n in walk(part))


def _changed_in_place(node: Any) -> str | None:
    """The variable whose object a call or an item to delete changes."""
    if isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute):
        owner = node.func.value if node.func.attr in MUTATING else None
        owner = getattr(node, "may_change", owner)
    elif isinstance(node, gast.Call):
        owner = getattr(node, "may_change", None)
    elif isinstance(node, gast.Subscript) and isinstance(node.ctx, gast.Del):
        owner = _base(node)
    else:
        return None
    return str(owner.id) if isinstance(owner, gast.Name) else None


def _is_text(key: Any) -> bool:
    """A key that only mappings have."""
    return isinstance(key, gast.JoinedStr) or (
        isinstance(key, gast.Constant) and isinstance(key.value, str)
    )


def _keys(target: Any) -> list[Any]:
    """The subscripts of ``x[a][b]``, from the outside inwards."""
    found = []
    while isinstance(target, gast.Subscript):
        found.append(target)
        target = target.value
    return found[::-1]


def _slices(target: Any) -> list[Any]:
    return [part.slice for part in _keys(target)]


def _base(target: Any) -> Any:
    return _keys(target)[0].value


def _keys_read(target: Any) -> set[str]:
    """The names that the items in a tuple of targets are found by."""
    inside = [n for n in walk(target) if isinstance(n, gast.Subscript | gast.Attribute)]
    return set(activity(inside).reads)


def _loaded(target: Any) -> Any:
    if not isinstance(target, gast.Subscript):
        return build.load(target.id) if isinstance(target, gast.Name) else target
    return gast.Subscript(_loaded(target.value), target.slice, gast.Load())


def _with_comments(made: list[Any], node: Any) -> list[Any]:
    """The comments of `node` go to the first and last of the statements that replace it."""
    for field in _COMMENTS:
        if hasattr(node, field):
            setattr(made[0 if field == "leading" else -1], field, getattr(node, field))
    for statement in made:
        gast.fix_missing_locations(statement)
    return made
