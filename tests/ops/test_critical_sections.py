"""``td.CriticalSection``: one thread at a time, eagerly, in functions and between both."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import treadle as td


class Spy:
    """Notes whether two threads were inside at once, and lets others come meanwhile."""

    def __init__(self) -> None:
        self.inside = self.most = self.calls = 0
        self.other = threading.Event()

    def look(self, x: Any) -> Any:
        self.inside += 1
        self.calls += 1
        self.most = max(self.most, self.inside)
        self.other.wait(0.002)  # nobody sets it: another thread may run here
        self.inside -= 1
        return x


def _in_threads(calls: list[Callable[[], Any]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("shared", [None, "both"])
def test_threads_run_a_section_one_after_another(shared: str | None) -> None:
    section = td.CriticalSection("counts", shared_name=shared)
    same = section if shared is None else td.CriticalSection(shared_name=shared)
    spy, counter = Spy(), td.Variable(0.0)

    def count() -> Any:
        seen = td.numpy_function(spy.look, [counter.read_value()], td.float32)
        return {"now": counter.assign(seen + 1.0), "twice": seen * 2.0}

    def eager() -> None:
        for _ in range(3):
            section.execute(count)

    @td.function
    def inner(x: Any) -> Any:
        return same.execute(count)["twice"] + x

    @td.function
    def traced(x: Any) -> Any:
        return inner(x) * 1.0  # a section of a function that is called

    def later() -> None:
        for _ in range(3):  # the third call goes by a plan
            traced(td.constant(1.0))

    _in_threads([eager, later, later])
    assert (spy.most, spy.calls, float(counter)) == (1, 9, 9.0)
    assert section.name == "counts" and float(traced(1.0)) == 19.0


def test_an_error_inside_leaves_the_section_open_for_others() -> None:
    section, v = td.CriticalSection(), td.Variable([1.0])

    @td.function
    def fails(x: Any) -> Any:
        def inside() -> Any:
            td.debugging.assert_greater(x, 0.0)
            return v.assign_add([1.0])

        return section.execute(inside)

    for _ in range(3):
        with pytest.raises(td.errors.InvalidArgumentError):
            fails(td.constant(-1.0))
    with pytest.raises(ZeroDivisionError):
        section.execute(lambda: 1 // 0)
    done = []
    _in_threads([lambda: done.append(section.execute(lambda: 5)), lambda: fails(1.0)])
    assert done == [5] and v.numpy().tolist() == [2.0]


def test_what_is_refused() -> None:
    section = td.CriticalSection()
    with pytest.raises(ValueError, match="already running"):
        section.execute(lambda: section.execute(lambda: 1))
    with pytest.raises(ValueError, match="already running"):
        td.function(lambda: section.execute(lambda: section.execute(lambda: td.constant(1))))()
    with pytest.raises(TypeError, match="no function"):
        section.execute(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not read"):
        td.CriticalSection(critical_section_def=object())


def test_sections_of_graphs() -> None:
    tf = td.compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
        added = tf.CriticalSection(name="s").execute(lambda: v.assign_add(2.0))
        session.run(tf.global_variables_initializer())
        assert [float(session.run(added)) for _ in range(2)] == [2.0, 4.0]
