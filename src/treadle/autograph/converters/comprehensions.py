"""Comprehensions and generator expressions over what may be a tensor.

===============================  =================================================================
before                           after
===============================  =================================================================
``[f(x) for x in xs if x > 0]``  ``ag__.list_comp(lambda x: f(x), xs, lambda x: x > 0)``
``sum(a * b for a, b in ps)``    ``ag__.sum(ag__.generator(``
                                 ``lambda item: (lambda a, b: a * b)(*item), ps))``
``[f(a) for b in xs for a in     ``ag__.list_comp(lambda b: ag__.generator(lambda a: f(a), b), xs,
b]``                             flat=True)``
``{k: f(v) for k, v in ps}``     ``{k: f(v) for k, v in ag__.iterable(ps)}``
===============================  =================================================================

In functions of ``td.jit``, whose dicts and sets may have keys that only the run knows, those over
one iterable become ``ag__.set_comp(lambda x: f(x), xs)`` and ``ag__.dict_comp(lambda x: k,
lambda x: v, xs)``.

Expressions that evidently are Python's, or that no lambda can stand for, are left as they are.
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis.activity import writes
from treadle.autograph.analysis.evident import is_python_iterable
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import constant, load, operator, thunk

_LATE = (gast.Lambda, gast.GeneratorExp, gast.NamedExpr, gast.Await, gast.Yield, gast.YieldFrom)


def convert(node: Any) -> Any:
    """The form of a comprehension that also takes tensors; `node` is converted inside already."""
    if any(g.is_async for g in node.generators):
        return node
    is_keyed = isinstance(node, gast.SetComp | gast.DictComp)
    if is_keyed and getattr(node, "keyed", False) and _fits_lambdas(node):
        return gast.copy_location(_keyed(node), node)
    if is_keyed or not _fits_lambdas(node):
        for generator in node.generators:
            if not is_python_iterable(generator.iter):
                generator.iter = operator("iterable", generator.iter)
        return node
    kind = "list_comp" if isinstance(node, gast.ListComp) else "generator"
    return gast.copy_location(_nested(kind, node.elt, node.generators), node)


def _keyed(node: Any) -> Any:
    (source,) = node.generators
    *made, rest = *_elements(node), source.ifs
    functions = [_function(source.target, part) for part in made]
    kind = "set_comp" if isinstance(node, gast.SetComp) else "dict_comp"
    tests = [_function(source.target, part) for part in rest]
    return operator(kind, *functions, source.iter, *tests)


def _elements(node: Any) -> list[Any]:
    return [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]


def _nested(kind: str, element: Any, generators: list[Any]) -> Any:
    first, *inner = generators
    flat = {"flat": constant(True)} if inner else {}
    if inner:
        element = _nested("generator", element, inner)
    functions = [_function(first.target, part) for part in (element, *first.ifs)]
    return operator(kind, functions[0], first.iter, *functions[1:], **flat)


def _function(target: Any, body: Any) -> Any:
    """``lambda target: body``, where the target may be a tuple."""
    if isinstance(target, gast.Name):
        return thunk(body, [target.id])
    item = _free_name(target, body)
    return thunk(_unpacked(target, item, body), [item])


def _unpacked(target: Any, item: str, body: Any) -> Any:
    names = [t.id if isinstance(t, gast.Name) else "" for t in target.elts]
    for k, part in enumerate(target.elts):
        if not names[k]:
            names[k] = _free_name(target, body)
            body = _unpacked(part, names[k], body)
    return gast.Call(thunk(body, names), [gast.Starred(load(item), gast.Load())], [])


def _free_name(target: Any, body: Any) -> str:
    used = {n.id for part in (target, body) for n in walk(part) if isinstance(n, gast.Name)}
    return next(n for i in range(99) if (n := f"item_{i}" if i else "item") not in used)


def _fits_lambdas(node: Any) -> bool:
    parts = [*_elements(node), *(test for g in node.generators for test in g.ifs)]
    parts += [g.iter for g in node.generators[1:]]
    late = any(isinstance(n, _LATE) and not _is_made(n) for p in parts for n in walk(p))
    return not late and not writes([node]) and all(_is_simple(g.target) for g in node.generators)


def _is_made(node: Any) -> bool:
    """Whether a lambda is of the conversion, which calls it at once."""
    return isinstance(node, gast.Lambda) and getattr(node, "generated", False)


def _is_simple(target: Any) -> bool:
    if isinstance(target, gast.Tuple | gast.List):
        return all(map(_is_simple, target.elts))
    return isinstance(target, gast.Name)
