"""Expressions that assign in an operand which may not be evaluated become statements.

Before::

    if x > 0 and (y := f(x)) > limit:
        return y

After::

    test = x > 0
    if test:
        y = f(x)
        test = y > limit
    if test:
        return y

The operators take operands as lambdas, in which ``y :=`` would be another variable, and a jitted
function's ``y.pop()`` would change a list that is no variable of the branch. A ``while`` whose
condition assigns becomes ``while True`` with a break first.
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis import activity
from treadle.autograph.analysis.jumps import always_jumps, blocks, jumps
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import assign, constant, load, place
from treadle.autograph.names import Names


def writes(code: Any) -> set[str]:
    """The variables that an expression assigns, or whose objects it changes in place."""
    parts = code if isinstance(code, list) else [code]
    changed = {n.changed_name for p in parts for n in walk(p) if hasattr(n, "changed_name")}
    return activity.writes(code) | changed


class Sequencing:
    """Rewrites the statements of one function."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def block(self, body: list[Any]) -> None:
        """Rewrite a block in place, inner statements too."""
        for k in range(len(body) - 1, -1, -1):
            node = body[k]
            if isinstance(node, gast.While) and writes(node.test):
                made = self.test_inside(node)
                for inner in (inner for part in made for inner in blocks(part)):
                    self.block(inner)
                body[k : k + 1] = made
                continue
            for inner in blocks(node):
                self.block(inner)
            field = _FIELDS.get(type(node))
            if field and getattr(node, field) is not None:
                before: list[Any] = []
                setattr(node, field, self.expression(getattr(node, field), before, node))
                if before:
                    before[0].leading, node.leading = getattr(node, "leading", []), []
                body[k : k + 1] = [*before, node]

    def test_inside(self, node: Any) -> list[Any]:
        """A ``while`` with its condition as its body's first statement."""
        before, after, leave = [], [], list(node.orelse)
        if jumps(leave) & {"break", "continue"}:  # of the loop around
            ended = self.names.fresh("ended")
            before = [assign([ended], constant(False), node)]
            after = [place(gast.If(load(ended), leave, []), leave[0])]
            leave = [assign([ended], constant(True), node)]
        if not always_jumps(leave):
            leave.append(place(gast.Break(), node))
        test = gast.UnaryOp(gast.Not(), node.test)
        node.body.insert(0, place(gast.If(test, leave, []), node))
        node.test, node.orelse = constant(True), []
        return [*before, node, *after]

    def expression(self, node: Any, before: list[Any], at: Any) -> Any:
        """`node`; statements that must come first are added to `before`."""
        if not writes(node) or not any(map(_assigns_late, walk(node))):
            return node
        if _assigns_late(node):
            return self.late(node, before, at)
        operands = _operands(node)
        for k, (field, value) in enumerate(operands):
            made = self.expression(value, before, at)
            if made is not value:
                _replace(node, field, value, made)
                return node
            later = [operand for _, operand in operands[k + 1 :]]
            if not _is_simple(value, activity.writes(later)):
                break  # it comes before the next operands: no part of these may be moved
        return node

    def late(self, node: Any, before: list[Any], at: Any) -> Any:
        name = self.names.fresh("value" if isinstance(node, gast.IfExp) else "test")
        if isinstance(node, gast.IfExp):
            self.choice(name, node, before, at)
        elif isinstance(node, gast.BoolOp):
            self.operands(name, node.values, isinstance(node.op, gast.And), before, at)
        else:
            self.operands(name, self.comparisons(node, before, at), True, before, at)
        return load(name)

    def choice(self, name: str, node: Any, before: list[Any], at: Any) -> None:
        test = self.expression(node.test, before, at)
        branches: list[list[Any]] = [[], []]
        for branch, value in zip(branches, (node.body, node.orelse), strict=True):
            made = self.expression(value, branch, at)
            branch.append(assign([name], made, at))
        before.append(_filled(gast.If(test, *branches), at))

    def operands(
        self, name: str, values: list[Any], both: bool, before: list[Any], at: Any
    ) -> None:
        first, *others = values
        made = self.expression(first, before, at)
        before.append(assign([name], made, at))
        if others:
            inside: list[Any] = []
            self.operands(name, others, both, inside, at)
            test = load(name) if both else gast.UnaryOp(gast.Not(), load(name))
            before.append(_filled(gast.If(test, inside, []), at))

    def comparisons(self, node: Any, before: list[Any], at: Any) -> list[Any]:
        """``a < b < c`` as comparisons of two, each operand evaluated once."""
        left, made = node.left, []
        for op, right in zip(node.ops, node.comparators, strict=True):
            again = right
            if right is not node.comparators[-1] and not isinstance(right, gast.Name):
                name = right.target.id if isinstance(right, gast.NamedExpr) else None
                if name is None:
                    name = self.names.fresh("operand")
                    right = gast.NamedExpr(gast.Name(name, gast.Store(), None, None), right)
                again = load(name)
            made.append(gast.Compare(left, [op], [right]))
            left = again
        return made


_FIELDS = {
    gast.If: "test", gast.Assign: "value", gast.AugAssign: "value", gast.AnnAssign: "value",
    gast.Return: "value", gast.Expr: "value", gast.Assert: "test", gast.For: "iter",
}  # fmt: skip


def _filled(made: Any, at: Any) -> Any:
    """Mark a statement: the variables that it assigns are read under the same conditions."""
    made.filled = True
    return place(made, at)


def _assigns_late(node: Any) -> bool:
    """Whether an operand that assigns becomes a lambda, or is not always evaluated."""
    match node:
        case gast.BoolOp():
            return bool(writes(node))
        case gast.IfExp():
            return bool(writes([node.body, node.orelse]))
        case gast.Compare():
            return len(node.ops) > 1 and bool(writes(node))
    return False


def _operands(node: Any) -> list[tuple[str, Any]]:
    """The parts of an expression in the order of their evaluation, with their fields."""
    if isinstance(node, gast.Lambda | gast.ListComp | gast.SetComp | gast.DictComp):
        return []
    if isinstance(node, gast.GeneratorExp | gast.IfExp):
        return [("test", node.test)] if isinstance(node, gast.IfExp) else []
    found = []
    for field, value in gast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        found += [(field, v) for v in parts if isinstance(v, gast.AST) and _is_operand(v)]
    return found


def _is_operand(node: Any) -> bool:
    kinds = (gast.expr_context, gast.operator, gast.unaryop, gast.boolop, gast.cmpop)
    return not isinstance(node, kinds)


def _replace(node: Any, field: str, old: Any, new: Any) -> None:
    value = getattr(node, field)
    if isinstance(value, list):
        value[:] = [new if v is old else v for v in value]
    else:
        setattr(node, field, new)


def _is_simple(node: Any, assigned: set[str]) -> bool:
    if isinstance(node, gast.Name):
        return node.id not in assigned or isinstance(node.ctx, gast.Store)
    if isinstance(node, gast.Attribute):
        return _is_simple(node.value, assigned)
    return isinstance(node, gast.Constant)
