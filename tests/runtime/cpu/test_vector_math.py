"""Accuracy of the elementary functions against mpmath, and their special values.

The errors over all 2**32 float32 inputs are in docs/results/ulp.json (benchmarks/ulp).
"""

import mpmath
import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS, run
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, load, store

F32, F64 = dtypes.float32, dtypes.float64
INF, NAN = np.inf, np.nan
COUNT = 400

REFERENCES = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.power(2, x), "expm1": mpmath.expm1,
    "log": mpmath.log, "log1p": mpmath.log1p, "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "tanh": mpmath.tanh, "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)), "erf": mpmath.erf, "erfc": mpmath.erfc,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "sinh": mpmath.sinh,
    "cosh": mpmath.cosh, "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh, "sqrt": mpmath.sqrt,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}  # fmt: skip
DOMAINS = {
    "log": (1e-30, 1e30), "log2": (1e-30, 1e30), "sqrt": (1e-30, 1e30), "rsqrt": (1e-30, 1e30),
    "log1p": (-0.999, 1e30), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.999, 0.999),
    "acosh": (1, 1e30), "exp": (-80, 80), "exp2": (-120, 120), "expm1": (-30, 80),
    "sinh": (-80, 80), "cosh": (-80, 80), "erfc": (-5, 9), "sigmoid": (-80, 80),
    "softplus": (-80, 80),
}  # fmt: skip
# The largest error allowed, in units in the last place (float32, float64).
LIMITS = {"sqrt": (0.5, 0.5), "erfc": (0.51, 5.0)}


def native(fn: str, dtype: DType, *operands: np.ndarray, target: str = "host") -> np.ndarray:
    size = len(operands[0])
    i = Axis("i", size)
    inputs = [Buffer(f"x{n}", dtype, (size,)) for n in range(len(operands))]
    value = apply(fn, *(load(b, i) for b in inputs))
    out = Buffer("out", value.dtype, (size,))
    kernel = Kernel((i,), (*inputs, out), (store(out, i, value=value),))
    return run(kernel, dict(zip(inputs, operands)), target=target)[out]


def errors(found: np.ndarray, exact: list) -> np.ndarray:
    """Distances in units of the last place of the exact values."""
    rounded = np.array([float(x) for x in exact]).astype(found.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(found.dtype).tiny)).astype(float)
    pairs = zip(found.tolist(), exact, unit.tolist())
    return np.array([float(abs(mpmath.mpf(f) - e)) / u for f, e, u in pairs])


def arguments(fn: str, dtype: DType) -> np.ndarray:
    """Points of the domain: spread evenly, near 0 and 1, and over all magnitudes."""
    low, high = DOMAINS.get(fn, (-12, 12))
    rng = np.random.default_rng(4)
    parts = [rng.uniform(max(low, -20), min(high, 20), COUNT), rng.uniform(low, high, COUNT)]
    parts.append(1 + rng.standard_normal(COUNT) * 1e-3)
    parts.append(np.exp(rng.uniform(-40, 40, COUNT)) * rng.choice([-1, 1], COUNT))
    x = np.concatenate(parts).astype(dtype.np_dtype)
    return x[(x >= low) & (x <= high)]


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", REFERENCES)
def test_accuracy(fn: str, dtype: DType) -> None:
    x = arguments(fn, dtype)
    found = native(fn, dtype, x)
    with mpmath.workprec(140):
        worst = errors(found, [REFERENCES[fn](mpmath.mpf(v)) for v in x.tolist()])
    at = int(worst.argmax())
    limit = LIMITS.get(fn, (2.0, 2.6))[dtype is F64]
    assert worst[at] <= limit, f"{fn}({x[at]!r}) is {worst[at]:.2f} ulp off: {found[at]!r}"


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", ["pow", "atan2"])
def test_accuracy_of_two_operands(fn: str, dtype: DType) -> None:
    rng = np.random.default_rng(6)
    reach = 80 if dtype is F32 else 600
    if fn == "atan2":
        pairs = [(rng.standard_normal(COUNT), rng.standard_normal(COUNT))]
    else:
        pairs = [
            (np.exp(rng.uniform(-5, 5, COUNT)), rng.uniform(-15, 15, COUNT)),
            (np.exp(rng.uniform(-reach, reach, COUNT)), rng.uniform(-1, 1, COUNT)),
            (1 + rng.standard_normal(COUNT) * 1e-3, rng.uniform(-1e4, 1e4, COUNT)),
        ]
    x, y = (np.concatenate(side).astype(dtype.np_dtype) for side in zip(*pairs))
    found = native(fn, dtype, x, y)
    reference = mpmath.power if fn == "pow" else mpmath.atan2
    with mpmath.workprec(140):
        exact = [reference(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x.tolist(), y.tolist())]
        worst = errors(found, exact)
    assert worst.max() <= (0.51 if dtype is F32 else 1.8 if fn == "atan2" else 1.0)


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", ["sin", "cos", "tan"])
def test_huge_angles_are_reduced_exactly(fn: str, dtype: DType) -> None:
    rng = np.random.default_rng(8)
    top = 88 if dtype is F32 else 700
    x = np.exp(rng.uniform(9, top, COUNT)).astype(dtype.np_dtype)
    x[:100] = (rng.integers(1, 1 << 22, 100) * (np.pi / 2)).astype(dtype.np_dtype)
    x[::7] = rng.standard_normal(len(x[::7]))  # ordinary lanes beside huge ones
    found = native(fn, dtype, x)
    with mpmath.workprec(1300):
        worst = errors(found, [REFERENCES[fn](mpmath.mpf(v)) for v in x.tolist()])
    assert worst.max() <= (2.0 if dtype is F32 else 2.6)


# Functions of float32 that read tables where AVX-512 keeps these in registers. Other targets
# compute them otherwise (2.5 times as fast as reading tables from memory), with other last bits.
FROM_TABLES = ("tanh", "erf")


def forms(fn: str, dtype: DType) -> list[list[str]]:
    """The targets that give the same bits."""
    # Without FMA the C library's functions are used: right, but slow.
    names = [n for n in JITS if n != "x86-64-v1"]
    if fn not in FROM_TABLES or dtype is not F32:
        return [names]
    tables = [n for n in names if JITS[n].target.avx512]
    return [tables, [n for n in names if n not in tables]]


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", [*REFERENCES, "pow", "atan2"])
def test_targets_and_scalars_give_the_same_bits(fn: str, dtype: DType) -> None:
    x = np.concatenate([arguments(fn, dtype), EDGES]).astype(dtype.np_dtype)
    operands = (x, np.roll(x, 5)) if fn in ("pow", "atan2") else (x,)
    for same in forms(fn, dtype):
        found = {t: native(fn, dtype, *operands, target=t) for t in same}
        for target in same[1:]:
            assert equal_bits(found[target], found[same[0]]), f"{target} and {same[0]}"
    found = native(fn, dtype, *operands)
    few = [o[:40] for o in operands]
    one_by_one = np.concatenate(
        [scalar(fn, dtype, *(o[k : k + 1] for o in few)) for k in range(40)]
    )
    assert equal_bits(found[:40], one_by_one)


def equal_bits(a: np.ndarray, b: np.ndarray) -> bool:
    nan = np.isnan(a)
    return bool((np.isnan(b) == nan).all()) and a[~nan].tobytes() == b[~nan].tobytes()


def scalar(fn: str, dtype: DType, *operands: np.ndarray) -> np.ndarray:
    """The function of rank-0 operands: emitted without vectors."""
    inputs = [Buffer(f"x{n}", dtype, ()) for n in range(len(operands))]
    value = apply(fn, *(load(b) for b in inputs))
    out = Buffer("out", value.dtype, ())
    kernel = Kernel((), (*inputs, out), (store(out, value=value),))
    arrays = {b: o.reshape(()) for b, o in zip(inputs, operands)}
    return run(kernel, arrays)[out].reshape(1)


EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 1e-45, -1e-45, 1e-40, 3.4e38, -3.4e38, 1e-20]
HALF_PI = np.pi / 2
SPECIAL = {
    "exp": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (800, INF), (-800, 0.0)],
    "exp2": [(INF, INF), (-INF, 0.0), (10, 1024.0), (-2, 0.25), (2000, INF), (-2000, 0.0)],
    "expm1": [(INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-30, 1e-30)],
    "log": [(INF, INF), (0.0, -INF), (-0.0, -INF), (-1, NAN), (-INF, NAN), (1, 0.0)],
    "log1p": [(INF, INF), (-1, -INF), (-2, NAN), (0.0, 0.0), (-0.0, -0.0), (1e-30, 1e-30)],
    "log2": [(INF, INF), (0.0, -INF), (8, 3.0), (0.5, -1.0), (-1, NAN), (2.0**-126, -126)],
    "tanh": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-30, 1e-30), (50, 1.0)],
    "sigmoid": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (800, 1.0), (-800, 0.0)],
    "softplus": [(INF, INF), (-INF, 0.0), (800, 800), (-800, 0.0)],
    "erf": [(INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (40, 0.0)],
    "sin": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (1e-30, 1e-30)],
    "cos": [(INF, NAN), (-INF, NAN), (0.0, 1.0)],
    "tan": [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "sinh": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-800, -INF)],
    "cosh": [(INF, INF), (-INF, INF), (0.0, 1.0), (800, INF)],
    "asin": [(2, NAN), (0.0, 0.0), (-0.0, -0.0), (1, HALF_PI), (-1, -HALF_PI)],
    "acos": [(2, NAN), (-2, NAN), (1, 0.0), (-1, np.pi), (0, HALF_PI)],
    "atan": [(INF, HALF_PI), (-INF, -HALF_PI), (-0.0, -0.0), (0.0, 0.0)],
    "asinh": [(INF, INF), (-INF, -INF), (-0.0, -0.0), (0.0, 0.0)],
    "acosh": [(INF, INF), (1, 0.0), (0.5, NAN), (-1, NAN)],
    "atanh": [(1, INF), (-1, -INF), (2, NAN), (-0.0, -0.0)],
    "sqrt": [(INF, INF), (-1, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "rsqrt": [(INF, 0.0), (0.0, INF), (-1, NAN), (-0.0, -INF)],
}


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", SPECIAL)
def test_special_values(fn: str, dtype: DType, target: str) -> None:
    x, wanted = np.array([*SPECIAL[fn], (NAN, NAN)]).astype(dtype.np_dtype).T.copy()
    found = native(fn, dtype, x, target=target)
    np.testing.assert_array_equal(found, wanted)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
def test_denormal_operands_and_results(dtype: DType) -> None:
    tiny = np.finfo(dtype.np_dtype).smallest_subnormal
    x = np.array([tiny, 3 * tiny, -tiny, 1000 * tiny], dtype.np_dtype)
    for fn in ("expm1", "log1p", "tanh", "sin", "tan", "asin", "atan", "sinh", "asinh"):
        np.testing.assert_array_equal(native(fn, dtype, x), x, err_msg=fn)
    low = np.log(float(tiny))
    y = np.linspace(low + 0.5, low + 15, 50).astype(dtype.np_dtype)
    found = native("exp", dtype, y)
    with mpmath.workprec(100):
        assert errors(found, [mpmath.exp(mpmath.mpf(v)) for v in y.tolist()]).max() <= 1


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
@pytest.mark.parametrize("fn", ["pow", "atan2"])
def test_special_values_of_two_operands(fn: str, dtype: DType, target: str) -> None:
    """C99 Annex F, which NumPy's scalar functions follow."""
    edge = [*EDGES, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e10]
    pairs = np.array([(a, b) for a in edge for b in edge]).astype(dtype.np_dtype)
    x, y = pairs.T.copy()
    found = native(fn, dtype, x, y, target=target)
    reference = np.power if fn == "pow" else np.arctan2
    with np.errstate(all="ignore"):
        wanted = reference(x.astype(np.longdouble), y.astype(np.longdouble)).astype(dtype.np_dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype is F32 else 1e-15)
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))
