"""Datasets do what TensorFlow's do: recorded facts (see record.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

import treadle as td
from tests.data.facts_of import PROGRAMS, fact

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "facts" / "datasets.json").read_text())


INTERPRETED = ("transformed_argument",)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_fact(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in INTERPRETED:
        monkeypatch.setenv("TREADLE_STRICT", "1")
    found, expected = fact(PROGRAMS[name], td), FACTS[name]
    if isinstance(expected, dict) and "raises" in expected:
        assert expected["raises"][0] in found["raises"]
    else:
        assert found == expected


def test_every_program_is_recorded() -> None:
    assert set(FACTS) - {"tensorflow"} == set(PROGRAMS)
