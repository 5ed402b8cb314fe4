"""Values that are computed again where they are needed rather than stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from treadle.core.shapes import Dim, product
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Index, Load, postorder
from treadle.ops.indexing.gather import GATHER
from treadle.runtime.fusion.expressions import Expressions, Names
from treadle.runtime.fusion.group import NotFusable, weight
from treadle.runtime.fusion.space import index_at, placement_of
from treadle.runtime.fusion.takeovers import Takeovers
from treadle.runtime.roles import Role, kind_of, squeezed, through_squeezes

# No machine changes these: they compare instructions on vectors with instructions on vectors, and
# bound the time of compiling.
MAX_RECOMPUTED = 6  # operations that are cheaper to repeat than to store and load
MAX_MOVED = 60  # a value used once, through a view, is computed there up to this weight
MAX_DEPTH = 32  # views of views, and values computed in them, between a kernel and memory
MAX_PARTS = 2  # arrays that each of several readers may choose between, element by element


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
        self.allowed: dict[Value, bool] = {}
        self.weights: dict[Value, int | None] = {}
        self.depths: dict[Value, int] = {}  # of those that have a weight
        self.sources: dict[Value, int] = {}  # arrays of the value's own size that it is made of
        self.parts: dict[Value, int] = {}  # arrays that it is made of

    def allows(self, value: Value) -> bool:
        """Whether a value from outside a group is evaluated in it rather than loaded."""
        if value not in self.allowed:
            self.allowed[value] = self._allows(value)
        return self.allowed[value]

    def _allows(self, value: Value) -> bool:
        node = value.node
        if node is None or not self._may_repeat(value):
            return False
        if self.roles[node] is Role.VIEW:
            return self.is_near(value) and not self._is_chosen_again(value)
        if self._is_required(value) or self._names_rows(value):
            return False
        total = self._weight(value)
        if total is None:
            return False
        cheap = total <= MAX_RECOMPUTED and self.sources[value] <= 1
        return cheap or self._moves_once(value, total)

    def is_near(self, value: Value) -> bool:
        """Whether not too much lies between a view and the memory that it is read from."""
        return self._weight(value) is not None

    def _may_repeat(self, value: Value) -> bool:
        """Whether the value is of a kind that is computed again, and still can be."""
        node = value.node
        role = self.roles.get(node) if node is not None else None
        if node is None or value in self.results or node in self.takeovers.stored:
            return False
        elementwise = role is Role.ARRAY and kind_of(node) == "elementwise" and self.elementwise
        return role is Role.VIEW or elementwise

    def _is_chosen_again(self, value: Value) -> bool:
        """Whether a view joins many arrays, and several readers would choose between them for every
        element. Where each layer joins its result to those before it, code for the choices would
        grow with the square of the layers."""
        return self.parts[value] > MAX_PARTS and len(self.consumers.get(value, ())) > 1

    def _is_required(self, value: Value) -> bool:
        """Whether something outside kernels reads the value from memory."""
        return any(
            self.roles[n] not in (Role.ARRAY, Role.VIEW) and squeezed(n) is None
            for n in self.consumers.get(value, ())
        )

    def _names_rows(self, value: Value) -> bool:
        """Whether a gather reads several elements at each of these positions, which are no vectors
        then: to compute them for every element costs more than to load them."""
        size = product(value.spec.dims)
        return any(
            n.op is GATHER
            and n.inputs[1] is value
            and product(n.outputs[0].spec.dims) != size
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
        stack = [value]
        while stack:  # operands first, so that measuring never goes deep
            current = stack[-1]
            if current in self.weights:
                stack.pop()
                continue
            assert current.node is not None
            below = {through_squeezes(v) for v in current.node.inputs}
            new = [v for v in below if v not in self.weights and self._may_repeat(v)]
            if new:
                stack += new
                continue
            self.weights[current] = None  # ends recursion on itself
            self.weights[current] = self._measure(current)
            stack.pop()
        return self.weights[value]

    def _measure(self, value: Value) -> int | None:
        node = value.node
        assert node is not None
        depth = 1

        def inlines(inner: Value, _: Sequence[Index]) -> bool:
            nonlocal depth
            found = inner is value or (inner.node is not node and self.allows(inner))
            if found and inner is not value:
                depth = max(depth, self.depths[inner] + 1)
            return found

        build = Expressions(inlines, lambda _: (), self.names)
        placement = placement_of(node)
        try:
            expr = build.element(value, index_at(placement.space, placement.out))
        except NotFusable:
            return None
        order = postorder([expr])
        self.depths[value] = depth
        total = sum(weight(e) for e in order)
        size = product(value.spec.dims)
        loaded = {e.buffer for e in order if isinstance(e, Load)}
        self.parts[value] = len(loaded)
        self.sources[value] = sum(not _is_less(product(b.shape), size) for b in loaded)
        return total if total <= 2 * MAX_MOVED and depth <= MAX_DEPTH else None


def _is_less(a: Dim, b: Dim) -> bool:
    """Whether a array of `a` elements is read again at little cost beside one of `b`."""
    return a == 1 or (isinstance(a, int) and isinstance(b, int) and a < b)
