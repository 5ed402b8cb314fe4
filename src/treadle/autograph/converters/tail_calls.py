"""A function that ends with a call of itself becomes a loop, in jitted functions.

Before::

    def gcd(a, b):
        if b == 0:
            return a
        return gcd(b, a % b)

After::

    def gcd(a, b):
        while True:
            if b == 0:
                return a
            a, b = b, a % b

So the program decides how often it is called, where a trace would call it for ever. Left alone are
functions whose parameters an inner function or generator may keep, and those that give a value by
falling off their end as well.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import gast

from treadle.autograph.analysis.activity import FUNCTIONS
from treadle.autograph.analysis.jumps import always_jumps
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import constant, place, store

_INNER = (*FUNCTIONS, gast.Lambda, gast.GeneratorExp, gast.ClassDef, gast.Yield, gast.YieldFrom)


def loop_tail_calls(root: Any, function: types.FunctionType) -> None:
    """Rewrite a function, and the functions that it defines, where they call themselves."""
    if isinstance(root, gast.Lambda):
        return
    if is_itself(root.name, function):
        _rewrite(root)
    for node in walk(root):
        if isinstance(node, gast.FunctionDef) and node is not root:
            stores = [n for n in walk(root) if isinstance(n, gast.Name)
                      and n.id == node.name and not isinstance(n.ctx, gast.Load)]  # fmt: skip
            defined = [n for n in walk(root) if isinstance(n, gast.FunctionDef)
                       and n.name == node.name]  # fmt: skip
            if not stores and len(defined) == 1:
                _rewrite(node)


def is_itself(name: str, function: types.FunctionType) -> bool:
    """Whether a global or closed-over name stands for the function, or for what jits it."""
    found = _meaning(name, function)
    inner = getattr(found, "__treadle_jitted__", None) or getattr(found, "py_func", found)
    if isinstance(found, functools._lru_cache_wrapper):
        inner = found.__wrapped__
    return inner is function


def is_kept(name: str, function: types.FunctionType) -> bool:
    """Whether a name stands for a function whose results are kept by `functools`."""
    return isinstance(_meaning(name, function), functools._lru_cache_wrapper)


def _meaning(name: str, function: types.FunctionType) -> Any:
    """What a global or closed-over name of a function stands for; None where it is nothing yet."""
    code = function.__code__
    found = function.__globals__.get(name)
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            found = cell.cell_contents
        except ValueError:
            return None
    return found


def _rewrite(node: Any) -> None:
    arguments = node.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or node.decorator_list:
        return
    names = [a.id for a in (*arguments.posonlyargs, *arguments.args)]
    inner = [n for s in node.body for n in walk(s)]
    if not names or any(isinstance(n, (*_INNER, gast.Global, gast.Nonlocal)) for n in inner):
        return
    calls = _Calls(node.name, names)
    start = 1 if _is_text(node.body[0]) and len(node.body) > 1 else 0
    body = calls.block(node.body[start:], True)
    if not calls.found:
        return
    if not always_jumps(body):
        body.append(place(gast.Return(None), node.body[-1]))
    loop = place(gast.While(constant(True), body, []), node.body[start])
    loop.leading, body[0].leading = getattr(body[0], "leading", []), []
    node.body[start:] = [loop]


def _is_text(node: Any) -> bool:
    return isinstance(node, gast.Expr) and isinstance(node.value, gast.Constant)


class _Calls:
    """Writes calls of the function at its end as assignments to its parameters."""

    def __init__(self, name: str, names: list[str]) -> None:
        self.name, self.names, self.found = name, names, False

    def block(self, body: list[Any], ends: bool) -> list[Any]:
        """A block; `ends`: the function ends with it, where it does not return before."""
        out: list[Any] = []
        for k, node in enumerate(body):
            out += self.statement(node, ends and k == len(body) - 1)
        return out

    def statement(self, node: Any, ends: bool) -> list[Any]:
        if isinstance(node, gast.Return):
            return self.returned(node.value, node)
        if ends and isinstance(node, gast.Expr) and self.is_call(node.value):
            return self.again(node.value, node)
        if isinstance(node, gast.If):
            node.body = self.block(node.body, ends)
            node.orelse = self.block(node.orelse, ends)
        return [node]  # a loop has its own `continue`, a `try` its handlers

    def returned(self, value: Any, at: Any) -> list[Any]:
        if self.is_call(value):
            return self.again(value, at)
        if isinstance(value, gast.IfExp) and any(map(self.is_call, (value.body, value.orelse))):
            sides = [self.returned(v, at) for v in (value.body, value.orelse)]
            return [place(gast.If(value.test, *sides), at)]
        return [place(gast.Return(value), at)] if value is not at.value else [at]

    def is_call(self, node: Any) -> bool:
        return (
            isinstance(node, gast.Call)
            and isinstance(node.func, gast.Name)
            and node.func.id == self.name
            and self.values(node) is not None
        )

    def values(self, call: Any) -> list[Any] | None:
        """The arguments in the order of the parameters; None where some are left out."""
        given = dict(zip(self.names, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords}
        fits = len(call.args) + len(call.keywords) == len(self.names) == len(given)
        if not fits or any(isinstance(a, gast.Starred) for a in call.args):
            return None
        return [given[n] for n in self.names] if set(given) == set(self.names) else None

    def again(self, call: Any, at: Any) -> list[Any]:
        self.found = True
        pairs = [
            (name, value) for name, value in zip(self.names, self.values(call) or [], strict=True)
            if not (isinstance(value, gast.Name) and value.id == name)
        ]  # fmt: skip
        jump = place(gast.Continue(), at)
        if not pairs:
            return [jump]
        names, values = zip(*pairs, strict=True)
        if len(pairs) == 1:
            assigned = gast.Assign([store(names[0])], values[0], None)
        else:
            target = gast.Tuple([store(n) for n in names], gast.Store())
            assigned = gast.Assign([target], gast.Tuple(list(values), gast.Load()), None)
        return [place(assigned, at), jump]
