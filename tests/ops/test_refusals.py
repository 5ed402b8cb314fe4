"""Arguments that an op refuses: eagerly, in a function and with open dims by the same exception.

What is refused, and what is not, is what TensorFlow does. Sizes that nobody checked would let
compiled programs read and write memory that is not theirs.
"""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

X = np.arange(12, dtype=np.float32).reshape(3, 4)
IMAGE = np.ones((1, 3, 3, 2), np.float32)


def ints(*shape):
    return np.zeros(shape, np.int32)


def floats(*shape):
    return np.ones(shape, np.float32)


# name: (function of x, x)
REFUSED = {
    "gather of other batches": (lambda x: td.gather(x, ints(2, 2), batch_dims=1), X),
    "gather of more batches": (lambda x: td.gather(x, ints(5, 2), axis=1, batch_dims=1), X),
    "scatter of few updates": (lambda x: td.scatter_nd(ints(50, 1), x, [7, 4]), X),
    "scatter of short updates": (lambda x: td.scatter_nd(ints(3, 1), x, [7, 5]), X),
    "add of few updates": (
        lambda x: td.tensor_scatter_nd_add(floats(7, 4), ints(50, 1), x), X,
    ),
    "split into two rests": (lambda x: td.split(x, [-1, -1], 1), X),
    "split into none": (lambda x: td.split(x, 0), X),
    "split into less than none": (lambda x: td.split(x, -2), X),
    "split by negative sizes": (lambda x: td.split(x, [-2, 6], 1), X),
    "split without rest": (lambda x: td.split(x, [3, -1, 5], 1), X),
    "in_top_k of other rows": (lambda x: td.math.in_top_k(ints(5), x, 2), X),
    "slice from below": (lambda x: td.slice(x, [-1, 0], [2, 2]), X),
    "slice of less than nothing": (lambda x: td.slice(x, [0, 0], [-2, 2]), X),
    "slice beyond": (lambda x: td.slice(x, [2, 0], [2, 2]), X),
    "slice from far beyond": (lambda x: td.slice(x, [2**63 - 1, 0], [2, 2]), X),
    "slice of the size of another": (
        lambda x: td.slice(x, [1, 0], [td.shape(x)[0], td.shape(x)[1]]), X,
    ),
    "reflection of nothing": (lambda x: td.pad(x, [[1, 1], [0, 0]], "REFLECT"), X[:0]),
    "reflection in nothing": (lambda x: td.pad(x, [[1, 0], [0, 0]], "SYMMETRIC"), X[:0]),
    "long reflection": (lambda x: td.pad(x, [[3, 0], [0, 0]], "REFLECT"), X),
    "long symmetric reflection": (lambda x: td.pad(x, [[0, 4], [0, 0]], "SYMMETRIC"), X),
    "negative padding": (lambda x: td.pad(x, [[-1, 2], [0, 0]]), X),
    "negative symmetric padding": (lambda x: td.pad(x, [[0, 0], [-1, -3]], "SYMMETRIC"), X),
    "index 2**63 - 1": (lambda x: x[2**63 - 1], X),
    "index -2**63": (lambda x: x[-(2**63)], X),
    "index uint64 2**63": (lambda x: x[np.uint64(2**63)], X),
    "index 2**63 of bytes": (lambda x: x[2**63], X.astype(np.uint8)),
    "step 0": (lambda x: x[::0], X),
    "reversed twice": (lambda x: td.reverse(x, [0, 0]), X),
    "short mask": (lambda x: td.boolean_mask(x, [True, False]), X),
    "short mask as a key": (lambda x: x[np.array([True, False])], X),
    "argmax of nothing": (lambda x: td.argmax(x, 0), X[:0]),
    "argmin of nothing": (lambda x: td.argmin(x, 1), X[:, :0]),
    "argmax of complex": (lambda x: td.argmax(td.complex(x, x)), X),
    "diagonal of no square": (lambda x: td.einsum("ii->i", x), X),
    "top_k of -1": (lambda x: td.math.top_k(x, -1), X),
    "top_k of too many": (lambda x: td.math.top_k(x, 5), X),
    "one_hot of depth -3": (lambda x: td.one_hot(td.cast(x, td.int32), -3), X),
    "uniform of -1": (lambda x: td.random.uniform([-1]) + x, X),
    "zeros of -1": (lambda x: td.zeros([-1]) + x, X),
    "eye of -1": (lambda x: td.eye(-1) + x, X),
    "log_softmax of a scalar": (lambda x: td.nn.log_softmax(td.reduce_sum(x)), X),
    "gather by bools": (lambda x: td.gather(x, x[0] > 1), X),
    "broadcast_to of -1": (lambda x: td.broadcast_to(x, [-1, 4]), X),
    "tile of -1": (lambda x: td.tile(x, [-1, 1]), X),
    "repeat of too few": (lambda x: td.repeat(x, [1, 2], axis=0), X),
    "roll of two by one": (lambda x: td.roll(x, [1, 2], [0]), X),
    "concat of nothing": (lambda x: td.concat([], 0), X),
    "images without channels": (
        lambda x: td.nn.conv2d(x, floats(2, 2, 0, 3), 1, "SAME"), IMAGE[..., :0],
    ),
    "filters without channels": (lambda x: td.nn.conv2d(x, floats(2, 2, 0, 3), 1, "SAME"), IMAGE),
    "depthwise without channels": (
        lambda x: td.nn.depthwise_conv2d(x, floats(2, 2, 0, 3), [1, 1, 1, 1], "SAME"),
        IMAGE[..., :0],
    ),
    "negative explicit padding": (
        lambda x: td.nn.conv2d(x, floats(2, 2, 2, 3), 1, [[0, 0], [-1, 1], [0, 0], [0, 0]]), IMAGE,
    ),
    "window beyond the image": (lambda x: td.nn.max_pool2d(x, 99, 1, "VALID"), IMAGE),
    "segments of too few rows": (lambda x: td.math.unsorted_segment_sum(x, [0, 1], 3), X),
    "searches in other rows": (lambda x: td.searchsorted(x, floats(2, 2)), X),
}  # fmt: skip

ACCEPTED = {
    "step 2**63 - 1": (lambda x: x[:: 2**63 - 1], X),
    "step -2**63": (lambda x: x[:: -(2**63)], X),
    "slice to 2**63": (lambda x: x[1 : 2**63], X),
    "slice from -2**70": (lambda x: x[-(2**70) : 2], X),
    "gather_nd of empty positions": (lambda x: td.gather_nd(x, ints(5, 0)), X),
    "argmax along another axis": (lambda x: td.argmax(x, 0), X[:, :0]),
    "diagonal": (lambda x: td.einsum("ii->i", x), X[:3, :3]),
    "conv of no columns": (lambda x: td.nn.conv2d(x, floats(2, 2, 2, 3), 1, "SAME"),
                           IMAGE[:, :, :0]),
    "depthwise of no rows": (
        lambda x: td.nn.depthwise_conv2d(x, floats(2, 2, 2, 3), [1, 1, 1, 1], "SAME"), IMAGE[:, :0],
    ),
    "depthwise of no images": (
        lambda x: td.nn.depthwise_conv2d(x, floats(2, 2, 2, 3), [1, 1, 1, 1], "SAME"), IMAGE[:0],
    ),
    "pool of no rows": (lambda x: td.nn.max_pool2d(x, 2, 1, "SAME"), IMAGE[:, :0]),
    "conv to no channels": (lambda x: td.nn.conv2d(x, floats(2, 2, 2, 0), 1, "SAME"), IMAGE),
    "stack of nothing": (lambda x: td.stack([]) + td.reduce_sum(x), X),
    "mean of large integers": (td.reduce_mean, np.array([2**62 + 1, 2**62 + 3])),
    "mean of unsigned integers": (td.reduce_mean, np.array([2**63 + 5, 3], np.uint64)),
    "mean of negative integers": (td.reduce_mean, np.array([-3, -4])),
    "mean of no integers": (td.reduce_mean, np.zeros(0, np.int64)),
    "acosh below its domain": (td.acosh, np.array([-1e9, -1e20, -np.inf, 0.5, 1, 3])),
}  # fmt: skip


def ways(function, x):
    """The function, run eagerly, in a function, and in one whose signature has open dims."""
    open_dims = td.TensorSpec([None] * x.ndim, x.dtype)
    yield function
    yield td.function(function)
    yield td.function(function, input_signature=[open_dims])


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, x = REFUSED[name]
    kinds = []
    for way in ways(function, x):
        with pytest.raises(ValueError) as caught:
            way(td.constant(x))
        kinds.append(caught.type)
    assert len(set(kinds)) == 1


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name):
    function, x = ACCEPTED[name]
    expected, *others = (way(td.constant(x)).numpy() for way in ways(function, x))
    for actual in others:
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_means_of_integers():
    values = np.array([2**62 + 1, 2**62 + 3])
    assert td.reduce_mean(values).numpy() == -(2**62) + 2  # the sum wraps around, as TensorFlow's
    assert td.reduce_mean(np.array([2**53 + 1, 2**53 + 3])).numpy() == 2**53 + 2


def test_squeeze_of_a_dim_of_1_that_it_did_not_know():
    f = td.function(lambda x: td.squeeze(x), input_signature=[td.TensorSpec([None, 1], td.float32)])
    assert f(floats(3, 1)).shape == (3,)
    assert f(floats(0, 1)).shape == (0,)
    assert f(floats(1, 1)).shape == ()  # by a trace that knows it

    @td.function
    def late(x):
        return td.squeeze(td.boolean_mask(x, x > 0)[None])

    assert late(td.constant([1.0, 2.0, -1.0])).shape == (2,)
    with pytest.raises(td.errors.InvalidArgumentError, match="name the axes"):
        late(td.constant([1.0, -2.0, -1.0]))


@pytest.mark.parametrize("op", [td.add, td.multiply, td.maximum, td.math.divide_no_nan])
@pytest.mark.parametrize("other", [(1,), (1, 4), (3, 1), (1, 1)])
def test_gradients_of_what_only_a_run_knows_to_broadcast(op, other):
    shapes = [(3, 4), other]
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 2, s).astype(np.float32) for s in shapes]

    def gradients(x, b):
        with td.GradientTape() as tape:
            tape.watch([x, b])
            y = td.reduce_sum(op(x, b))
        return tape.gradient(y, [x, b])

    specs = [td.TensorSpec([None] * len(s), td.float32) for s in shapes]
    expected = gradients(*map(td.constant, values))
    actual = td.function(gradients, input_signature=specs)(*values)
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        np.testing.assert_allclose(a, e, rtol=1e-5)


@pytest.mark.parametrize("window", [(200, 3), (3, 200), (16384, 16384)])
@pytest.mark.parametrize("open_dims", [False, True])
def test_windows_far_beyond_the_image_cost_what_lies_in_it(window, open_dims):
    x = np.random.default_rng(0).standard_normal((2, 5, 7, 3)).astype(np.float32)

    def pooled(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.nn.max_pool2d(x, window, 2, "SAME") + td.nn.avg_pool2d(x, window, 2, "SAME")
            z = td.reduce_sum(y * y)
        return y, tape.gradient(z, x)

    signature = [td.TensorSpec([None] * 4, td.float32)] if open_dims else None
    actual = td.function(pooled, input_signature=signature)(td.constant(x))
    y, dx = pooled(td.constant(x))
    np.testing.assert_allclose(actual[0], y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(actual[1], dx, rtol=1e-4, atol=1e-5)
    rows = [max(0, min(5, 2 * i + w)) for i, w in enumerate([window[0]] * 3)]
    assert rows and y.shape == (2, 3, 4, 3)


def test_sinh_and_cosh_near_overflow():
    x = np.concatenate([np.linspace(690, 710.4, 999), -np.linspace(690, 710.4, 999)])
    for op, reference in ((td.sinh, np.sinh), (td.cosh, np.cosh)):
        actual = td.function(op)(x).numpy()
        wanted = reference(x.astype(np.longdouble)).astype(np.float64)
        assert np.max(np.abs(actual - wanted) / np.spacing(np.abs(wanted))) <= 4


def nested(depth):
    value = [1.0]
    for _ in range(depth):
        value = [value]
    return value


def containing_itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [nested(5000), containing_itself()], ids=["deep", "endless"])
def test_structures_without_end(value):
    with pytest.raises(ValueError, match="contains itself"):
        td.function(lambda x: x)(value)
    with pytest.raises(ValueError, match="contains itself"):
        td.nest.flatten(value)


def test_poor_arguments():
    with pytest.raises(TypeError, match="Tout"):
        td.py_function()
    with pytest.raises(TypeError, match="string"):
        td.Module(name=3)


LONG = {
    "elif": "    if x > 0:\n        y = 1.0\n"
    + "".join(f"    elif x > {-i}:\n        y = {i}.0\n" for i in range(1, 300))
    + "    else:\n        y = 0.0\n    return y\n",
}


@pytest.mark.parametrize("name", LONG)
def test_statements_nested_too_deeply(name, tmp_path, monkeypatch):
    (tmp_path / f"long_{name}.py").write_text("def g(x):\n" + LONG[name])
    monkeypatch.syspath_prepend(tmp_path)
    g = __import__(f"long_{name}").g
    with pytest.raises(td.autograph.ConversionError, match="nested too deeply"):
        td.function(g)(td.constant(1.0))
