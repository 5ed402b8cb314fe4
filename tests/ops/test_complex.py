"""Complex numbers: NumPy = eager = compiled, special values, gradients, no callbacks."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.ops.elementwise.complex_functions import joined
from treadle.ops.registry import OPS, run

DTYPES = (np.complex64, np.complex128)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    """What cannot be compiled fails here."""
    monkeypatch.setenv("TREADLE_STRICT", "1")
    monkeypatch.setenv("TREADLE_VERIFY", "1")


def numbers(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def compiled(fn, *arrays):
    """What a compiled function of `fn` gives, and how often its program calls Python."""
    function = td.function(fn)
    results = td.nest.map_structure(lambda t: t.numpy(), function(*map(td.constant, arrays)))
    (concrete,) = function.concrete_functions
    assert concrete.executable.mode == "native"
    return results, concrete.executable.stages["schedule"].count("python")


def check(fn, *arrays, callbacks=0, tolerance=32):
    """Compiled `fn` is eager `fn`, in `tolerance` units of the last place."""
    wanted = td.nest.flatten(fn(*map(td.constant, arrays)))
    found, calls = compiled(fn, *arrays)
    assert calls == callbacks
    epsilon = np.finfo(arrays[0].dtype).eps * tolerance
    for w, f in zip(wanted, td.nest.flatten(found), strict=True):
        assert (f.dtype, f.shape) == (w.numpy().dtype, tuple(w.shape))
        np.testing.assert_allclose(f, w.numpy(), rtol=epsilon, atol=epsilon)


# -- special values ------------------------------------------------------------------------------

UNARY = (
    "abs", "angle", "negative", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1",
    "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "sigmoid",
)  # fmt: skip


def special(dtype):
    """Zeros, infinities, NaN, numbers whose squares leave the range, and ordinary ones."""
    part = dtype().real.dtype
    huge = 1e300 if part == np.float64 else 1e37
    values = [0, 1, 0.5, 3, 20.5, np.inf, huge, 1 / huge, 1e-5]
    parts = np.array([*values, *(-v for v in values), -0.0, np.nan], part)
    return joined([p.ravel() for p in np.meshgrid(parts, parts)])[0]


def kinds(x):
    """1 and -1 for infinities, 2 for NaN."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def same(found, wanted, arrays, tolerance):
    """Equal infinities and NaN; elsewhere nearly equal, beside the magnitude of the result."""
    size = np.abs(wanted).astype(np.float64)
    pairs = [(found, wanted)]
    if wanted.dtype.kind == "c":
        pairs = [(found.real, wanted.real), (found.imag, wanted.imag)]
    for f, w in pairs:
        known = np.isfinite(w) & np.isfinite(f)
        scale = np.where(np.isfinite(size), size, np.abs(w))
        with np.errstate(all="ignore"):
            wrong = known & (np.abs(f - w) > tolerance * scale + 1e-44)
        wrong |= kinds(f) != kinds(w)
        assert not wrong.any(), [(*(a[wrong] for a in arrays), found[wrong], wanted[wrong])]


BY_PRECISION = ("abs", "sqrt", "log", "exp", "sinh", "tanh", "asin", "atanh")


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_are_those_of_numpy(dtype):
    x = special(dtype)
    ops = [OPS[name] for name in UNARY if dtype is np.complex128 or name in BY_PRECISION]
    found, calls = compiled(lambda x: [run(op, x) for op in ops], x)
    assert not calls
    for op, f in zip(ops, found, strict=True):
        keep = np.ones(x.shape, bool)
        if op.name == "square":  # NumPy may round inf - inf once, from a finite first product
            keep = np.isfinite(x) & (np.abs(x) < np.sqrt(np.finfo(dtype).max) / 2)
        # NumPy's log1p is no more exact than log(1 + x), of which 1e-5 is the smallest here.
        tolerance = (1e5 if op.name == "log1p" else 32) * np.finfo(dtype).eps
        wanted = run(op, td.constant(x)).numpy()
        same(f[keep], wanted[keep], [x[keep]], tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["divide", "divide_no_nan", "add", "multiply"])
def test_special_values_of_two_operands(dtype, name):
    x, y = (a.ravel() for a in np.meshgrid(special(dtype)[::3], special(dtype)[1::5]))
    if name == "multiply":
        limit = np.sqrt(np.finfo(dtype).max) / 2
        moderate = (np.abs(x) < limit) & (np.abs(y) < limit)
        x, y = x[moderate], y[moderate]
    op = OPS[name]
    found, calls = compiled(lambda x, y: run(op, x, y), x, y)
    assert not calls
    same(found, run(op, td.constant(x), td.constant(y)).numpy(), [x, y], 8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype):
    x = numbers(dtype, 40)
    y = np.concatenate([numbers(dtype, 20, seed=1), np.arange(-10, 10).astype(dtype)])
    x[[0, 25, 35]] = 0
    check(lambda x, y: (x**y, x**3, x**2), x, y, tolerance=100)


def test_parts_with_infinities_are_joined():
    z = td.complex(td.constant([1.0, np.inf]), td.constant([np.inf, 2.0])).numpy()
    np.testing.assert_array_equal(z.real, [1, np.inf])
    np.testing.assert_array_equal(z.imag, [np.inf, 2])


# -- everything that tensors do ------------------------------------------------------------------


def arithmetic(x, y):
    return (
        x + y, x - y, x * y, x / y, -x, x * 2.0, x - 1j, 1.0 / x, td.add_n([x, y, x]),
        td.math.squared_difference(x, y), td.equal(x, y), x != y, td.where(td.abs(x) > 1, x, y),
        td.math.conj(x), td.math.real(x), td.math.imag(y), td.identity(x), td.stop_gradient(y),
    )  # fmt: skip


def casts(x, y):
    real = td.math.real(x)
    return (
        td.cast(x, td.complex128), td.cast(x, td.complex64), td.cast(x, td.float32),
        td.cast(x, td.bool), td.cast(real, td.complex64), td.cast(real > 0, td.complex128),
        td.cast(x, td.int32), td.complex(real, real * 2),
    )  # fmt: skip


def reductions(x, y):
    return (
        td.reduce_sum(x), td.reduce_sum(x, 0), td.reduce_mean(x, 1), td.reduce_prod(x),
        td.reduce_prod(x, 1, keepdims=True), td.cumsum(x, 1), td.cumsum(y, 0, reverse=True),
        td.norm(x), td.reduce_sum(td.abs(x), 1), td.reduce_max(td.abs(x)),
    )  # fmt: skip


def movement(x, y):
    return (
        td.transpose(x), td.reshape(x, [-1]), x[1:, ::2], x[0, 1], x[::-1], td.concat([x, y], 0),
        td.stack([x, y]), td.split(x, 2, 1), td.tile(x, [2, 1]), td.reverse(x, [1]),
        td.roll(x, 1, 1), td.pad(x, [[1, 0], [0, 2]]), td.pad(x, [[1, 1], [0, 0]],
        constant_values=2.0), td.gather(x, [2, 0]), td.gather_nd(x, [[0, 1], [2, 3]]),
        td.broadcast_to(x, [2, 3, 4]), td.linalg.diag(x[0]), td.eye(3, dtype=x.dtype),
        td.fill([2, 2], x[0, 0]), td.zeros_like(x), td.ones_like(x), td.shape(x),
        td.unstack(x), td.repeat(x, 2, 0), td.linalg.trace(x), td.linalg.band_part(x, 0, 1)
        if hasattr(td.linalg, "band_part") else x,
    )  # fmt: skip


def scatters(x, y):
    at = td.constant([[0], [2], [0]])
    return (
        td.scatter_nd(at, x, [4, 4]), td.tensor_scatter_nd_update(y, [[1]], x[:1]),
        td.tensor_scatter_nd_add(y, at, x), td.math.unsorted_segment_sum(x, [1, 0, 1], 2),
    )  # fmt: skip


def products(x, y):
    return (
        td.matmul(x, y, transpose_b=True), td.transpose(x) @ y, td.tensordot(x, y, 2),
        td.einsum("ij,kj->ik", x, y), td.linalg.matvec(x, y[0]),
        td.matmul(x, td.math.conj(y), transpose_a=True),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "fn", [arithmetic, casts, reductions, movement, scatters, products], ids=lambda f: f.__name__
)
def test_compiled_is_eager(fn, dtype):
    check(fn, numbers(dtype, 3, 4), numbers(dtype, 3, 4, seed=1))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 33, 1000])
def test_every_length(size):
    x, y = numbers(np.complex64, size), numbers(np.complex64, size, seed=1)
    check(lambda x, y: (x * y + 1.0, td.reduce_prod(x * 0.01 + 1), td.reduce_sum(y)), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_open_dims_and_unaligned_memory(dtype):
    @td.function(input_signature=[td.TensorSpec([None, None], dtype)])
    def f(x):
        return td.transpose(x * 2 - 1j), td.reduce_sum(x, 0), td.concat([x, x[:1]], 0)

    for shape in [(1, 1), (2, 5), (9, 3), (40, 17)]:
        memory = np.zeros(np.prod(shape) * dtype().itemsize + 8, np.uint8)
        x = memory[8:].view(dtype).reshape(shape)
        x[...] = numbers(dtype, *shape)
        for found, wanted in zip(
            f(x), (x.T * 2 - 1j, x.sum(0), np.concatenate([x, x[:1]])), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert "python" not in f.concrete_functions[0].executable.stages["schedule"]


# -- control flow, variables, lists --------------------------------------------------------------


def escape_time(c):
    z = c * 0
    k = td.constant(0)
    while td.abs(z) <= 2.0 and k < 60:
        z = z * z + c
        k += 1
    return k, z


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_loop_over_a_complex_scalar(dtype):
    for c in (0.3 + 0.5j, 0.5 + 0.5j, -2, 0.25, 3):
        value = td.constant(np.asarray(c, dtype))
        k, z = td.function(escape_time)(value)
        wanted, steps = dtype(0), 0
        with np.errstate(all="ignore"):
            while abs(wanted) <= 2 and steps < 60:
                wanted, steps = dtype(wanted * wanted + dtype(c)), steps + 1
        assert int(k) == steps
        if steps < 60:
            np.testing.assert_allclose(z.numpy(), wanted, rtol=1e-3)


def branches(x):
    if td.math.real(x[0]) > 0:
        y, s = x, x[1]
    else:
        y, s = x * 2j, x[0] * x[1]
    return y + s


def growing(x):
    found = x[:1]
    for i in td.range(3):
        found = td.concat([found, x[i : i + 1] * 1j], 0)
    return found


def in_a_list(x):
    rows = []
    for i in td.range(3):
        rows.append(x[i] * x)
    return td.stack(rows)


def in_a_list_of_scalars(x):
    found = td.TensorArray(x.dtype, size=3)
    for i in td.range(3):
        found = found.write(i, x[i] * 2j)
    return found.stack()


def updated(x):
    y = td.zeros_like(x)
    for i in td.range(3):
        y = td.tensor_scatter_nd_update(y, [[i]], [x[i] * x[i]])
    return y


def reads_what_the_loop_captures(x):
    total = x[0] * 0
    for i in td.range(x.shape[0]):
        total += x[i] * td.reduce_sum(x[:2])
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "fn",
    [branches, growing, in_a_list, in_a_list_of_scalars, updated, reads_what_the_loop_captures],
    ids=lambda f: f.__name__,
)
def test_control_flow(fn, dtype):
    for seed in range(2):
        x = td.constant(numbers(dtype, 5, seed=seed))
        found = td.function(fn)(x)
        np.testing.assert_allclose(found, fn(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_variables(dtype):
    v, s = td.Variable(numbers(dtype, 4)), td.Variable(dtype(1 + 2j))
    before, x = v.numpy(), numbers(dtype, 4, seed=3)

    @td.function
    def f(x):
        v.assign(v * x)
        s.assign_add(x[0])
        v.assign(td.tensor_scatter_nd_update(v, [[1]], [td.ones([], v.dtype)]))
        return v * s

    result = f(td.constant(x))
    wanted = before * x
    wanted[1] = 1
    np.testing.assert_allclose(v.numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(s.numpy(), 1 + 2j + x[0], rtol=1e-5)
    np.testing.assert_allclose(result, wanted * (1 + 2j + x[0]), rtol=1e-5)


def test_results_that_are_arguments_and_constants():
    x = numbers(np.complex64, 3)
    check(lambda x: (x, td.constant([1j, 2.0]), td.constant(3 - 1j), x[0]), x)


# -- gradients -----------------------------------------------------------------------------------

DIFFERENTIABLE = (
    "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid",
    "negative", "conj", "sign", "angle",
)  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_functions(name):
    x = np.array([0.3 + 0.4j, -0.6 + 0.2j, 1.5 - 0.7j])
    theory, numeric = td.test.compute_gradient(
        td.function(lambda x: run(OPS[name], x)), [td.constant(x)], 1e-5
    )
    np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: x * y / (x + 2),
        lambda x, y: td.abs(x) * td.math.real(y) + td.math.imag(x * y),
        lambda x, y: x**y,
        lambda x, y: td.matmul(x[:, None], td.math.conj(y)[None, :]),
        lambda x, y: td.reduce_prod(x) * y,
        lambda x, y: td.cumsum(x) * td.math.cumprod(y),
        lambda x, y: td.math.divide_no_nan(x, y),
        lambda x, y: td.gather(x, [1, 0, 1]) + td.concat([x, y], 0)[:3],
    ],
)
def test_gradients_of_two_operands(fn):
    x, y = np.array([0.5 + 0.8j, -0.4 + 0.3j]), np.array([1.2 - 0.3j, 0.7 + 0.9j])
    theory, numeric = td.test.compute_gradient(
        td.function(fn), [td.constant(x), td.constant(y)], 1e-5
    )
    for t, n in zip(theory, numeric, strict=True):
        np.testing.assert_allclose(t, n, rtol=1e-5, atol=1e-6)


def test_gradient_of_a_loop():
    def f(x):
        z = x * 0
        for _ in td.range(3):
            z = z * z * 0.1 + x
        return td.reduce_sum(z * td.math.conj(z))

    x = np.array([0.5 + 0.8j, -0.4 + 0.3j])
    theory, numeric = td.test.compute_gradient(td.function(f), [td.constant(x)], 1e-5)
    np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-5, atol=1e-6)


# What TensorFlow 2.21 gives for sums of functions of X; its convention is the conjugate of the
# derivative.
X = np.array([0.5 + 0.8j, -0.4 + 0.3j, 1.1 - 0.2j])
FACTS = [
    (td.reduce_prod, [-0.38 - 0.41j, 0.71 - 0.78j, -0.44 + 0.17j]),
    (td.abs, [0.52999894 + 0.847998304j, -0.8 + 0.6j, 0.98386991 - 0.178885438j]),
    (td.sign, [0.762245667 - 0.476403542j, 0.72 + 0.96j, 0.02862167 + 0.157419187j]),
    (td.math.angle, [-0.898876404 + 0.561797753j, -1.2 - 1.6j, 0.16 + 0.88j]),
    (lambda x: x**x, [0.17078476 - 0.57259016j, 1.5241298 - 0.37523093j, 1.14022040 + 0.45616449j]),
    (td.math.log, [0.561797753 + 0.898876404j, -1.6 + 1.2j, 0.88 - 0.16j]),
    (lambda x: 1 / x, [0.492362075 - 1.009973488j, -1.12 + 3.84j, -0.7488 + 0.2816j]),
    (lambda x: td.math.divide_no_nan(x, x * x), [0.492362075 - 1.009973488j, -1.12 + 3.84j,
     -0.7488 + 0.2816j]),
    (lambda x: td.einsum("i,i->", x, td.math.conj(x)), 2 * X),
    (lambda x: td.cast(td.abs(x), x.dtype) * x, [1.20839758 + 0.423999152j, 0.82 - 0.24j,
     2.20029089 - 0.196773982j]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FACTS)))
def test_gradients_are_those_of_tensorflow(number):
    fn, wanted = FACTS[number]

    @td.function
    def gradient(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(gradient(td.constant(X)), wanted, rtol=1e-7, atol=1e-9)


# -- random programs -----------------------------------------------------------------------------


def _steps(x, y):
    """What a random program may do next with two arrays of one shape."""
    return (
        lambda: x * y, lambda: x + y * 0.5j, lambda: x / (y * 0.1 + 3), lambda: td.exp(x * 0.1),
        lambda: td.where(td.abs(x) < 1.5, x, y), lambda: td.sqrt(x), lambda: td.transpose(x),
        lambda: td.cumsum(x, 0) * 0.3, lambda: x @ y * 0.2, lambda: td.math.conj(y) - x,
        lambda: td.complex(td.abs(x), td.math.imag(y)), lambda: td.roll(x, 1, 0),
        lambda: td.gather(x, [3, 0, 2, 1], axis=1), lambda: td.concat([x[1:], y[:1]], 0),
        lambda: x - td.reduce_mean(y, 1, keepdims=True), lambda: td.sin(x * 0.3),
        lambda: td.cast(td.math.real(x), x.dtype), lambda: x * y[0, 1],
    )  # fmt: skip


def random_program(seed):
    """Steps drawn once, some of them in a loop and in the branches of a condition."""
    rng = np.random.default_rng(seed)
    plan = rng.integers(0, 18, 12)

    def straight(steps, x, y):
        for k in steps:
            x, y = _steps(x, y)[k](), x
        return x, y

    def program(x, y):
        x, y = straight(plan[:4], x, y)
        i = td.constant(0)
        while i < 2:
            x, y = straight(plan[4:7], x, y)
            i += 1
        if td.math.real(x[0, 0]) > td.math.imag(y[1, 1]):
            x, y = straight(plan[7:9], x, y)
        else:
            x = y * 2.0
        return straight(plan[9:], x, y)

    return program


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    program = random_program(seed)
    x, y = numbers(np.complex128, 4, 4, seed=seed), numbers(np.complex128, 4, 4, seed=seed + 99)
    wanted = program(td.constant(x), td.constant(y))
    found, calls = compiled(program, x, y)
    assert not calls
    for f, w in zip(found, wanted, strict=True):
        w = w.numpy()
        np.testing.assert_allclose(f, w, rtol=1e-8, atol=1e-10 * max(1, np.abs(w).max()))


def test_ops_on_parts_are_what_numpy_computes():
    """The interpreter's meaning of the ops with two outputs."""
    x, y = numbers(np.complex128, 3), numbers(np.complex128, 3, seed=1)
    parts = [np.ascontiguousarray(p) for p in (x.real, x.imag, y.real, y.imag)]
    real, imag = OPS["complex_multiply"].eager(*parts)
    np.testing.assert_array_equal(joined([real, imag])[0], x * y)
