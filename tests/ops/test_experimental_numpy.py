"""``td.experimental.numpy``: values, dtypes and gradients are NumPy's, eagerly and in functions."""

import numpy as np
import pytest

import treadle as td
import treadle.experimental.numpy as tnp

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.5]])
CALLS = [
    lambda n, x: n.sum(x, axis=0),
    lambda n, x: n.mean(x, keepdims=True),
    lambda n, x: n.add(n.array([1], n.int32), n.array([1.5], n.float32)),
    lambda n, x: n.add(x, 2),
    lambda n, x: n.exp(n.arange(3)),
    lambda n, x: n.where(x > 0, x, -x),
    lambda n, x: n.concatenate([x, x], axis=1),
    lambda n, x: n.matmul(x, n.transpose(x)),
    lambda n, x: n.argmax(x, axis=1),
    lambda n, x: n.array([x, x], ndmin=4),
    lambda n, x: n.meshgrid(n.arange(2), n.arange(3)),
    lambda n, x: n.clip(x, 0, 1),
    lambda n, x: n.var(x, axis=1),
    lambda n, x: n.stack([x, x]),
    lambda n, x: n.einsum("ij,kj->ik", x, x),
    lambda n, x: n.expand_dims(n.ravel(x), 0),
    lambda n, x: n.tril(n.ones((3, 3), dtype=n.float32)),
]


@pytest.mark.parametrize("call", CALLS)
def test_values_and_dtypes_are_numpys(call):
    wanted = td.nest.flatten(call(np, X))
    for run in (call, td.function(call)):
        found = td.nest.flatten(run(tnp, td.constant(X)))
        for a, b in zip(found, wanted, strict=True):
            assert isinstance(a, td.Tensor) and a.dtype.np_dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-12)


def test_gradients_go_through():
    x = td.constant(X)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.square(tnp.sin(x)))
    np.testing.assert_allclose(tape.gradient(y, x), np.sin(2 * X), rtol=1e-12)


def test_random_numbers_are_those_of_the_library():
    r = tnp.random
    tnp.random.seed(4)
    first = r.randn(2, 3)
    tnp.random.seed(4)
    np.testing.assert_array_equal(first, r.randn(2, 3))
    assert first.dtype is td.float64 and r.rand(2).dtype is td.float64
    whole = r.randint(3, 5, size=100).numpy()
    assert set(whole.tolist()) == {3, 4} and r.randint(2, size=(3,)).dtype is td.int64
    assert r.uniform(2.0, 3.0, size=(2, 2)).numpy().min() >= 2.0
    assert r.standard_normal().shape == () and r.poisson(2.0, (3,)).shape == (3,)


def test_names():
    assert tnp.ndarray is td.Tensor and tnp.float_ is np.float64 and "matmul" in dir(tnp)
    with pytest.raises(NotImplementedError, match="dtype_conversion_mode"):
        tnp.experimental_enable_numpy_behavior(dtype_conversion_mode="all")
    with pytest.raises(AttributeError, match="nothing_like_it"):
        tnp.nothing_like_it


def test_what_nobody_filled_holds_nothing_of_others():
    for like in (b"abc", np.array([b"ab", b"c"]), "abc", td.constant(["abc"])):
        found = tnp.empty_like(like)
        assert found.dtype is td.string
        assert {bytes(x) for x in np.atleast_1d(found.numpy())} == {b""}
    for make in (tnp.empty, tnp.zeros):
        assert make([2], td.string).numpy().tolist() == [b"", b""]
        assert make([2], td.int32).numpy().tolist() == [0, 0] and make(3).dtype is td.float64
    assert tnp.empty_like([1, 2], np.float32).numpy().tolist() == [0.0, 0.0]


def test_import_of_all_names():
    given = {}
    exec("from treadle.experimental.numpy import *", given)  # as libraries make a module of it
    assert set(dir(tnp)) - {"__builtins__"} <= given.keys()
    assert float(given["sum"]([1.0, 2.0])) == 3.0 and given["float32"] is np.float32


NAMED = {  # TensorFlow's names of arguments that NumPy's functions get by position
    "log": (lambda x: tnp.log(x=x * x), lambda x: np.log(x * x)),
    "add": (lambda x: tnp.add(x, x2=2.0), lambda x: x + 2.0),
    "where": (lambda x: tnp.where(condition=x > 1, x=x, y=0.0), lambda x: np.where(x > 1, x, 0.0)),
    "sum": (lambda x: tnp.sum(a=[x, x], axis=0), lambda x: x + x),
    "reshape": (lambda x: tnp.reshape(a=x, newshape=(3, 2)), lambda x: x.reshape(3, 2)),
    "concatenate": (lambda x: tnp.concatenate(arys=[x, x]), lambda x: np.concatenate([x, x])),
    "tile": (lambda x: tnp.tile(a=x, reps=2), lambda x: np.tile(x, 2)),
    "vdot": (lambda x: tnp.vdot(a=x, b=x), lambda x: np.vdot(x, x)),
    "arange": (lambda x: tnp.arange(start=1, stop=4), lambda x: np.arange(1, 4)),
}
LISTS = {  # of tensors, which NumPy would make arrays of objects of
    "sum": (lambda n, x: n.sum([x[0, 0], x[0, 1] * 2], axis=0)),
    "max": (lambda n, x: n.max([[x[0, 0], 1.0], [3.0, x[1, 1]]], axis=1)),
    "exp": (lambda n, x: n.exp([x[0, 0], 1.0])),
    "concatenate": (lambda n, x: n.concatenate([[x[0, 0], 1.0], [2.0]])),
    "stack": (lambda n, x: n.stack([[x[0, 0], 1.0], [2.0, x[1, 1]]], axis=-1)),
    "meshgrid": (lambda n, x: n.meshgrid([x[0, 0], 1.0], [1.0, x[1, 1]])),
    "einsum": (lambda n, x: n.einsum("i,i->", [x[0, 0], 1.0], [1.0, x[1, 1]])),
    "full": (lambda n, x: n.full((2, 3), x[0, 0])),
    "outer": (lambda n, x: n.outer([x[0, 0], 1.0], x[0])),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_of_arguments_are_tensorflows(name):
    call, wanted = NAMED[name]
    for run in (call, td.function(call)):
        np.testing.assert_allclose(run(td.constant(X)), wanted(X), rtol=1e-12)


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_tensors_are_arrays(name):
    call = LISTS[name]
    wanted = td.nest.flatten(call(np, X))
    for run in (call, td.function(call)):
        for a, b in zip(td.nest.flatten(run(tnp, td.constant(X))), wanted, strict=True):
            assert a.dtype.np_dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_widths_of_padding_are_a_tensor_of_any_numbers():
    widths = td.constant([[1, 0], [0, 2]])
    for dtype in (td.int32, td.int64, td.float64):  # TensorFlow casts them
        run = td.function(lambda x, w: tnp.pad(x, w, mode="constant"))
        found = run(td.constant(X), td.cast(widths, dtype))
        np.testing.assert_array_equal(found, np.pad(X, ((1, 0), (0, 2))))
    np.testing.assert_array_equal(tnp.pad(X, 1, "edge"), np.pad(X, 1, "edge"))


def test_sizes_of_what_is_no_array():
    assert tnp.size(x=[td.constant(1.0), 2.0]) == 2 and tnp.size(X, axis=1) == 3
