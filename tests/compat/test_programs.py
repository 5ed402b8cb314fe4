"""Programs of TensorFlow 1 give TensorFlow's numbers (`programs.py` and `data_programs.py` record
them)."""

import json
from typing import Any

import numpy as np
import pytest

import treadle.compat.v1 as tf
from tests.compat import data_programs, programs

PROGRAMS = {**programs.PROGRAMS, **data_programs.PROGRAMS}
EXPECTED = {
    **json.loads(programs.FILE.read_text()), **json.loads(data_programs.FILE.read_text())
}


def test_all_programs_were_recorded() -> None:
    assert list(EXPECTED) == list(PROGRAMS)


def close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            close(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    else:
        assert found == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    close(programs.results(tf, PROGRAMS[name]), EXPECTED[name])
