"""Small results are used again, and only when nobody can tell."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.dispatch import spares
from treadle.runtime.cpu.dispatch.layout import call_layout

pytestmark = pytest.mark.skipif(
    call_layout() is None, reason="this interpreter has no native calls"
)

X = np.arange(4, dtype=np.float32)


def warm(python, *args):
    function = td.function(python, autograph=False)
    for _ in range(4):
        function(*args)
    return function


def kept(function):
    """The tensors that wait at the function's last plan."""
    return function._native.plans[-1].spares.items


def test_a_dropped_result_is_used_again():
    f = warm(lambda x: x + 1, X)
    first = id(f(X))
    assert first in map(id, kept(f))
    assert id(f(X)) == first


def test_a_held_result_keeps_its_value():
    f = warm(lambda x: x + 1, X)
    results = [f(X + i) for i in range(20)]
    assert len({id(r) for r in results}) == len({r._buffer.ctypes.data for r in results}) == 20
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), X + i + 1)


def test_a_result_that_is_the_next_argument():
    f = warm(lambda x: x + 1, td.constant(X))
    x = td.constant(X)
    before = sys.getallocatedblocks()
    for _ in range(1000):
        x = f(x)
    assert sys.getallocatedblocks() - before < 20
    np.testing.assert_array_equal(x.numpy(), X + 1000)


def test_views_arrays_and_other_holders():
    f = warm(lambda x: x + 1, X)
    holders = [
        np.asarray, lambda t: memoryview(np.asarray(t)), lambda t: np.asarray(t)[1:],
        lambda t: np.from_dlpack(t), lambda t: [t], lambda t: t[1:], lambda t: t.ref(),
    ]  # fmt: skip
    held = [hold(f(X + i)) for i, hold in enumerate(holders)]
    for i in range(10):
        f(X - i)
    for i, value in enumerate(held[:4]):
        array = np.asarray(value)
        np.testing.assert_array_equal(array, (X + i + 1)[-len(array) :])
    np.testing.assert_array_equal(held[4][0].numpy(), X + 5)
    np.testing.assert_array_equal(held[5].numpy(), (X + 6)[1:])
    np.testing.assert_array_equal(held[6].deref().numpy(), X + 7)


def test_variables_and_captures_hold_results_too():
    f = warm(lambda x: x + 1, X)
    v = td.Variable(f(X))
    captured = f(X + 1)
    g = warm(lambda x: x + captured, X)
    add = warm(lambda x: v.assign_add(x), X)
    v.assign(f(X + 2))
    for _ in range(5):
        f(X)
    np.testing.assert_array_equal(v.numpy(), X + 3)
    np.testing.assert_array_equal(g(X).numpy(), X + X + 2)
    add(X)
    f(X)
    np.testing.assert_array_equal(v.numpy(), X + X + 3)


def test_weak_references_see_each_result_once():
    f = warm(lambda x: x + 1, X)
    references = [weakref.ref(f(X + i)) for i in range(6)]
    alive = [r() for r in references if r() is not None]
    assert len(alive) <= spares.EACH
    assert len({id(t) for t in alive}) == len(alive)


def test_tapes_hold_results():
    f = warm(lambda x: x * x, X)
    x = f(X)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    address = x._buffer.ctypes.data
    del x
    assert all(f(X)._buffer.ctypes.data != address for _ in range(4))
    del y, tape


def test_lists_tuples_and_dicts():
    f = warm(lambda x: {"a": x + 1, "b": [x * 2][0]}, X)
    first = f(X)
    second = f(X + 1)
    np.testing.assert_array_equal(first["b"].numpy(), X * 2)
    np.testing.assert_array_equal(second["a"].numpy(), X + 2)
    half = f(X)["a"]  # one result of the two stays
    f(X + 9)
    np.testing.assert_array_equal(half.numpy(), X + 1)


def test_threads_never_share_a_result():
    f = warm(lambda x: td.reduce_sum(td.matmul(x, x), 0), np.ones((60, 60), np.float32))
    wrong = []

    def work(n):
        x = np.full((60, 60), n, np.float32)
        wanted = 60 * 60 * n * n
        for _ in range(400):
            result = f(x)
            again = f(x)
            if result.numpy()[0] != wanted or again.numpy()[-1] != wanted:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_recursion_through_a_callback():
    def inner(a):
        return np.asarray(f(td.constant(a - 1))) if a > 0 else np.float32(0)

    f = td.function(lambda x: td.numpy_function(inner, [x], td.TensorSpec([])) + x, autograph=False)
    for _ in range(5):
        assert float(f(td.constant(np.float32(4)))) == 10


def test_large_results_do_not_wait_here():
    f = warm(lambda x: x + 1, np.zeros(spares.LARGEST // 4, np.float32))
    assert kept(f) is not None
    g = warm(lambda x: x + 1, np.zeros(spares.LARGEST // 4 + 1, np.float32))
    assert g._native.plans[-1].spares is None


def test_what_waits_is_bounded(monkeypatch):
    waiting = sum(s.bytes for s in spares._all)
    monkeypatch.setenv("TREADLE_KEEP_BYTES", str((waiting + 100) * spares.SHARE))
    assert spares.spares_for([60]) is None
    assert spares.spares_for([50]) is not None
    monkeypatch.setenv("TREADLE_KEEP_BYTES", "0")
    assert spares.spares_for([4]) is None
    f = warm(lambda x: x - 3, X)
    assert f._native.plans[-1].spares is None
    np.testing.assert_array_equal(f(X).numpy(), X - 3)


def test_clear_caches_and_the_end_of_the_function_let_go():
    f = warm(lambda x: x + 1, X)
    reference = weakref.ref(f(X)._buffer)
    assert reference() is not None
    td.clear_caches()
    assert reference() is None
    for _ in range(4):
        f(X)
    reference = weakref.ref(f(X)._buffer)
    del f
    gc.collect()
    assert reference() is None
