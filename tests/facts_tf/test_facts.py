"""The programs give with treadle what they give with TensorFlow, but for listed deviations."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import treadle as td
from tests.facts_tf.calls import TABLES, calls
from tests.facts_tf.comparison import ROUNDED, deviating, deviations, differences, recorded
from tests.facts_tf.count import counts
from tests.facts_tf.parameters import recorded_parameters
from tests.facts_tf.registry import GROUPS, programs, run

CASES = [(group, name) for group in GROUPS for name in programs(group)]
DOCS = Path(__file__).parents[2] / "docs"


# A list is the result.
INTERPRETED = ("autograph_conditions.lists_of_different_length_in_branches",)


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A graph that cannot be compiled is an error here, not a warning."""
    if not any(name in request.node.name for name in INTERPRETED):
        monkeypatch.setenv("TREADLE_STRICT", "1")


def test_every_program_is_recorded():
    differing = [group for group in GROUPS if list(programs(group)) != list(recorded(group))]
    assert not differing


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("group", "name"), CASES, ids=[f"{g}.{n}" for g, n in CASES])
def test_fact(group, name):
    program = programs(group)[name]
    rounding = getattr(program, "rounding", ROUNDED)
    found = differences(recorded(group)[name], run(program, td), rounding=rounding)
    allowed = deviating(f"{group}.{name}")
    unexpected = {
        path: values
        for path, values in found.items()
        if path not in allowed or differences(allowed[path], values[1])
    }
    assert not unexpected, "TensorFlow's value, then treadle's: " + json.dumps(unexpected, indent=1)
    stale = set(allowed) - set(found)
    assert not stale, f"these deviations are gone, remove them from deviations.json: {stale}"


def test_deviations_belong_to_programs():
    known = {f"{group}.{name}" for group, name in CASES}
    known |= {f"{table}.{call.name}" for table in TABLES for call in calls(table)}
    for library in ("", "keras", "1"):
        known |= {f"parameters.{name}" for name in recorded_parameters(library)}
    for deviation in deviations():
        assert deviation.facts and set(deviation.facts) <= known, deviation.title


def test_the_counts_are_up_to_date():
    written = json.loads((DOCS / "results" / "facts.json").read_text())
    assert {key: written[key] for key in counts()} == counts()
    assert written["argument sets"] >= 1500 and written["public names"] >= 350


def test_the_page_of_deviations_is_up_to_date():
    spec = importlib.util.spec_from_file_location("make_deviations", DOCS / "make_deviations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "deviations.md").read_text() == module.page()
