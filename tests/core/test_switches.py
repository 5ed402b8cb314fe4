"""One list of everything that can be switched off."""

import threading

import pytest

from treadle.core import switches
from treadle.graph.passes import PIPELINE


def test_passes_come_first_in_their_order():
    names = [s.name for s in switches.switches()]
    assert names[: len(PIPELINE)] == [p.name for p in PIPELINE]
    assert len(names) == len(set(names)) > len(PIPELINE)


def test_names_are_taken_once():
    for name in ("common", "fusion", "all"):
        with pytest.raises(ValueError, match="there is a switch"):
            switches.declare(name, "graph", "a test")


def test_blocks_nest_and_belong_to_their_thread():
    seen = []
    with switches.disabled("fusion"):
        with switches.disabled("common"):
            assert not switches.is_on("fusion") and not switches.is_on("common")
            thread = threading.Thread(target=lambda: seen.append(switches.is_on("fusion")))
            thread.start()
            thread.join()
        assert switches.is_on("common") and not switches.is_on("fusion")
    assert switches.is_on("fusion") and seen == [True]


def test_all_and_the_environment(monkeypatch):
    with switches.disabled("all"):
        assert not any(switches.is_on(s.name) for s in switches.switches())
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", " fusion , threads")
    assert [s.name for s in switches.switches() if not switches.is_on(s.name)] == [
        "fusion", "threads",
    ]  # fmt: skip


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="no pass is called nonsense; there are"):
        with switches.disabled("nonsense"):
            pass
