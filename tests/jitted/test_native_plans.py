"""Calls of jitted functions through native plans do what plain NumPy does."""

import copy
import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.jitted.test_jit import same as same_parts
from treadle.core.switches import disabled
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.skipif(
    call_layout() is None, reason="this interpreter has no native calls"
)

V = np.arange(5.0)
M = np.arange(12.0).reshape(3, 4)


def same(a: Any, b: Any) -> None:
    td.nest.assert_same_structure(a, b)
    for x, y in zip(td.nest.flatten(a), td.nest.flatten(b), strict=True):
        same_parts(x, y)


def taken(jitted: Any) -> int:
    """Calls that native plans took."""
    calls = jitted._plans.native
    return 0 if calls is None else sum(plan.hits for plan in calls.plans)


def copied(arguments: Any) -> Any:
    return td.nest.map_structure(lambda a: a.copy() if isinstance(a, np.ndarray) else a, arguments)


def check(function: Any, *arguments: Any, calls: int = 3, **keywords: Any) -> Any:
    """The same as NumPy in every call, all but the first of them native."""
    jitted = td.jit(function)
    for number in range(calls):
        mine, theirs = copied(arguments), copied(arguments)
        same(function(*theirs, **keywords), jitted(*mine, **keywords))
        same(theirs, mine)
        assert taken(jitted) == number
    return jitted


def negate(x: Any) -> Any:
    x *= -1
    return x


def shift(x: Any, y: Any) -> None:
    x[1:] += y[:-1]
    y[:] = 2.0


def rows(x: Any) -> Any:
    x[0] = 7.0
    return x[1:], x.T, x.reshape(-1)


FUNCTIONS: list[tuple[Any, tuple[Any, ...]]] = [
    (lambda x, y: x + y, (V, V + 1)),
    (lambda x, y: x @ y, (V, V)),
    (lambda x, k: x * k, (V, 2.5)),
    (lambda x, n: x * n, (V, 3)),
    (lambda x, z: x * z, (V, 1 + 2j)),
    (lambda x, k: x * k, (V, np.float64(2.5))),
    (lambda x, k: x * k, (V.astype(np.float32), np.float64(2.5))),
    (lambda x, k: (x * k, k + 1), (V, np.int8(3))),
    (lambda x, flag: x if flag else -x, (V, True)),
    (lambda x, flag: x * flag, (V, np.True_)),
    (lambda x, name: {name: x.sum(), "x": x}, (V, "sum")),
    (lambda x: int(np.argmax(x)), (V,)),
    (lambda x: (x.sum(), x.max() > 3, x.sum() > 3, len(x), x.argmin()), (V,)),
    (lambda x: float(x[0]) * 2, (V,)),
    (lambda n, k: (n + 1, n / 2, k * 1j, n > 3, n // 2), (7, 1.5)),
    (lambda x: [x + 1, (x, x + 2)], (V,)),
    (lambda x: None, (V,)),
    (lambda x: (), (V,)),
    (lambda x: (x, x), (V,)),
    (lambda xs, d: xs[0] + xs[1] * d["k"] + d["y"], ([V, V + 1], {"y": V + 2, "k": 2.0})),
    (lambda *xs: xs[0] + xs[1] + xs[2], (V, V + 1, V + 2)),
    (lambda x: x + 1, (np.float32(1.5),)),
    (lambda x: x + 1, (np.array(1.5),)),
    (lambda x: x + 1, (np.zeros((0, 3)),)),
    (negate, (V,)),
    (shift, (V, V + 1)),
    (rows, (M,)),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_results_and_arguments_are_those_of_numpy(number: int) -> None:
    function, arguments = FUNCTIONS[number]
    check(function, *arguments)


def test_an_array_given_twice_is_one_array() -> None:
    def add(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    jitted = td.jit(add)
    for _ in range(3):
        x = V.copy()
        same(jitted(x, x), (V + 1) * 2)
    hits = taken(jitted)
    assert hits == 2
    x = V.copy()
    same(jitted(x, V.copy()), V * 2 + 1)  # two arrays: another program
    same(x, V + 1)
    assert taken(jitted) == hits
    same(jitted(x, x), (V + 2) * 2)
    assert taken(jitted) == hits + 1


def test_identity_of_arguments_that_are_only_read() -> None:
    jitted = td.jit(lambda x, y: 1.0 if x is y else 2.0)
    x = V.copy()
    for _ in range(3):
        assert jitted(x, V.copy()) == 2.0
    assert jitted(x, x) == 1.0
    assert jitted(x, x) == 1.0
    assert jitted(x, V.copy()) == 2.0


def test_views_of_one_memory_run_in_numpy() -> None:
    jitted = td.jit(shift)
    for _ in range(3):
        jitted(V.copy(), V.copy())
    hits = taken(jitted)
    a, b = np.arange(8.0), np.arange(8.0)
    jitted(a[1:6], a[:5])
    shift(b[1:6], b[:5])
    same(a, b)
    assert taken(jitted) == hits
    jitted(a[:4], a[4:])  # neighbours share nothing
    shift(b[:4], b[4:])
    same(a, b)
    jitted(a[:4], a[4:])
    assert taken(jitted) == hits + 1


def test_arrays_by_name_that_are_arguments_too() -> None:
    known = np.arange(5.0)

    def write(x: Any) -> Any:
        x[0] += 1.0
        return (known + x)[0]

    jitted = td.jit(write)
    for _ in range(3):
        assert jitted(np.arange(5.0)) == 1.0
    assert taken(jitted) == 2
    assert jitted(known) == 2.0
    known[0] = 5.0
    assert jitted(np.arange(5.0)) == 6.0
    assert taken(jitted) == 3


def test_layouts_dtypes_and_shapes_that_the_plan_is_not_for() -> None:
    jitted = td.jit(negate)
    for _ in range(3):
        jitted(V.copy())
    hits = taken(jitted)
    unaligned = np.frombuffer(bytearray(8 * 5 + 1), np.float64, 5, 1)
    unaligned[:] = V
    others = [
        np.arange(10.0)[::2], V[::-1].copy()[::-1], V.astype(">f8"), unaligned,
        V.view(type("Sub", (np.ndarray,), {})).copy(), V.astype(np.float32), V[:4].copy(),
        V.reshape(5, 1).copy(), np.asfortranarray(M), M[:, 1],
    ]  # fmt: skip
    for other in others:
        wanted = -other
        for _ in range(2):
            jitted(other)
        assert jitted(other) is other
        assert np.array_equal(other, wanted)
    same(jitted(V.copy()), -V)
    assert taken(jitted) > hits


def test_read_only_arrays() -> None:
    jitted = td.jit(negate)
    for _ in range(3):
        jitted(V.copy())
    fixed = V.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="'x' in place, which is read-only"):
        jitted(fixed)
    same(fixed, V)
    read = td.jit(lambda x: x + 1)
    for _ in range(3):
        same(read(fixed), V + 1)
    assert taken(read) == 2


def test_ints_are_constants_until_a_second_value_comes() -> None:
    jitted = td.jit(lambda x, n, m: x[:n].sum() * m)
    for _ in range(3):
        assert jitted(V, 3, 2) == 6.0
    assert taken(jitted) == 2
    for n in (4, 3, 5, 0, 2):
        for _ in range(2):
            assert jitted(V, n, 2) == V[:n].sum() * 2
    assert len(jitted._plans.native.plans) == 1  # that for n == 3 is gone
    for m in (3, -1):
        assert jitted(V, 3, m) == 3.0 * m
    assert jitted.experimental_get_tracing_count() == 3
    assert jitted(V, 1 << 70, 2) == V.sum() * 2  # of more than 64 bits: a constant
    assert jitted(V, True, 2) == 0.0  # a bool is no int here


def test_floats_are_read_at_every_call() -> None:
    jitted = td.jit(lambda x, k: x * k)
    for k in (1.0, -0.0, float("inf"), 1e-310):
        same(jitted(V, k), V * k)
    assert np.isnan(jitted(V, float("nan"))).all()
    assert taken(jitted) == 4 and jitted.experimental_get_tracing_count() == 1
    same(jitted(V.astype(np.float32), np.float32(2)), V.astype(np.float32) * 2)
    same(jitted(V.astype(np.float32), 2), V.astype(np.float32) * 2)


def test_keywords_and_defaults() -> None:
    def scale(x: Any, k: float = 2.0, *, n: int = 3, add: Any = np.float32(1)) -> Any:
        return x * k + n + add

    jitted = td.jit(scale)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((V,), {}), ((V, 3.0), {}), ((V,), {"k": 3.0}), ((V,), {"n": 3, "k": 1.0}),
        ((V,), {"k": 1.0, "n": 3}), ((), {"add": np.float32(2), "x": V}),
    ]  # fmt: skip
    for args, kwargs in calls:
        before = taken(jitted)
        for _ in range(3):
            same(jitted(*args, **kwargs), scale(*args, **kwargs))
        assert taken(jitted) >= before + 2
    with pytest.raises(TypeError, match="missing"):
        jitted(k=1.0)
    with pytest.raises(TypeError, match="unexpected"):
        jitted(V, other=1.0)


def test_any_keywords() -> None:
    jitted = td.jit(lambda x, /, **options: x * options["x"])
    for k in (2.0, 3.0, 4.0):
        same(jitted(V, x=k), V * k)


def test_results_are_not_shared() -> None:
    jitted = td.jit(lambda x: (x + 1, x.sum()))
    results = [jitted(V + i) for i in range(20)]
    for i, (array, total) in enumerate(results):
        same(array, V + i + 1)
        assert total == (V + i).sum()
    views = [jitted(V + i)[0][1:] for i in range(5)]
    buffers = [memoryview(jitted(V + i)[0]) for i in range(5)]
    for i in range(5):
        same(views[i], (V + i + 1)[1:])
        same(np.asarray(buffers[i]), V + i + 1)
    x = V.copy()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        x, _ = jitted(x)
    assert sys.getallocatedblocks() - before < 30
    same(x, V + 1000)


def test_references_are_counted() -> None:
    class Marker:
        pass

    marker = Marker()
    jitted = td.jit(lambda x, n, k, m: (x, x[1:], x * k, n + 1, k * 2, x.sum(), m))
    arguments = (V.copy(), 1 << 40, 1.25, marker)
    for _ in range(10):
        jitted(*arguments)
    watched = [*arguments, np.ndarray, np.float64]
    before = [sys.getrefcount(x) for x in watched]
    held = [jitted(*arguments) for _ in range(100)]
    del held
    assert [sys.getrefcount(x) for x in watched] == before
    assert taken(jitted) > 100


def test_errors_of_the_program_and_what_was_written_before_them() -> None:
    def look(x: Any, i: Any) -> Any:
        x[0] = 9.0
        return x[i[0]]

    jitted = td.jit(look)
    for _ in range(3):
        assert jitted(V.copy(), np.array([2])) == 2.0
    hits = taken(jitted)
    with pytest.raises(td.errors.InvalidArgumentError, match="index 7 is out of range"):
        jitted(V.copy(), np.array([7]))
    assert taken(jitted) == hits + 1
    assert jitted(V.copy(), np.array([3])) == 3.0


def test_tensors_and_tapes_take_the_other_path() -> None:
    jitted = td.jit(lambda x: x * x)
    for _ in range(3):
        jitted(V)
    hits = taken(jitted)
    x = td.constant(V)
    assert isinstance(jitted(x), td.Tensor)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = jitted(x)
    same(tape.gradient(y, x).numpy(), 2 * V)
    assert td.function(lambda v: jitted(v) + 1)(x).numpy().tolist() == (V * V + 1).tolist()
    assert taken(jitted) == hits


def test_values_that_are_known_by_identity_or_content() -> None:
    jitted = td.jit(lambda x, options: x * float(sorted(options)[-1]))
    options = {1, 2}
    for _ in range(3):
        same(jitted(V, options), V * 2)
    options.add(5)
    same(jitted(V, options), V * 5)
    apply = td.jit(lambda x, function: function(x))
    for _ in range(3):
        same(apply(V, np.sin), np.sin(V))
        same(apply(V, np.cos), np.cos(V))
    assert taken(apply) == 4


def test_many_signatures_and_evicted_traces() -> None:
    jitted = td.jit(lambda x: x * 2)
    for _ in range(2):
        for n in range(1, 100):
            same(jitted(np.ones(n)), np.full(n, 2.0))
    concrete = weakref.ref(jitted.get_concrete_function(np.ones(3)))
    jitted._traced.clear_traces()
    gc.collect()
    assert concrete() is None
    assert not jitted._plans.native.plans
    same(jitted(np.ones(3)), np.full(3, 2.0))


def test_functions_die() -> None:
    jitted = td.jit(lambda x: x + 1)
    for _ in range(3):
        jitted(V)
    reference = weakref.ref(jitted)
    del jitted
    gc.collect()
    assert reference() is None


def test_methods_and_copies() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k

        @td.jit
        def scaled(self, x: Any) -> Any:
            return x * self.k

    models = [Model(2.0), Model(3.0)]
    for _ in range(3):
        for model in models:
            same(model.scaled(V), V * model.k)
    assert taken(Model.scaled) == 4
    other = copy.deepcopy(Model.scaled)
    assert other is not Model.scaled and taken(other) == 0
    same(other(models[0], V), V * 2)
    assert copy.copy(negated) is negated and pickle.loads(pickle.dumps(negated)) is negated


negated = td.jit(negate)
negated.__qualname__ = "negated"


def test_many_threads() -> None:
    def work_on(x: Any, k: Any) -> Any:
        x += k
        return x.sum()

    jitted = td.jit(work_on)
    wrong: list[Any] = []

    def work(k: float) -> None:
        x = np.zeros(2000)
        for i in range(200):
            if jitted(x, k) != 2000 * k * (i + 1):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and taken(jitted) > 1000


def test_without_native_calls() -> None:
    with disabled("native_calls"):
        jitted = td.jit(shift)
        for _ in range(3):
            mine, theirs = (V.copy(), V + 1), (V.copy(), V + 1)
            jitted(*mine), shift(*theirs)
            same(mine, theirs)
    assert taken(jitted) == 0
