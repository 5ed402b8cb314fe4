"""Programs that run without Python: their object files, and what is to be linked with them.

A program reaches everything that has an address through its state table (`program_state`). Here
the words of the table are names of functions and arrays for a linker instead of addresses: kernels,
routines of the library and the pool of threads are modules of their own, which several programs of
one library share. Checks that would call Python to raise an error give the text of the error.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.devices import HOST
from treadle.core.digests import digest
from treadle.core.object_cache import default_cache
from treadle.core.origin import at
from treadle.core.records import record
from treadle.core.spec import ListSpec, ResourceSpec, TensorSpec, is_static, spec_text
from treadle.graph.ir import Graph, Node
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.ops.properties import Refusal
from treadle.runtime.compiler import plan_program
from treadle.runtime.cpu.build_program import emitted_program
from treadle.runtime.cpu.emission import object_file
from treadle.runtime.cpu.facts import CpuFacts
from treadle.runtime.cpu.library_code import routine_parts
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.pool_code import pool_text
from treadle.runtime.cpu.program_blueprint import Blueprint
from treadle.runtime.cpu.target import Target, using
from treadle.runtime.cpu.thread_count import threads
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Callback,
    Deliver,
    Exhausted,
    Guard,
    Launch,
    ListStep,
    Step,
    node_of,
)  # fmt: skip
from treadle.runtime.signature import Signature

# A function that others may call, in LLVM's text: linkage, result and name.
_DEFINED = re.compile(r'^define (?!internal |private )([^@\n]*)@([\w.$-]+|"[^"]*")\(', re.MULTILINE)
_COLLECTIVE = "all_reduce"  # routines of several workers
_OBJECT = "object"  # the kind of object files on disk

# What an op got that refuses it; other refusals are of positions.
_REFUSED: dict[Refusal | None, str] = {
    **dict.fromkeys(Refusal, "a position that its array does not have"),
    Refusal.DIVISOR: "a zero by which integers are divided",
    Refusal.EXPONENT: "an integer's exponent below zero",
    Refusal.INTERVAL: "an interval without numbers",
}


@record(frozen=True)
class Notice:
    """What a program tells when it calls back: a check that failed, no memory, or a result.

    Attributes:
        kind: "check", "memory" or "result".
        text: of the error, a template (`str.format`) for the words that the program passes.
        number: that of the result.
    """

    kind: str
    text: str = ""
    number: int = 0


@record(frozen=True)
class Standalone:
    """A program.

    Attributes:
        graph: the optimized graph; its results may know more sizes than the traced one.
        signature: how ``run`` finds arguments, results and sizes in its frame.
        run: the name of the function ``int64_t run(void **state, int64_t *frame)``.
        words: of the state table, each as a kind and a key: ("fixed", name), ("constant", number),
            ("function", name), or ("cell", number of the parameter).
        constants: the arrays that the program reads, by number.
        variables, written: numbers of the parameters that are variables, and that it assigns.
        notices: what it tells, by the number that it passes.
    """

    graph: Graph
    signature: Signature
    run: str
    words: list[tuple[str, Any]]
    constants: list[np.ndarray[Any, Any]]
    variables: list[int]
    written: list[int]
    notices: list[Notice]


@record
class Objects:
    """The machine code of the programs of one library.

    Attributes:
        target: the machine that it is for.
        threads: the most that a program can use.
        tiles: for each type of elements the names of the tiles and packers of matrix products by
            their places in the table through which routines call them.
        pool: the names of the functions of the pool of threads.
    """

    target: Target
    threads: int
    tiles: dict[str, dict[int, str]] = field(default_factory=dict)
    pool: dict[str, str] = field(default_factory=dict)
    _modules: dict[str, dict[str, str]] = field(default_factory=dict)
    _texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tiles = {element: {} for element in ELEMENT_BYTES}
        self.pool = self._add(pool_text(self.target), "pool")

    def add(self, graph: Graph) -> Standalone:
        """Compile a traced graph.

        Raises:
            UnimplementedError: a part of it needs Python.
        """
        if graph.device is not HOST:
            raise _refused(graph, f"it runs on {graph.device}")
        for value in (*graph.params, *graph.results):
            _check_value(graph, value.spec)
        for node in graph.walk():
            _check_node(graph, node)
        with using(self.target, run=False):
            optimized = clone_graph(graph)
            optimize(optimized)
            try:
                planned = plan_program(optimized, CpuFacts(self.threads))
            except Unsupported as reason:
                raise _refused(graph, str(reason)) from None
            blueprint, text = emitted_program(planned, is_standalone=True)
            notices = _notices(planned, blueprint)
            return Standalone(
                planned.graph,
                planned.signature,
                self._add(text, graph.name)["run"],
                [self._word(graph, kind, key) for kind, key in blueprint.table.keys],
                [np.asarray(c, order="C") for c in planned.builder.constants],
                list(blueprint.variables),
                list(blueprint.written),
                notices,
            )

    def files(self) -> list[bytes]:
        """The object files."""
        with ThreadPoolExecutor(threads()) as pool:
            return list(pool.map(self._object, self._texts))

    def _object(self, text: str) -> bytes:
        """An object file, from the disk where it is there."""
        cache = default_cache()
        key = digest(f"{_OBJECT}\n{self.target.key}\n{text}")
        data = cache.load(_OBJECT, key)
        if data is None:
            data = object_file(text, self.target)
            cache.store(_OBJECT, key, data)
        return data

    def _add(self, text: str, about: str) -> dict[str, str]:
        """Have a module; gives the names under which others call its functions. They are seen by
        the linker alone, not by who loads the library."""
        if text not in self._modules:
            own = digest(text, 16)
            prefix = f"treadle_{re.sub(r'[^a-zA-Z0-9]+', '_', about)[:40]}_{own}"
            names = [name.strip('"') for _, name in _DEFINED.findall(text)]
            known = {name: f"{prefix}_{name}" for name in names}
            hidden = _DEFINED.sub(r"define hidden \1@\2(", text)
            self._texts.append(_renamed(hidden, known))
            self._modules[text] = known
        return self._modules[text]

    def _word(self, graph: Graph, kind: str, key: Any) -> tuple[str, Any]:
        """A word of a state table."""
        if kind == "kernel":
            code, symbol = key
            return "function", self._add(code.emitted.text, "kernel")[symbol]
        if kind == "routine":
            return "function", self._routine(graph, key)
        return kind, key

    def _routine(self, graph: Graph, symbol: str) -> str:
        if symbol.startswith(_COLLECTIVE):
            raise _refused(graph, "it works with other processes")
        own, called = routine_parts(symbol, self.target)
        for part in called:
            name = self._add(part.text(), "tile")[part.function]
            self.tiles[part.element][part.place] = name
        return self._add(own.text(), "routine")[own.function]


def _renamed(text: str, names: dict[str, str]) -> str:
    """A module whose functions have other names."""
    if not names:
        return text
    any_name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"@({any_name})(?![\w.$-])", lambda found: f"@{names[found[1]]}", text)


def _refused(graph: Graph, reason: str, node: Node | None = None) -> errors.UnimplementedError:
    """The error of a graph that needs Python."""
    where = "" if node is None else at(node.origin)
    text = f"{graph.name} cannot run without Python: {reason}{where}"
    return errors.UnimplementedError(None, node and node.op, text)


def _check_value(graph: Graph, spec: Any) -> None:
    """Refuse arguments, results and captures that are neither tensors nor variables of known
    sizes."""
    if isinstance(spec, ListSpec):
        raise _refused(graph, "it takes or returns a list of tensors (stack() makes a tensor)")
    if isinstance(spec, ResourceSpec) and not is_static(spec):
        raise _refused(graph, f"its variable {spec_text(spec)} has no fixed shape")
    if isinstance(spec, TensorSpec) and not spec.has_rank:
        raise _refused(graph, f"the rank of {spec.name or 'a tensor'} is not known")


def _check_node(graph: Graph, node: Node) -> None:
    if node.op.runs_user_code:
        raise _refused(graph, f"{node.op.name} calls Python code", node)
    asserts = "asserts" in node.op.tags
    if not asserts and any(v.spec.dtype is dtypes.string for v in (*node.inputs, *node.outputs)):
        raise _refused(graph, f"{node.op.name} works with strings", node)


def _notices(planned: Planned, blueprint: Blueprint) -> list[Notice]:
    """What the calls of Python in a program are without it."""
    steps = set(all_steps(planned.block))
    graph = planned.graph
    return [_notice(graph, step, step in steps) for step in blueprint.callbacks]


def _notice(graph: Graph, step: Step, always: bool) -> Notice:
    """`always`: the call is made whenever the step runs, not only where a check fails."""
    match step:
        case Deliver():
            return Notice("result", number=step.number)
        case Exhausted():
            node = node_of(step.step)
            which, place = ("", "") if node is None else (f" for {node.op.name}", _place(node))
            return Notice("memory", f"there is no memory{which}: another {{}} bytes{place}")
        case Guard():
            return Notice("check", f"{step.node.op.name}: {step.text}{_place(step.node)}")
        case ListStep():
            text = f"{step.node.op.name}: index {{}} is out of range for a list of {{}} elements"
            return Notice("check", text + _place(step.node))
        case Launch():
            node = node_of(step)
            what = "a part of it" if node is None else node.op.name
            raise _refused(graph, f"{what} has no machine code", node)
        case Callback() if always:
            why = f" ({step.reason})" if step.reason else ""
            raise _refused(graph, f"{step.node.op.name} runs in Python{why}", step.node)
        case Callback():
            return Notice("check", _literal(_failure(step.node)) + _place(step.node))
    raise AssertionError(f"no program calls Python for {step}")


def _failure(node: Node) -> str:
    """What a check says that has failed."""
    if "asserts" in node.op.tags:
        return str(node.attrs.get("message") or "an assertion does not hold")
    operands = ", ".join(spec_text(v.spec) for v in node.inputs)
    refused = _REFUSED.get(node.op.refuses, "operands that it does not take")
    return f"{node.op.name}({operands}) got {refused}"


def _literal(text: str) -> str:
    """A text as a part of a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _place(node: Node) -> str:
    """The user's line, as a part of a template."""
    return _literal(at(node.origin))
