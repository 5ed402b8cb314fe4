"""Products and sums of rank-0 values in loops as one operation, rounded once.

What a scalar loop computes from one iteration to the next is a chain of dependent operations, and
their latency is its time: ``a = a * b + c`` takes one fma instead of two operations. A product is
taken into a sum only where nobody else reads it, and not where the other operand is a product too:
``x * x - y * y`` stays 0 for x = y, and a value is the same wherever it is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from treadle.graph.ir import Value, uses
from treadle.kernel.ir import Apply, Expr, Load, postorder
from treadle.runtime.cpu.elements import Elements
from treadle.runtime.schedule.steps import Evaluate, Loop

Factors = tuple[str, str]
Products: TypeAlias = dict[Value, Factors]


class Contraction:
    """What is known of the products among the rank-0 values of a function of a program.

    Attributes:
        has_fma: whether the target has the operation; nothing is contracted where it has not.
        depth: how many loops are around the step being emitted, without those that round
            products and sums one by one.
        products: the values that are products with a single reader.
    """

    def __init__(self, has_fma: bool, depth: int = 0) -> None:
        self.has_fma = has_fma
        self.depth = depth
        self.products: Products = {}
        self._uses: dict[object, dict[Value, int]] = {}

    @contextmanager
    def inside(self, loop: Loop) -> Iterator[None]:
        """What is emitted here belongs to an iteration of the loop."""
        self.depth += not loop.exact
        yield
        self.depth -= not loop.exact

    def note(self, step: Evaluate, values: dict[Expr, str]) -> None:
        """Remember a value that is a product with a single reader."""
        expr = step.expr
        if isinstance(expr, Apply) and self._applies(expr, ("mul",)) and self._single(step.value):
            left, right = (values[a] for a in expr.args)
            self.products[step.value] = left, right

    def fused(
        self, elements: Elements, step: Evaluate, expr: Apply, values: dict[Expr, str]
    ) -> str | None:
        """The register of ``a * b + c`` (or ``-``) where `expr` is computed so, else None."""
        if not self._applies(expr, ("add", "sub")):
            return None
        found = [self._factors(step, a, values) for a in expr.args]
        if (found[0] is None) == (found[1] is None):
            return None
        lanes = elements.lanes(expr.dtype)
        left, right = (values[a] for a in expr.args)
        minus = expr.fn == "sub"
        if found[0] is not None:
            return lanes.fma(*found[0], lanes.neg(right) if minus else right)
        assert found[1] is not None
        a, b = found[1]
        return lanes.fma(lanes.neg(a) if minus else a, b, left)

    def _applies(self, expr: Apply, functions: tuple[str, ...]) -> bool:
        is_float = expr.dtype.is_floating and expr.dtype.size >= 4
        wanted = self.has_fma and self.depth > 0 and is_float
        return wanted and expr.fn in functions

    def _factors(self, step: Evaluate, expr: Expr, values: dict[Expr, str]) -> Factors | None:
        if isinstance(expr, Load) and not expr.index:
            operand = step.inputs[expr.buffer.name]
            product = operand.value.node
            mine = step.value.node
            same = product is not None and mine is not None and product.region is mine.region
            return self.products.get(operand.value) if same else None
        if isinstance(expr, Apply) and expr.fn == "mul" and _readers(step.expr, expr) == 1:
            left, right = (values[a] for a in expr.args)
            return left, right
        return None

    def _single(self, value: Value) -> bool:
        """Whether one node of the value's region reads it, once, and it is no result of the
        region."""
        region = value.node.region if value.node is not None else None
        if region is None:
            return False
        if region not in self._uses:
            self._uses[region] = uses(region)
        return self._uses[region].get(value) == 1 and value not in region.results


def _readers(root: Expr, expr: Expr) -> int:
    """How often an expression is an operand below `root`."""
    return sum(list(e.children).count(expr) for e in postorder([root]))
