"""Functions as plain data and back: graphs are text, what they take and give are literals.

A concrete function is its graph, the structures of its arguments and results, and what it captures:
variables and assets of the model, constants, and random streams of the process. A function is its
parameters and its concrete functions.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.core.spec import ResourceSpec, Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.graph.ir import Graph
from treadle.graph.literals import DataSection, LiteralParser, literal_text
from treadle.graph.parser import parse_graph
from treadle.graph.printer import print_graph
from treadle.graph.replay import replay
from treadle.graph.tokens import Reader, tokenize
from treadle.graph.verifier import verify
from treadle.saved_model import composites  # noqa: F401 (gives composite tensors a text)
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function
from treadle.tracing.programs import Programs
from treadle.tracing.signature import Arguments, FunctionSignature, is_tensor_leaf
from treadle.tracing.trace import Trace, numbered, structure_of

Record = dict[str, Any]


class NotPlainError(ValueError):
    """A value has no text, so that it cannot be saved."""


class Arrays(DataSection):
    """The larger arrays of graphs, by digest."""

    def opaque(self, value: Any) -> NoReturn:
        raise NotPlainError(repr(value))


def literal(value: Any) -> str:
    """A structure of plain values and specs as text.

    Raises:
        NotPlainError: something in it is neither.
    """
    return literal_text(value, Arrays())


def read_literal(text: str) -> Any:
    """What `literal` was given.

    Raises:
        GraphSyntaxError: the text is none.
    """
    reader = Reader(tokenize(text))
    value = LiteralParser(reader, {}).literal()
    reader.expect_kind("end")
    return value


# -- writing ---------------------------------------------------------------------------------------


def graph_text(graph: Graph, name: str, arrays: Arrays, paths: bool) -> str:
    """A graph as text, wherever it runs.

    Raises:
        ValueError: an operation holds a Python object.
    """
    anywhere = Graph(name)
    anywhere.params, anywhere.nodes, anywhere.results = graph.params, graph.nodes, graph.results
    anywhere.captures = graph.captures
    try:
        return print_graph(anywhere, data=arrays, paths=paths)
    except NotPlainError:
        for node in graph.walk():
            try:
                literal(node.attrs)
            except NotPlainError as problem:
                why = f" ({node.op.callback})" if node.op.callback else ""
                raise ValueError(
                    f"{graph.name}: the operation {node.op.name} holds the Python object {problem},"
                    f" which cannot be saved{why}{at(node.origin)}"
                ) from None
        raise


def record_of(concrete: ConcreteFunction, graph: str, captures: Sequence[Any]) -> Record:
    """A concrete function as plain data.

    Args:
        graph: the name of its graph.
        captures: what stands for its captures.

    Raises:
        NotPlainError: a Python value among its arguments has no text.
    """
    arguments = nest.map_structure(_without_name, concrete.structured_input_signature)
    return {
        "name": concrete.name,
        "graph": graph,
        "parameters": parameters_of(concrete),
        "arguments": literal(arguments),
        "unranked": arguments_without_ranks(concrete),
        "results": literal(numbered(concrete.result_structure)),
        "captures": list(captures),
        "alike": list(concrete.alike),
    }


def arguments_without_ranks(concrete: ConcreteFunction) -> str | None:
    """The arguments of unknown ranks that a concrete function was made for, as text."""
    unranked = concrete.unranked
    if unranked is None:
        return None
    return literal(nest.map_structure(_without_name, (unranked.args, unranked.kwargs)))


def _without_name(leaf: Any) -> Any:
    """The graph has the names of tensors; calls are compared without."""
    return TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, TensorSpec) else leaf


def parameters_of(
    function: Function | ConcreteFunction, constant: Callable[[Tensor], str] | None = None
) -> list[Record]:
    """The parameters of a function. Defaults that have no text are left out.

    Args:
        constant: gives the name under which a tensor is kept.
    """
    found = []
    signature = function._signature.parameters
    for parameter in signature.parameters.values() if signature else ():
        described = {"name": parameter.name, "kind": parameter.kind.name}
        if isinstance(parameter.default, Tensor) and constant is not None:
            described["constant"] = constant(parameter.default)
        elif parameter.default is not parameter.empty:
            with contextlib.suppress(NotPlainError):
                described["default"] = literal(parameter.default)
        found.append(described)
    return found


def input_signature_of(function: Function) -> list[Record] | None:
    """The input signature of a function: literals, and the names of the tensors in them."""
    if function.input_signature is None:
        return None
    return [
        {
            "type": literal(nest.map_structure(_without_name, declared)),
            "names": [getattr(leaf, "name", None) for leaf in nest.flatten(declared)],
        }
        for declared in function.input_signature
    ]


# -- reading ---------------------------------------------------------------------------------------


class Restored:
    """A concrete function that was read, and for which arguments it is.

    Args:
        record: what `record_of` gave.
        text: its graph.
        data: gives the bytes of arrays by digest.
        resolve: gives the variable or tensor that stands for a capture.

    Raises:
        ValueError and the like: it is none.
    """

    def __init__(
        self, record: Record, text: str, data: Mapping[str, bytes], resolve: Callable[[Any], Any]
    ) -> None:
        graph = parse_graph(text, data=data, fresh_symbols=True)
        captures = [resolve(capture) for capture in record["captures"]]
        if len(captures) != len(graph.captures):
            raise ValueError(f"{record['name']} has {len(graph.captures)} captures")
        for missing, capture in zip(graph.captures, captures, strict=True):
            _check_fits(missing.spec, capture.spec, missing.name)
        graph.captures = captures
        verify(graph)
        self.graph, self.name = graph, str(record["name"])
        self.arguments = _read_arguments(record["arguments"])
        self.unranked = record["unranked"] and _read_arguments(record["unranked"])
        self.alike = record.get("alike")
        self.structure = structure_of(read_literal(record["results"]), len(graph.results))

    def concrete(
        self, signature: FunctionSignature, programs: Programs, declared: Sequence[Any] = ()
    ) -> tuple[ConcreteFunction, Arguments]:
        """The concrete function of a function, and the arguments that it is for.

        Args:
            declared: the input signature.
        """

        def bound(given: tuple[tuple[Any, ...], dict[str, Any]]) -> Arguments:
            args, kwargs = given
            count = len(declared)
            first = nest.map_structure(_named_as, args[:count], tuple(declared))
            return Arguments((*first, *args[count:]), kwargs, signature.names(len(args)))

        arguments = bound(self.arguments)
        if self.unranked is not None:
            arguments.unranked = bound(self.unranked)
        params = iter(self.graph.arguments)
        leaves = [next(params).spec if _is_passed(t) else None for t in arguments.types]
        if next(params, None) is not None:
            raise ValueError(f"{self.name}: the graph has more parameters than there are tensors")
        for kind, spec in zip(arguments.types, leaves, strict=True):
            if spec is not None:
                _check_fits(spec, kind, self.name)
        trace = Trace(
            self.graph, leaves, self.structure, False, [], False, list(self.graph.captures)
        )
        made = ConcreteFunction(trace, arguments, signature, programs)
        made.alike = self._alike(len(made.variables))
        if all(isinstance(spec, TensorSpec) for spec in self.graph.argument_specs):
            made.retrace = self._for_specs
        return made, arguments

    def _alike(self, captured: int) -> tuple[int, ...]:
        """See `ConcreteFunction.alike`; older files do not say it."""
        given = [spec for spec in self.graph.argument_specs if isinstance(spec, ResourceSpec)]
        numbers = range(captured, captured + len(given)) if self.alike is None else self.alike
        if len(numbers) != len(given):
            raise ValueError(f"{self.name} takes {len(given)} variables, not {len(numbers)}")
        return tuple(map(int, numbers))

    def _for_specs(self, specs: Sequence[Any]) -> ConcreteFunction:
        """The graph for other dims: see `ConcreteFunction.retrace`."""
        graph = self.graph

        def again(*tensors: Any) -> list[Any]:
            return replay(graph, [*tensors, *graph.captures])

        again.__name__ = self.name
        found = Function(again, autograph=False).get_concrete_function(*specs)
        assert isinstance(found, ConcreteFunction), "ranks are known"
        return found


def _is_passed(kind: Any) -> bool:
    """Whether a call gives a program the argument of a type: a tensor, or a variable."""
    return is_tensor_leaf(kind) or isinstance(kind, ResourceSpec)


def _read_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = read_literal(text)
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise ValueError(f"{text} are no arguments")
    return args, kwargs


def _named_as(spec: Any, declared: Any) -> Any:
    """A tensor's type in a trace with the name that the input signature has for it."""
    if isinstance(spec, TensorSpec) and isinstance(declared, TensorSpec):
        return TensorSpec(spec.shape, spec.dtype, declared.name)
    return spec


def _check_fits(wanted: Spec, given: Spec, name: str) -> None:
    """Raise a ValueError unless a parameter may have a value of a type."""
    kinds = (type(wanted), ResourceSpec if isinstance(given, ResourceSpec) else type(given))
    same = kinds[0] is kinds[1] and wanted.dtype is given.dtype
    if not same or not wanted.shape.is_compatible_with(given.shape):
        raise ValueError(f"{name} is {wanted}, and the value for it {given}")


def restored_signature(
    record: Record, constant: Callable[[str], Tensor] | None = None
) -> inspect.Signature:
    """The Python signature of a function that was read.

    Args:
        constant: gives the tensor that is kept under a name.
    """

    def default(described: Record) -> Any:
        if "constant" in described and constant is not None:
            return constant(described["constant"])
        known = "default" in described
        return read_literal(described["default"]) if known else inspect.Parameter.empty

    return inspect.Signature(
        [
            inspect.Parameter(p["name"], inspect._ParameterKind[p["kind"]], default=default(p))
            for p in record["parameters"]
        ]
    )


def restored_input_signature(record: Record) -> tuple[Any, ...] | None:
    """The input signature of a function that was read."""
    if record["input_signature"] is None:
        return None
    found = []
    for declared in record["input_signature"]:
        kind, names = read_literal(declared["type"]), iter(declared["names"])
        found.append(nest.map_structure(lambda leaf: _with_name(leaf, next(names)), kind))  # noqa: B023
    return tuple(found)


def _with_name(leaf: Any, name: str | None) -> Any:
    return TensorSpec(leaf.shape, leaf.dtype, name) if isinstance(leaf, TensorSpec) else leaf


def restored_function(
    record: Record, found: Sequence[Restored], constant: Callable[[str], Tensor] | None = None
) -> Function:
    """A function that has the concrete functions that were read, and makes no other ones.

    A call whose arguments do not have one of their types is compared with all of them, as Python
    numbers and lists may stand for tensors.
    """
    name = str(record["name"])
    concretes: list[ConcreteFunction] = []

    def restored(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for concrete in concretes:
            leaves = concrete.fitting_leaves(bound.args, bound.kwargs)
            if leaves is not None:
                return concrete.call_flat(leaves)
        raise ValueError(_no_match(name, concretes, bound, record["left_out"]))

    signature = restored_signature(record, constant)
    restored.__signature__ = signature  # type: ignore[attr-defined]
    restored.__name__ = restored.__qualname__ = name
    declared = restored_input_signature(record)
    function = Function(restored, declared, autograph=False, name=name)
    for one in found:
        concrete, arguments = one.concrete(function._signature, function._programs, declared or ())
        concretes.append(concrete)
        function.adopt(concrete, arguments)
    return function


def restored_concrete(record: Record, found: Restored) -> ConcreteFunction:
    """A concrete function that stands alone."""

    def restored() -> None:
        """Takes what the signature says."""

    restored.__signature__ = restored_signature(record)  # type: ignore[attr-defined]
    return found.concrete(FunctionSignature(restored, None, found.name), Programs())[0]


def restored_signature_function(record: Record, found: Sequence[Restored]) -> Any:
    """A function of named tensors that was read: of one trace, or of one for each rank."""
    unranked = next((one.unranked for one in found if one.unranked is not None), None)
    if unranked is None:
        return restored_concrete(record, found[0])
    kind = {"name": found[0].name, "input_signature": None, "left_out": (), **record}
    args, kwargs = unranked
    return restored_function(kind, found).get_concrete_function(*args, **kwargs)


def _no_match(
    name: str, concretes: Sequence[ConcreteFunction], bound: inspect.BoundArguments,
    left_out: Sequence[str],
) -> str:  # fmt: skip
    missing = "".join(f"\nSaving left out {text}" for text in left_out)
    if not concretes and missing:
        return f"{name} was saved without concrete functions.{missing}{at(user_origin())}"
    if not concretes:
        return (
            f"{name} was saved without concrete functions: it had no input_signature and was never "
            f"called{at(user_origin())}"
        )
    options = "\n".join(f"  {concrete.pretty_signature()}" for concrete in concretes)
    return (
        f"Could not find matching concrete function to call loaded from the SavedModel. Got "
        f"{bound.args} and {bound.kwargs}. Expected these arguments to match one of the following "
        f"{len(concretes)} option(s):\n{options}{missing}{at(user_origin())}"
    )
