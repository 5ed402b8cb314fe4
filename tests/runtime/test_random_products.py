"""Random products and convolutions from a traced function, with gradients, against NumPy.

What follows them is smooth: roundings could cross a kink.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.runtime.cpu.test_convolution import geometries

pytestmark = pytest.mark.thorough

Function = Callable[..., Any]
sizes = st.sampled_from([1, 2, 3, 5, 8, 17, 33, 60])


@st.composite
def products(draw: Any) -> tuple[Function, list[tuple[int, ...]]]:
    """A product of views of two arrays, perhaps with more operations behind it."""
    m, n, k = draw(sizes), draw(sizes), draw(sizes | st.just(300))
    batch = draw(
        st.sampled_from([((), ()), ((3,), (3,)), ((2, 3), ()), ((2, 1), (3,)), ((), (2,))])
    )
    flags = draw(st.booleans()), draw(st.booleans())
    views, shapes = [], []
    for lead, (rows, columns), turned in zip(batch, ((m, k), (k, n)), flags, strict=True):
        dims = (*lead, columns, rows) if turned else (*lead, rows, columns)
        view, shape = draw(views_of(dims))
        views.append(view)
        shapes.append(shape)
    behind = draw(st.sampled_from(["nothing", "bias and tanh", "softmax", "residual"]))

    def run(a: Any, b: Any, bias: Any) -> Any:
        y = td.matmul(views[0](a), views[1](b), transpose_a=flags[0], transpose_b=flags[1])
        if behind == "bias and tanh":
            return td.tanh(y * 0.1 + bias)
        if behind == "softmax":
            return td.nn.softmax(y * 0.1)
        return y + td.tanh(y) * bias if behind == "residual" else y

    return run, [*shapes, (n,)]


@st.composite
def views_of(draw: Any, dims: tuple[int, ...]) -> tuple[Function, tuple[int, ...]]:
    """How an operand of these dims is made of an array of another shape."""
    kind = draw(st.sampled_from(["whole", "slice", "turned", "split"]))
    if kind == "slice":
        begin, step = draw(st.integers(0, 3)), draw(st.integers(1, 2))
        whole = (*dims[:-2], begin + dims[-2] * step, dims[-1] + begin)
        return lambda x: x[..., begin::step, begin:], whole
    if kind == "turned":
        order = list(draw(st.permutations(range(len(dims)))))
        return lambda x: td.transpose(x, order), tuple(dims[i] for i in np.argsort(order))
    if kind == "split":
        whole = (*dims[:-1], 2 * dims[-1])
        return lambda x: td.split(x, 2, axis=-1)[1], whole
    return lambda x: x, dims


def weighted(run: Function, weights: Any) -> Function:
    """The result, and the gradients of its sum with these weights."""

    def traced(*arrays: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(arrays)
            y = run(*arrays)
        gradients = tape.gradient(
            y, arrays, output_gradients=td.constant(weights, y.dtype), unconnected_gradients="zero"
        )
        return y, *gradients

    return traced


def check(run: Function, shapes: list[tuple[int, ...]], dtype: str) -> None:
    """Compiled in `dtype` as eagerly in float64."""
    rng = np.random.default_rng(0)
    exact = [rng.standard_normal(s).astype(dtype).astype(np.float64) for s in shapes]
    weights = rng.standard_normal(run(*map(td.constant, exact)).shape)
    expected = weighted(run, weights)(*map(td.constant, exact))
    compiled = td.function(weighted(run, weights), autograph=False)
    found = compiled(*(td.constant(x, dtype) for x in exact))
    for y, z in zip(found, expected, strict=True):
        scale = max(1.0, float(np.abs(z.numpy()).max(initial=0)))
        tolerance = (2e-5 if dtype == "float32" else 1e-12) * scale
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=0, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(products(), st.sampled_from(["float32", "float64"]))
def test_products(case: tuple[Function, list[tuple[int, ...]]], dtype: str) -> None:
    check(*case, dtype)


@settings(max_examples=25, deadline=None)
@given(geometries(), st.sampled_from(["float32", "float64"]), st.booleans())
def test_convolutions(case: Any, dtype: str, behind: bool) -> None:
    image, (kh, kw, outputs), strides, padding, dilations, groups = case
    sides = padding if isinstance(padding, str) else [(0, 0), *padding, (0, 0)]

    def run(x: Any, w: Any, bias: Any) -> Any:
        y = td.nn.conv2d(x, w, strides, sides, dilations=dilations)
        return td.tanh(y + bias) if behind else y

    check(run, [image, (kh, kw, image[3] // groups, outputs), (outputs,)], dtype)


@settings(max_examples=15, deadline=None)
@given(geometries(), st.integers(1, 5), st.integers(2, 20))
def test_depthwise_convolutions(case: Any, multiplier: int, channels: int) -> None:
    image, (kh, kw, _), strides, padding, dilations, _ = case
    sides = padding if isinstance(padding, str) else [(0, 0), *padding, (0, 0)]
    equal = (1, strides[0], strides[0], 1)

    def run(x: Any, w: Any) -> Any:
        return td.nn.depthwise_conv2d(x, w, equal, sides, dilations=dilations)

    check(run, [(*image[:3], channels), (kh, kw, channels, multiplier)], "float32")
