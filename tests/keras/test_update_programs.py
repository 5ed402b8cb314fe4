"""Eager updates by programs: the values of updates without them, and when there are none."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.keras.facts.cases import OPTIMIZERS, wave
from tests.keras.test_optimizers import make
from treadle import keras
from treadle.passes import disabled
from treadle.runtime.cpu.backend import Cpu
from treadle.tracing import graph_size, settings


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates of any size are worth a program, and wait for it."""
    monkeypatch.setattr(Cpu, "eager_elements", property(lambda self: 5))
    monkeypatch.setattr(settings, "wait_for_eager_programs", True)


def updated(opt: Any, steps: int = 3, between: Any = None) -> list[Any]:
    """The variables after some updates."""
    weights = [td.Variable(wave(3)), td.Variable(wave(2, 2))]
    for i in range(steps):
        grads = [td.constant(wave(3, phase=i)), td.constant(wave(2, 2, phase=2.0 * i))]
        opt.apply_gradients(zip(grads, weights, strict=True))
        if between is not None:
            between(opt)
    return [w.numpy() for w in weights] + [s.numpy() for s in opt.variables]


def programs(opt: Any) -> int:
    made = opt._programs._made.values()
    return sum(type(found) is not int for f in made if f for found in f._met.values() if found)


def check(make_one: Any, between: Any = None, compiled: bool = True) -> Any:
    opt = make_one()
    found = updated(opt, between=between)
    assert bool(programs(opt)) == compiled
    with disabled("eager_programs"):
        wanted = updated(make_one(), between=between)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    return opt


@pytest.mark.parametrize("name", [*OPTIMIZERS][::3])
def test_programs_update_as_eager_operations_do(name):
    with_functions = callable(getattr(make(name), "_schedule", None))
    opt, other = make(name), make(name)
    found = updated(opt)
    with disabled("eager_programs"):
        wanted = updated(other)
    assert with_functions or programs(opt)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_updates_of_many_variables_are_no_loop_that_the_user_wrote(monkeypatch, recwarn):
    monkeypatch.setattr(graph_size, "MANY_OPERATIONS", 10)
    monkeypatch.setattr(graph_size, "MANY_REPEATS", 2)
    opt = keras.optimizers.Adam(0.1)
    updated(opt)
    assert programs(opt) and not recwarn.list


def test_settings_that_change_are_seen():
    def change(opt: Any) -> None:
        opt.beta_1 *= 0.5

    check(lambda: keras.optimizers.Adam(0.1), between=change)


def test_the_rate_may_be_assigned():
    def change(opt: Any) -> None:
        opt.learning_rate = float(opt.learning_rate) * 0.5

    check(lambda: keras.optimizers.SGD(0.1, momentum=0.9), between=change)


def test_schedules_of_keras_are_part_of_the_program():
    decay = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    check(lambda: keras.optimizers.Adam(decay))


def test_code_of_users_is_called_for_each_update():
    calls: list[int] = []

    class Mine(keras.optimizers.SGD):
        def update(self, *args: Any) -> None:
            calls.append(1)
            super().update(*args)

    check(lambda: Mine(0.1), compiled=False)
    assert len(calls) == 12
    rates = iter([0.1, 0.2, 0.3] * 2)
    check(lambda: keras.optimizers.SGD(lambda: next(rates)), compiled=False)


def test_constraints_are_called():
    opt, w = keras.optimizers.SGD(1.0), td.Variable(wave(9))
    w.constraint = lambda value: td.clip_by_value(value, -0.1, 0.1)
    for _ in range(3):
        opt.apply_gradients([(td.constant(wave(9)), w)])
    assert np.abs(w.numpy()).max() <= np.float32(0.1) and not programs(opt)


def test_rows_and_recorded_updates_run_eagerly():
    table = td.Variable(np.ones((6, 4), np.float32))
    opt = keras.optimizers.SGD(0.5)
    rows = td.IndexedSlices(td.ones([2, 4]), td.constant([0, 3]), td.constant([6, 4]))
    opt.apply_gradients([(rows, table)])
    np.testing.assert_array_equal(table.numpy()[:, 0], [0.5, 1, 1, 0.5, 1, 1])
    with td.GradientTape():
        opt.apply_gradients([(td.ones([6, 4]), table)])
    assert not programs(opt)


def test_a_copy_has_variables_and_programs_of_its_own():
    opt = keras.optimizers.Adam(0.1)
    w = td.Variable(wave(9))
    opt.apply_gradients([(td.constant(wave(9)), w)])
    other = copy.deepcopy(opt)
    assert programs(opt) == 1 and programs(other) == 0
    before = opt.iterations.numpy()
    other.apply_gradients([(td.constant(wave(9)), td.Variable(wave(9)))])
    assert opt.iterations.numpy() == before


def test_lists_of_variables_are_told_apart():
    opt = keras.optimizers.SGD(1.0)
    a, b = td.Variable(np.zeros(9, np.float32)), td.Variable(np.zeros(9, np.float32))
    for _ in range(2):
        opt.apply_gradients([(td.ones([9]), a)])
        opt.apply_gradients([(2 * td.ones([9]), b)])
    assert a.numpy()[0] == -2 and b.numpy()[0] == -4 and int(opt.iterations) == 4
