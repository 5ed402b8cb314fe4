"""Routines that work on rows one by one, and how a program calls them.

A routine is a function in the subset of Python that `runtime/routines/subset.py` describes:

    def routine(inputs..., outputs..., numbers..., space, first, last)

It does the rows [first, last) of a batch; what is a row is its own affair. The arrays come in the
order of the node's operands, the numbers have the names of `RowCall.numbers`, and `space` is
workspace of this thread alone. The parameters `space` and the numbers may be left out. Threads
share the rows, in a way that depends on the dims alone, and do some of them at a time: now and then
they look whether they are to stop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, compound
from treadle.graph.ir import Node
from treadle.ops.lowering import RowCall, Rows
from treadle.runtime.cpu.emission import OPTIMIZE
from treadle.runtime.cpu.library_text import PREFIX, Words, define_routine
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.target import Target
from treadle.runtime.routines.subset import KINDS, Kind, routine_named
from treadle.runtime.tuning import Tuning

SLICE_TASKS = 32  # so many times the work that is worth a thread is done between two looks
LINE = 64  # what a thread's workspace is aligned to


def row_call(node: Node) -> RowCall | None:
    """How the library computes a node, or None."""
    lower = node.op.lower
    assert isinstance(lower, Rows)
    return lower.call([v.spec for v in node.inputs], [v.spec for v in node.outputs], node.attrs)


def row_symbol(routine: str, call: RowCall) -> str:
    """Names a routine with what the names in it stand for."""
    said = [f"{name}={_spelled(value)}" for name, value in sorted(call.names.items())]
    return " ".join([f"{PREFIX}{routine}", *said])


def row_numbers(routine: str, call: RowCall, tuning: Tuning) -> tuple[Dim, ...]:
    """The integers that a routine gets: rows, tasks, bytes of a thread's workspace, tasks between
    two looks, its own."""
    task = 2 * tuning.task_elements  # operations: no vectors in many of these routines
    parts = compound("min", call.rows, call.parts)
    tasks = compound("max", compound("min", parts, call.work // task), 1)
    work = compound("max", call.work, 1)
    every = compound("max", compound("floordiv", tasks * task * SLICE_TASKS, work), 1)
    names = _numbers(routine_named(routine))
    own = (call.numbers[name] for name in names)
    return (call.rows, tasks, row_space(call), every, *own)


def row_space(call: RowCall) -> Dim:
    """Bytes of workspace for each thread: whole cache lines."""
    return (call.space + (LINE - 1)) // LINE * LINE


def row_text(symbol: str, target: Target) -> str:
    """The LLVM text of a routine by its symbol."""
    from treadle.runtime.cpu.routines.compiler import add_function

    routine, *said = symbol.removeprefix(PREFIX).split(" ")
    names = dict(_meaning(*s.split("=")) for s in said)
    module = Module(target)
    function = routine_named(routine)
    inner, parameters, _ = add_function(module, function, names)
    arrays = [n for n, kind in parameters if kind.family == "p" and n != "space"]
    numbers = [".rows", "tasks0", ".space", "every0", *_numbers(function)]

    def task(fn: Function, words: Words, number: str) -> None:
        rows, tasks = words[".rows"], words["tasks0"]
        first, last = (fn.divide(fn.mul(rows, n), tasks) for n in (number, fn.add(number, 1)))
        mine = fn.offset(str(words["workspace"]), fn.mul(words["worker"], words[".space"]), "i8")
        own = {**words, "space": mine, "first": first, "last": last}
        given = ", ".join(f"{kind.text} {own[name]}" for name, kind in parameters)
        fn.emit(f"call void @{inner}({given})")

    define_routine(module, "routine", arrays, numbers, lambda fn, w: {}, [task])
    return OPTIMIZE + module.text()


def _numbers(function: Callable[..., Any]) -> list[str]:
    """The parameters that are numbers of the caller's."""
    given = inspect.signature(function).parameters.values()
    arrays = ("Array[", "Apart[")
    own = ("space", "first", "last")
    return [p.name for p in given if p.name not in own and not p.annotation.startswith(arrays)]


def _spelled(value: Any) -> str:
    if not isinstance(value, DType):
        return str(int(value))
    if value.is_bool:
        return "u8"
    return f"{value.kind}{8 * value.size}"


def _meaning(name: str, text: str) -> tuple[str, Kind | int]:
    return name, KINDS[text] if text in KINDS else int(text)
