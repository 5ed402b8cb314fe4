"""A list plus zeros with one element: an addition to that element.

    %z = list_new(%n)                              %e = list_get(%a, %i)
    %s = list_set(%z, %i, %v)               ->     %t = add(%e, %v)
    %b = list_add(%a, %s)                          %b = list_set(%a, %i, %t)

The gradient of ``array.read(i)`` is such a list. A recurrence over a TensorArray would make one,
and add all its elements, in every iteration of the loop that runs back.
"""

from __future__ import annotations

from treadle.core.spec import ListSpec, has_element_shape
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.collections.lists import LIST_ADD, LIST_GET, LIST_NEW, LIST_SET
from treadle.ops.elementwise.arithmetic import ADD


def add_to_elements(graph: Graph) -> bool:
    """Replace sums of two lists where one list is zero but for an element."""
    if not any(node.op is LIST_ADD for node in graph.walk()):
        return False
    return _Sums(graph).run()


class _Sums(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.uses = uses(graph)

    def visit(self, node: Node) -> Replacement:
        if node.op is not LIST_ADD:
            return None
        terms = self._terms(node)
        singles = [single for t in terms if (single := self._single(t)) is not None]
        others = [t for t in terms if self._single(t) is None]
        if not singles or len(others) != 1 or not _is_plain(others[0]):
            return None
        (items,) = others
        for index, value in singles:
            old = self.emit(LIST_GET, [items, index], {"dims": value.spec.dims})
            total = self.emit(ADD, [old, value], {})
            items = self.emit(LIST_SET, [items, index, total], {"grow": False})
        return [items]

    def _terms(self, node: Node) -> list[Value]:
        """The lists that are added up, by this sum and by those that only it reads."""
        found: list[Value] = []
        for value in node.inputs:
            inner = value.node
            if inner is not None and inner.op is node.op and self.uses.get(value, 0) == 1:
                found += self._terms(inner)
            else:
                found.append(value)
        return found

    def _single(self, value: Value) -> tuple[Value, Value] | None:
        """The position and the element of a list that has no others and that nobody else reads."""
        node = value.node
        if node is None or node.op is not LIST_SET or self.uses.get(value, 0) != 1:
            return None
        empty, index, element = node.inputs
        made = empty.node
        if made is None or made.op is not LIST_NEW or self.uses.get(empty, 0) != 1:
            return None
        static = all(isinstance(d, int) for d in element.spec.dims)
        return (index, element) if static else None


def _is_plain(items: Value) -> bool:
    """Whether all elements have one shape: elements that were not written are zeros of it."""
    return isinstance(items.spec, ListSpec) and has_element_shape(items.spec)
