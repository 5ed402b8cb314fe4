"""One list of everything that can be switched off."""

import threading

import pytest

from treadle.core import switches
from treadle.graph.passes import PIPELINE
from treadle.passes import TARGET_PIPELINE

REQUIRED = {"checks", "told_sizes", "verdicts", "unchanged_variables"}


def test_passes_come_first_in_their_order():
    names = [s.name for s in switches.switches()]
    passes = [p.name for p in (*PIPELINE, *TARGET_PIPELINE)]
    assert names[: len(passes)] == passes
    assert len(names) == len(set(names)) > len(passes)


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
        assert {s.name for s in switches.switches() if switches.is_on(s.name)} == REQUIRED
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", " fusion , threads")
    assert [s.name for s in switches.switches() if not switches.is_on(s.name)] == [
        "fusion", "threads",
    ]  # fmt: skip


def test_what_programs_need_stays_on(monkeypatch):
    assert {s.name for s in switches.switches() if s.required} == REQUIRED
    with pytest.raises(ValueError, match="checks cannot be switched off: programs need it"):
        with switches.disabled("fusion", "checks"):
            pass
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", "checks,all")
    assert switches.is_on("checks") and not switches.is_on("fusion")


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="no pass is called nonsense; there are"):
        with switches.disabled("nonsense"):
            pass
