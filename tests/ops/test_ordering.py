"""init_scope, control_dependencies, group and no_op."""

from __future__ import annotations

from typing import Any

import pytest

import treadle as td


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


def test_init_scope_is_eager_and_untaped() -> None:
    seen = []

    @td.function
    def f(x: Any) -> Any:
        with td.init_scope():
            seen.append((td.executing_eagerly(), float(td.constant(2.0) * 3.0)))
        return x * seen[-1][1]

    assert float(f(td.constant(2.0))) == 12.0
    assert float(f(td.constant(3.0))) == 18.0
    assert seen == [(True, 6.0)]
    x = td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        with td.init_scope():
            y = x * x
    assert tape.gradient(y, x) is None


def test_init_scope_cannot_use_the_trace() -> None:
    @td.function
    def f(x: Any) -> Any:
        with td.init_scope():
            return x + 1.0

    with pytest.raises((TypeError, ValueError, NotImplementedError), match="symbolic"):
        f(td.constant(1.0))


def test_effects_keep_their_order() -> None:
    v = td.Variable(1.0)

    @td.function
    def f() -> Any:
        first = v.assign_add(1.0)
        with td.control_dependencies([first, td.group(first, [first]), td.no_op()]):
            doubled = v.assign(v * 10.0)
        with td.control_dependencies(None):
            return td.identity(doubled), v.assign_sub(5.0)

    assert [float(x) for x in f()] == [20.0, 15.0]
    assert float(v) == 15.0


def test_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="not str 'x'"), td.control_dependencies(["x"]):
        pass
    with pytest.raises(TypeError, match="group takes tensors"):
        td.group(object())
