"""Branches and loops of Switch, Merge, Enter, Exit and NextIteration as `cond` and `while_loop`.

Graphs of TensorFlow 1 say by these operations where values go. Here each tensor has *contexts*:
the branches and loops that it is computed in. A Switch begins a branch, of which a Merge is the
end; an Enter begins a loop, which an Exit leaves. What has no context is read as it stands; a Merge
or Exit becomes a `cond` or `while_loop`, whose functions read what they need, each tensor where its
contexts are. Arrays of tensors, which loops write and read, are passed on as their flows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import treadle as td
from treadle.compat.graph_nodes import node_attributes, tensor_name
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.graph_reading import Reading
from treadle.compat.v1.tensor_array import TensorArray as _TensorArray
from treadle.compat.v1.values import Region, leaves_of, thread
from treadle.core.origin import at, user_origin

TensorArray: Any = _TensorArray

_TYPES = ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond")
_ARRAYS = (
    "TensorArrayV3", "TensorArrayWriteV3", "TensorArrayReadV3", "TensorArrayGatherV3",
    "TensorArrayScatterV3", "TensorArraySizeV3", "TensorArrayConcatV3", "TensorArrayCloseV3",
)  # fmt: skip

# What a tensor is computed in: ("branch", pred, port) or ("frame", name).
_Context = tuple[Any, ...]
_Contexts = frozenset[_Context]
_NOWHERE: _Contexts = frozenset()


def _type_of(node: Any) -> str:
    return str(node.op).removeprefix("Ref")


def is_old(nodes: Sequence[Any]) -> bool:
    """Whether a graph has branches or loops of the old form."""
    return any(_type_of(n) in _TYPES for n in nodes)


class _Scope(NamedTuple):
    """A function of a branch or loop, or the graph itself.

    Attributes:
        contexts: all that it is in.
        found: its tensors by their names; `operations`: its operations.
        region: where its operations are written down; None for the graph itself.
    """

    contexts: _Contexts
    found: dict[str, Any]
    operations: dict[str, Any]
    region: Region | None


class _Loop(NamedTuple):
    """The nodes of a loop: of each variable its Merge, Enter and NextIteration, and the test."""

    variables: list[tuple[Any, Any, Any]]
    test: Any


class OldControlFlow(Reading):
    """Nodes with branches and loops of the old form that become operations of a graph."""

    more_types: ClassVar[frozenset[str]] = frozenset(
        [*_TYPES, *(f"Ref{t}" for t in _TYPES), *_ARRAYS]
    )

    def __init__(
        self, graph: Graph, library: Any, found: Mapping[str, Any], functions: tuple[str, ...] = ()
    ) -> None:
        super().__init__(graph, library, found, functions)
        self._scopes = [_Scope(_NOWHERE, self.found, self.operations, None)]
        self._nodes: dict[str, Any] = {}
        self._open: set[str] = set()  # the ends of branches that are, or were, read
        self._contexts: dict[str, _Contexts] = {}
        self._places: dict[str, int] = {}  # of nodes behind those that they read

    def add(self, nodes: Sequence[Any]) -> None:
        self._nodes = {n.name: n for n in nodes}
        if len(self._nodes) != len(nodes):
            raise ValueError(f"two operations have one name{at(user_origin())}")
        order = list(self._ordered(nodes))
        self._places = {node.name: place for place, node in enumerate(order)}
        for node in order:
            self._contexts[node.name] = self._contexts_of(node)
        for node in order:
            if not self._contexts[node.name]:
                self._operation_named(node.name)

    # -- contexts ----------------------------------------------------------------------------

    def _ordered(self, nodes: Sequence[Any]) -> Iterator[Any]:
        """Nodes behind those that they read, but for those of the next iteration."""
        done: set[str] = set()
        for first in nodes:
            waiting = [(first, iter(self._before(first)))]
            on_the_way = {first.name}
            while waiting:
                node, before = waiting[-1]
                name = next((n for n in before if n not in done), None)
                if node.name in done or name is None:
                    waiting.pop()
                    on_the_way.discard(node.name)
                    if node.name not in done:
                        done.add(node.name)
                        yield node
                    continue
                if name in on_the_way:
                    raise self._refused(node)
                on_the_way.add(name)
                waiting.append((self._nodes[name], iter(self._before(self._nodes[name]))))

    def _before(self, node: Any) -> list[str]:
        names = [n.removeprefix("^").partition(":")[0] for n in node.input]
        known = [n for n in names if n in self._nodes]
        if _type_of(node) == "Merge":
            return [n for n in known if _type_of(self._nodes[n]) != "NextIteration"]
        return known

    def _refused(self, node: Any) -> td.errors.UnimplementedError:
        return td.errors.UnimplementedError(
            None, None,
            f"the branches or loops of Switch, Merge, Enter, Exit and NextIteration at "
            f"{node.name!r} are not those of tf.cond and tf.while_loop: freeze the graph with "
            "functional ones (tf.compat.v1.enable_control_flow_v2(), or "
            "convert_variables_to_constants_v2(function, lower_control_flow=False))"
            f"{at(user_origin())}",
        )  # fmt: skip

    def _of_tensor(self, name: str) -> _Contexts:
        """The contexts of a tensor, or of an operation."""
        op, _, index = name.removeprefix("^").partition(":")
        node = self._nodes.get(op)
        if node is None or name in self._mapped:
            return _NOWHERE
        found = self._contexts[op]
        if _type_of(node) == "Switch" and not name.startswith("^") and not self._of_loop(node):
            found |= {("branch", self._source(node.input[1]), int(index or 0))}
        return found

    def _source(self, name: str) -> str:
        """The condition that a tensor is, or is the same as."""
        name = tensor_name(name)
        node = self._nodes.get(name.partition(":")[0])
        return self._source(node.input[0]) if node is not None and node.op == "Identity" else name

    def _of_loop(self, node: Any) -> bool:
        """Whether a Switch is that of a loop's variable, and not of a branch."""
        pred = self._nodes.get(node.input[1].partition(":")[0])
        return pred is not None and _type_of(pred) == "LoopCond"

    def _contexts_of(self, node: Any) -> _Contexts:
        names = [n if n.startswith("^") else tensor_name(n) for n in node.input]
        kind = _type_of(node)
        if kind == "Merge" and self._ends(node):
            return self._of_merge(node, names)
        known = [n for n in names if n.removeprefix("^").partition(":")[0] in self._contexts]
        found = _NOWHERE.union(*map(self._of_tensor, known))
        if kind == "Enter":
            return found | {("frame", self._frame(node))}
        if kind == "Exit":
            frames = {c for c in found if c == ("frame", self._frame_of_exit(node))}
            return found - frames
        return found

    def _ends(self, merge: Any) -> bool:
        """Whether a Merge is the end of a branch, and not a variable of a loop."""
        return len(self._before(merge)) == len(merge.input)

    def _of_merge(self, node: Any, names: list[str]) -> _Contexts:
        both = [self._of_tensor(n) for n in names if not n.startswith("^")]
        pred = self._pred_of(both)
        if pred is None:
            raise self._refused(node)
        return frozenset(c for c in _NOWHERE.union(*both) if c[:2] != ("branch", pred))

    @staticmethod
    def _pred_of(both: Sequence[_Contexts]) -> str | None:
        """Which condition chooses between a false and a true value."""
        if len(both) != 2:
            return None
        false = {c[1] for c in both[0] if c[0] == "branch" and c[2] == 0}
        true = {c[1] for c in both[1] if c[0] == "branch" and c[2] == 1}
        both_sides = false & true
        return both_sides.pop() if len(both_sides) == 1 else None

    @staticmethod
    def _frame(enter: Any) -> str:
        return str(node_attributes(enter)["frame_name"])

    def _frame_of_exit(self, node: Any) -> str:
        switch = self._nodes.get(node.input[0].partition(":")[0])
        if switch is None or _type_of(switch) != "Switch" or not self._of_loop(switch):
            raise self._refused(node)
        merge = self._nodes.get(switch.input[0].partition(":")[0])
        if merge is None or _type_of(merge) != "Merge":
            raise self._refused(node)
        return self._frame(self._enter_of(merge))

    def _enter_of(self, merge: Any) -> Any:
        for name in merge.input:
            node = self._nodes.get(name.partition(":")[0])
            if node is not None and _type_of(node) == "Enter":
                return node
        raise self._refused(merge)

    # -- values ------------------------------------------------------------------------------

    def _scope_of(self, contexts: _Contexts, node: Any) -> _Scope:
        for scope in self._scopes:
            if contexts <= scope.contexts:
                return scope
        raise self._refused(node)

    def _tensor(self, name: str) -> Any:
        """A tensor by its name, read where its contexts are."""
        name = tensor_name(name)
        self.used.add(name)
        if name in self._mapped:
            return self.found[name]
        node = self._nodes.get(name.partition(":")[0])
        if node is None:
            raise ValueError(f"{name!r} is not in the graph{at(user_origin())}")
        scope = self._scope_of(self._of_tensor(name), node)
        if name not in scope.found:
            self._read_before(node)
            with self._writing_into(scope):
                self._read(node, scope)
        if name not in scope.found:
            raise self._refused(node)
        return scope.found[name]

    def _read_before(self, node: Any) -> None:
        """Read what a node needs, so that long chains are no deep calls."""
        wanted: set[str] = set()
        waiting = [] if self._is_end(node) else self._before(node)
        while waiting:
            name = waiting.pop()
            other = self._nodes[name]
            if name in wanted or any(name in scope.operations for scope in self._scopes):
                continue
            wanted.add(name)
            if not self._is_end(other):
                waiting += self._before(other)
        for name in sorted(wanted, key=self._places.__getitem__):
            self._operation_named(name)

    def _is_end(self, node: Any) -> bool:
        """Whether a node is the end of a branch or loop, which is read as a whole."""
        kind = _type_of(node)
        return kind == "Exit" or (kind == "Merge" and self._ends(node))

    def _operation_named(self, name: str) -> Any:
        """An operation by its name; None for one that says only where values go."""
        node = self._nodes[name]
        if _type_of(node) in _TYPES and not self._is_end(node):
            return None
        scope = self._scope_of(self._contexts[name], node)
        if name not in scope.operations:
            with self._writing_into(scope):
                self._read(node, scope)
        return scope.operations.get(name)

    @contextmanager
    def _writing_into(self, scope: _Scope) -> Iterator[None]:
        """What the block reads is written down in a scope, which may be one around."""
        place = self._scopes.index(scope)
        inner, self._scopes = self._scopes, self._scopes[: place + 1]
        region = thread.region
        thread.region = scope.region
        try:
            yield
        finally:
            thread.region, self._scopes = region, inner

    def _read(self, node: Any, scope: _Scope) -> None:
        kind, name = _type_of(node), node.name
        if kind == "Merge":
            self._branch(node, scope)
        elif kind == "Exit":
            self._loop_of(node, scope)
        elif kind in _TYPES:
            value = self._tensor(node.input[0])
            scope.found[f"{name}:0"] = scope.found[f"{name}:1"] = value
        elif kind in _ARRAYS:
            self._array(node, scope)
        else:
            inputs = [self._tensor(n) for n in node.input if not n.startswith("^")]
            if node.op == "Identity" and isinstance(inputs[0], TensorArray):
                scope.found[f"{name}:0"] = inputs[0]
                return
            found = [self._operation_named(n[1:]) for n in node.input if n.startswith("^")]
            control = [op for op in found if op is not None]
            graph = self._graph
            with graph.control_dependencies(control), graph.device(node.device or None):
                op = self._of_tensorflow(node, inputs)
            scope.operations[name] = op
            for index, tensor in enumerate(op.outputs):
                scope.found.setdefault(f"{name}:{index}", tensor)

    @contextmanager
    def _inside(self, context: _Context, around: _Scope, found: dict[str, Any]) -> Iterator[None]:
        """What the block reads is in a function of a branch or loop."""
        scopes = self._scopes
        inner = _Scope(around.contexts | {context}, found, {}, thread.region)
        self._scopes = [*scopes[: scopes.index(around) + 1], inner]
        try:
            yield
        finally:
            self._scopes = scopes

    def _branch(self, node: Any, scope: _Scope) -> None:
        """The `cond` of a Merge, and of all others of the same call."""
        if node.name in self._open:
            raise self._refused(node)
        pred = self._pred_of([self._of_tensor(tensor_name(n)) for n in node.input[:2]])
        assert pred is not None
        place = node.name.rpartition("/")[0]
        merges = [
            n for n in self._nodes.values()
            if _type_of(n) == "Merge" and n.name.rpartition("/")[0] == place and self._ends(n)
            and self._contexts[n.name] == self._contexts[node.name]
            and self._pred_of([self._of_tensor(tensor_name(x)) for x in n.input[:2]]) == pred
        ]  # fmt: skip

        def side(port: int) -> Callable[[], Any]:
            def call() -> Any:
                with self._inside(("branch", pred, port), scope, {}):
                    return [self._tensor(m.input[port]) for m in merges]

            return call

        chosen = self._tensor(pred)
        self._open |= {m.name for m in merges}
        result = self._graph.record(td.cond, (chosen, side(1), side(0)), {}, node.name, "If")
        for merge, value in zip(merges, result, strict=True):
            scope.found[f"{merge.name}:0"] = value
            scope.operations[merge.name] = value.op

    def _loop_nodes(self, frame: str) -> _Loop:
        variables, tests = [], []
        for node in self._nodes.values():
            kind = _type_of(node)
            if kind == "Merge" and not self._ends(node):
                enter = self._enter_of(node)
                if self._frame(enter) == frame:
                    after = self._nodes[next(n for n in node.input if n not in self._before(node))]
                    variables.append((node, enter, after))
            elif kind == "LoopCond" and ("frame", frame) in self._contexts[node.name]:
                tests.append(node)
        inner = min(tests, key=lambda n: len(self._contexts[n.name]), default=None)
        if inner is None:
            raise td.errors.UnimplementedError(
                None, None, f"the loop {frame!r} has no LoopCond{at(user_origin())}"
            )
        return _Loop(variables, inner)

    def _loop_of(self, node: Any, scope: _Scope) -> None:
        """The `while_loop` of an Exit, and of all others of the same loop."""
        frame = self._frame_of_exit(node)
        loop, context = self._loop_nodes(frame), ("frame", frame)
        merges = [merge.name for merge, *_ in loop.variables]

        def bound(values: Any) -> dict[str, Any]:
            return {f"{name}:0": value for name, value in zip(merges, values, strict=True)}

        def test(*values: Any) -> Any:
            with self._inside(context, scope, bound(values)):
                return self._tensor(loop.test.input[0])

        def body(*values: Any) -> Any:
            with self._inside(context, scope, bound(values)):
                return tuple(self._tensor(after.input[0]) for *_, after in loop.variables)

        first = tuple(self._tensor(enter.input[0]) for _, enter, _ in loop.variables)
        result = self._graph.record(td.while_loop, (test, body, first), {}, node.name, "While")
        values = dict(zip(merges, result, strict=True))
        for other in self._nodes.values():
            if _type_of(other) == "Exit" and self._frame_of_exit(other) == frame:
                switch = self._nodes[other.input[0].partition(":")[0]]
                value = values[switch.input[0].partition(":")[0]]
                scope.found[f"{other.name}:0"] = value
                scope.operations[other.name] = next(iter(leaves_of(value))).op

    def _array(self, node: Any, scope: _Scope) -> None:
        """An operation of an array of tensors: its flow is the array."""
        given = [self._tensor(n) for n in node.input if not n.startswith("^")]
        kind, name, found = node.op, node.name, scope.found
        made: tuple[Any, ...]
        if kind == "TensorArrayV3":
            attrs = node_attributes(node)
            array = TensorArray(
                attrs["dtype"], given[0], dynamic_size=attrs.get("dynamic_size", False),
                element_shape=attrs.get("element_shape"),
            )  # fmt: skip
            made = array, array
        elif kind == "TensorArrayWriteV3":
            made = (given[3].write(given[1], given[2]),)
        elif kind == "TensorArrayScatterV3":
            made = (given[3].scatter(given[1], given[2]),)
        elif kind in ("TensorArrayReadV3", "TensorArrayGatherV3"):
            array = given[2]
            made = (array.read(given[1]) if "Read" in kind else array.gather(given[1]),)
        elif kind == "TensorArraySizeV3":
            made = (given[1].size(),)
        elif kind == "TensorArrayConcatV3":
            made = (given[1].concat(),)
        else:  # TensorArrayCloseV3
            made = ()
        for index, value in enumerate(made):
            found[f"{name}:{index}"] = value
        scope.operations[name] = made[0].op if made else None
