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
    """Parts whose sizes depend on elements, so that examples have results of different sizes."""
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


SEEDS = td.constant([[1, 2], [3, 4], [3, 5]])
RATES = td.constant([[0.5, 3.0], [20.0, 1.0], [7.0, 400.0]])


def seeded(example: Any) -> Any:
    """Numbers of seeds, and for parameters, that differ between examples."""
    r, (seed, a) = td.random, example
    return [
        r.stateless_uniform([5], seed), r.stateless_normal([2, 3], seed, dtype=td.float64),
        r.stateless_truncated_normal([4], seed), r.stateless_uniform([3], seed, 0, 9, td.int32),
        r.stateless_uniform([3], [1, 2], 0, td.cast(a[1], td.int64) + 5, td.int64),
        r.stateless_uniform([3], seed, None, None, td.int32),
        r.stateless_gamma([4, 2], seed, a), r.stateless_gamma([4, 2], [7, 8], a, 2.0),
        r.stateless_poisson([4, 2], seed, a), r.stateless_binomial([4, 2], seed, 30.0, a / 500.0),
        r.stateless_parameterized_truncated_normal([4, 2], seed, a),
        r.stateless_categorical([a], 6, seed), r.experimental.stateless_shuffle(a, seed),
        r.experimental.index_shuffle(3, seed, 20),
    ]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_stateless_numbers_are_those_of_a_loop(wrap: Any) -> None:
    found = wrap(lambda: td.vectorized_map(seeded, (SEEDS, RATES), False))()
    one = [seeded(example) for example in zip(SEEDS, RATES, strict=True)]
    for a, b in zip(found, map(np.stack, zip(*one, strict=True)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-6)


def test_gradients_of_random_numbers() -> None:
    def slope(example: Any) -> Any:
        seed, a = example
        with td.GradientTape() as tape:
            tape.watch(a)
            y = td.random.stateless_gamma([4, 2], seed, a) ** 2
        return tape.gradient(y, a)

    found = td.vectorized_map(slope, (SEEDS, RATES), fallback_to_while_loop=False)
    expected = [slope(example) for example in zip(SEEDS, RATES, strict=True)]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_families_differ_between_examples(wrap: Any) -> None:
    """With parameters that differ, too, they are what a loop draws one after the other."""
    r = td.random

    def drawn(a: Any) -> Any:
        return [
            r.gamma([4], 2.0), r.poisson([4], 30.0), r.gamma([4], a), r.poisson([2, 2], a),
            r.shuffle(td.range(9)), r.uniform([9], 0, td.cast(a, td.int32), td.int32),
        ]  # fmt: skip

    found = wrap(lambda a: td.vectorized_map(drawn, a, False))(td.constant([30.0, 30.0]))
    for first, second in (np.asarray(x) for x in found):
        assert (first != second).any()
    alphas = td.constant([1.5, 2.0, 30.0])
    td.random.set_seed(4)
    found = td.vectorized_map(lambda a: r.gamma([4, 5], a), alphas, fallback_to_while_loop=False)
    td.random.set_seed(4)
    np.testing.assert_array_equal(found, td.map_fn(lambda a: r.gamma([4, 5], a), alphas))


def text_of(s: Any) -> Any:
    t = td.strings
    return [
        t.length(s), t.upper(s), t.strip(s), t.substr(s, 0, 1), t.substr(s, t.length(s) * 0, 1),
        t.regex_replace(s, "b", "<\\0>"), t.regex_full_match(s, ".."), t.join([s, "-", s[0]]),
        t.reduce_join(s, 0), t.to_hash_bucket_fast(s, 10), td.as_string(t.length(s)),
        td.io.encode_base64(s), td.strings.unicode_encode(td.cast(t.length(s), td.int32), "UTF-8"),
        td.fingerprint(s), *td.io.decode_csv(t.join(["1,", td.as_string(t.length(s))]), [[0], [1]]),
    ]  # fmt: skip


def boxes_in(example: Any) -> Any:
    images, boxes, scores = example
    found = td.image.combined_non_max_suppression(boxes[:, :, None], scores, 2, 3)
    return [td.image.draw_bounding_boxes(images, boxes, [[1.0, 0.5, 0.2]]), *found]


MASK = td.constant([True, False, True, True, False, True, False])


def counts_in(x: Any) -> Any:
    """Also the rows where a mask is true that is the same for all examples."""
    with td.GradientTape() as tape:
        tape.watch(x)
        chosen = x[MASK] ** 2
    return [td.histogram_fixed_width(x, [0.0, 1.0], 5), chosen, tape.gradient(chosen, x)]


def slopes_of_pieces(x: Any) -> Any:
    """Gradients of pieces of a list, of which one is not read: they are joined."""
    with td.GradientTape() as tape:
        tape.watch(x)
        pieces = td.TensorArray(x.dtype, size=2, infer_shape=False).split(x * x, [3, 4])
        total = td.reduce_sum(td.sin(pieces.read(1)))
    return [tape.gradient(total, x)]


_RNG = np.random.default_rng(3)
OTHERS = [
    (text_of, np.array([["a b", "bb"], ["-b,", " x "], ["é", ""]], object)),
    (boxes_in, (_RNG.random((3, 2, 4, 4, 3), "f"), _RNG.random((3, 2, 5, 4), "f"),
                _RNG.random((3, 2, 5, 2), "f"))),
    (counts_in, _RNG.random((3, 7), "f")),
    (slopes_of_pieces, _RNG.random((3, 7))),
]  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
@pytest.mark.parametrize(("program", "arrays"), OTHERS)
def test_strings_boxes_counts_and_pieces(program: Any, arrays: Any, wrap: Any) -> None:
    elems = td.nest.map_structure(td.constant, arrays)
    found = wrap(lambda: td.vectorized_map(program, elems, fallback_to_while_loop=False))()
    one = [program(td.nest.map_structure(lambda x, k=k: x[k], elems)) for k in range(3)]
    for a, b in zip(found, zip(*one, strict=True), strict=True):
        found_array, wanted = np.asarray(a), np.stack([np.asarray(x) for x in b])
        if a.dtype.is_floating:
            np.testing.assert_allclose(found_array, wanted, rtol=1e-6)
        else:
            np.testing.assert_array_equal(found_array, wanted)


def test_patterns_of_each_example_are_a_loop() -> None:
    with pytest.raises(ValueError, match="pattern or rewrite differs"):
        td.vectorized_map(
            lambda s: td.strings.regex_full_match("a", s), td.constant(["a", "b"]), False
        )


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


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_slices_that_start_elsewhere_in_each_example(wrap: Any) -> None:
    images, starts = np.arange(48.0).reshape(3, 4, 4), np.array([1, 2, 0])
    xs, begins = td.constant(images), td.constant(starts)
    whole = td.constant(images[0])

    def of_each(pair: Any) -> Any:
        return td.slice(pair[0], [pair[1], 2 - pair[1]], [2, 2])

    def of_one(begin: Any) -> Any:
        return td.slice(whole, [1, begin], [3, 2])

    mapped = wrap(lambda f, xs: td.vectorized_map(f, xs, fallback_to_while_loop=False))
    parts = [x[b : b + 2, 2 - b : 4 - b] for x, b in zip(images, starts, strict=True)]
    np.testing.assert_array_equal(mapped(of_each, (xs, begins)).numpy(), parts)
    columns = [images[0, 1:4, b : b + 2] for b in starts]
    np.testing.assert_array_equal(mapped(of_one, begins).numpy(), columns)
    with td.GradientTape() as tape:
        tape.watch(xs)
        squares = mapped(lambda pair: td.reduce_sum(of_each(pair) ** 2), (xs, begins))
    slope = np.zeros_like(images)
    for k, b in enumerate(starts):
        slope[k, b : b + 2, 2 - b : 4 - b] = 2 * parts[k]
    np.testing.assert_array_equal(tape.gradient(squares, xs).numpy(), slope)
    for wrong in ([1, 3, 0], [1, -1, 0]):
        with pytest.raises(td.errors.InvalidArgumentError):
            mapped(of_each, (xs, td.constant(wrong)))


def test_sizes_that_differ_between_examples_run_in_a_loop() -> None:
    xs, starts = td.range(12.0), td.constant([1, 5, 3])

    def one(begin: Any) -> Any:
        return td.reduce_sum(td.slice(xs, [begin], [-1]))

    with pytest.warns(UserWarning, match="because of open_dim"):
        found = td.vectorized_map(one, starts)
    assert found.numpy().tolist() == [66, 56, 63]
    with pytest.raises(ValueError, match="a size differs between examples"):
        td.vectorized_map(one, starts, fallback_to_while_loop=False)
