"""Names of the operations of a trace, as TensorFlow makes them: ``MatMul``, ``outer/add_1``."""

from __future__ import annotations

import re

from treadle.graph.ir import Node, Region, Value
from treadle.ops.tensorflow_names import operation_name

_VALID = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_UNNAMED = re.compile(r"v\d+")


class OperationNames:
    """The names of the operations of one graph, no two of which are equal, whatever their case.

    An operation is called after its op, or as ``name=`` of the call says, in the name scopes where
    it was made. Names are given when somebody asks for one: to all operations so far, in order.
    """

    def __init__(self) -> None:
        self._scopes: dict[Node, str] = {}
        self._asked_for: dict[Node, str] = {}
        self._names: dict[Node | Value, str] = {}
        self._used: dict[str, int] = {}

    def put(self, node: Node, scope: str) -> None:
        """Tell in which name scopes, as ``outer/inner/``, an operation is made."""
        self._scopes[node] = scope

    def scope(self, node: Node) -> str:
        """The name scopes in which an operation was made."""
        return self._scopes.get(node, "")

    def ask(self, node: Node, name: str) -> None:
        """Let an operation have a name, where that is a valid one."""
        if _VALID.fullmatch(name):
            self._asked_for.setdefault(node, name)

    def of(self, region: Region, of: Value | Node) -> str:
        """The name of an operation of `region`, of the one that gives a value, or of a parameter.
        """
        for param in region.params:
            if param not in self._names:
                unnamed = _UNNAMED.fullmatch(param.name)
                self._names[param] = self._unique("Placeholder" if unnamed else param.name)
        new = []
        for node in reversed(region.nodes):
            if node in self._names:
                break
            new.append(node)
        key = (of.node or of) if isinstance(of, Value) else of
        for node in reversed(new):
            self._name(node)
        if isinstance(key, Node) and key not in self._names:  # it is in no region any more
            self._name(key)
        return self._names[key]

    def _name(self, node: Node) -> None:
        name = self._asked_for.get(node) or operation_name(node.op.name)
        self._names[node] = self._unique(self._scopes.get(node, "") + name)

    def _unique(self, name: str) -> str:
        """TensorFlow's rule: ``name``, ``name_1``, ``name_2``."""
        key = name.lower()
        count = self._used.get(key, 0)
        self._used[key] = count + 1
        if not count:
            return name
        while f"{key}_{count}" in self._used:
            count += 1
        self._used[f"{key}_{count}"] = 1
        return f"{name}_{count}"
