"""Programs of TensorFlow 1 give TensorFlow's numbers (`programs.py`, `data_programs.py` and
`distribution_programs.py` record them)."""

import json
from typing import Any

import numpy as np
import pytest

import treadle.compat.v1 as tf
from tests.compat import data_programs, distribution_programs, programs

FILES = programs, data_programs, distribution_programs
PROGRAMS = {name: call for file in FILES for name, call in file.PROGRAMS.items()}
EXPECTED = {
    name: found for file in FILES for name, found in json.loads(file.FILE.read_text()).items()
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
