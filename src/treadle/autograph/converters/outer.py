"""Variables of outer scopes that a function assigns, and its own that inner functions assign.

Branches and loop bodies become functions. Their assignment to a ``global`` or ``nonlocal`` variable
stays an assignment to that variable, which gets a place in the operator's ``places``::

    def then():                                 # if x > 0:
        nonlocal count                          #     count = count + 1
        count = count + 1

    ag__.if_stmt(x > 0, then, lambda: None, places=[ag__.outer(lambda: count)])

So do variables that inner functions declare ``nonlocal``, where a statement may call these, and
those that inner functions read (`shared_variables`).
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any

import gast

from treadle.autograph.analysis.activity import FUNCTIONS, reads, scope_of, writes
from treadle.autograph.analysis.jumps import statements
from treadle.autograph.build import constant, load, operator, place, thunk


class Outer:
    """The declarations of one function, and the assignments of its inner functions.

    Attributes:
        declared: names in its own ``global`` and ``nonlocal`` statements, and its variables that
            bodies assign as if they were.
        checked: those variables that may have no value, which all who read them check.
    """

    def __init__(self, function: Any, in_cells: Set[str], checked: Collection[str]) -> None:
        body = function.body
        found = [s for s in statements(body) if isinstance(s, gast.Global | gast.Nonlocal)]
        self.kinds = {name: type(s) for s in found for name in s.names}
        self.kinds |= dict.fromkeys(in_cells, gast.Nonlocal)
        self.declared = set(self.kinds)
        self.checked = checked
        self.functions = {s.name for s in statements(body) if isinstance(s, gast.FunctionDef)}
        self.shared = _assigned_inside(body)

    def places(self, code: list[Any]) -> list[Any]:
        """The places of variables that `code` may assign in a scope that is not its own."""
        found = writes(code) & self.declared if self.declared else set()
        if self.shared and self.functions & reads(code):
            found |= self.shared - writes(code)
        return [self.place(name) for name in sorted(found)]

    def place(self, name: str) -> Any:
        options = {"checked": constant(True)} if name in self.checked else {}
        return operator("outer", thunk(load(name)), **options)

    def declarations(self, body: list[Any], at: Any) -> list[Any]:
        """The statements that a function made of `body` must begin with."""
        if not self.declared:
            return []
        found = writes(body) & self.declared
        kinds = {kind: sorted(n for n in found if self.kinds[n] is kind) for kind in _KINDS}
        return [place(kind(names), at) for kind, names in kinds.items() if names]


_KINDS = (gast.Global, gast.Nonlocal)


def _assigned_inside(body: list[Any]) -> set[str]:
    """Names that inner functions declare nonlocal, or global, and assign."""
    found: set[str] = set()
    for statement in statements(body):
        if isinstance(statement, FUNCTIONS):
            scope = scope_of(statement)
            found |= set(scope.declared) & set(scope.writes)
            found |= _assigned_inside(statement.body)
    return found
