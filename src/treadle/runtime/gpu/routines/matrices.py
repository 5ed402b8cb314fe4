"""Matrices that one thread would take too long for: the library's linear algebra solves and
decomposes them.

Complex matrices are among them, whatever their size. The functions take memory of their own and
wait for the device, so they cannot be recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.ops.lowering import RowCall, Rows
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.routine import Routine

Arrays = Sequence[Any]
# (library, operands, attributes of the node) -> results
Function = Callable[[Any, Arrays, Mapping[str, Any]], tuple[Any, ...]]

_LEAF = 32  # rows of a triangle that are solved for one by one: products do the others
_LAUNCHES = 8  # about as many kernels as a function of the library runs


class MatrixRoutine(Routine):
    """A function of the library.

    Attributes:
        fails: whether the last output is the verdict: not 0 where a matrix is refused. The op's
            NumPy form is called then, and tells which one.
    """

    replays = False
    launches = _LAUNCHES

    def __init__(self, node: Node) -> None:
        self.name = _routine_of(node)
        self.function, self.fails = _FUNCTIONS[self.name]
        self.attrs = node.attrs

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        results = outputs[:-1] if self.fails else outputs
        refused = False
        if any(array.size for array in results):
            try:
                with driver.computing():
                    found = self.function(driver.library, inputs, self.attrs)
            except np.linalg.LinAlgError:
                refused = True
            else:
                for array, result in zip(results, found, strict=True):
                    array[...] = result
        if self.fails:
            outputs[-1][...] = refused


def verdicts(node: Node) -> Dim | None:
    """How many verdicts the routine for a node gives where no routine of rows takes it; None where
    there is none, or it refuses nothing."""
    return 1 if _takes(node) and _FUNCTIONS[_routine_of(node)][1] else None


def matrix_routine(node: Node, call: RowCall | None, gpu: Gpu) -> Routine | None:
    """The routine for matrices that are large, or that no routine of rows takes; None for others.

    Args:
        call: how a routine of rows computes the node, where one does.
    """
    if not _takes(node):
        return None
    sides = [] if call is None else [call.numbers[n] for n in ("m", "n") if n in call.numbers]
    return None if sides and all(_is_short(s, gpu) for s in sides) else MatrixRoutine(node)


def _takes(node: Node) -> bool:
    return _routine_of(node) in _FUNCTIONS and all(v.spec.dtype.size >= 4 for v in node.inputs)


def _routine_of(node: Node) -> str:
    return node.op.lower.routine if isinstance(node.op.lower, Rows) else ""


def _is_short(side: Dim, gpu: Gpu) -> bool:
    """Whether one thread does a matrix of such sides about as soon as it does a long row."""
    return isinstance(side, int) and side**3 <= gpu.block * gpu.warp


# -- equations -------------------------------------------------------------------------------------


def _inverse(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return (library.linalg.inv(inputs[0]),)


def _determinant(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return (library.linalg.det(inputs[0]),)


def _log_determinant(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    sign, logarithm = library.linalg.slogdet(inputs[0])
    # The sign of a determinant that is NaN is NaN, as eagerly and in TensorFlow.
    return library.where(library.isnan(logarithm), logarithm, sign), logarithm


def _of_one_batch(library: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Both sides of equations with the same batch dims."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return tuple(library.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))


def _solve(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    a, b = _of_one_batch(library, *inputs)
    return (library.linalg.solve(a, b),)


def _triangular_solve(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    a, b = _of_one_batch(library, *inputs)
    x = b.copy()
    _substitute(library, a, x, attrs["lower"])
    return (x,)


def _substitute(library: Any, a: Any, x: Any, lower: bool) -> None:
    """Solve for a triangle in place, each half by itself: a product takes the first solved one out
    of the equations of the other."""
    n = a.shape[-1]
    if n > _LEAF:
        half = n // 2
        upper_rows, lower_rows = slice(0, half), slice(half, n)
        first, second = (upper_rows, lower_rows) if lower else (lower_rows, upper_rows)
        _substitute(library, a[..., first, first], x[..., first, :], lower)
        x[..., second, :] -= library.matmul(a[..., second, first], x[..., first, :])
        _substitute(library, a[..., second, second], x[..., second, :], lower)
        return
    for k in range(n) if lower else range(n - 1, -1, -1):
        x[..., k, :] /= a[..., k, k, None]
        rest = slice(k + 1, n) if lower else slice(0, k)
        x[..., rest, :] -= a[..., rest, k, None] * x[..., k, None, :]


# -- decompositions --------------------------------------------------------------------------------


def _cholesky(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return (library.linalg.cholesky(inputs[0]),)


def _qr(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(library.linalg.qr(inputs[0], "complete" if attrs["full"] else "reduced"))


def _svd(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return singular_values(library, inputs[0], attrs["full"])


def singular_values(library: Any, x: Any, full: bool) -> tuple[Any, ...]:
    """The library's `svd`, with NaN for matrices that are not finite, which it may not come to an
    end with."""
    finite = library.isfinite(x).all((-2, -1))[..., None, None]
    u, s, vh = library.linalg.svd(library.where(finite, x, 0), full_matrices=full)
    return tuple(
        library.where(kept, found, math.nan)
        for kept, found in ((finite, u), (finite[..., 0], s), (finite, vh))
    )


def _eigh(library: Any, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    (x,) = inputs
    if x.shape[-1] > 1 and not library.isfinite(library.tril(x)).all():
        raise np.linalg.LinAlgError("the matrices are not finite")
    return tuple(library.linalg.eigh(x))


# routine of `treadle.runtime.routines` -> the function, and whether it refuses some matrices.
_FUNCTIONS: dict[str, tuple[Function, bool]] = {
    "elimination.inverse": (_inverse, True),
    "elimination.determinant": (_determinant, False),
    "elimination.log_determinant": (_log_determinant, False),
    "elimination.solve": (_solve, True),
    "elimination.triangular_solve": (_triangular_solve, False),
    "elimination.cholesky": (_cholesky, True),
    "rotations.qr": (_qr, False),
    "rotations.svd": (_svd, True),
    "symmetric.eigh": (_eigh, True),
}
