"""Numbers that the host computes itself while a program runs: counters, positions, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from treadle.core.shapes import substitute
from treadle.graph.ir import Value
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Apply, Const, Expr, Extent, Load
from treadle.kernel.reference import cast_array, compute_dtype
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.steps import Evaluate

Number: TypeAlias = "np.ndarray[Any, Any]"
Registers: TypeAlias = Mapping[Value, Number]
Compute: TypeAlias = Callable[[Registers, Mapping[str, int]], Any]


class HostNumber:
    """The number of one step, as functions of registers and sizes."""

    def __init__(self, step: Evaluate) -> None:
        """
        Raises:
            Unsupported: it depends on something else.
        """
        self.step, self.dtype = step, step.value.spec.dtype.np_dtype
        self.compute = self._function(step.expr)

    def __call__(self, registers: Registers, symbols: Mapping[str, int]) -> Number:
        return np.asarray(self.compute(registers, symbols)).astype(self.dtype)

    def _function(self, expr: Expr) -> Compute:
        match expr:
            case Const():
                constant = np.asarray(expr.value).astype(compute_dtype(expr.dtype))
                return lambda registers, symbols: constant
            case Extent():
                dim, size = expr.dim, compute_dtype(expr.dtype).type
                return lambda registers, symbols: size(substitute(dim, symbols))
            case Load(index=()):
                value = self.step.inputs[expr.buffer.name].value
                dtype = compute_dtype(expr.dtype)
                return lambda registers, symbols: registers[value].astype(dtype, copy=False)
            case Apply(fn="cast"):
                (inner,), target = map(self._function, expr.args), expr.dtype
                return lambda registers, symbols: cast_array(
                    np.asarray(inner(registers, symbols)), target
                )
            case Apply():
                return self._applied(expr, [self._function(a) for a in expr.args])
        raise Unsupported(f"the host of a GPU cannot compute {expr}")

    def _applied(self, expr: Apply, args: list[Compute]) -> Compute:
        function, dtype = FUNCTIONS[expr.fn].reference, compute_dtype(expr.dtype)
        return lambda registers, symbols: np.asarray(
            function(*(a(registers, symbols) for a in args))
        ).astype(dtype, copy=False)
