"""Each mechanism of the compiler can be left out: results stay, and something visible goes."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, captures, inputs, native, trace_like
from treadle.passes import disabled, switches
from treadle.runtime.cpu.dispatch.layout import call_layout
from treadle.runtime.cpu.threads import pool

PROGRAM = [s.name for s in switches() if s.stage in ("target", "program") and not s.required]


def rows(x, w):
    h = td.nn.softmax(td.matmul(td.tanh(x), w))
    return td.reduce_sum(h * h, 0), td.reduce_max(h, 1), h + 1.0


def weighted(x, w):
    return td.reduce_sum(x * x, 1), td.reduce_max(x, 1), td.reduce_sum(w)


def chain(x, w):
    for _ in range(5):
        x = td.nn.softmax(td.matmul(x, w))
    return x


def flat_chain(x, w):
    return td.sort(td.tanh(td.sort(x))), td.reduce_sum(w)


def updates(x, w):
    def body(i, x):
        return i + 1, td.tensor_scatter_nd_update(x, [[i]], [x[i] * 2.0 + w[0]])

    return td.while_loop(lambda i, x: i < 20, body, (td.constant(0), x))[1]


def optimizer(x, w):
    """The same update of several variables."""
    for v in VARIABLES:
        v.assign(v * 0.9 + td.reduce_sum(x) * 0.01)
    return td.reduce_sum(w)


def scalars(x, w):
    return td.while_loop(
        lambda i, a: i < 50, lambda i, a: (i + 1, a * 0.9 + w[0, 0]), (td.constant(0), x[0, 0])
    )[1]


def loop_gradient(x, w):
    with td.GradientTape() as tape:
        tape.watch(x)
        total = td.while_loop(
            lambda i, s: i < 40,
            lambda i, s: (i + 1, s + td.reduce_sum(td.sin(x[i]) * w[i])),
            (td.constant(0), td.constant(0.0)),
        )[1]
    return tape.gradient(total, x)


VARIABLES = [td.Variable(np.ones(n, np.float32)) for n in (300, 500, 40)]
X, W = inputs((90, 64), (64, 64))
FUNCTIONS = [rows, weighted, chain, flat_chain, updates, optimizer, scalars, loop_gradient]


@pytest.mark.parametrize("off", [*PROGRAM, "all"])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_do_not_need_it(fn, off):
    for v in VARIABLES:
        v.assign(np.ones(v.shape, np.float32))
    with disabled(off):
        both(trace_like(fn, X, W), X, W, rtol=3e-5, atol=1e-5)


def stages(fn, off=None):
    with disabled(*([off] if off else [])):
        program = native(trace_like(fn, X, W))
        return program.stages, program.counters, program.memory


@pytest.mark.parametrize(
    ("off", "fn"),
    [("fusion", rows), ("siblings", weighted), ("segments", optimizer)],
)
def test_more_kernels_without(off, fn):
    schedules = [stages(fn, name)[0]["schedule"] for name in (None, off)]
    launches = [text.count("kernel ") for text in schedules]  # a segmented one is one
    assert launches[1] > launches[0], schedules


@pytest.mark.parametrize(
    ("off", "stage", "fn"),
    [
        ("takeovers", "schedule", updates), ("contraction", "llvm", scalars),
        ("additions", "schedule", loop_gradient), ("wide_vectors", "llvm", rows),
    ],
)  # fmt: skip
def test_another_program_without(off, stage, fn):
    assert stages(fn)[0][stage] != stages(fn, off)[0][stage]


@pytest.mark.parametrize(("off", "fn"), [("sharing", chain), ("inheritance", flat_chain)])
def test_a_larger_workspace_without(off, fn):
    assert stages(fn, off)[2].workspace > stages(fn)[2].workspace


def test_narrow_vectors():
    text = stages(rows, "wide_vectors")[0]["llvm"]
    kernels = text[text.index("; kernel ") :]
    assert "<4 x float>" in kernels
    assert "<8 x float>" not in kernels and "<16 x float>" not in kernels


def test_without_threads_the_caller_does_all(monkeypatch):
    graph = trace_like(rows, *inputs((900, 64), (64, 64)))
    arrays = [*inputs((900, 64), (64, 64)), *captures(graph)]
    before = pool().threads
    try:
        pool().set_threads(3)
        with disabled("threads"):
            alone = native(graph)
        together = native(graph)
        assert _posts(lambda: together.run(arrays)) > 0
        assert _posts(lambda: alone.run(arrays)) == 0
        for a, b in zip(alone.run(arrays), together.run(arrays), strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        pool().set_threads(before)


def _posts(call):
    """How many jobs the first worker was given: it keeps the last task's address."""
    import ctypes

    from treadle.runtime.cpu.threads import HEAD

    task = ctypes.c_int64.from_address(pool()._base + HEAD + 8)
    task.value = 0
    call()
    return int(task.value != 0)


@pytest.mark.skipif(call_layout() is None, reason="this interpreter has no native calls")
def test_calls():
    x = np.ones(4, np.float32)

    def make():
        f = td.function(lambda x: x + 1.0, autograph=False)
        for _ in range(4):
            f(x)
        return f

    assert make()._native.plans[0].spares is not None
    with disabled("spares"):
        assert make()._native.plans[0].spares is None
    with disabled("native_calls"):
        assert make()._native is None


@pytest.mark.parametrize(("off", "shared"), [("spares", True), ("shared_programs", False)])
def test_programs_of_other_sizes(off, shared):
    with disabled(off):
        f = td.function(lambda x: td.reduce_sum(x * 2.0, 0), autograph=False)
        for n in (3, 4, 5):
            f(np.ones((n, 2), np.float32))
    assert ("shares the program" in str(f.explain())) == shared
