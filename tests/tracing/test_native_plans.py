"""Native calls do what portable ones do, and only take calls that they have a plan for."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.skipif(
    call_layout() is None, reason="this interpreter has no native calls"
)


def taken(function: Any) -> int:
    """Calls that native plans of the function have taken."""
    calls = function._native
    return 0 if calls is None else sum(plan.hits for plan in calls.plans)


def tensor(*values: float) -> td.Tensor:
    return td.constant(np.array(values, np.float32))


Pair = namedtuple("Pair", "a b")

SIGNATURES: list[tuple[Any, tuple[Any, ...], bool]] = [
    (lambda x: x + 1.0, (tensor(1, 2),), True),
    (lambda x: x + 1.0, (np.ones(3, np.float32),), True),
    (lambda x, y: x @ y, (np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)), True),
    (lambda x, n: x * n, (tensor(1, 2), 3), True),
    (lambda x, n: x * n, (tensor(1, 2), -0.0), True),
    (lambda x, flag: x if flag else -x, (tensor(1, 2), True), True),
    (lambda x, name: {name: x, "twice": x * 2}, (tensor(1, 2), "once"), True),
    (lambda xs: [x + 1 for x in xs], ([tensor(1), tensor(2), tensor(3)],), True),
    (lambda xs: tuple(x + 1 for x in xs), ((tensor(1), tensor(2)),), True),
    (lambda d: {k: v + 1 for k, v in d.items()}, ({"b": tensor(1), "a": tensor(2)},), True),
    (lambda d: d["x"]["y"][0] + d["z"], ({"x": {"y": [tensor(1)]}, "z": tensor(5)},), True),
    (lambda x, none: x, (tensor(4, 5), None), True),
    (lambda x: None, (tensor(4, 5),), True),
    (lambda x: (x, [x + 1]), (tensor(4, 5),), True),  # nested results
    (lambda x: Pair(x, {"y": (x + 1,)}), (tensor(4, 5),), True),
    (lambda x, k: x * k, (np.ones(3), np.float64(2)), True),
    (lambda x, k: td.cast(k, x.dtype) * x, (np.ones(3), np.True_), True),
    (lambda *xs: xs[0] + xs[150], tuple(tensor(i) for i in range(200)), True),
    (lambda xs: [x + 1 for x in xs], ([tensor(i) for i in range(100)],), True),
    (lambda p: p.a + p.b, (Pair(tensor(1), tensor(2)),), False),  # classes of their own
    (lambda x, dtype: td.cast(x, dtype), (tensor(1, 2), td.int32), False),  # known by identity
]


@pytest.mark.parametrize("number", range(len(SIGNATURES)))
def test_results_equal_those_of_the_function(number: int) -> None:
    python, args, native = SIGNATURES[number]
    function = td.function(python, autograph=False)
    expected = td.nest.flatten(python(*args))
    for _ in range(5):
        result = function(*args)
        assert type(result) is type(python(*args)) or isinstance(result, td.Tensor)
        for a, b in zip(td.nest.flatten(result), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert (taken(function) > 0) == native


def test_the_second_call_is_native() -> None:
    function = td.function(lambda x, k: x * k)
    x = np.ones(3)
    for calls in range(4):
        function(x, 2.0)
        assert taken(function) == calls
    assert not function._plans.front, "no Python plan is needed"
    other = x[::-1]
    for _ in range(2):
        assert function(other, 2.0).numpy().tolist() == [2, 2, 2]
    assert taken(function) == 3 and len(function._plans) == 1


def test_keywords() -> None:
    function = td.function(lambda x, k=1.0, *, name="a": {name: x * k})
    x = np.ones(3)
    for _ in range(3):
        assert function(x, name="b", k=2.0)["b"].numpy().tolist() == [2, 2, 2]
    assert taken(function) == 2
    assert function(x, k=2.0, name="b")["b"].numpy().tolist() == [2, 2, 2]  # another plan
    assert function(x, **{"name": "b", "".join(["k"]): 2.0})["b"].numpy().tolist() == [2, 2, 2]
    assert function(x, name="c", k=2.0)["c"].numpy().tolist() == [2, 2, 2]
    assert function(x, k=2.0)["a"].numpy().tolist() == [2, 2, 2]
    assert function(x)["a"].numpy().tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="names"):
        function(x, names="b")


def test_more_signatures_than_native_plans() -> None:
    from treadle.runtime.cpu.dispatch.native_type import MOST_PLANS

    function = td.function(lambda x, k: x * k)
    x = np.ones(3)
    for _ in range(2):
        for k in range(MOST_PLANS + 20):
            assert function(x, float(k)).numpy()[0] == k
    assert len(function._native.plans) == MOST_PLANS and len(function._plans) == 20
    slow: list[Any] = []
    function._call_slowly = lambda *args: slow.append(args)
    for k in range(MOST_PLANS + 20):
        assert function(x, float(k)).numpy()[0] == k
    assert not slow


def test_tapes_traces_and_eager_mode_are_seen() -> None:
    @td.function
    def square(x: Any) -> Any:
        return x * x

    x = tensor(3)
    for _ in range(3):
        square(x)
    before = taken(square)
    assert before > 0
    with td.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    assert tape.gradient(y, x).numpy() == 6
    assert td.function(lambda z: square(z) + 1)(x).numpy() == 10
    td.config.run_functions_eagerly(True)
    try:
        assert square(x).numpy() == 9
    finally:
        td.config.run_functions_eagerly(False)
    assert taken(square) == before
    square(x)
    assert taken(square) == before + 1


def test_variables_are_read_and_written() -> None:
    v = td.Variable(np.zeros(200_000, np.float32))

    @td.function
    def add(x: Any) -> Any:
        return v.assign_add(x)

    ones = np.ones(200_000, np.float32)
    kept = []
    for i in range(6):
        kept.append(add(ones).numpy()[0])
        assert v.numpy()[-1] == i + 1
    assert kept == [1, 2, 3, 4, 5, 6]
    assert taken(add) > 0


def test_results_are_arrays_of_their_own() -> None:
    identity = td.function(lambda x: x + 0)
    x = tensor(1, 2)
    first, second = [identity(x) for _ in range(5)][-2:]
    assert not np.shares_memory(np.asarray(first), np.asarray(second))
    assert not np.shares_memory(np.asarray(first), np.asarray(x))


def test_errors_raised_by_the_program() -> None:
    @td.function
    def look_up(x: Any, i: Any) -> Any:
        return x[i]

    x, good, bad = tensor(1, 2), td.constant(1), td.constant(7)
    for _ in range(4):
        assert look_up(x, good).numpy() == 2
    before = taken(look_up)
    with pytest.raises(td.errors.InvalidArgumentError):
        look_up(x, bad)
    assert taken(look_up) == before + 1
    assert look_up(x, good).numpy() == 2


def test_memory_is_flat() -> None:
    import resource

    function = td.function(lambda xs: [x + 1 for x in xs])
    xs = [tensor(*range(50)) for _ in range(4)]

    def repeat(count: int) -> int:
        for _ in range(count):
            function(xs)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    repeat(3000)
    before = repeat(20_000)
    assert repeat(100_000) - before < 2_000  # KiB
    assert taken(function) > 100_000


def test_functions_die_and_take_their_plans_along() -> None:
    function = td.function(lambda x: x + 1)
    x = tensor(1)
    for _ in range(4):
        function(x)
    assert taken(function) > 0
    reference = weakref.ref(function)
    del function
    gc.collect()
    assert reference() is None


def test_many_threads() -> None:
    function = td.function(lambda x, n: x * n)
    failures: list[Any] = []

    def work(n: int) -> None:
        x = td.constant(np.full(1000, n, np.float32))
        for _ in range(300):
            if not (np.asarray(function(x, n)) == n * n).all():
                failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert taken(function) > 1000


def test_the_portable_path_gives_the_same() -> None:
    code = """
        import numpy as np, treadle as td
        f = td.function(lambda xs, n: [x * n for x in xs], autograph=False)
        xs = [td.constant([1.0, 2.0]), np.ones(2, np.float32)]
        for _ in range(4):
            r = f(xs, 3)
        print([x.numpy().tolist() for x in r], f._native is None)
    """
    shown = []
    for portable in ("0", "1"):
        env = os.environ | {"TREADLE_PORTABLE_CALLS": portable}
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True, text=True, check=True, env=env,
        )  # fmt: skip
        shown.append(ran.stdout.strip())
    assert shown == ["[[3.0, 6.0], [3.0, 3.0]] False", "[[3.0, 6.0], [3.0, 3.0]] True"]


@pytest.mark.parametrize("decorate", ["td.function", "td.jit"])
def test_only_a_trace_that_is_called_again_needs_the_trampoline(
    decorate: str, tmp_path: Path
) -> None:
    code = f"""
        import numpy as np, treadle as td
        from treadle.runtime.cpu.dispatch import self_check
        f, g = {decorate}(lambda x: x + 1), {decorate}(lambda x: x * 2)
        calls = lambda f: f._native if {decorate} is td.function else f._plans.native
        for function, n in ((f, 3), (f, 4), (f, 3), (g, 3), (g, 3)):
            function(np.ones(n, np.float32))
            taken = calls(function)
            print(self_check.works.is_made, taken and [plan.hits for plan in taken.plans])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True,
        env=os.environ | {"TREADLE_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    shown = ["False None", "False None", "True [1]", "True None", "True [1]"]
    assert ran.stdout.split("\n")[:5] == shown


def test_the_second_call_of_a_process_may_be_of_a_method(tmp_path: Path) -> None:
    """It is called once more when the trampoline is there, with its instance."""
    code = """
        import treadle as td
        class Scale:
            @td.function
            def by(self, x, factor):
                return x * factor
        scale = Scale()
        for rows in (4, 3, 4, 3):
            print(scale.by(td.ones([rows, 2]), factor=2).shape)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True,
        env=os.environ | {"TREADLE_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert ran.stdout.split("\n")[:4] == ["(4, 2)", "(3, 2)", "(4, 2)", "(3, 2)"]
