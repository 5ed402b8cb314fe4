"""Values that are computed again where they are needed rather than stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from treadle.core.shapes import Dim, product
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Load, postorder
from treadle.runtime.fusion.expressions import Expressions, Names
from treadle.runtime.fusion.group import NotFusable, weight
from treadle.runtime.fusion.roles import Role, kind_of, squeezed
from treadle.runtime.fusion.space import index_at, placement_of
from treadle.runtime.fusion.takeovers import Takeovers

MAX_RECOMPUTED = 6  # operations that are cheaper to repeat than to store and load
MAX_MOVED = 60  # a value used once, through a view, is computed there up to this weight


class Recomputation:
    """Which values of a region kernels may evaluate again.

    Args:
        elementwise: whether elementwise nodes may be; otherwise only views.
    """

    def __init__(
        self,
        roles: Mapping[Node, Role],
        consumers: Mapping[Value, Sequence[Node]],
        results: Collection[Value],
        takeovers: Takeovers,
        names: Names,
        elementwise: bool,
    ) -> None:
        self.roles, self.consumers, self.results = roles, consumers, results
        self.takeovers, self.names, self.elementwise = takeovers, names, elementwise
        self.weights: dict[Value, int | None] = {}
        self.sources: dict[Value, int] = {}  # arrays of the value's own size that it is made of

    def allows(self, value: Value) -> bool:
        """Whether a value from outside a group is evaluated in it rather than loaded."""
        node = value.node
        role = self.roles.get(node) if node is not None else None
        if node is None or role not in (Role.VIEW, Role.ARRAY) or value in self.results:
            return False
        if node in self.takeovers.stored:
            return False
        if role is Role.VIEW:
            return self._weight(value) is not None
        if not self.elementwise or kind_of(node) != "elementwise" or self._is_required(value):
            return False
        total = self._weight(value)
        if total is None:
            return False
        cheap = total <= MAX_RECOMPUTED and self.sources[value] <= 1
        return cheap or self._moves_once(value, total)

    def _is_required(self, value: Value) -> bool:
        """Whether something outside kernels reads the value from memory."""
        return any(
            self.roles[n] not in (Role.ARRAY, Role.VIEW) and squeezed(n) is None
            for n in self.consumers.get(value, ())
        )

    def _moves_once(self, value: Value, total: int) -> bool:
        """Used only by one view of the same size, which is used once itself."""
        users = self.consumers.get(value, ())
        if total > MAX_MOVED or len(users) != 1 or self.roles[users[0]] is not Role.VIEW:
            return False
        view = users[0].outputs[0]
        same = product(view.spec.dims) == product(value.spec.dims)
        return same and len(self.consumers.get(view, ())) == 1 and len(users[0].inputs) == 1

    def _weight(self, value: Value) -> int | None:
        """The operations that evaluating `value` repeats; None where it must be in memory."""
        if value not in self.weights:
            self.weights[value] = None  # ends recursion on itself
            self.weights[value] = self._measure(value)
        return self.weights[value]

    def _measure(self, value: Value) -> int | None:
        node = value.node
        assert node is not None
        build = Expressions(
            lambda v, _: v is value or (v.node is not node and self.allows(v)),
            lambda _: (),
            self.names,
        )
        placement = placement_of(node)
        try:
            expr = build.element(value, index_at(placement.space, placement.out))
        except NotFusable:
            return None
        order = postorder([expr])
        total = sum(weight(e) for e in order)
        size = product(value.spec.dims)
        loaded = {e.buffer for e in order if isinstance(e, Load)}
        self.sources[value] = sum(not _is_less(product(b.shape), size) for b in loaded)
        return total if total <= 2 * MAX_MOVED else None


def _is_less(a: Dim, b: Dim) -> bool:
    """Whether a array of `a` elements is read again at little cost beside one of `b`."""
    return a == 1 or (isinstance(a, int) and isinstance(b, int) and a < b)
