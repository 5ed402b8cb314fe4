"""Nodes of TensorFlow's graphs as calls: what they compute is recorded by the function that is
being traced.

Values of nodes are tensors, lists of tensors, and what nodes name by handles: variables and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from treadle.autodiff.custom import custom_gradient
from treadle.compat.graph_nodes import (
    in_order,
    node_attributes,
    output_names,
    plain_node,
    tensor_name,
)
from treadle.compat.tensorflow_state import OPERATIONS
from treadle.compat.tensorflow_types import is_known, run_operation
from treadle.core import errors
from treadle.core.spec import ListSpec
from treadle.core.tensor import Tensor
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.elementwise.comparison import equal, not_equal
from treadle.ops.elementwise.unary import identity
from treadle.ops.state import Variable

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES, _LOOPS = ("If", "StatelessIf"), ("While", "StatelessWhile")
_CASES = ("Case", "StatelessCase")
_OWN = {*_CALLS, *_BRANCHES, *_LOOPS, *_CASES}
_GRADIENT = "_gradient_op_type"  # the attribute that names a gradient of the program's own
Values = dict[str, Any]


class Library:
    """The functions of a graph by their names.

    Args:
        messages: the graph's ``FunctionDefLibrary``.
        gradient: gives the results of a function that is a gradient, by its name, for the gradients
            of what the forward function gives; there are None among them.
    """

    def __init__(self, messages: Any, gradient: Callable[[str, Sequence[Any]], Any]) -> None:
        self._functions = {f.signature.name: f for f in messages.function}
        self._gradients = {
            found.registered_op_type: found.gradient_func for found in messages.registered_gradients
        }
        self._gradient = gradient

    def call(self, name: str, values: Sequence[Any], within: tuple[str, ...] = ()) -> list[Any]:
        """The results of a function.

        Args:
            values: its arguments.
            within: the functions whose calls led here.

        Raises:
            ValueError: it is not there, calls itself, or does not fit its arguments.
            UnimplementedError: operations are of types that are not known; the text names them.
        """
        function = self._functions.get(name)
        if function is None:
            raise ValueError(f"there is no function {name!r}")
        if name in within:
            raise ValueError(f"function {name!r} calls itself")
        arguments = [a.name for a in function.signature.input_arg]
        if len(arguments) != len(values):
            raise ValueError(f"function {name!r} is called with {len(values)} arguments")
        known = set(arguments)
        nodes = [plain_node(n, known, function.node_def) for n in function.node_def]
        given = {f"{a}:0": x for a, x in zip(arguments, values, strict=True)}
        wanted = [function.ret[a.name] for a in function.signature.output_arg]
        results = output_names(wanted, known, function.node_def)
        effects = list(function.control_ret.values())
        return self.run(nodes, given, results, effects, (*within, name))

    def unchanged(self, name: str) -> set[int]:
        """The numbers of results of a function that are the arguments of the same numbers."""
        function = self._functions.get(name)
        if function is None:
            raise ValueError(f"there is no function {name!r}")
        forwards = {n.name: n.input[0] for n in function.node_def if n.op == "Identity" and n.input}

        def source(name: str) -> str:
            for _ in range(len(forwards)):
                op = name.partition(":")[0]
                if op not in forwards:
                    break
                name = forwards[op]
            return name.partition(":")[0]

        pairs = zip(function.signature.input_arg, function.signature.output_arg, strict=False)
        return {k for k, (a, r) in enumerate(pairs) if source(function.ret[r.name]) == a.name}

    def run(
        self, nodes: Sequence[Any], given: Mapping[str, Any], results: Sequence[str],
        effects: Sequence[str] = (), within: tuple[str, ...] = (),
    ) -> list[Any]:  # fmt: skip
        """The values of some of a graph's tensors; other nodes are not run.

        Args:
            given: tensors, as ``name:0``, whose values are known.
            results: the tensors.
            effects: nodes that are to be run, too.
        """
        nodes = _needed(nodes, given, results, effects)
        _check_known(nodes)
        found: Values = dict(given)
        for node in in_order(nodes, set(given)):
            if f"{node.name}:0" not in given:
                for index, value in enumerate(self._results(node, found, within)):
                    found[f"{node.name}:{index}"] = value
        missing = [name for name in results if name not in found]
        if missing:
            raise ValueError(f"there is no tensor {missing[0]!r}")
        return [found[name] for name in results]

    def _results(self, node: Any, found: Values, within: tuple[str, ...]) -> Sequence[Any]:
        names = [tensor_name(n) for n in node.input if not n.startswith("^")]
        missing = [n for n in names if n not in found]
        if missing:
            raise ValueError(f"operation {node.name!r} reads {missing[0]!r}, which is not there")
        inputs, attrs = [found[n] for n in names], node_attributes(node)
        if node.op == "Identity" and not isinstance(inputs[0], Tensor | Variable):
            return inputs
        if node.op in _CALLS:
            return self.call(attrs["f"], inputs, within)
        if node.op in _BRANCHES:
            return self._branch(attrs, inputs, within)
        if node.op in _CASES:
            return self._case(attrs["branches"], inputs, within)
        if node.op in _LOOPS:
            return self._loop(attrs, inputs, within)
        if node.op == "IdentityN" and _GRADIENT in node.attr:
            return self._with_gradient(node.attr[_GRADIENT].s.decode(), inputs)
        if node.op in OPERATIONS:
            result = OPERATIONS[node.op](inputs, attrs)
        else:
            values = [x.value() if isinstance(x, Variable) else x for x in inputs]
            result = run_operation(node.op, attrs, *values)
        return () if result is None else result if type(result) is tuple else (result,)

    def _with_gradient(self, type_: str, values: list[Any]) -> Sequence[Any]:
        """Values that have the gradients that a function of the program gave; those of the
        operations where the function was not saved."""
        if type_ not in self._gradients:
            return values
        name = self._gradients[type_]

        @custom_gradient
        def same(*values: Any) -> Any:
            def grad(*upstream: Any) -> Any:
                return self._gradient(name, upstream)

            return tuple(map(identity, values)), grad

        found: Sequence[Any] = same(*values)
        return found

    def _branch(self, attrs: Any, inputs: list[Any], within: tuple[str, ...]) -> Sequence[Any]:
        pred, *operands = inputs
        if pred.dtype.name != "bool":
            pred = not_equal(pred, "" if pred.dtype.name == "string" else 0)
        bodies = [
            partial(self._body, attrs[key], operands, within)
            for key in ("then_branch", "else_branch")
        ]
        found: Sequence[Any] = cond(pred, bodies[0], bodies[1])
        return found

    def _body(self, name: str, operands: list[Any], within: tuple[str, ...]) -> tuple[Any, ...]:
        return tuple(self.call(name, operands, within))

    def _case(
        self, names: Sequence[str], inputs: list[Any], within: tuple[str, ...]
    ) -> Sequence[Any]:
        """Branches one within the other; a number that none has is the last one's."""
        which, *operands = inputs
        bodies = [partial(self._body, name, operands, within) for name in names]
        chosen: Callable[[], Any] = bodies[-1]
        for number in reversed(range(len(names) - 1)):
            chosen = partial(cond, equal(which, number), bodies[number], chosen)
        found: Sequence[Any] = chosen()
        return found

    def _loop(self, attrs: Any, inputs: list[Any], within: tuple[str, ...]) -> Sequence[Any]:
        """What the body passes on as it is, handles among it, is no variable of the loop."""
        fixed = self.unchanged(attrs["body"])
        fixed |= {k for k, x in enumerate(inputs) if not isinstance(x, Tensor)}
        turning = [k for k in range(len(inputs)) if k not in fixed]

        def whole(values: Sequence[Any]) -> list[Any]:
            made = list(inputs)
            for place, value in zip(turning, values, strict=True):
                made[place] = value
            return made

        def test(*values: Any) -> Any:
            return self.call(attrs["cond"], whole(values), within)[0]

        def body(*values: Any) -> Any:
            results = self.call(attrs["body"], whole(values), within)
            return tuple(results[place] for place in turning)

        if not turning:
            raise errors.UnimplementedError(None, None, "a loop without variables is not read")
        invariants = self._invariants(attrs, inputs, turning)
        found = while_loop(test, body, tuple(inputs[k] for k in turning), invariants)
        return whole(found)

    @staticmethod
    def _invariants(attrs: Any, inputs: Sequence[Any], turning: Sequence[int]) -> Any:
        """The shapes of the loop's variables, where the graph says that they change."""
        shapes = attrs.get("output_shapes") or []
        if len(shapes) != len(inputs):
            return None
        if any(isinstance(inputs[k].spec, ListSpec) for k in turning):
            return None
        return tuple(
            inputs[k].shape if shapes[k] is None else inputs[k].shape.__class__(shapes[k])
            for k in turning
        )


def _needed(
    nodes: Sequence[Any], given: Mapping[str, Any], results: Sequence[str], effects: Sequence[str]
) -> list[Any]:
    """The nodes that results and effects need."""
    by_name = {n.name: n for n in nodes}
    if len(by_name) != len(nodes):
        raise ValueError("two operations have one name")
    waiting = [name.rpartition(":")[0] for name in results if name not in given]
    waiting += [name for name in effects if name in by_name]
    wanted: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in wanted or name not in by_name:
            continue
        wanted.add(name)
        for source in by_name[name].input:
            if source.startswith("^") or tensor_name(source) not in given:
                waiting.append(source.removeprefix("^").partition(":")[0])
    return [n for n in nodes if n.name in wanted]


def _check_known(nodes: Sequence[Any]) -> None:
    unknown = {
        n.op: n.name for n in nodes
        if not (n.op in _OWN or n.op in OPERATIONS or is_known(n.op))
    }  # fmt: skip
    if unknown:
        listed = ", ".join(f"{op} ({name!r})" for op, name in sorted(unknown.items()))
        raise errors.UnimplementedError(
            None, None, f"operations of these types are not read: {listed}"
        )
