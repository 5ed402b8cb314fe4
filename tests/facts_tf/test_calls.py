"""Argument sets of public functions give with treadle what they give with TensorFlow: eagerly and
inside of functions, which compute many sets at once."""

from __future__ import annotations

import json
import os

import pytest

import treadle as td
from tests.facts_tf.calls import (
    IN_A_FUNCTION,
    TABLES,
    Call,
    alone_in_a_function,
    calls,
    eagerly,
    in_a_function,
    recorded_calls,
)
from tests.facts_tf.comparison import RAISES, deviating, deviations, differences

AT_ONCE = 40  # sets in a function
# Compiling every set takes minutes: one of so many is. TREADLE_EVERY_FACT=1 compiles all.
STRIDE = 1 if os.environ.get("TREADLE_EVERY_FACT") else 16
EVERY = [(table, call) for table in TABLES for call in calls(table)]
NAMES_AT_ONCE = 20  # of functions


def _names() -> list[tuple[str, list[str]]]:
    """Tables, and some of the functions of each."""
    found = []
    for table in TABLES:
        names = list(dict.fromkeys(call.name for call in calls(table)))
        parts = range(0, len(names), NAMES_AT_ONCE)
        found += [(table, names[start : start + NAMES_AT_ONCE]) for start in parts]
    return found


NAMES = _names()


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that cannot be compiled is an error here, not a warning."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def expected(table: str, call: Call, place: str):
    """What TensorFlow gives, or what treadle does on purpose."""
    facts, allowed = recorded_calls(table)[call.name], deviating(f"{table}.{call.name}")
    for text in (call.text + place, call.text):
        for known in (allowed, facts):
            if text in known:
                return known[text]
    raise KeyError(call)


def unexpected(table: str, call: Call, place: str, actual) -> list[str]:
    wanted = expected(table, call, place)
    if not differences(wanted, actual):
        return []
    shown = f"{json.dumps(wanted)}\n    treadle: {json.dumps(actual)}"
    return [f"{call.name}({call.text}){place}\n    expected: {shown}"]


def test_deviations_differ():
    """What is listed as a deviation is one: inside of a function one from TensorFlow there, or else
    from what is expected eagerly."""
    known = {f"{table}.{call.name}": recorded_calls(table)[call.name] for table, call in EVERY}
    for deviation in deviations():
        for name, places in deviation.facts.items():
            for text, value in places.items() if name in known else ():
                facts, eager = known[name], text.removesuffix(IN_A_FUNCTION)
                listed = facts[eager] if eager == text else deviating(name).get(eager, facts[eager])
                assert differences(facts.get(text, listed), value), f"{name}({text}) is as expected"


def is_error(fact) -> bool:
    return isinstance(fact, str) and fact.startswith(RAISES)


@pytest.mark.parametrize("table", TABLES)
def test_every_set_is_recorded(table):
    known = {(name, text) for name, facts in recorded_calls(table).items() for text in facts}
    for call in calls(table):
        assert (call.name, call.text) in known
        known -= {(call.name, call.text), (call.name, call.text + IN_A_FUNCTION)}
    assert not known


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("table", "names"), NAMES, ids=[f"{t}.{n[0]}...{n[-1]}" for t, n in NAMES]
)
def test_eager(table, names):
    own = [call for call in calls(table) if call.name in names]
    found = [text for call in own for text in unexpected(table, call, "", eagerly(td, call))]
    assert not found, "\n".join(found)


def _groups() -> list[tuple[str, list[Call]]]:
    groups = []
    for table in TABLES:
        values = [c for c in calls(table) if not is_error(expected(table, c, IN_A_FUNCTION))]
        values = values[::STRIDE]
        parts = range(0, len(values), AT_ONCE)
        groups += [(table, values[start : start + AT_ONCE]) for start in parts]
    return groups


GROUPS = _groups()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("table", "group"), GROUPS, ids=[f"{t}.{g[0].name}...{g[-1].name}" for t, g in GROUPS]
)
def test_in_a_function(table, group):
    try:
        results = in_a_function(td, group)
    except Exception:  # of a call that gives an error: find it
        results = [alone_in_a_function(td, call) for call in group]
    found = [
        text
        for call, result in zip(group, results, strict=True)
        for text in unexpected(table, call, IN_A_FUNCTION, result)
    ]
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("table", TABLES)
def test_errors_in_a_function(table):
    refused = [c for c in calls(table) if is_error(expected(table, c, IN_A_FUNCTION))]
    found = []
    for call in refused:
        found += unexpected(table, call, IN_A_FUNCTION, alone_in_a_function(td, call))
    assert not found, "\n".join(found)
