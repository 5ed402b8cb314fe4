"""The stages of a function as texts: source, generated code, graph, and what the compiler made."""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import treadle as td


class Stages(Mapping[str, str]):
    """Stage names and texts, in the order in which the stages are made; prints readably.

    A text is written when it is read: the assembly takes as long as compiling the function.

    Attributes:
        memory: bytes that a run needs: `peak`, and its parts `arguments`, `variables`, `constants`,
            `outputs`, `workspace`. None where the function is interpreted.
    """

    memory: Any = None

    def __init__(self) -> None:
        self._writers: dict[str, Callable[[], str]] = {}

    def add(self, name: str, writer: Callable[[], str]) -> None:
        """Append a stage, or replace the one of this name."""
        self._writers[name] = writer

    def update(self, further: "Stages") -> None:
        """Append the stages of a later part of the compiler, and take over its `memory`."""
        self._writers.update(further._writers)
        self.memory = further.memory

    def __getitem__(self, name: str) -> str:
        return self._writers[name]()

    def __contains__(self, name: object) -> bool:  # a Mapping's own would write the text
        return name in self._writers

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)

    def __len__(self) -> int:
        return len(self._writers)

    def __repr__(self) -> str:
        return "\n\n".join(f"== {name} ==\n{text.strip()}" for name, text in self.items())


def stages(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Stages:
    """Every stage of `function` for one signature.

    `function` is a Python function, one decorated with `td.function`, or a concrete function
    (which takes no arguments here). The arguments are what `get_concrete_function` takes: tensors
    or `TensorSpec`s, and Python values. The function is traced, but not run.

    Returns the texts by name: "source" and "autograph" where there is Python source, "loops" where
    there are loops over Python values (which are rolled, and why others are not), "graph" as
    traced, and then the stages of the compiler, from the graph after its passes to assembly.
    """
    if hasattr(function, "executable"):
        return graph_stages(function)
    found = python_stages(function)
    if not hasattr(function, "get_concrete_function"):
        function = td.function(function)
    found.update(graph_stages(function.get_concrete_function(*args, **kwargs)))
    return found


def python_stages(function: Callable[..., Any]) -> Stages:
    """The stages that need no arguments: "source" and "autograph"."""
    python = getattr(function, "python_function", function)
    source, code = textwrap.dedent(inspect.getsource(python)), td.autograph.to_code(python)
    found = Stages()
    found.add("source", lambda: source)
    found.add("autograph", lambda: code)
    return found


def graph_stages(concrete: Any) -> Stages:
    """The stages of a concrete function: "graph" as traced, and what the compiler keeps."""
    found = Stages()
    loops, calls, compiled = concrete.loops, concrete.executable.calls, concrete.executable.stages
    if loops:
        found.add("loops", lambda: "\n".join(map(str, loops)))
    found.add("graph", lambda: str(concrete.graph))
    if calls:
        found.add("calls of Python", lambda: calls)
    for name in compiled:
        shown = "graph after passes" if name == "graph" else name
        found.add(shown, compiled.writer(name))
    found.memory = concrete.executable.memory
    return found
