"""Gradients by complex operands against finite differences: matrices, statistics, cases of ops.

The gradient of a real number L by z = x + iy is dL/dx + i dL/dy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.samples import ALL

STEP = 1e-6
CASES = [c for c in ALL if "complex64" in c.dtypes and c.differentiable]


def drawn(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def weighted(results: Any) -> Any:
    """A real number that depends on both parts of all numbers of the results."""
    parts = []
    for seed, y in enumerate(td.nest.flatten(results)):
        if y.dtype.is_floating or y.dtype.is_complex:
            weights = td.constant(drawn(*y.shape, seed=seed + 5))
            parts.append(td.reduce_sum(td.math.real(td.cast(y, td.complex128) * weights)))
    return td.add_n(parts)


def check(fn: Callable[..., Any], arrays: Sequence[Any]) -> None:
    """The gradients along a direction are the slope along it, eagerly and in a function."""
    tensors = [td.constant(a) for a in arrays]
    directions = [drawn(*a.shape, seed=k) if a.dtype.kind == "c" else np.zeros(a.shape)
                  for k, a in enumerate(arrays)]  # fmt: skip

    def at(step: float) -> float:
        moved = (a + step * d if d.any() else a for a, d in zip(arrays, directions, strict=True))
        return float(weighted(fn(*map(td.constant, moved))))

    def gradients(*xs: Any) -> list[Any]:
        with td.GradientTape() as tape:
            tape.watch(xs)
            total = weighted(fn(*xs))
        found = tape.gradient(total, list(xs), unconnected_gradients="zero")
        return [td.convert_to_tensor(g) for g in found]

    slope = (at(STEP) - at(-STEP)) / (2 * STEP)
    for found in (gradients(*tensors), td.function(gradients, autograph=False)(*tensors)):
        pairs = zip(found, directions, strict=True)
        along = sum(float(np.sum((np.conj(g.numpy()) * d).real)) for g, d in pairs)
        np.testing.assert_allclose(along, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_cases_of_ops(case):
    arrays = case.arrays(case.shapes[1 % len(case.shapes)], "complex64")
    check(case.fn, [a.astype(np.complex128) if a.dtype.kind == "c" else a for a in arrays])


def rebuilt(a: Any) -> Any:
    """Something of singular values and vectors that does not depend on the vectors' phases."""
    s, u, v = td.linalg.svd(a)
    inner = td.linalg.diag(td.cast(td.exp(-s), u.dtype))
    return s, u @ inner @ td.linalg.adjoint(v)


def hermitian(a: Any) -> Any:
    return (a + td.linalg.adjoint(a)) / 2


def exponential(a: Any) -> Any:
    w, v = td.linalg.eigh(hermitian(a))
    return w, v @ td.linalg.diag(td.exp(w)) @ td.linalg.adjoint(v)


def positive(a: Any) -> Any:
    return a @ td.linalg.adjoint(a) + 3 * td.eye(3, dtype=a.dtype)


MATRICES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "eigh": (exponential, [(3, 3)]),
    "eigvalsh of a batch": (lambda a: td.linalg.eigvalsh(hermitian(a)), [(2, 3, 3)]),
    "svd": (rebuilt, [(3, 3)]),
    "svd wide": (rebuilt, [(2, 3)]),
    "svd tall": (rebuilt, [(2, 4, 2)]),
    "singular values": (lambda a: td.linalg.svd(a, compute_uv=False), [(3, 3)]),
    "slogdet": (lambda a: td.linalg.slogdet(a), [(3, 3)]),
    "det": (td.linalg.det, [(2, 3, 3)]),
    "inv": (td.linalg.inv, [(3, 3)]),
    "solve": (td.linalg.solve, [(3, 3), (3, 2)]),
    "qr": (td.linalg.qr, [(4, 3)]),
    "lu": (lambda a: td.linalg.lu(a)[0], [(3, 3)]),
    "cholesky": (lambda a: td.linalg.cholesky(positive(a)), [(3, 3)]),
    "triangular_solve": (td.linalg.triangular_solve, [(3, 3), (3, 1)]),
    "expm": (td.linalg.expm, [(3, 3)]),
    "pinv": (td.linalg.pinv, [(3, 2)]),
    "lstsq": (td.linalg.lstsq, [(3, 2), (3, 1)]),
    "tridiagonal_solve": (
        lambda d, b: td.linalg.tridiagonal_solve(d, b, conjugate_rhs=True), [(3, 3), (3,)],
    ),
    "norm": (td.norm, [(3, 2)]),
    "einsum": (lambda a, b: td.einsum("ij,kj->ik", a, b), [(2, 3), (4, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    fn, shapes = MATRICES[name]
    check(fn, [drawn(*shape, seed=k + 1) for k, shape in enumerate(shapes)])


@pytest.mark.parametrize("name", [
    "squared_difference", "xlogy", "xdivy", "multiply_no_nan", "pow", "divide", "multiply",
])  # fmt: skip
def test_two_operands(name):
    check(getattr(td.math, name), [drawn(3, seed=1), drawn(2, 3, seed=2)])


@pytest.mark.parametrize("name", [
    "reduce_variance", "reduce_std", "reduce_mean", "reduce_prod", "cumprod", "cumsum",
    "reduce_euclidean_norm", "l2_normalize",
])  # fmt: skip
def test_statistics(name):
    check(getattr(td.math, name), [drawn(4)])
