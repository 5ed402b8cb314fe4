"""The stages of a function as texts: source, generated code, graph, and what the compiler made."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import treadle as td


class Stages(dict[str, str]):
    """Stage names and texts, in the order in which the stages are made; prints readably.

    Attributes:
        memory: bytes that a run needs: `peak`, and its parts `arguments`, `variables`, `constants`,
            `outputs`, `workspace`. None where the function is interpreted.
    """

    memory: Any = None

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
    further = graph_stages(function.get_concrete_function(*args, **kwargs))
    found.update(further)
    found.memory = further.memory
    return found


def python_stages(function: Callable[..., Any]) -> Stages:
    """The stages that need no arguments: "source" and "autograph"."""
    python = getattr(function, "python_function", function)
    found = Stages(source=textwrap.dedent(inspect.getsource(python)))
    found["autograph"] = td.autograph.to_code(python)
    return found


def graph_stages(concrete: Any) -> Stages:
    """The stages of a concrete function: "graph" as traced, and what the compiler keeps."""
    found = Stages()
    if concrete.loops:
        found["loops"] = "\n".join(map(str, concrete.loops))
    found["graph"] = str(concrete.graph)
    if concrete.executable.calls:
        found["calls of Python"] = concrete.executable.calls
    for name, text in concrete.executable.stages.items():
        found["graph after passes" if name == "graph" else name] = text
    found.memory = concrete.executable.memory
    return found
