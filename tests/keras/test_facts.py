"""The same numbers as TensorFlow: optimizers, schedules, losses, metrics and layers."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.facts.cases import cases

FACTS = json.loads((Path(__file__).parent / "facts" / "facts.json").read_text())
CASES = cases()


def flat(value):
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [value]


def structure(value):
    return [structure(v) for v in value] if isinstance(value, list) else None


def test_every_case_is_recorded():
    assert set(CASES) == set(FACTS) - {"tensorflow"}


@pytest.mark.parametrize("key", CASES)
def test_fact(key):
    fn, name = CASES[key]
    actual = fn(td, name)
    assert structure(actual) == structure(FACTS[key])
    np.testing.assert_allclose(flat(actual), flat(FACTS[key]), rtol=2e-5, atol=2e-6)
