"""The library's routines, with their tiles and plans, for every kind of machine."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.machines import ALL, RUNNABLE
from tests.runtime.cpu.test_convolution import geometries
from tests.runtime.cpu.test_library import check, convolution_nodes, matmul_node
from treadle.runtime.cpu.target import Target, using

pytestmark = pytest.mark.thorough


@pytest.fixture(params=["host", *RUNNABLE])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The library plans and compiles for this machine."""
    with using(ALL[request.param]) as chosen:
        yield chosen


extents = st.sampled_from([1, 2, 3, 5, 7, 16, 17, 31, 33, 64, 70, 100, 130, 257])
batches: st.SearchStrategy[Any] = st.sampled_from(
    [((), ()), ((3,), (3,)), ((3,), ()), ((), (2,)), ((1,), (4,)), ((2, 3), (2, 3)), ((5,), (1,))]
)


def test_products(target: Target) -> None:
    @settings(max_examples=40, deadline=None)
    @given(
        batches, extents, extents, extents | st.sampled_from([1024, 1500]), st.booleans(),
        st.booleans(), st.sampled_from(["float32", "float64"]),
    )  # fmt: skip
    def run(batch: Any, m: int, n: int, k: int, ta: bool, tb: bool, dtype: str) -> None:
        a = (*batch[0], *((k, m) if ta else (m, k)))
        b = (*batch[1], *((n, k) if tb else (k, n)))
        check(matmul_node(a, b, ta, tb, dtype), [a, b])

    run()


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("shape", [(60, 1024, 520), (96, 512, 300), (230, 300, 1040)])
def test_large_products(target: Target, shape: tuple[int, int, int], ta: bool) -> None:
    """Panels of B, and where lines of A collide its tiles too, are copied."""
    m, n, k = shape
    a = (k, m) if ta else (m, k)
    check(matmul_node(a, (k, n), ta, False), [a, (k, n)])


def test_convolutions(target: Target) -> None:
    @settings(max_examples=25, deadline=None)
    @given(geometries(), st.sampled_from(["float32", "float64"]))
    def run(case: Any, dtype: str) -> None:
        for node, shapes in convolution_nodes(case, dtype):
            check(node, shapes)

    run()


@pytest.mark.parametrize("case", [((3, 9, 10, 24), 40), ((1, 1, 1, 3), 5), ((1, 8, 9, 400), 400)])
def test_pointwise_convolutions(target: Target, case: tuple[Any, int]) -> None:
    """Of small filters the gradient is a sum of parts, of large ones a product."""
    image, outputs = case
    node = (image, (1, 1, outputs), (1, 1), "SAME", (1, 1), 1)
    for made, shapes in convolution_nodes(node, "float32"):
        check(made, shapes)
