"""Routines of rows in CUDA C, run on the processor, against those of the processor."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.runtime.gpu.on_processor import GPU, Kernels, size
from tests.runtime.gpu.test_routines import Processor, numbers, opened_node
from treadle.core import dtypes
from treadle.graph.ir import Graph, Node
from treadle.ops.indexing.masks import EXPAND
from treadle.ops.linalg import decompositions, fourier
from treadle.ops.lowering import Rows
from treadle.ops.random import families, orders, permutations
from treadle.ops.registry import OPS, Op
from treadle.ops.statistics import histograms, sorting
from treadle.runtime.cpu.eager_routines import by_routine
from treadle.runtime.cpu.target import host
from treadle.runtime.gpu.routines import routine_for
from treadle.runtime.gpu.routines.arrays import ArrayRoutine
from treadle.runtime.gpu.routines.rows import RowRoutine
from treadle.runtime.passes.verdicts import add_verdicts
from treadle.runtime.schedule.facts import Facts

Case = tuple[Op, list[Any], dict[str, Any]]
RNG = np.random.default_rng(0)
STATE = np.array([7, 11, 13], np.int64)


def special(shape: Sequence[int], dtype: str) -> Any:
    """Numbers with equal ones, zeros of both signs, infinities and NaN among them."""
    found = numbers(shape, dtype)
    if found.dtype.kind == "f":
        flat = found.reshape(-1)
        for n, value in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1.0, np.nan)):
            flat[n :: 11] = value
    return found


def definite(shape: Sequence[int], dtype: str) -> Any:
    x = numbers(shape, dtype)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype) * shape[-1]


def _sorting() -> list[Case]:
    found: list[Case] = []
    shapes: dict[str, list[tuple[int, ...]]] = {
        "float32": [(5, 9), (3, 70), (2, 3, 1)], "float64": [(3, 70)], "int32": [(5, 9)],
        "uint8": [(3, 70)],
    }  # fmt: skip
    for dtype, own in shapes.items():
        for shape in own:
            for descending in (False, True):
                x = special(shape, dtype)
                found.append((sorting.ARGSORT, [x], {"descending": descending}))
                found.append((sorting.SORT, [x], {"descending": descending}))
    for dtype in ("float32", "int64"):
        x = special((4, 30), dtype)
        found.append((sorting.TOP_K, [x], {"k": 4, "index_type": dtypes.int64}))
        rows, wanted = np.sort(numbers((3, 20), dtype)), numbers((3, 7), dtype)
        for right in (False, True):
            attrs = {"right": right, "dtype": dtypes.int32}
            found.append((sorting.SEARCHSORTED, [rows, wanted], attrs))
    return found


def _counting() -> list[Case]:
    ids = RNG.integers(0, 6, (4, 50)).astype(np.int64)
    mask = RNG.integers(0, 2, 30).astype(bool)
    return [
        (histograms.COUNT_POSITIONS, [ids], {"size": 6}),
        (histograms.COUNT_POSITIONS, [ids], {"size": 6, "batch_dims": 1}),
        (EXPAND, [numbers((int(mask.sum()), 3), "float32"), mask], {}),
    ]


def _matrices() -> list[Case]:
    found: list[Case] = []
    d = decompositions
    for dtype in ("float32", "float64"):
        x, b = definite((3, 6, 6), dtype), numbers((3, 6, 2), dtype)
        found += [
            (d.INVERSE, [x], {}), (d.DETERMINANT, [x], {}), (d.SLOGDET, [-x], {}),
            (d.SOLVE, [x, b], {}), (d.SOLVE, [x[:1], b], {}), (d.CHOLESKY, [x], {}),
            (d.TRIANGULAR_SOLVE, [x, b], {"lower": True}),
            (d.TRIANGULAR_SOLVE, [x, b], {"lower": False}), (d.EIGH, [x], {}),
            (d.QR, [numbers((2, 7, 4), dtype)], {"full": False}),
            (d.SVD, [numbers((2, 5, 4), dtype)], {"full": False}),
            (d.SVD, [numbers((2, 3, 6), dtype)], {"full": False}),
        ]  # fmt: skip
    return found


def _transforms() -> list[Case]:
    found: list[Case] = []
    for n in (1, 2, 8, 32):
        a, b = numbers((3, n), "float32"), numbers((3, n), "float32")
        found.append((fourier.ON_PARTS, [a, b, *fourier.tables(n, "float32")], {}))
        if n > 1:
            roots = fourier._powers(n // 2 + 1, n, "float32")
            tables = [*fourier.tables(n // 2, "float32"), *roots]
            found.append((fourier.OF_REAL_ON_PARTS, [a, *tables], {}))
            halves = [x[:, : n // 2 + 1].copy() for x in (a, b)]
            found.append((fourier.TO_REAL_ON_PARTS, [*halves, *tables], {}))
    return found


def _random() -> list[Case]:
    alpha = np.array([0.3, 1.0, 2.5, 40.0], np.float32)
    few, many = np.array([3.0, 40.0], np.float64), np.array([0.2, 0.7], np.float64)
    index = np.arange(10, dtype=np.int32)
    seed = np.tile(np.array([3, 4, 5], np.int64), (10, 1))
    return [
        (families.GAMMA, [STATE, alpha], {"shape": (50,)}),
        (families.POISSON, [STATE, alpha], {"shape": (50,), "dtype": "int32"}),
        (families.BINOMIAL, [STATE, few, many], {"shape": (50, 2), "dtype": "float32"}),
        (orders.ORDER, [STATE], {"shape": (3, 20), "dtype": "int32"}),
        (permutations.SHUFFLED, [index, seed, np.full(10, 9, np.int32)], {"rounds": 4}),
    ]


def _series() -> list[Case]:
    a = np.array([0.5, 2.0, 7.0, 30.0, -1.0], np.float64)
    x = np.array([0.1, 3.0, 6.0, 50.0, 2.0], np.float64)
    pairs = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "zeta", "polygamma")
    found: list[Case] = [(OPS[name], [a, x], {}) for name in pairs]
    inside = np.array([0.1, 0.5, 0.9, 1.0, 0.3], np.float64)
    return [*found, (OPS["betainc"], [np.abs(a), x, inside], {})]


CASES = {
    "sorting": _sorting(), "counting": _counting(), "matrices": _matrices(),
    "transforms": _transforms(), "random": _random(), "series": _series(),
}  # fmt: skip


def _refused() -> list[tuple[Op, list[Any], dict[str, Any], list[int]]]:
    """Inputs of which some rows are refused."""
    d, ids = decompositions, np.array([[0, 1], [2, 6], [5, -1]], np.int64)
    flat = definite((3, 4, 4), "float32")
    flat[1] = 1.0  # singular
    index, seed = np.array([3, 12, 9], np.int32), np.ones((3, 3), np.int64)
    shuffled = [index, seed, np.full(3, 9, np.int32)]
    return [
        (d.INVERSE, [flat], {}, [0, 1, 0]),
        (d.SOLVE, [flat, numbers((3, 4, 2), "float32")], {}, [0, 1, 0]),
        (d.CHOLESKY, [-flat], {}, [1, 1, 1]),
        (histograms.COUNT_POSITIONS, [ids], {"size": 6, "batch_dims": 1}, [0, 1, 1]),
        (permutations.SHUFFLED, shuffled, {"rounds": 4}, [0, 1, 0]),
    ]


REFUSED = _refused()


def routine_of(op: Op, arrays: Sequence[Any], attrs: Any, opened: bool = False) -> RowRoutine:
    """The routine of an op, with verdicts where it may refuse its input."""
    axes = [(n, 0) for n, a in enumerate(arrays) if opened and a.ndim]
    node, _ = opened_node(op, arrays, attrs, axes)
    routine = routine_for(judged(node), (), GPU)
    assert isinstance(routine, RowRoutine), op.name
    return routine


def judged(node: Node) -> Node:
    graph = Graph("judged")
    graph.append(node)
    add_verdicts(graph, Facts(host().tuning))
    return graph.nodes[0]


@functools.cache
def compiled() -> tuple[Kernels, dict[int, RowRoutine]]:
    """The routines of all cases, in a few libraries."""
    kernels, routines = Kernels([]), {}
    cases = [case for cases in CASES.values() for case in cases]
    for op, arrays, attrs in [*cases, *(case[:3] for case in REFUSED)]:
        routine = routine_of(op, arrays, attrs)
        kernels.add(routine.arguments, routine.code)
        routines[id(arrays)] = routine
    return kernels, routines


def results(routine: RowRoutine, kernels: Kernels, arrays: Sequence[Any]) -> list[Any]:
    arguments = routine.arguments
    given = dict(zip(arguments.buffers, arrays, strict=False))
    found = kernels.run(arguments, given)
    return [found[b] for b in arguments.outputs]


@pytest.mark.parametrize("name", CASES)
def test_rows(name: str) -> None:
    kernels, routines = compiled()
    for op, arrays, attrs in CASES[name]:
        wanted = by_routine(op, arrays, attrs)
        assert wanted is not None, op.name
        found = results(routines[id(arrays)], kernels, arrays)
        if isinstance(op.lower, Rows) and op.lower.fails:
            *found, verdicts = found
            assert not verdicts.any(), op.name
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape
            if one.dtype.kind == "f" and name != "sorting":
                tolerance = 1e-12 if one.dtype == np.float64 else 2e-5
                np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=op.name)
            else:
                np.testing.assert_array_equal(one, other, op.name)
                np.testing.assert_array_equal(np.signbit(one), np.signbit(other), op.name)


def test_refused_rows_are_told_by_verdicts() -> None:
    kernels, routines = compiled()
    for op, arrays, _, wanted in REFUSED:
        *_, verdicts = results(routines[id(arrays)], kernels, arrays)
        assert verdicts.dtype == np.int32 and (verdicts != 0).tolist() == wanted, op.name


def _long() -> list[Case]:
    """Rows that are longer than a block has threads."""
    n = 2 * GPU.block
    found: list[Case] = []
    for dtype in ("float32", "float64", "int32", "uint8"):
        x = special((3, n), dtype)
        for descending in (False, True):
            found.append((sorting.ARGSORT, [x], {"descending": descending}))
            found.append((sorting.SORT, [x], {"descending": descending}))
        found.append((sorting.TOP_K, [x], {"k": 300, "index_type": dtypes.int32}))
    ids, mask = RNG.integers(0, 9, (4, n)).astype(np.int32), RNG.integers(0, 2, n).astype(bool)
    rows = numbers((int(mask.sum()), 3), "float32")
    a, b = numbers((3, n), "float32"), numbers((3, n), "float32")
    halves = [x[:, : n // 2 + 1].copy() for x in (a, b)]
    tables = [*fourier.tables(n // 2, "float32"), *fourier._powers(n // 2 + 1, n, "float32")]
    return [
        *found,
        (histograms.COUNT_POSITIONS, [ids], {"size": 9}),
        (histograms.COUNT_POSITIONS, [ids], {"size": 9, "batch_dims": 1}),
        (EXPAND, [rows, mask], {}), (EXPAND, [rows[:0], np.zeros(n, bool)], {}),
        (fourier.ON_PARTS, [a, b, *fourier.tables(n, "float32")], {}),
        (fourier.OF_REAL_ON_PARTS, [a, *tables], {}),
        (fourier.TO_REAL_ON_PARTS, [*halves, *tables], {}),
    ]  # fmt: skip


def by_library(op: Op, arrays: Sequence[Any], attrs: Any) -> list[Any]:
    node = judged(opened_node(op, arrays, attrs)[0])
    routine = routine_for(node, (), GPU)
    assert isinstance(routine, ArrayRoutine) and not routine.replays, op.name
    outputs = [np.full(v.spec.dims, 77).astype(v.spec.dtype.np_dtype) for v in node.outputs]
    routine(Processor(), arrays, outputs, 0, {})  # type: ignore[arg-type]
    return outputs


def test_long_rows_are_done_by_the_library() -> None:
    for op, arrays, attrs in _long():
        wanted = by_routine(op, arrays, attrs)
        assert wanted is not None and isinstance(op.lower, Rows)
        found = by_library(op, arrays, attrs)
        if op.lower.fails:
            assert not found.pop().any()
        for one, other in zip(found, wanted, strict=True):
            if op.lower.routine.startswith("fourier"):
                np.testing.assert_allclose(one, other, 2e-5, 2e-4)
            else:
                np.testing.assert_array_equal(one, other, op.name)
                np.testing.assert_array_equal(np.signbit(one), np.signbit(other), op.name)


def test_long_rows_with_positions_outside_are_told_by_verdicts() -> None:
    ids = RNG.integers(0, 9, (3, 2 * GPU.block)).astype(np.int64)
    ids[0, 5], ids[2, 7] = -1, 9
    *_, verdicts = by_library(histograms.COUNT_POSITIONS, [ids], {"size": 9, "batch_dims": 1})
    assert verdicts.tolist() == [1, 0, 1]
    *_, verdicts = by_library(histograms.COUNT_POSITIONS, [ids], {"size": 0, "batch_dims": 1})
    assert verdicts.tolist() == [1, 1, 1]


def test_rows_of_any_length_are_done_by_the_library() -> None:
    node, _ = opened_node(
        sorting.ARGSORT, [numbers((9, 8), "float32")], {"descending": False}, [(0, 1)]
    )
    assert isinstance(routine_for(node, (), GPU), ArrayRoutine)


def test_transforms_of_any_length_are_done_by_the_library() -> None:
    z, x = numbers((3, 12, 2), "complex64"), numbers((3, 13, 2), "float32")
    cases: list[Case] = [
        (fourier.FOURIER, [z], {"axis": 1, "inverse": False}),
        (fourier.FOURIER, [z], {"axis": 0, "inverse": True}),
        (fourier.OF_REAL, [x], {"axis": 1}),
        (fourier.TO_REAL, [z], {"axis": 1, "size": 23}),
        (fourier.TO_REAL, [z.astype(np.complex128)], {"axis": 1, "size": 22}),
    ]
    for op, arrays, attrs in cases:
        assert op.eager is not None
        (found,), wanted = by_library(op, arrays, attrs), op.eager(*arrays, **attrs)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, 2e-5, 2e-5, err_msg=op.name)


def test_sorting_memory_is_that_of_threads_that_run_together() -> None:
    routine = routine_of(sorting.ARGSORT, [numbers((9, 8), "float32")], {"descending": False}, True)
    workers = size(routine.workers, {"d9": 1 << 20, "d8": 8})
    assert workers == GPU.multiprocessors * GPU.warp
    assert size(routine.workspace, {"d9": 1 << 20}) == workers * size(routine._space, {})
