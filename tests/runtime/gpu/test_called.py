"""Ops for which a processor's programs call NumPy, computed by functions of the GPU's library."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.ops.samples import all_ops
from tests.runtime.gpu.made_up_cupy import Cupy
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_matrices import on, square
from treadle.core import errors
from treadle.runtime.gpu.cupy_driver import CupyDriver
from treadle.runtime.gpu.routines import called, has_form
from treadle.runtime.gpu.routines.arrays import TRANSFORMS, order_of

PAGE = Path(__file__).parents[3] / "docs/gpu.md"
RNG = np.random.default_rng(5)


SMALL = np.array(
    [0, -0.0, 1e-45, -1e-45, 3e-45, 1e-40, -1e-40, 1.2e-38, 1, np.inf, -np.inf, np.nan]
)


class Flushing:
    """NumPy as CuPy has it, whose arithmetic takes numbers below the normal ones for zeros: there
    is none for floats."""

    def __getattr__(self, name):
        assert name not in ("add", "nextafter", "equal", "not_equal", "greater", "less")
        return getattr(np, name)

    class Array(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **others):
            plain = [np.asarray(x) for x in inputs]
            if ufunc not in (np.isnan, np.isfinite):
                plain = [
                    np.where(np.abs(x) < np.finfo(x.dtype).tiny, x.dtype.type(0), x)
                    if x.dtype.kind == "f" else x
                    for x in plain
                ]  # fmt: skip
            return np.asarray(getattr(ufunc, method)(*plain, **others)).view(Flushing.Array)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_numbers_are_no_zeros(dtype):
    library = Flushing()
    driver = types.SimpleNamespace(library=library)
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(SMALL, SMALL))
    given = [a.view(Flushing.Array) for a in (x, y)]
    (found,) = called._nextafter(driver, given, {})
    wanted = np.nextafter(x, y)
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))
    order = order_of(library, given[0])
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    values, places, counts = called._unique(driver, given[:1], {"out_idx": td.int64})
    np.testing.assert_array_equal(values[places], x)
    different = {v for v in x.tolist() if v == v}
    assert len(values) == len(different) + np.isnan(x).sum() and counts.sum() == len(x)


@pytest.fixture
def gpu():
    with recorded_gpu() as device:
        yield device


def values(x):
    """Eigenvalues in an order that does not depend on the method."""
    w, v = td.linalg.eig(x)
    products = td.cast(x, w.dtype) @ v - v * w[..., None, :]
    return td.sort(td.abs(w)), td.sort(td.abs(td.linalg.eigvals(x))), td.abs(products)


NAN = np.array([3, np.nan, -0.0, 3, 0.0, np.nan, -1, 2, 2, 2], np.float32)
CASES = {
    "lu": (td.linalg.lu, [square(9, "float32", (2, 3))]),
    "lu of complex matrices": (td.linalg.lu, [square(40, "complex128")]),
    "lu with long positions": (lambda x: td.linalg.lu(x, td.int64), [square(3, "float64")]),
    "eig": (values, [square(12, "float32", (2,))]),
    "pinv": (td.linalg.pinv, [RNG.standard_normal((2, 7, 4)).astype(np.float32)]),
    "pinv of few ranks": (td.linalg.pinv, [np.ones((5, 3))]),
    "expm": (td.linalg.expm, [RNG.standard_normal((3, 6, 6)).astype(np.float32) * 4]),
    "expm of a matrix that is not finite": (
        td.linalg.expm, [np.stack([np.eye(3), np.full((3, 3), np.inf)])],
    ),
    "unique floats": (td.unique_with_counts, [NAN]),
    "unique integers": (td.unique_with_counts, [RNG.integers(-9, 9, 300)]),
    "unique with long positions": (lambda x: td.unique(x, td.int64), [np.uint8([4, 4, 2])]),
    "one float": (lambda x: td.unique(x)[0] * 2.0, [np.float32([7])]),
    "narrower bits": (lambda x: td.bitcast(x, td.uint16), [NAN]),
    "wider bits": (lambda x: td.bitcast(x, td.float64), [NAN.reshape(5, 2)]),
    "other bits": (lambda x: td.bitcast(x, td.int32) + 1, [NAN]),
    "the next float": (lambda x: td.math.nextafter(x, x * 0 + 2.5), [NAN]),
    "the next one of a number": (lambda x: td.math.nextafter(x[0], x[1]) + x, [NAN]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_arrays_stay_on_the_device(name, gpu):
    function, arrays = CASES[name]
    expected = td.nest.flatten(td.function(function)(*map(td.constant, arrays)))
    given, compiled, storage = [on(gpu, a) for a in arrays], td.function(function), gpu.storage
    for run in (function, compiled):
        before = storage.downloads, storage.uploads
        found = td.nest.flatten(run(*given))
        down, up = storage.downloads - before[0], storage.uploads - before[1]
        assert down.bytes <= 8 and up.bytes <= 64, f"{down} {up}"  # numbers
        for one, other in zip(found, expected, strict=True):
            assert "GPU:0" in one.device and one.dtype == other.dtype
            digits = 1e-10 if other.numpy().dtype.itemsize == 16 else 2e-4
            np.testing.assert_allclose(one.numpy(), other.numpy(), digits, digits)


REFUSED = {
    "lu": (td.linalg.lu, np.ones((2, 3, 3), np.float32), "not invertible"),
    "eig": (td.linalg.eig, np.full((3, 3), np.nan), "infs or NaNs"),
    "bitcast": (lambda x: td.bitcast(x[:, :3], td.float64), np.ones((2, 4), np.float32), "2 elem"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_the_processors(name, gpu):
    function, array, words = REFUSED[name]
    for run in (function, td.function(function)):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            td.nest.flatten(run(on(gpu, array)))[0].numpy()


def test_there_is_no_memory_for_the_library(gpu, monkeypatch):
    function, x = td.function(lambda x: td.linalg.expm(x) + 1.0), on(gpu, square(5, "float32"))
    wanted = function(x).numpy()

    def full(*shape):
        raise MemoryError("Out of memory allocating 1,024 bytes")

    with monkeypatch.context() as patch:
        patch.setattr(called, "exponential", full)
        text = "no memory for matrix_exponential: Out of memory allocating 1,024 bytes"
        with pytest.raises(errors.ResourceExhaustedError, match=text):
            function(x)
    np.testing.assert_array_equal(function(x).numpy(), wanted)


def test_nothing(gpu):
    assert td.function(td.linalg.pinv)(on(gpu, np.ones((0, 2, 3)))).shape == (0, 3, 2)
    assert td.function(td.unique)(on(gpu, np.float32([]))).y.shape == (0,)


def test_what_the_library_does_not_compute_is_copied_and_said(gpu):
    gpu.storage.driver.has_eigenvectors = False
    function, x = td.function(td.linalg.eig), on(gpu, square(5, "float32"))
    function(x)
    before = gpu.storage.downloads
    w, _ = function(x)
    assert (gpu.storage.downloads - before) == (1, 100) and "GPU:0" in w.device
    stages = td.inspect.stages(function, x)
    assert "eig by functions of CuPy (" in stages["launches"]
    (line,) = re.findall("to the host: .*", stages["copies"])
    assert "(100 bytes)" in line and line.endswith("where CuPy does not compute it")


def test_functions_of_cupy(monkeypatch):
    """Which one is called, and what CuPy cannot do is not asked for."""
    cupy = Cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy.module)
    driver, asked = CupyDriver(0), []

    def lu(matrix, check_finite):
        asked.append((matrix, check_finite))
        return "P", "L", "U"

    scipy, solver = types.ModuleType("cupyx.scipy.linalg"), types.ModuleType("cupyx.cusolver")
    scipy.lu, solver.check_availability = lu, lambda name: {"geev": available}[name]
    monkeypatch.setitem(sys.modules, scipy.__name__, scipy)
    monkeypatch.setitem(sys.modules, solver.__name__, solver)
    assert driver.triangles("A") == ("P", "L", "U") and asked == [("A", False)]

    cupy.module.linalg = types.SimpleNamespace()
    assert driver.eigenvectors("A") is None  # an older CuPy
    cupy.module.linalg.eig = lambda matrices: (matrices, "V")
    for available in (False, True):
        assert driver.eigenvectors("A") == (("A", "V") if available else None)


def test_the_page_lists_what_numpy_computes():
    found = {}
    for op in all_ops().values():
        on_device = has_form(op) or getattr(op.lower, "name", "") in TRANSFORMS
        strings = op.why_called == "strings are objects of Python"
        if op.why_called and not on_device and not strings and "asserts" not in op.tags:
            found.setdefault(op.why_called, set()).add(op.name)
    section = PAGE.read_text().partition("\n## What NumPy computes\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- ([^`]*): ((?:`\w+`(?:,\s+)?)+)", section, re.MULTILINE)
    assert {why: set(re.findall(r"\w+", names)) for why, names in listed} == found
