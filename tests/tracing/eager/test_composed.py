"""Functions made of several ops whose eager calls are programs."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.ops import composed as composed_module
from treadle.ops.composed import composed
from treadle.passes import disabled
from treadle.runtime.cpu import compiled_ahead
from treadle.tracing import composed_calls, large_operations
from treadle.tracing.composed_calls import _families

RANDOM = np.random.default_rng(0)
IMAGES = td.constant(RANDOM.random((2, 6, 5, 3)).astype(np.float32))
MATRIX = td.constant(RANDOM.random((20, 30)).astype(np.float32))


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is worth a program from its second call on."""
    monkeypatch.setattr(composed_module.programs, "elements", 0)
    monkeypatch.setattr(composed_calls, "ASKED", 0.0)


def entries() -> list[Any]:
    return [entry for family in _families.values() for entry in family.entries.values()]


def entry() -> Any:
    (found,) = entries()
    return found


def finished() -> None:
    """Wait for what is compiled now."""
    deadline = time.monotonic() + 60
    while compiled_ahead._graphs.is_working and time.monotonic() < deadline:
        time.sleep(0.005)


@composed
def scaled(x: Any, factor: Any = 2.0, name: str | None = None) -> Any:
    return td.exp(td.convert_to_tensor(x)) * factor + 1.0


def test_the_ops_run_until_the_program_is_there():
    first = scaled(MATRIX)
    assert entry().met == 1 and not entry().is_ready
    scaled(MATRIX)
    finished()
    assert entry().failure is None and entry().is_ready
    np.testing.assert_allclose(scaled(MATRIX).numpy(), first.numpy(), rtol=1e-6)
    assert entry().met == 2  # the third call asked for nothing


def test_the_ops_of_a_call_that_waits_for_its_program_have_none():
    scaled(MATRIX), scaled(MATRIX)
    finished()
    assert all(e.executable is None for e in large_operations._entries.values())


CALLS = {
    "resize": lambda x: td.image.resize(x, [9, 4]),
    "bicubic": lambda x: td.image.resize(x, [3, 8], method="bicubic"),
    "area": lambda x: td.image.resize(x, [3, 8], method="area"),
    "nearest": lambda x: td.image.resize(x, [9, 4], method="nearest"),
    "hue": lambda x: td.image.adjust_hue(x, 0.3),
    "saturation": lambda x: td.image.adjust_saturation(x, 1.5),
    "hsv": lambda x: td.image.hsv_to_rgb(td.image.rgb_to_hsv(x)),
    "ssim": lambda x: td.image.ssim(x, x * 0.5, 1.0, filter_size=3),
    "lrn": lambda x: td.nn.lrn(x, 1),
    "moments": lambda x: td.nn.moments(x, [0, 1]),
    "crop": lambda x: td.image.crop_and_resize(x, [[0.1, 0.2, 0.8, 1.1]], [1], [4, 4]),
    "logsumexp": lambda x: td.reduce_logsumexp(x, [1, 2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_program_gives_what_a_function_gives(name, waiting):
    call = CALLS[name]
    assert td.nest.flatten(call(IMAGES))  # and compile
    assert entries() and all(e.is_ready for e in entries())
    pairs = zip(
        td.nest.flatten(call(IMAGES)), td.nest.flatten(td.function(call)(IMAGES)), strict=True
    )
    for mine, traced in pairs:
        assert mine.dtype is traced.dtype and mine.numpy().tobytes() == traced.numpy().tobytes()
    with disabled("eager_programs"):
        again = td.nest.flatten(call(IMAGES))
    for mine, by_ops in zip(td.nest.flatten(call(IMAGES)), again, strict=True):
        np.testing.assert_allclose(mine.numpy(), by_ops.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["resize", "bicubic", "hue", "ssim", "lrn", "logsumexp"])
def test_gradients_are_programs_too(name, waiting):
    call = CALLS[name]

    def gradient(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(call(x) ** 2)
        return tape.gradient(y, x)

    mine = gradient(IMAGES)
    assert all(e.is_ready for e in entries() if any(e.needs))
    assert any(any(e.needs) for e in entries())
    with disabled("eager_programs"):
        np.testing.assert_allclose(mine.numpy(), gradient(IMAGES).numpy(), rtol=2e-4, atol=2e-5)


def test_gradients_of_variables_and_only_of_what_is_watched(waiting):
    weights = td.Variable(MATRIX)
    with td.GradientTape() as tape:
        y = td.reduce_sum(scaled(weights))
    np.testing.assert_allclose(tape.gradient(y, weights).numpy(), 2 * np.exp(MATRIX), rtol=1e-5)
    with td.GradientTape() as tape:
        tape.watch(MATRIX)
        y = td.reduce_sum(scaled(MATRIX * 1.0) + scaled(IMAGES[0, 0, 0, 0]))
    assert not tape.gradient(y, IMAGES, unconnected_gradients="zero").numpy().any()
    assert [e.needs for e in entries()].count(()) == 1


def test_several_tapes_and_persistent_ones_see_the_ops():
    def second(x: Any) -> Any:
        with td.GradientTape() as outer:
            outer.watch(x)
            with td.GradientTape() as inner:
                inner.watch(x)
                y = td.reduce_sum(scaled(x))
            slope = td.reduce_sum(inner.gradient(y, x))
        return outer.gradient(slope, x)

    for _ in range(3):
        np.testing.assert_allclose(second(MATRIX).numpy(), 2 * np.exp(MATRIX), rtol=1e-5)
    with td.GradientTape(persistent=True) as tape:
        tape.watch(MATRIX)
        y = td.reduce_sum(scaled(MATRIX))
        slope = tape.gradient(y, MATRIX)
    np.testing.assert_allclose(tape.gradient(slope, MATRIX).numpy(), 2 * np.exp(MATRIX), rtol=1e-5)
    assert not any(any(e.needs) for e in entries())


def test_jacobians_go_through_the_program(waiting):
    x = td.constant([0.1, 0.2, 0.3])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.diag(2 * np.exp(x)), rtol=1e-5)


def test_python_values_and_dtypes_count(waiting):
    for factor in (2.0, 3.0, True, 0.0, -0.0, np.float32(2.0)):
        expected = np.exp(MATRIX.numpy()) * factor + 1
        np.testing.assert_allclose(scaled(MATRIX, factor).numpy(), expected, rtol=1e-6)
    assert len(_families) == 6
    scaled(td.cast(MATRIX, td.float64), name="other")
    assert len(_families) == 7
    scaled(MATRIX, name="other"), scaled(MATRIX, name="another"), scaled(MATRIX)
    assert len(_families) == 8


def test_small_integers_are_sizes_and_large_arrays_are_tensors(waiting):
    size = np.array([4, 4])
    assert td.image.resize(IMAGES, size).shape == [2, 4, 4, 3]
    size[0] = 7  # a program that was made for the array keeps none of it
    assert td.image.resize(IMAGES, size).shape == [2, 7, 4, 3]
    assert td.image.resize(IMAGES, td.constant([4, 4])).shape == [2, 4, 4, 3]
    assert len(_families) == 3
    array = RANDOM.random((20, 30))
    assert scaled(array).dtype is td.float64
    array += 1
    np.testing.assert_allclose(scaled(array).numpy(), 2 * np.exp(array) + 1)


def test_other_dims_share_a_program(waiting):
    for rows in (5, 8, 13):
        x = td.ones([rows, 3])
        np.testing.assert_allclose(scaled(x).numpy(), np.full([rows, 3], 2 * np.e + 1), rtol=1e-6)
    programs = {id(e.concrete.executable.counters) for e in entries()}
    assert len(entries()) == 3 and len(programs) == 2


def test_sparse_operands_have_one_number_of_elements(waiting):
    for count in (4, 6, 5):
        dense = np.zeros((5, 6), np.float32)
        dense.reshape(-1)[RANDOM.permutation(30)[:count]] = 2.0
        x = td.sparse.from_dense(dense)
        found = td.sparse.sparse_dense_matmul(x, td.ones([6, 40]))
        np.testing.assert_array_equal(found.numpy(), dense @ np.ones((6, 40)))
    assert all(e.is_ready for e in entries())


def test_errors_are_those_of_the_ops(waiting):
    here = os.path.basename(__file__)
    with pytest.raises(ValueError, match="delta must be in the interval") as error:
        td.image.adjust_hue(IMAGES, 3.0)
    assert here in str(error.value)
    td.image.adjust_hue(IMAGES, td.constant(0.5))
    assert entries()[-1].is_ready
    with pytest.raises(Exception, match="delta must be in the interval"):
        td.image.adjust_hue(IMAGES, td.constant(3.0))


def test_what_has_effects_or_asks_for_elements_is_called():
    @composed
    def drawn(x: Any) -> Any:
        return x + td.random.uniform([30])

    @composed
    def asked(x: Any) -> Any:
        return x * 2.0 if float(x[0, 0]) > -1 else x

    for _ in range(3):
        drawn(MATRIX), asked(MATRIX)
        finished()
    assert len(entries()) == 2 and all(e.failure is not None for e in entries())
    assert (drawn(MATRIX).numpy() != drawn(MATRIX).numpy()).any()


def test_inside_of_a_function_it_is_as_written(waiting):
    traced = td.function(lambda x: scaled(x, 3.0))
    np.testing.assert_allclose(traced(MATRIX).numpy(), 3 * np.exp(MATRIX) + 1, rtol=1e-6)
    assert not _families


def test_entries_and_families_are_bounded(monkeypatch):
    monkeypatch.setattr(composed_calls, "MOST_ENTRIES", 8)
    monkeypatch.setattr(composed_calls, "MOST_FAMILIES", 8)
    for n in range(1, 20):
        scaled(td.ones([n])), scaled(td.ones([3]), float(n))
    assert len(_families) <= 9 and all(len(f.entries) <= 8 for f in _families.values())


def test_values_that_change_each_time_are_not_traced_for_ever():
    for n in range(3 * composed_calls.MOST_IN_VAIN):
        scaled(MATRIX, float(n))
    traced = [e for e in entries() if e.concrete is not None]
    assert len(traced) == composed_calls.MOST_IN_VAIN


def test_clear_caches_forgets_programs(waiting):
    scaled(MATRIX)
    td.clear_caches()
    assert not _families
    scaled(MATRIX)
    assert entry().is_ready
