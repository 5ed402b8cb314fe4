"""The same numbers as Keras, op by op and compiled."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.training.cases import cases

FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())
CASES = cases()
WRAPS = {"eager": lambda f: f, "compiled": lambda f: td.function(f, autograph=False)}


def flat(value):
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [value]


def structure(value):
    return [structure(v) for v in value] if isinstance(value, list) else None


def test_every_case_is_recorded():
    assert set(CASES) == set(FACTS) - {"keras"}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("key", CASES)
def test_fact(key, wrap):
    fn, name = CASES[key]
    actual = fn(td, name, WRAPS[wrap])
    assert structure(actual) == structure(FACTS[key])
    np.testing.assert_allclose(flat(actual), flat(FACTS[key]), rtol=3e-5, atol=3e-6)
