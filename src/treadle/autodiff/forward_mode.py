"""ForwardAccumulator: Jacobian-vector products, alongside the computation."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from treadle.autodiff.tape import GradientTape, UnconnectedGradients
from treadle.autodiff.values import is_differentiable, mismatch, ones_for, zeros_for
from treadle.core import nest
from treadle.core.context import context
from treadle.core.interrupts import puts_modes_back
from treadle.core.origin import at, user_origin
from treadle.core.spec import ListSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable


class ForwardAccumulator:
    """Computes directional derivatives of what is computed inside its ``with`` block.

    Args:
        primals: a tensor or variable, or a nested structure of them: where the derivative is taken.
        tangents: the direction: the same structure, with each primal's dtype and shape.

    Raises:
        ValueError: the structures, dtypes or shapes differ, or a primal is given twice.

    The product is the derivative of the vector-Jacobian product, which is linear in its vector:
    two reverse passes, when it is asked for. Tapes and accumulators whose blocks are around this
    one record them also when their blocks have ended.
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        nest.assert_same_structure(primals, tangents)
        self._primals = nest.flatten(primals)
        self._tangents = [
            _tangent(p, t) for p, t in zip(self._primals, nest.flatten(tangents), strict=True)
        ]
        if len({id(p) for p in self._primals}) != len(self._primals):
            raise ValueError(f"A tensor or variable is among the primals twice{at(user_origin())}")
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self._tape.watch(self._primals)
        self._around: tuple[Any, ...] = ()

    def __enter__(self) -> ForwardAccumulator:
        self._around = context.tapes
        self._tape.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tape.__exit__(*error)

    @puts_modes_back
    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The directional derivative of each of `primals`, which were computed in the block.

        Returns:
            The structure of `primals`; None (or zeros) for what does not depend on the
            accumulator's primals.
        """
        zero = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO

        def leaf(x: Any) -> Any:
            with ExitStack() as blocks:
                for tape in self._around:
                    if not tape.is_recording:
                        blocks.enter_context(tape.resumed())
                product = self._product(x)
            return zeros_for(x) if product is None and zero else product

        return nest.map_structure(leaf, primals)

    def _product(self, x: Any) -> Tensor | None:
        for primal, tangent in zip(self._primals, self._tangents, strict=True):
            if x is primal:
                return tangent
        if not is_differentiable(x):
            return None
        # Any vector will do; some rules have no slope by a gradient of 0.
        vector = zeros_for(x) if isinstance(x.spec, ListSpec) else ones_for(x)
        with GradientTape() as tape:
            tape.watch(vector)
            gradients = self._tape.vector_jacobian([x], [vector], self._primals)
        pairs = [(g, t) for g, t in zip(gradients, self._tangents, strict=True) if g is not None]
        if not pairs:
            return None
        return tape.vector_jacobian([g for g, _ in pairs], [t for _, t in pairs], [vector])[0]


def _tangent(primal: Any, given: Any) -> Tensor:
    if not isinstance(primal, Tensor | Variable) or not is_differentiable(primal):
        raise ValueError(
            f"Primals are floating point tensors or variables, got {primal!r}{at(user_origin())}"
        )
    tangent = convert_to_tensor(given, dtype_hint=primal.dtype)
    wrong = mismatch(tangent, primal)
    if wrong is not None:
        raise ValueError(f"A tangent {wrong} as its primal{at(user_origin())}")
    return tangent
