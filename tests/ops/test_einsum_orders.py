"""Einsum of several operands: pair by pair in the cheapest order, or as one sum of products."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import trace_like

CASES = [
    ("i,ij,j->", ((30,), (30, 40), (40,))), ("i,ij,j->i", ((30,), (30, 40), (40,))),
    ("ij,jk,kl->il", ((20, 30), (30, 40), (40, 5))), ("i,i,i->i", ((9,), (9,), (9,))),
    ("ijk,il,jm,kn->lmn", ((6, 7, 8), (6, 3), (7, 3), (8, 3))), ("i,j,k->ijk", ((3,), (4,), (5,))),
    ("...i,...ij,...j", ((4, 5), (4, 5, 5), (1, 5))), ("i,ij,j", ((0,), (0, 4), (4,))),
    ("ab,bc,cd,de,ef->af", ((3, 4), (4, 5), (5, 6), (6, 7), (7, 2))),
    ("xy,yz->zx", ((3, 4), (4, 5))), ("bkhd,bqhd->bhqk", ((2, 3, 4, 5), (2, 6, 4, 5))),
    ("abx,bcx->cab", ((2, 3, 4), (3, 5, 4))), ("ax,bx,xc->cba", ((2, 3), (4, 3), (3, 5))),
    ("ij,jk,kl->il", ((200, 300), (300, 400), (400, 5))),
]  # fmt: skip


@pytest.mark.parametrize("equation, shapes", CASES, ids=[e for e, _ in CASES[:-1]] + ["large"])
def test_as_numpy(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s) for s in shapes]
    wanted = np.einsum(equation, *arrays, optimize=True)
    tensors = [td.constant(a) for a in arrays]
    for einsum in (td.einsum, td.function(td.einsum)):
        found = einsum(equation, *tensors).numpy()
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_small_sums_are_one_kernel_and_large_ones_products() -> None:
    small = trace_like(lambda *x: td.einsum("i,ij,j->", *x), *map(np.zeros, (5, (5, 5), 5)))
    assert "matmul" not in str(small)
    shapes = ((200, 300), (300, 400), (400, 5))
    large = trace_like(lambda *x: td.einsum("ij,jk,kl->il", *x), *map(np.zeros, shapes))
    products = [n for n in large.walk() if n.op.name == "matmul"]
    assert sorted(tuple(n.outputs[0].spec.dims) for n in products) == [(200, 5), (300, 5)]


def test_the_result_of_a_product_is_not_transposed() -> None:
    shapes = (2, 3, 4, 5), (2, 6, 4, 5)
    graph = trace_like(lambda *x: td.einsum("bkhd,bqhd->bhqk", *x), *map(np.zeros, shapes))
    made = graph.results[0].node
    assert made is not None and made.op.name in ("matmul", "reshape")


def test_gradients_of_attention_scores_are_products_as_they_are() -> None:
    """Each operand keeps its last axis, so its gradient need not be transposed either."""

    def gradient(q, k):
        with td.GradientTape() as tape:
            tape.watch([q, k])
            scores = td.einsum("bkhd,bqhd->bhqk", k, q)
            value = td.reduce_sum(scores * td.sin(scores))
        return tape.gradient(value, [q, k])

    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal(s) for s in ((2, 6, 4, 5), (2, 3, 4, 5)))
    graph = trace_like(gradient, q, k)
    perms = [n.attrs["perm"] for n in graph.walk() if n.op.name == "transpose"]
    assert set(perms) == {(0, 2, 1, 3)}
    expected = gradient(td.constant(q), td.constant(k))
    for got, want in zip(td.function(gradient)(q, k), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    for place, grad in zip((q, k), expected, strict=True):
        at, step = (1, 2, 3, 4), 1e-6
        moved = place.copy()
        moved[at] += step
        pair = [moved if x is place else x for x in (q, k)]
        values = []
        for a, b in (pair, (q, k)):
            scores = np.einsum("bkhd,bqhd->bhqk", b, a)
            values.append((scores * np.sin(scores)).sum())
        np.testing.assert_allclose(grad.numpy()[at], (values[0] - values[1]) / step, rtol=1e-3)


def test_arrays_take_the_dtype_of_the_first_tensor() -> None:
    x, row = td.constant([1.0, 2.0, 3.0]), np.arange(3.0)
    for found in (td.einsum("i,i->i", x, row), td.einsum("i,i->i", row, x)):
        assert found.dtype == td.float32 and np.asarray(found).tolist() == [0.0, 2.0, 6.0]
    assert td.einsum("i,i->", row, row).dtype == td.float64
    with pytest.raises(td.errors.InvalidArgumentError, match="float32 and float64"):
        td.einsum("i,i->i", x, td.constant(row))
