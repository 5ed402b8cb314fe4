"""Small constructors for gast nodes."""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.generated import AG as AG

Node = Any


def load(name: str) -> Node:
    return gast.Name(name, gast.Load(), None, None)


def store(name: str) -> Node:
    return gast.Name(name, gast.Store(), None, None)


class _Quoted(str):
    """A string that prints in double quotes."""

    def __repr__(self) -> str:
        import json

        return json.dumps(str(self), ensure_ascii=False)


def constant(value: Any) -> Node:
    return gast.Constant(_Quoted(value) if type(value) is str else value, None)


def operator(name: str, *args: Node, **keywords: Node) -> Node:
    """``ag__.name(*args, **keywords)``."""
    function = gast.Attribute(load(AG), name, gast.Load())
    return gast.Call(function, list(args), [gast.keyword(k, v) for k, v in keywords.items()])


def is_operator(node: Node, name: str) -> bool:
    """Whether `node` is a call of ``ag__.name``."""
    made = isinstance(node, gast.Call) and isinstance(node.func, gast.Attribute)
    return made and node.func.attr == name and getattr(node.func.value, "id", None) == AG


def key(index: Node) -> Node:
    """An index as an expression: slices become calls of ``ag__.slice``."""
    if isinstance(index, gast.Slice):
        parts = [p or gast.Constant(None, None) for p in (index.lower, index.upper, index.step)]
        return operator("slice", *(parts if index.step is not None else parts[:2]))
    if isinstance(index, gast.Tuple):
        return gast.Tuple([key(e) for e in index.elts], gast.Load())
    return index


def thunk(body: Node, params: list[str] | None = None) -> Node:
    """``lambda params: body``."""
    made = gast.Lambda(arguments(params or []), body)
    made.generated = True
    return gast.copy_location(made, body) if hasattr(body, "lineno") else made


def arguments(names: list[str]) -> Node:
    params = [gast.Name(n, gast.Param(), None, None) for n in names]
    return gast.arguments(params, [], None, [], [], None, [])


def values(nodes: list[Node]) -> Node:
    """One expression, or a tuple of several."""
    return nodes[0] if len(nodes) == 1 else gast.Tuple(list(nodes), gast.Load())


def targets(names: list[str]) -> Node:
    if len(names) == 1:
        return store(names[0])
    return gast.Tuple([store(n) for n in names], gast.Store())


def function(name: str, params: list[str], body: list[Node], at: Node) -> Node:
    made = gast.FunctionDef(name, arguments(params), body, [], None, None, [])
    made.generated = True
    return place(made, at)


def assign(names: list[str], value: Node, at: Node) -> Node:
    return place(gast.Assign([targets(names)], value, None), at)


def returns(value: Node, at: Node) -> Node:
    made = place(gast.Return(value), at)
    made.generated = True
    return made


def place(node: Node, at: Node) -> Node:
    """`node` with the position of `at`."""
    node.lineno, node.col_offset = at.lineno, at.col_offset
    node.end_lineno, node.end_col_offset = at.lineno, at.col_offset
    return node


def undefined(name: str) -> Node:
    return operator("undefined", constant(name))
