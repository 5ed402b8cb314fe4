"""A function of a library: its program, and how C calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treadle.core.errors import UnimplementedError
from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, dim_symbols, substitute
from treadle.core.spec import Spec
from treadle.ops.state import Variable
from treadle.runtime.standalone import Standalone
from treadle.shared_object.c_text import Names, element_type
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.exported import dim_names, result_names


@record(frozen=True)
class Array:
    """An argument or a result.

    Attributes:
        name: of the member of the function's struct.
        spec: its dtype and sizes.
        type: the C type of its elements.
        number: of the parameter or result of the graph.
        text: its dtype and sizes for people, ``float32 [x_dim_0, 4]``.
    """

    name: str
    spec: Spec
    type: str
    number: int
    text: str

    @property
    def rank(self) -> int:
        return len(self.spec.dims)


@record(frozen=True)
class Function:
    """One function.

    Attributes:
        name: the name that the caller of `export` chose.
        c_name: the function and its struct in C.
        reads, writes: the variables that it uses, and those that it assigns.
        is_told: for each result whether its sizes follow from those of the arguments.
    """

    name: str
    c_name: str
    program: Standalone
    arguments: list[Array]
    results: list[Array]
    reads: list[Variable]
    writes: list[Variable]

    def is_told(self, result: Array) -> bool:
        """Whether the sizes of a result follow from those of the arguments; the program tells
        others when it runs."""
        return result.number in self.program.signature.outputs


def described(
    name: str, c_name: str, concrete: ConcreteFunction, program: Standalone
) -> Function:
    """The function of C for a program.

    Args:
        concrete: what the program was made of.

    Raises:
        UnimplementedError: an argument or result has a dtype that C does not have.
    """
    graph, members = concrete.graph, Names()
    spelled = dim_names(graph)
    arguments = [
        _array(name, members.of(p.name), p.spec, number, spelled)
        for number, p in enumerate(graph.arguments)
    ]
    values = program.graph.results
    names = result_names(concrete.structured_outputs, len(values))
    results = [
        _array(name, members.of(given), value.spec, number, spelled)
        for number, (given, value) in enumerate(zip(names, values, strict=True))
    ]
    first = len(graph.params) - len(graph.captures)
    variables = {number: graph.captures[number - first] for number in program.variables}
    return Function(
        name, c_name, program, arguments, results,
        list(variables.values()), [variables[number] for number in program.written],
    )  # fmt: skip


def _array(
    function: str, name: str, spec: Spec, number: int, spelled: Mapping[str, str]
) -> Array:
    kind = element_type(spec.dtype)
    if kind is None:
        text = f"{function}: there is no type in C for {name}, which is {spec.dtype.name}"
        raise UnimplementedError(None, None, text)
    sizes = ", ".join(_size_text(d, spelled) for d in spec.dims)
    text = f"{spec.dtype.name} [{sizes}]" if spec.dims else spec.dtype.name
    return Array(name, spec, kind, number, text)


def _size_text(dim: Dim, spelled: Mapping[str, str]) -> str:
    """A size in the names of open dims; ``?`` for one that only the program finds out."""
    symbols = dim_symbols(dim)
    if not symbols <= spelled.keys():
        return "?"
    named = substitute(dim, {s: SymbolicDim.symbol(spelled[s]) for s in symbols})
    return str(named) if isinstance(named, int) else repr(named)


def all_variables(functions: Sequence[Function]) -> list[Variable]:
    """The variables of all functions, in the order of their first use."""
    return list({id(v): v for function in functions for v in function.reads}.values())


def variable_name(variable: Variable) -> str:
    """The name of a variable: Keras's path of it, or its own."""
    return getattr(variable, "path", None) or variable.name.removesuffix(":0")
