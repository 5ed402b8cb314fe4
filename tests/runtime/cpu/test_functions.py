"""Every function of the table on every dtype and target, against its NumPy meaning."""

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS, run, same
from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, cast, load, store
from treadle.kernel.reference import evaluate

SIZE = 133  # several vectors of every width, and a rest
REAL = [d for d in dtypes.ALL if not d.is_complex]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-14}
CASES = [(fn, d) for fn, f in FUNCTIONS.items() if fn != "cast" for d in REAL if d.kind in f.kinds]


def sample(dtype: DType, seed: int) -> np.ndarray:
    """Values of all sizes with the edges of the dtype among them."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, SIZE).astype(bool)
    if dtype.is_floating:
        x = rng.standard_normal(SIZE) * 4
        x[:9] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 2.5]
        return rng.permutation(x).astype(dtype.np_dtype)
    limits = np.iinfo(dtype.np_dtype)
    x = rng.integers(limits.min, limits.max, SIZE, dtype=dtype.np_dtype, endpoint=True)
    x[::3] = rng.integers(0, 6, len(x[::3]))
    edges = [0, limits.min, limits.max, 1] + ([-1] if dtype.kind == "i" else [])
    x[: len(edges)] = edges
    return rng.permutation(x)


def elementwise(build, *operands: DType) -> tuple[Kernel, list[Buffer], Buffer]:
    i = Axis("i", SIZE)
    inputs = [Buffer(f"x{n}", d, (SIZE,)) for n, d in enumerate(operands)]
    value = build(*(load(b, i) for b in inputs))
    out = Buffer("out", value.dtype, (SIZE,))
    return Kernel((i,), (*inputs, out), (store(out, i, value=value),)), inputs, out


# The portable forms differ by kind and width only, so a few dtypes stand for all.
PORTABLE_DTYPES = {"float16", "float32", "float64", "int32", "int64", "uint8", "bool"}
ALL_CASES = [
    (fn, d, target)
    for fn, d in CASES
    for target in JITS
    if target == "host" or d.name in PORTABLE_DTYPES
]


@pytest.mark.parametrize(
    ("fn", "dtype", "target"), ALL_CASES, ids=[f"{f}-{d.name}-{t}" for f, d, t in ALL_CASES]
)
def test_function(fn: str, dtype: DType, target: str) -> None:
    operands = [dtype] * FUNCTIONS[fn].arity
    if fn == "select":
        operands[0] = dtypes.bool
    kernel, inputs, out = elementwise(lambda *args: apply(fn, *args), *operands)
    arrays = {b: sample(b.dtype, n) for n, b in enumerate(inputs)}
    found = run(kernel, arrays, target=target)[out]
    with np.errstate(all="ignore"):
        wanted = evaluate(kernel, arrays)[out]
    same(found, wanted, TOLERANCE.get(dtype.name, 0), f"{fn} {dtype.name}")


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("source", REAL, ids=lambda d: d.name)
def test_casts(source: DType, target: str) -> None:
    for to in REAL:
        kernel, (x,), out = elementwise(lambda a: cast(a, to), source)
        arrays = {x: sample(source, 3)}
        if source.is_floating:
            edges = np.array([3e9, -3e9, 70000, 127.5, -128.5, 255.5])
            with np.errstate(over="ignore"):
                arrays[x][:6] = edges.astype(source.np_dtype)
        found = run(kernel, arrays, target=target)[out]
        same(found, evaluate(kernel, arrays)[out], 0, f"{source.name} to {to.name}")


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda d: d.name)
def test_float32_rounds_to_16_bits_as_numpy_does(dtype: DType, target: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype.np_dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        between = ((every[:-1].astype(np.float64) + every[1:]) / 2).astype(np.float32)  # ties
        x = np.concatenate([every, between, np.nextafter(every, np.float32(np.inf))])
    i, given = Axis("i", len(x)), Buffer("x", dtypes.float32, (len(x),))
    out = Buffer("out", dtype, (len(x),))
    kernel = Kernel((i,), (given, out), (store(out, i, value=cast(load(given, i), dtype)),))
    found = run(kernel, {given: x}, target=target)[out]
    with np.errstate(all="ignore"):
        wanted = x.astype(dtype.np_dtype)
    real = ~np.isnan(x)
    assert np.isnan(found[~real].astype(np.float32)).all()
    np.testing.assert_array_equal(found.view(np.uint16)[real], wanted.view(np.uint16)[real])


@pytest.mark.parametrize("fn", ["floordiv", "mod", "truncdiv", "truncmod"])
@pytest.mark.parametrize("dtype", [d for d in REAL if d.is_integer], ids=lambda d: d.name)
def test_integer_division_never_traps(fn: str, dtype: DType) -> None:
    limits = np.iinfo(dtype.np_dtype)
    edge = [limits.min, limits.max, 0, 1, 7, limits.max // 2]
    edge += [-1, -7] if dtype.kind == "i" else []
    pairs = np.array([(a, b) for a in edge for b in edge], dtype.np_dtype)
    i = Axis("i", len(pairs))
    x, y, out = (Buffer(n, dtype, (len(pairs),)) for n in ("x", "y", "out"))
    kernel = Kernel((i,), (x, y, out), (store(out, i, value=apply(fn, load(x, i), load(y, i))),))
    arrays = {x: pairs[:, 0].copy(), y: pairs[:, 1].copy()}
    with np.errstate(all="ignore"):
        wanted = evaluate(kernel, arrays)[out]
    np.testing.assert_array_equal(run(kernel, arrays)[out], wanted)
