"""Parts whose bounds loops decide, as slices with symbolic bounds."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import trace_like
from treadle.core.switches import disabled
from treadle.graph.ir import Graph
from treadle.graph.passes import optimize
from treadle.graph.verifier import verify
from treadle.inspect import stages

X = np.arange(12.0)
A = np.arange(49.0).reshape(7, 7)


def optimized(function, *arguments) -> Graph:
    graph = trace_like(td.autograph.to_graph(function), *arguments)
    optimize(graph)
    verify(graph)
    return graph


def names(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.walk()]


def heads(x):
    total = td.zeros([], x.dtype)
    for i in td.range(12):
        total += td.reduce_sum(x[:i] * x[:i])
    return total


def test_bounds_become_symbols_with_the_range_of_the_counter() -> None:
    graph = optimized(heads, X)
    (told,) = [n for n in graph.walk() if n.op.name == "as_dim"]
    assert (told.attrs["least"], told.attrs["most"]) == (0, 11)
    assert "dynamic_slice" not in names(graph)
    (part,) = [n for n in graph.walk() if n.op.name == "strided_slice"]
    assert part.attrs["size"] == (told.attrs["dim"],)


def test_the_pass_can_be_switched_off() -> None:
    with disabled("parts"):
        assert "dynamic_slice" in names(optimized(heads, X))


def unknown(x, starts):
    total = td.zeros([], x.dtype)
    for i in td.range(3):
        total += td.reduce_sum(x[starts[i] : starts[i + 1]])
    return total


def test_bounds_that_nothing_is_known_of_are_clamped() -> None:
    graph = optimized(unknown, X, np.array([0, 5, 5, 40], np.int32))
    assert {"as_dim", "maximum", "minimum"} <= set(names(graph))
    assert "dynamic_slice" not in names(graph)


def part_of_a_row(a, v):
    for i in td.range(7):
        a[i, :i] = v[:i]
    return a


def test_an_update_of_a_part_of_a_row_is_one_update() -> None:
    found = names(optimized(part_of_a_row, A, X[:7]))
    assert found.count("slice_update") == 1
    assert not {"index_update", "index", "dynamic_slice_update"} & set(found)
    schedule = stages(part_of_a_row, td.constant(A), X[:7])["schedule"]
    body = schedule.split("while")[1].split("workspace")[0]
    assert "update in" not in body and body.count("kernel") == 1


def beside(a):
    """The row is read before another row changes, and used afterwards."""
    for i in td.range(6):
        row = td.identity(a[i, :3])
        a[i + 1, :3] = a[i + 1, :3] * 2.0
        a[i + 1, :i] += row[0]
    return a


def test_reads_before_an_update_of_another_part_leave_it_in_place() -> None:
    schedule = stages(beside, td.constant(A))["schedule"]
    assert "copy" not in schedule.split("while")[1].split("next")[0]
    wanted = A.copy()
    for i in range(6):
        row = wanted[i, :3].copy()
        wanted[i + 1, :3] *= 2
        wanted[i + 1, :i] += row[0]
    np.testing.assert_array_equal(td.function(beside)(td.constant(A)), wanted)


def in_step(x):
    a, b = x[:1], x[:1]
    total = td.zeros([], x.dtype)
    for i in td.range(5):
        total += td.reduce_sum(a * b)
        a = td.concat([a, x[i : i + 1]], 0)
        b = td.concat([b, x[i + 1 : i + 2]], 0)
    return total


def apart(x):
    a, b = x[:1], x[:1]
    total = td.zeros([], x.dtype)
    for i in td.range(5):
        total += td.reduce_sum(a) * td.reduce_sum(b)
        a = td.concat([a, x[i : i + 1]], 0)
        b = td.concat([b, x[i : i + 2]], 0)
    return total


@pytest.mark.parametrize(("function", "sizes"), [(in_step, 1), (apart, 2)])
def test_sizes_that_change_in_step_are_one(function, sizes) -> None:
    graph = optimized(function, X)
    (loop,) = [n for n in graph.walk() if n.op.name == "while"]
    assert len({v.spec.dims for v in loop.outputs if v.spec.rank}) == sizes
    a, b, total = X[:1], X[:1], 0.0
    for i in range(5):
        total += (a * b).sum() if function is in_step else a.sum() * b.sum()
        a, b = (np.concatenate([a, X[i : i + 1]]),
                np.concatenate([b, X[i + 1 : i + 2] if function is in_step else X[i : i + 2]]))
    assert td.function(function)(X).numpy() == total


def test_products_with_vectors_are_sums() -> None:
    def products(a, v):
        total = td.zeros([7], a.dtype)
        for i in td.range(1, 7):
            total[:i] += td.linalg.matvec(a[:i, :i], v[:i])
            total[:i] += td.linalg.matvec(a[:i, :i], v[:i], transpose_a=True)
            total[i] = td.tensordot(a[i, :i], v[:i], 1)
        return total

    assert "matmul" not in names(optimized(products, A, X[:7]))
    wanted = np.zeros(7)
    for i in range(1, 7):
        wanted[:i] += A[:i, :i] @ X[:i] + A[:i, :i].T @ X[:i]
        wanted[i] = A[i, :i] @ X[:i]
    np.testing.assert_allclose(td.function(products)(A, X[:7]), wanted, 1e-12)
