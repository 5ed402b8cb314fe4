"""Programs of TensorFlow 1 give TensorFlow's numbers (`programs.py` records them)."""

import json
from typing import Any

import numpy as np
import pytest

import treadle.compat.v1 as tf
from tests.compat.programs import FILE, PROGRAMS, results

EXPECTED = json.loads(FILE.read_text())


def test_all_programs_were_recorded() -> None:
    assert list(EXPECTED) == list(PROGRAMS)


def close(found: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    close(results(tf, name), EXPECTED[name])
