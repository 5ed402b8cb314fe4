"""td.vectorized_map: for every op what a loop over the examples gives, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.cases import TOLERANCE, Case
from tests.ops.test_cases import ALL
from treadle.core.tensor import from_array

EXAMPLES = 3


def batches(case: Case, shapes: Any, dtype: str) -> list[Any]:
    """For each argument three arrays, stacked."""
    lengthened = [(EXAMPLES, *shape) for shape in shapes]
    return case.arrays(lengthened, dtype)


def stacked_results(fn: Any, arrays: list[Any], moving: tuple[bool, ...]) -> Any:
    """What a loop in Python gives."""
    found = []
    for k in range(EXAMPLES):
        examples = [a[k] if m else a[0] for a, m in zip(arrays, moving, strict=True)]
        found.append(np.asarray(fn(*(from_array(np.array(e)) for e in examples))))
    return np.stack(found)


def vectorized(fn: Any, arrays: list[Any], moving: tuple[bool, ...]) -> Any:
    elems = [td.constant(a) for a, m in zip(arrays, moving, strict=True) if m]
    fixed = [td.constant(a[0]) for a in arrays]

    def one(examples: Any) -> Any:
        given = iter(examples)
        return fn(*(next(given) if m else f for f, m in zip(fixed, moving, strict=True)))

    return td.vectorized_map(one, elems, fallback_to_while_loop=False)


def which_move(count: int) -> list[tuple[bool, ...]]:
    """All arguments differ between examples, or one of them only."""
    everything = (True,) * count
    single = [tuple(i == k for i in range(count)) for k in range(count)]
    return [everything, *single] if count > 1 else [everything]


@pytest.mark.parametrize("case", [c for c in ALL if not c.batched], ids=str)
def test_what_has_no_rule_is_refused(case: Case) -> None:
    """Parts whose sizes depend on elements, so that examples have results of different sizes, and
    convolutions of each example's own filters."""
    arrays = batches(case, case.shapes[-1], case.dtypes[0])
    with pytest.raises(ValueError, match="cannot be computed for all examples at once"):
        vectorized(case.fn, arrays, (True,) * len(arrays))


@pytest.mark.parametrize("case", [c for c in ALL if c.batched], ids=str)
def test_batching_is_a_loop(case: Case) -> None:
    for shapes in case.shapes:
        for dtype in case.dtypes:
            arrays = batches(case, shapes, dtype)
            for moving in which_move(len(arrays)):
                expected = stacked_results(case.fn, arrays, moving)
                found = np.asarray(vectorized(case.fn, arrays, moving))
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                tolerance = TOLERANCE.get(dtype, 3e-6)
                wide = np.complex128 if found.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(
                    found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance
                )


def doubled_until(v: Any) -> Any:
    count = td.constant(0)
    while v < 10.0:
        v = v * 2.0
        count += 1
    return v, count


def summed(v: Any) -> Any:
    total = td.constant(0.0, v.dtype)
    for i in td.range(td.cast(v, td.int32)):
        total += v * td.cast(i, v.dtype)
    return total


def branch(v: Any) -> Any:
    if v > 1.5:
        return td.math.log(v - 1.0)
    return td.sqrt(2.0 - v)


def nested(v: Any) -> Any:
    total = v
    for i in td.range(4):
        if total > 3.0:
            total = total / 2.0
        else:
            total = total * v + td.cast(i, v.dtype)
    return total


def written(v: Any) -> Any:
    found = td.TensorArray(v.dtype, size=3)
    for i in td.range(3):
        found = found.write(i, v * td.cast(i, v.dtype))
    return found.stack()


def position(v: Any) -> Any:
    values = td.constant([5.0, 6.0, 7.0], v.dtype)
    return values[td.cast(v, td.int32) - 1]


PROGRAMS = [doubled_until, summed, branch, nested, written, position]
POINTS = td.constant([1.0, 2.0, 3.0], td.float64)


def loop(fn: Any, xs: Any) -> list[Any]:
    one = td.function(fn)
    results = [td.nest.flatten(one(x)) for x in xs]
    return [np.stack([np.asarray(r) for r in column]) for column in zip(*results, strict=True)]


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
@pytest.mark.parametrize("program", PROGRAMS)
def test_control_flow_that_differs_between_examples(program: Any, wrap: Any) -> None:
    found = wrap(lambda xs: td.vectorized_map(program, xs, fallback_to_while_loop=False))(POINTS)
    for a, b in zip(td.nest.flatten(found), loop(program, POINTS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
@pytest.mark.parametrize("program", [branch, nested, written, position])
def test_gradients_are_those_of_the_examples(program: Any, wrap: Any) -> None:
    def slopes(xs: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(xs)
            y = td.reduce_sum(td.vectorized_map(program, xs) ** 2)
        return tape.gradient(y, xs, unconnected_gradients="zero")

    @td.function
    def slope(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(program(x) ** 2)
        return tape.gradient(y, x, unconnected_gradients="zero")

    expected = [float(slope(x)) for x in POINTS]
    np.testing.assert_allclose(wrap(slopes)(POINTS), expected, rtol=1e-12)


def test_per_example_gradients() -> None:
    w = td.Variable([[1.0, 2.0], [3.0, 4.0]])
    xs = td.constant([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]])

    def one(x: Any) -> Any:
        with td.GradientTape() as tape:
            y = td.reduce_sum(td.tanh(td.linalg.matvec(w, x)))
        return tape.gradient(y, w)

    for f in (td.vectorized_map, td.function(td.vectorized_map)):
        expected = [np.asarray(td.function(one)(x)) for x in xs]
        np.testing.assert_allclose(f(one, xs, fallback_to_while_loop=False), expected, rtol=1e-6)


def test_random_numbers_differ_between_examples() -> None:
    found = np.asarray(td.vectorized_map(lambda v: v + td.random.uniform([4]), td.zeros([5])))
    assert len(np.unique(found)) == 20


def test_what_has_no_rule_runs_in_a_loop_with_one_notice() -> None:
    def one(v: Any) -> Any:
        return td.reduce_sum(td.boolean_mask(v, v > 1.5))

    xs = td.constant([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    with pytest.warns(UserWarning, match="compress") as notices:
        np.testing.assert_array_equal(td.vectorized_map(one, xs), [5.0, 9.0])
    assert len(notices) == 1
    with pytest.raises(ValueError, match="compress"):
        td.vectorized_map(one, xs, fallback_to_while_loop=False)


def test_first_dims() -> None:
    x = td.constant([1.0, 2.0])
    total = td.vectorized_map(lambda v: v[0] + v[1], (x, td.constant([10.0])))
    np.testing.assert_array_equal(total, [11.0, 12.0])
    with pytest.raises(td.errors.InvalidArgumentError, match="first dims"):
        td.vectorized_map(lambda v: v[0] + v[1], (x, td.ones(3)))
    with pytest.raises(ValueError, match="rank 1 or more"):
        td.vectorized_map(lambda v: v, td.constant(1.0))
