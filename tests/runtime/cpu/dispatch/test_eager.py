"""Native operators of eager tensors give what the Python ones give: values, types and errors."""

import gc
import itertools
import operator
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import treadle as td
from treadle.runtime.cpu.dispatch import eager
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.skipif(
    call_layout() is None, reason="this interpreter has no native calls"
)

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    assert eager.install()
    yield
    eager.uninstall()


def outcome(op: Any, a: Any, b: Any) -> Any:
    """A result in a form that compares bit for bit, or what an error says."""
    try:
        with np.errstate(all="ignore"):
            result = op(a, b)
    except Exception as error:
        return type(error).__name__, str(error)
    if isinstance(result, td.Tensor):
        return result.dtype.name, result.shape.as_list(), result.numpy().tobytes()
    return repr(result)


def both(op: Any, a: Any, b: Any) -> tuple[Any, Any]:
    found = outcome(op, a, b)
    eager.uninstall()
    try:
        return found, outcome(op, a, b)
    finally:
        eager.install()


def operands() -> list[Any]:
    arrays = [
        np.arange(4, dtype="f4"), np.float32(2.5), np.ones((2, 3)), np.arange(6).reshape(2, 3),
        np.arange(3, dtype="i4"), np.full(3, 7, "i4"), np.ones(1000, "f4"), np.array([True]),
        np.zeros((0, 3), "f4"), np.int64(3), np.float64(3.5), np.ones(3, "u1"), np.ones(2, "f2"),
    ]  # fmt: skip
    numbers = [2.5, 3, -0.0, 1e39, 2**24 + 1, 2**40, 2**70, True, float("nan"), float("inf"), 1j]
    others = [np.ones(4, "f4"), [1.0, 2.0, 3.0, 4.0], None, "a", td.Variable(np.ones(4, "f4"))]
    return [*map(td.constant, arrays), *numbers, *others]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", OPERATORS, ids=lambda f: f.__name__)
def test_every_pair_of_operands(op: Any) -> None:
    values = operands()
    for a, b in itertools.product(values, values):
        if isinstance(a, td.Tensor) or isinstance(b, td.Tensor):
            native, python = both(op, a, b)
            assert native == python, (op, a, b)


arrays = npst.arrays(
    st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)


@settings(max_examples=150, deadline=None)
@given(arrays, st.sampled_from(OPERATORS), st.floats() | st.integers(-(2**65), 2**65), st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_arrays(a: Any, op: Any, number: float, data: Any) -> None:
    x = td.constant(a)
    y = td.constant(data.draw(npst.arrays(a.dtype, a.shape)))
    for pair in ((x, y), (x, number), (number, x)):
        native, python = both(op, *pair)
        assert native == python


def test_traces_and_tapes_take_the_operators_too() -> None:
    x = td.constant([3.0, 4.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x + 2.0
    assert tape.gradient(y, x).numpy().tolist() == [6, 8]
    assert td.function(lambda v: 1.0 - v * 2.0, autograph=False)(x).numpy().tolist() == [-5, -7]


def test_results_share_nothing_and_die() -> None:
    x = td.constant(np.ones(37, np.float32))  # the only tensor with this spec
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(x.spec), sys.getrefcount(x._buffer)
    for _ in range(1000):
        y = x + x
        assert not np.shares_memory(y._buffer, x._buffer)
    del y
    assert (sys.getrefcount(x), sys.getrefcount(x.spec), sys.getrefcount(x._buffer)) == before


def test_threads() -> None:
    wrong: list[int] = []

    def work(n: int) -> None:
        x = td.constant(np.full(50, n, np.float32))
        for _ in range(2000):
            if (x * 2.0 + x).numpy()[-1] != 3 * n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_that_uses_many_gets_them() -> None:
    code = """
        import sys, treadle as td
        kind = lambda: type(td.Tensor.__dict__["__add__"]).__name__
        x = td.constant([1.0, 2.0])
        print(kind(), "llvmlite" in sys.modules)
        for _ in range(600):
            x = x + 1.0
        print(kind(), x.numpy().tolist())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n")[:2] == [
        "function False", "method_descriptor [601.0, 602.0]",
    ]  # fmt: skip
