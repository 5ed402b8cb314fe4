"""``match`` whose patterns or guards may compare tensors becomes ``if`` and ``elif``.

Before::

    match point:
        case 0:
            r = 1
        case Pair(0, b) if b > limit:
            r = b
        case n:
            r = n

After (the structure of a pattern stays Python's, values that may be tensors are compared)::

    if point == 0:
        r = 1
    else:
        def parts(value):
            match value:
                case Pair(part, b):
                    return (part, b)

        found = parts(point)
        if found is not None and found[0] == 0 and found[1] > limit:
            b = found[1]
            r = b
        else:
            n = point
            r = n

A ``match`` that only looks at structure, strings and Python's singletons is left alone, and one
that cannot be written this way has its guards checked: they must not be tensors.
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from treadle.autograph.analysis.activity import activity, writes
from treadle.autograph.analysis.evident import is_python_test
from treadle.autograph.analysis.jumps import blocks
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import assign, constant, function, load, operator, place, returns
from treadle.autograph.names import Names

_STRUCTURE = (gast.MatchSequence, gast.MatchMapping, gast.MatchClass)
_SCOPES = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


class Matching:
    """Rewrites the ``match`` statements of one function.

    Attributes:
        helpers: names of the functions it makes.
    """

    def __init__(self, body: list[Any], names: Names) -> None:
        nodes = [n for s in body for n in walk(s)]
        self.loads = [n for n in nodes if _is_load(n)]
        self.read: set[str] = set()  # outside of the guards
        # The names that a case binds -> the loads inside of it.
        cases = [n for n in nodes if isinstance(n, gast.match_case)]
        self.inside = [(writes(c.pattern), {id(n) for n in _inner(c)}) for c in cases]
        self.names = names
        self.helpers: set[str] = set()

    def block(self, body: list[Any]) -> None:
        """Rewrite a block in place, inner statements too."""
        for k in range(len(body) - 1, -1, -1):
            for inner in blocks(body[k]):
                self.block(inner)
            if isinstance(body[k], gast.Match) and _may_compare(body[k]):
                body[k : k + 1] = self.convert(body[k])

    def convert(self, node: Any) -> list[Any]:
        cases = [alternative for case in node.cases for alternative in self.alternatives(case)]
        if any(case is None or self.escapes(case) for case in cases):
            for case in node.cases:
                if case.guard is not None:
                    why = constant("a pattern here looks at structure and at values in one")
                    case.guard = operator("python_bool", case.guard, why)
            return [node]
        bound = set().union(*(writes(case.pattern) for case in cases))
        guards = {id(n) for case in cases if case.guard for n in walk(case.guard)}
        self.read = {n.id for n in self.loads if id(n) not in guards}
        before, subject = [], node.subject
        if not isinstance(subject, gast.Name) or subject.id in bound:
            name = self.names.fresh("subject")
            before, subject = [assign([name], subject, node)], load(name)
        made = [*before, *self.chain(cases, subject, node)]
        made[0].leading = getattr(node, "leading", [])
        return made

    def chain(self, cases: list[Any], subject: Any, at: Any) -> list[Any]:
        """The statements for `cases`; the first case that matches counts."""
        if not cases:
            return []
        case, *others = cases
        before, tests, values = self.pattern(case.pattern, subject, at)
        read = {n: v for n, v in values.items() if n in self.read}
        bindings = [assign([n], v, case.body[0]) for n, v in read.items()]
        if not tests and case.guard is None:
            return [*bindings, *case.body]
        if not tests:  # binds before its guard
            before, bindings = bindings, []
        guard = [] if case.guard is None else [_Substitute(values).visit(case.guard)]
        parts = [*tests, *guard]
        test = parts[0] if len(parts) == 1 else gast.BoolOp(gast.And(), parts)
        branch = gast.If(test, [*bindings, *case.body], self.chain(others, subject, at))
        return [*before, place(branch, _position(case))]

    def pattern(
        self, pattern: Any, subject: Any, at: Any
    ) -> tuple[list[Any], list[Any], dict[str, Any]]:
        """Statements to run first, conditions, and the values that names are bound to."""
        if isinstance(pattern, gast.MatchAs) and pattern.pattern is not None:
            before, tests, values = self.pattern(pattern.pattern, subject, at)
            return before, tests, {**values, pattern.name: copy.deepcopy(subject)}
        if isinstance(pattern, gast.MatchAs):
            return [], [], {pattern.name: copy.deepcopy(subject)} if pattern.name else {}
        if not any(isinstance(n, _STRUCTURE) for n in walk(pattern)):
            return [], [_value_test(pattern, subject)], {}
        return self.structure(pattern, subject, at)

    def structure(
        self, pattern: Any, subject: Any, at: Any
    ) -> tuple[list[Any], list[Any], dict[str, Any]]:
        extracted: dict[str, Any] = {}
        pattern = _extract(pattern, extracted, self.names)
        captured = [n for n in activity(pattern).writes if n not in extracted]
        order = [*extracted, *captured]
        parts, found = self.names.fresh("parts"), self.names.fresh("found")
        self.helpers.add(parts)
        result = gast.Tuple([load(n) for n in order], gast.Load())
        case = gast.match_case(pattern, None, [returns(result, at)])
        inner = place(gast.Match(load("value"), [case]), at)
        definition = function(parts, ["value"], [inner], at)
        call = gast.Call(load(parts), [copy.deepcopy(subject)], [])

        def part(name: str) -> Any:
            return gast.Subscript(load(found), constant(order.index(name)), gast.Load())

        tests = [gast.Compare(load(found), [gast.IsNot()], [constant(None)])]
        tests += [_value_test(p, part(name)) for name, p in extracted.items()]
        return [definition, assign([found], call, at)], tests, {n: part(n) for n in captured}

    def alternatives(self, case: Any) -> list[Any]:
        """The case, or one for each alternative where these have structure and values."""
        pattern = case.pattern
        mixed = any(_is_mixed(n) for n in walk(pattern))
        if not mixed:
            return [case]
        if not isinstance(pattern, gast.MatchOr) or case.guard is not None:
            return [None]
        if any(_is_mixed(n) for p in pattern.patterns for n in walk(p)):
            return [None]
        bodies = [case.body, *(copy.deepcopy(case.body) for _ in pattern.patterns[1:])]
        return [gast.match_case(p, None, b) for p, b in zip(pattern.patterns, bodies, strict=True)]

    def escapes(self, case: Any) -> bool:
        """Whether later code sees names that the pattern bound before its guard failed."""
        bound = writes(case.pattern)
        if case.guard is None or not bound:
            return False
        if any(isinstance(n, _SCOPES) for n in walk(case.guard)) or writes(case.guard):
            return True
        if isinstance(case.pattern, gast.MatchAs) and case.pattern.pattern is None:
            return False
        inside = set().union(*(loads for names, loads in self.inside if bound <= names))
        return any(n.id in bound and id(n) not in inside for n in self.loads)


def _inner(case: Any) -> list[Any]:
    """The loads of names in a case's guard and body."""
    parts = [*case.body, *([case.guard] if case.guard is not None else [])]
    return [n for part in parts for n in walk(part) if _is_load(n)]


def _is_load(node: Any) -> bool:
    return isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load)


def _position(case: Any) -> Any:
    return case.pattern if hasattr(case.pattern, "lineno") else case.body[0]


def _may_compare(node: Any) -> bool:
    """Whether a pattern or guard may compare a tensor."""
    return any(
        (case.guard is not None and not is_python_test(case.guard))
        or any(map(_is_comparison, walk(case.pattern)))
        for case in node.cases
    )


def _is_comparison(pattern: Any) -> bool:
    """A pattern that compares a value that may be a tensor with ``==``."""
    if not isinstance(pattern, gast.MatchValue):
        return False
    return not (isinstance(pattern.value, gast.Constant) and isinstance(pattern.value.value, str))


def _is_mixed(pattern: Any) -> bool:
    """An or-pattern with structure, or names, that also compares."""
    if not isinstance(pattern, gast.MatchOr):
        return False
    nodes = list(walk(pattern))
    return any(map(_is_comparison, nodes)) and not all(map(_is_flat, pattern.patterns))


def _is_flat(pattern: Any) -> bool:
    if isinstance(pattern, gast.MatchOr):
        return all(map(_is_flat, pattern.patterns))
    return isinstance(pattern, gast.MatchValue | gast.MatchSingleton)


def _value_test(pattern: Any, subject: Any) -> Any:
    """The condition for literals, dotted names and alternatives of these."""
    subject = copy.deepcopy(subject)
    if isinstance(pattern, gast.MatchOr):
        return gast.BoolOp(gast.Or(), [_value_test(p, subject) for p in pattern.patterns])
    if isinstance(pattern, gast.MatchSingleton):
        return gast.Compare(subject, [gast.Is()], [constant(pattern.value)])
    return gast.Compare(subject, [gast.Eq()], [pattern.value])


def _extract(pattern: Any, found: dict[str, Any], names: Names) -> Any:
    """`pattern` with names in place of comparisons, which `found` gets by name."""
    if _is_comparison(pattern) or (
        isinstance(pattern, gast.MatchOr) and any(map(_is_comparison, walk(pattern)))
    ):
        name = names.fresh("part")
        found[name] = pattern
        return gast.MatchAs(None, name)
    for field in ("patterns", "kwd_patterns"):
        if hasattr(pattern, field):
            inner = [_extract(p, found, names) for p in getattr(pattern, field)]
            setattr(pattern, field, inner)
    if getattr(pattern, "pattern", None) is not None:
        pattern.pattern = _extract(pattern.pattern, found, names)
    return pattern


class _Substitute(gast.NodeTransformer):  # type: ignore[misc]
    """Names replaced by expressions."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def visit_Name(self, node: Any) -> Any:
        if _is_load(node) and node.id in self.values:
            return copy.deepcopy(self.values[node.id])
        return node
