"""NumPy's functions and methods in jitted functions: values, dtypes and what they change."""

import numpy as np
import pytest

import treadle as td

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 6)), RNG.normal(size=(4, 6))
V, W = RNG.normal(size=7), RNG.normal(size=7)
I = RNG.integers(0, 9, 12)
N = np.array([np.nan, 1.0, np.nan, -0.0, 0.0, 1.0])
T = RNG.normal(size=(2, 3, 4))


def at(ufunc):
    def f(x, i, v):
        ufunc.at(x, i, v)
        return x

    return f


CASES = {
    # products of any number of operands
    "einsum of two": (lambda a, b: np.einsum("ij,kj->ik", a, b), A, B),
    "einsum of three": (lambda a, b, v: np.einsum("ij,kj,l->ikl", a, b, v), A, B, V),
    "einsum of four": (lambda a, b: np.einsum("ij,kj,ij,kj->", a, b, b, a), A, B),
    "einsum into out": (lambda a, b, o: (np.einsum("ij,ij->j", a, b, out=o), o), A, B, A[0].copy()),
    # the order of elements
    "reshape F": (lambda a: a.reshape((6, 4), order="F"), A),
    "reshape F of three axes": (lambda a: np.reshape(a, (4, -1), order="F"), T),
    "ravel F": (lambda a: a.ravel("F"), A),
    "np.ravel F": (lambda a: np.ravel(a, "F"), T),
    "flatten F": (lambda a: a.flatten("F"), A),
    "reshape F of a vector": (lambda v: v[:6].reshape(2, 3, order="F"), V),
    # distinct elements
    "unique": (np.unique, I), "unique of floats": (np.unique, N),
    "unique of bools": (lambda a: np.unique(a > 0), A),
    "unique of nothing": (np.unique, np.zeros(0)),
    "unique with all": (
        lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True), I
    ),
    "unique with counts": (lambda x: np.unique(x, return_counts=True), N),
    "unique of a matrix": (lambda x: np.unique(x.reshape(3, 4), return_inverse=True), I),
    "setxor1d": (lambda i: np.setxor1d(i, np.array([1, 2, 77])), I),
    # sliding products and polynomials
    "convolve full": (np.convolve, V, W[:3]),
    "convolve same": (lambda v, w: np.convolve(v, w, "same"), V, W[:4]),
    "convolve valid": (lambda v, w: np.convolve(v, w, "valid"), V[:3], W),
    "correlate": (lambda v, w: np.correlate(v, w, "full"), V, W[:5]),
    "correlate complex": (lambda v, w: np.correlate(v * 1j, w + 2j * w, "same"), V, W[:4]),
    "polyfit": (lambda v, w: np.polyfit(v, w, 2), V, W),
    "polyfit of columns": (lambda v, a: np.polyfit(v[:4], a, 1), V, A),
    "polyfit with weights": (lambda v, w: np.polyfit(v, w, 1, w=v * v), V, W),
    "polyadd": (np.polyadd, V, W[:3]), "polysub": (np.polysub, V[:2], W),
    "polyint": (np.polyint, V),
    "unwrap": (lambda v: np.unwrap(v * 5), V),
    "windows": (lambda v: np.lib.stride_tricks.sliding_window_view(v, 3), V),
    # positions
    "lexsort": (lambda i: np.lexsort((i[::-1], i)), I),
    "choose": (lambda i: np.choose(i % 3, [i, i * 2, i * 3]), I),
    "insert": (lambda v: np.insert(v, 2, 9.0), V),
    "insert a row": (lambda a: np.insert(a, 1, 5.0, axis=0), A),
    "resize": (lambda v: np.resize(v, (3, 4)), V),
    "ravel_multi_index": (lambda i: np.ravel_multi_index((i % 3, i % 4), (3, 4)), I),
    "unravel_index": (lambda i: np.unravel_index(i, (3, 4)), I),
    "ix_": (lambda a, i: a[np.ix_(i[:2] % 4, i[2:5] % 6)], A, I),
    # scans and reductions
    "maximum.accumulate": (np.maximum.accumulate, V),
    "minimum.accumulate": (lambda a: np.minimum.accumulate(a, axis=1), A),
    "bitwise_or.reduce": (np.bitwise_or.reduce, I), "gcd.reduce": (np.gcd.reduce, I),
    "logical_xor.reduce": (lambda a: np.logical_xor.reduce(a > 0, axis=1), A),
    "sum where": (lambda a: np.sum(a, axis=0, where=a > 0), A),
    "max where": (lambda a: np.max(a, axis=1, where=a > 0, initial=-1.0), A),
    "prod initial": (lambda v: v.prod(initial=2.0), V),
    "any where": (lambda a: np.any(a > 1, where=a > 0), A),
    "nanargmax": (lambda x: np.nanargmax(x), N),
    # elements
    "gcd": (lambda i: np.gcd(i, 6), I), "lcm": (lambda i: np.lcm(i + 1, 4), I),
    "modf": (lambda x: np.modf(x), np.array([1.5, -2.25, 0.0, np.inf])),
    "ldexp": (lambda v: np.ldexp(v, 3), V),
    "vecdot": (lambda a, b: np.vecdot(a, b), A, B),
    "matvec": (lambda a, v: np.matvec(a, v[:6]), A, V),
    "geomspace": (lambda v: np.geomspace(1, v[0] ** 2 + 2, 5), V),
    "r_": (lambda v, w: np.r_[v, 1.5, w], V, W), "c_": (lambda v, w: np.c_[v, w], V, W),
    "histogram2d": (lambda v, w: np.histogram2d(v, w, bins=3)[0], V, W),
    "compress": (lambda a: a.compress([True, False, True], axis=0), A),
    "isscalar": (lambda v: (np.isscalar(v[0]), np.isscalar(v)), V),
    "strides": (lambda a: a.strides, A),
    # changes in place
    "multiply.at": (at(np.multiply), V, I % 7, 2.0),
    "divide.at": (at(np.divide), V.astype(np.float32), I % 7, 3.0),
    "maximum.at": (at(np.maximum), V, I % 7, I * 0.1),
    "minimum.at rows": (at(np.minimum), A, I % 4, np.zeros(6)),
    "bitwise_xor.at": (at(np.bitwise_xor), I.copy(), I % 5, 3),
    "add.at a mask": (at(np.add), V, V > 0, 1.0),
    "power.at negative positions": (at(np.power), np.arange(1.0, 5.0), np.array([-1, -1, 0]), 2.0),
    "place": (lambda v: (np.place(v, v > 0, [1.0, 2.0]), v)[1], V),
    "putmask": (lambda v, w: (np.putmask(v, v > 0, w[:3]), v)[1], V, W),
    "put": (lambda v: (v.put([0, -1], [5.0, 6.0]), v)[1], V),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_like_numpy(name) -> None:
    f, *args = CASES[name]
    theirs, ours = ([np.copy(a) if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    wanted, found = f(*theirs), td.jit(f)(*ours)
    _same(found, wanted)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def _same(found, wanted) -> None:
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            _same(one, other)
        return
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_a_view_in_the_other_order_is_written_through() -> None:
    def f(x):
        y = x.reshape((2, 3), order="F")
        y[0] = 7.0
        return x

    np.testing.assert_array_equal(td.jit(f)(np.arange(6.0)), f(np.arange(6.0)))


def test_what_is_not_supported_says_so() -> None:
    with pytest.raises(AttributeError, match=r"ndarray.tobytes is not.*\n.*test_functions"):
        td.jit(lambda a: a.tobytes())(A)
    with pytest.raises(TypeError, match="multiply.at takes positions, no slices"):
        td.jit(at(np.multiply))(A, (slice(None), np.array([0])), 2.0)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'divide' output"):
        td.jit(at(np.divide))(I.copy(), I % 5, 2.0)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_gradients_of_sliding_products(mode) -> None:
    def f(x, y):
        return (np.convolve(x, y, mode) ** 2).sum()

    for sizes in ((9, 4), (4, 9)):
        x, y = RNG.normal(size=sizes[0]), RNG.normal(size=sizes[1])
        direction, step = RNG.normal(size=sizes[0]), 1e-6
        slope = (f(x + step * direction, y) - f(x - step * direction, y)) / (2 * step)
        np.testing.assert_allclose(td.grad(f)(x, y) @ direction, slope, rtol=1e-6)


def test_gradients_of_sorted_rows() -> None:
    x, weights = RNG.normal(size=(3, 40)), RNG.normal(size=(3, 40))

    def f(x):
        return (np.sort(x, axis=1) * weights).sum()

    direction, step = RNG.normal(size=x.shape), 1e-7
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    np.testing.assert_allclose((td.grad(f)(x) * direction).sum(), slope, rtol=1e-5)
