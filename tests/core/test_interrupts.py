"""Modes of threads: which there are, blocks that set them, and what an interrupt puts back."""

import sys
import threading

import pytest

import treadle as td
from treadle import keras
from treadle.compat import v1
from treadle.core import interrupts
from treadle.core.interrupts import Undone, carried_over, during, is_mode, puts_modes_back

# Objects of threads that are no modes.
NO_MODES = {
    "treadle.autograph.operators.aliases._assigned": "only counts up",
    "treadle.core.meeting._here": "set and put back in one function, by a try",
    "treadle.runtime.cpu.emission._machines": "a cache",
}


class _Mode(threading.local):
    value = "none"
    elements: tuple[object, ...] = ()


mode = is_mode(_Mode())


def test_what_threads_are_doing_is_declared() -> None:
    assert v1 and keras  # which are imported when they are needed
    found = {
        f"{name}.{key}"
        for name, module in list(sys.modules.items())
        if name.startswith("treadle")
        for key, value in vars(module).items()
        if isinstance(value, threading.local) and value not in interrupts._modes
    }
    assert found <= {*NO_MODES}


def test_a_block_is_entered_within_itself() -> None:
    block = during(mode, "value", "inner")
    with during(mode, "value", "outer"):
        with block, block:
            assert mode.value == "inner"
        assert mode.value == "outer"
        with block:
            assert mode.value == "inner"
    assert mode.value == "none"


@pytest.mark.parametrize(
    "scope",
    [
        lambda: td.name_scope("a"),
        lambda: keras.name_scope("a"),
        lambda: keras.utils.custom_object_scope({"Own": int}),
        lambda: keras.RematScope("full"),
        lambda: td.device("CPU:0"),
        lambda: td.variable_creator_scope(lambda make, **given: make(**given)),
    ],
)
def test_scopes_are_entered_within_themselves(scope) -> None:
    before = [dict(vars(each)) for each in interrupts._modes]
    block = scope()
    with block, block:
        pass
    with block:
        pass
    after = [dict(vars(each)) for each in interrupts._modes]
    for old, new in zip(before, after, strict=True):
        assert {k: v for k, v in new.items() if k not in old and v} == {}
        assert {k: new[k] for k in old} == old


def test_a_scope_of_a_graph_is_entered_outside_of_it() -> None:
    scope, graph = td.name_scope("a"), v1.Graph()
    with graph.as_default(), scope:
        pass
    with scope:
        assert td.Variable(1.0, name="v").name == "a/v:0"


def test_only_what_says_so_is_undone() -> None:
    undone = []

    class Change(Undone):
        def undo(self) -> None:
            undone.append("change")

    class Users:
        def undo(self) -> None:
            undone.append("user's")

    @puts_modes_back
    def interrupted() -> None:
        mode.elements = (Change(), Users())
        mode.value = "interrupted"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert undone == ["change"] and mode.elements == () and mode.value == "none"


def test_threads_of_a_program_know_the_scopes_of_keras() -> None:
    class Own(keras.layers.Layer):
        pass

    with keras.utils.custom_object_scope({"Own": Own}):
        read = carried_over(lambda: keras.layers.deserialize({"class_name": "Own", "config": {}}))
    found = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    thread.join()
    assert type(found[0]) is Own
