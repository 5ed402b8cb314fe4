"""Operations for which NumPy would take longer than the compiler wait for their programs."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.ops.random import arrays
from treadle.ops.registry import OPS
from treadle.passes import disabled
from treadle.tracing import large_draws, large_operations
from treadle.tracing.large_operations import _entries, _numpy_elements, _work

R = np.random.default_rng(0)


def floats(*shape: int) -> td.Tensor:
    return td.constant(R.standard_normal(shape).astype(np.float32))


# -- convolutions, functions ---------------------------------------------------------------------


def test_the_first_meeting_waits(monkeypatch):
    monkeypatch.setattr(large_operations, "WORTH_WAITING", 30_000)
    x, w = floats(4, 16, 16, 3), floats(3, 3, 3, 8)
    found = td.nn.conv2d(x, w, 2, "SAME").numpy()
    (entry,) = _entries.values()
    assert entry.waits and entry.executable is not None
    with disabled("eager_programs"):
        np.testing.assert_allclose(
            td.nn.conv2d(x, w, 2, "SAME").numpy(), found, rtol=1e-4, atol=1e-5
        )


def test_short_ones_do_not(monkeypatch):
    monkeypatch.setattr(large_operations, "WORTH_WAITING", 30_000)
    td.nn.conv2d(floats(1, 8, 8, 3), floats(3, 3, 3, 4), 1, "SAME")
    td.exp(floats(100, 100))
    td.matmul(floats(100, 200), floats(200, 100))  # NumPy's library multiplies as fast
    assert all(entry.executable is None for entry in _entries.values())


@pytest.mark.parametrize(
    "name, shapes, outputs, dtype, elements",
    [
        ("exp", [(10, 20)], [(10, 20)], "float32", 200),
        ("softmax", [(10, 20)], [(10, 20)], "float32", 200 * large_operations.CALLS),
        ("lgamma", [(10, 20)], [(10, 20)], "float32", 200 * large_operations.CALLS),
        ("matmul", [(10, 20), (20, 30)], [(10, 30)], "float32", 600),
        ("matmul", [(10, 20), (20, 30)], [(10, 30)], "int32", 6000),
        ("conv2d", [(1, 4, 4, 2), (1, 1, 2, 3)], [(1, 4, 4, 3)], "float32", 96),
    ],
)
def test_what_numpy_computes(name, shapes, outputs, dtype, elements):
    specs = [td.TensorSpec(s, dtype) for s in shapes]
    results = [td.TensorSpec(s, dtype) for s in outputs]
    work = _work(OPS[name], specs, results)
    assert _numpy_elements(OPS[name], work, specs, results) == elements


def test_what_numpy_took_is_remembered(monkeypatch):
    monkeypatch.setattr(large_operations, "COMPILING", 1e-9)
    td.exp(floats(20, 30))
    (entry,) = _entries.values()
    assert entry.executable is None and entry.waits
    td.exp(floats(20, 30))
    assert entry.executable is not None
    td.exp(floats(40, 30))  # other dims: by what an element took
    assert all(e.executable is not None for e in _entries.values())


def test_errors_are_numpys():
    for _ in range(2):
        with pytest.raises(td.errors.InvalidArgumentError, match="inner dims"):
            td.matmul(floats(20, 30), floats(20, 30))


# -- random numbers ------------------------------------------------------------------------------


@pytest.fixture
def many(monkeypatch):
    """From which number on programs draw: few enough for tests."""
    monkeypatch.setattr(large_draws, "WORTH_WAITING", 1000)
    monkeypatch.setattr(large_draws, "FEW", 1000)
    large_draws._draws.clear()
    yield 1000
    large_draws._draws.clear()


DRAWS = {
    "uniform": lambda g, shape: g.uniform(shape),
    "uniform of float64": lambda g, shape: g.uniform(shape, dtype="float64"),
    "integers": lambda g, shape: g.uniform(shape, -5, 100, "int32"),
    "all integers": lambda g, shape: g.uniform_full_int(shape, "uint64"),
    "normal": lambda g, shape: g.normal(shape),
    "normal of bfloat16": lambda g, shape: g.normal(shape, dtype="bfloat16"),
    "truncated normal": lambda g, shape: g.truncated_normal(shape, dtype="float64"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_programs_draw_what_numpy_draws(many, name):
    made = [td.random.Generator.from_seed(7) for _ in range(3)]
    for shape in ((20, 51), (3000,), (7, 11, 13, 3)):
        with disabled("eager_programs"):
            wanted = np.asarray(DRAWS[name](made[0], shape))
        found = DRAWS[name](made[1], shape)
        assert found.shape == shape
        rtol = 0 if "normal" not in name else 1e-2 if "16" in name else 1e-5
        np.testing.assert_allclose(
            np.asarray(found).astype(float), wanted.astype(float), rtol=rtol, atol=rtol / 10
        )
        in_function = td.function(lambda shape=shape: DRAWS[name](made[2], shape))()
        assert np.asarray(in_function).tobytes() == np.asarray(found).tobytes()
    assert [d.executable is not None for d in large_draws._draws.values()].count(True) == 1
    np.testing.assert_array_equal(made[0].state, made[1].state)


def test_few_numbers_are_numpys(many):
    td.random.Generator.from_seed(7).normal([many - 1])
    assert not large_draws._draws


@pytest.mark.parametrize("name", ["uniform", "integers", "all integers"])
def test_exact_numbers_come_from_the_program_as_soon_as_there_is_one(
    many, monkeypatch, name
):
    monkeypatch.setattr(large_draws, "WORTH_WAITING", 1 << 21)
    monkeypatch.setattr(large_draws, "WORTH_COMPILING", 2000)
    jobs = []
    monkeypatch.setattr(
        type(large_draws.backend()), "compile_later", lambda self, key, job, graph: jobs.append(job)
    )
    g = td.random.Generator.from_seed(7)
    with disabled("eager_programs"):
        wanted = [np.asarray(DRAWS[name](g, (1500,))) for _ in range(4)]
    g = td.random.Generator.from_seed(7)
    found = [np.asarray(DRAWS[name](g, (1500,))) for _ in range(2)]
    (job,) = jobs
    (draw,) = large_draws._draws.values()
    assert draw.executable is None
    job()
    assert draw.executable is not None
    found += [np.asarray(DRAWS[name](g, (1500,))) for _ in range(2)]
    assert [f.tobytes() for f in found] == [w.tobytes() for w in wanted]
    assert draw.drawn == 0  # NumPy has drawn nothing since


def test_few_exact_numbers_are_numpys(many, monkeypatch):
    monkeypatch.setattr(large_draws, "WORTH_COMPILING", 1)
    td.random.Generator.from_seed(7).uniform([many - 1])
    assert not large_draws._draws


def test_streams_of_several_states_are_numpys(many):
    state = np.array([[1, 2, 3], [4, 5, 6]])
    shape = (2, many)
    drawn = OPS["random_uniform"].eager(state, shape=(many,), dtype="float32")
    assert drawn.shape == shape
    assert (
        large_draws.run_draw(OPS["random_uniform"], [state], {"shape": (many,), "dtype": "float32"})
        is None
    )


def test_a_program_that_cannot_be_made_is_not_asked_for_again(many, monkeypatch):
    asked = []

    def refuse(graph):
        asked.append(graph)
        raise NotImplementedError("no form")

    monkeypatch.setattr(large_draws, "compile_native", refuse)
    state = np.array([1, 2, 3])
    for _ in range(2):
        g = td.random.Generator.from_state(state, "philox")
        np.testing.assert_array_equal(
            g.uniform([many]), arrays.uniform(state, shape=(many,), dtype="float32")
        )
    assert len(asked) == 1


def test_sums_of_rows_are_programs(waiting):
    rows, ids = floats(200, 3), td.constant(R.integers(-1, 7, 200))
    found = td.math.unsorted_segment_sum(rows, ids, 7).numpy()
    (entry,) = [e for key, e in _entries.items() if key[0].name == "unsorted_segment_sum"]
    assert entry.executable is not None
    with disabled("eager_programs"):
        assert td.math.unsorted_segment_sum(rows, ids, 7).numpy().tobytes() == found.tobytes()
    with pytest.raises(td.errors.InvalidArgumentError, match="7"):
        td.math.unsorted_segment_sum(rows, ids + 1, 7)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_sorts_are_programs_and_give_what_numpy_gives(dtype, waiting):
    random = np.random.default_rng(3)
    x = td.constant(random.integers(-9, 9, (6, 50)).astype(dtype))
    for call in (td.sort, td.argsort, lambda x: td.math.top_k(x, 7), lambda x: td.math.top_k(x, 0)):
        by_program = td.nest.flatten(call(x))
        with disabled("eager_programs"):
            by_numpy = td.nest.flatten(call(x))
        for mine, theirs in zip(by_program, by_numpy, strict=True):
            assert mine.dtype is theirs.dtype
            np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    assert all(e.executable is not None for e in _entries.values() if e.graph is not None)


def test_large_matrices_remain_numpys(waiting):
    small, large_one = td.eye(8, batch_shape=[3]), td.eye(300)
    td.linalg.inv(small)
    inverse = [e for k, e in _entries.items() if k[0].name == "inverse"]
    assert [e.executable is not None for e in inverse] == [True]
    td.linalg.inv(large_one)
    inverse = [e for k, e in _entries.items() if k[0].name == "inverse"]
    assert [e.graph is not None for e in inverse] == [True, False]
