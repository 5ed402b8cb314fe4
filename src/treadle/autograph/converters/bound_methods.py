"""Methods of lists, sets and deques that a jitted function calls by another name.

Programs take the method out of a loop::

    put = found.append            for v in values:
    for v in values:       ->         found.append(v)
        put(v)

so that the call names the list that it changes, as the operators of lists need it. That is done
where the text tells that both names mean one object throughout: each is bound once, the list before
the method and not anew in a loop that the method is not in, and the method is called only.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import gast

from treadle.autograph.analysis.walking import walk
from treadle.autograph.converters.items import MUTATING

_METHODS = MUTATING | {"add", "appendleft", "count", "discard", "index", "popleft"}


def call_by_owners(root: Any) -> None:
    """Rewrite the calls in a function's tree, and leave out the assignments."""
    if isinstance(root, gast.Lambda):
        return
    bound = _bindings(root)
    parameters = {a.id for a in walk(root.args) if isinstance(a, gast.Name)}
    for block in list(_blocks(root)):
        for statement in list(block):
            owner, name = _taken(statement)
            if owner is None or bound[owner] != 1 or bound[name] != 1:
                continue
            if owner not in parameters and not _is_made_before(owner, statement, block, root):
                continue
            if _is_only_called(name, root):
                _rewrite(name, statement.value, root)
                _drop(statement, block)


def _bindings(root: Any) -> Counter[str]:
    """How often the tree binds each name, in nested functions, too."""
    bound: Counter[str] = Counter()
    for node in walk(root):
        if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Load):
            bound[node.id] += 1
        elif isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
            bound[node.name] += 1
        elif isinstance(node, gast.Global | gast.Nonlocal):
            bound.update(node.names)
        elif isinstance(node, gast.alias):
            bound[(node.asname or node.name).partition(".")[0]] += 1
        elif isinstance(getattr(node, "name", None), str):  # of handlers and patterns
            bound[node.name] += 1
    return bound


def _blocks(root: Any) -> Any:
    """The lists of statements in a function, but for those of functions in it."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(root, name, None)
        if not isinstance(block, list):
            continue
        yield block
        for statement in block:
            if not isinstance(statement, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
                yield from _blocks(statement)
    for part in (*getattr(root, "handlers", ()), *getattr(root, "cases", ())):
        yield from _blocks(part)


def _taken(statement: Any) -> tuple[str | None, str]:
    """The names of a list and of its method, of a statement such as ``put = found.append``."""
    if not isinstance(statement, gast.Assign) or len(statement.targets) != 1:
        return None, ""
    target, value = statement.targets[0], statement.value
    is_method = isinstance(value, gast.Attribute) and isinstance(value.value, gast.Name)
    if not isinstance(target, gast.Name) or not is_method or value.attr not in _METHODS:
        return None, ""
    return value.value.id, target.id


def _is_made_before(owner: str, taken: Any, block: list[Any], root: Any) -> bool:
    """Whether a statement of the same block, or of the function's own, binds the list first."""
    made = [s for s in (*root.body, *block) if _binds(s, owner)]
    if not made:
        return False
    order = [s for s in block if s is taken or s is made[0]]
    return order == [made[0], taken] or (order == [taken] and made[0] in root.body)


def _binds(statement: Any, name: str) -> bool:
    return isinstance(statement, gast.Assign) and any(
        isinstance(target, gast.Name) and target.id == name for target in statement.targets
    )


def _is_only_called(name: str, root: Any) -> bool:
    called = {id(node.func) for node in walk(root) if isinstance(node, gast.Call)}
    uses = [n for n in walk(root) if isinstance(n, gast.Name) and n.id == name]
    return all(id(n) in called for n in uses if isinstance(n.ctx, gast.Load))


def _rewrite(name: str, method: Any, root: Any) -> None:
    for node in walk(root):
        if isinstance(node, gast.Call) and getattr(node.func, "id", None) == name:
            at = node.func
            owner = gast.copy_location(
                gast.Name(method.value.id, gast.Load(), annotation=None, type_comment=None), at
            )
            node.func = gast.copy_location(gast.Attribute(owner, method.attr, gast.Load()), at)


def _drop(statement: Any, block: list[Any]) -> None:
    if len(block) > 1:
        block.remove(statement)
    else:
        block[:] = [gast.copy_location(gast.Pass(), statement)]
