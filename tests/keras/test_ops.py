"""`keras.ops` give what Keras gives: eagerly, in functions, and as steps of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.keras.ops_facts.cases import CALLS, INPUTS, made, parts
from treadle import keras
from treadle.keras import ops

FACTS = np.load(Path(__file__).parent / "ops_facts" / "facts.npz")
DESCRIBED = json.loads(str(FACTS["described"]))["calls"]
PLAIN = [call for call in CALLS if "cast(J" not in call]  # dtypes are the same everywhere
# What has as many elements as the values say is not known while a function is traced.
OPEN = ("unique(", "nonzero(", "where(B)", "bincount(")


def check(call: str, value: Any) -> None:
    found, facts = parts(value), DESCRIBED[call]
    assert [[dtype, list(shape)] for dtype, shape, _ in found] == facts, call
    for number, (dtype, _, values) in enumerate(found):
        small = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 2e-5)
        expected = FACTS[f"{call}/{number}"]
        np.testing.assert_allclose(values, expected, rtol=small, atol=small, err_msg=call)


def test_every_call_is_recorded() -> None:
    assert set(CALLS) == set(DESCRIBED)


@pytest.mark.parametrize("call", CALLS)
def test_fact(call: str) -> None:
    check(call, made(ops, call, INPUTS))


@pytest.mark.parametrize("first", range(0, len(PLAIN), 25))
def test_in_functions(first: int) -> None:
    calls = PLAIN[first : first + 25]

    @td.function
    def compute(inputs: Any) -> Any:
        return [[part for part in td.nest.flatten(made(ops, call, inputs))] for call in calls]

    for call, value in zip(calls, compute({k: td.constant(v) for k, v in INPUTS.items()})):
        check(call, value)
