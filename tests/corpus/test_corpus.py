"""Every function of the corpus: plain Python = converted = eager = traced and compiled."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.corpus import (  # noqa: F401  (they fill the registry)
    builtins,
    comprehensions,
    control_flow,
    datasets,
    expressions,
    functions,
    gradients,
    grammar,
    items,
    iteration,
    lists,
    matching,
    newer,
    scopes,
    statements,
)
from tests.corpus.registry import CASES, Case
from tests.corpus.slopes import as_floats, slopes


def over(cases: list[Case]) -> Any:
    ids = [f"{c.fn.__name__}-{c.args}" for c in cases]
    return pytest.mark.parametrize("case", cases, ids=ids)


def plain(case: Case) -> Any:
    return case.fn(*copy.deepcopy(case.args))


def tensors(case: Case) -> list[Any]:
    """Floats as float64, which Python computes in; integers as int32."""
    return [
        td.constant(a, td.float64 if np.asarray(a).dtype.kind == "f" else None) for a in case.args
    ]


def same(result: Any, expected: Any) -> None:
    found, wanted = td.nest.flatten(result), td.nest.flatten(expected)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


@over(CASES)
def test_python_values(case):
    assert td.autograph.to_graph(case.fn)(*copy.deepcopy(case.args)) == plain(case)


@over([c for c in CASES if c.tensors])
def test_eager_tensors(case):
    same(td.autograph.to_graph(case.fn)(*tensors(case)), plain(case))


@over([c for c in CASES if c.tensors])
def test_traced(case):
    same(td.function(case.fn)(*tensors(case)), plain(case))


@over([c for c in CASES if c.gradients])
def test_gradients(case):
    td.test.check_gradients(td.function(case.fn), *tensors(case))


# Euclid's algorithm on floats ends in rounding errors: its differences mean nothing.
ROUNDING = {control_flow.gcd}


def differentiable() -> list[Case]:
    """A case of every other function of floats, with the slopes that plain Python shows."""
    known = {c.fn for c in CASES if c.gradients} | ROUNDING
    others = {c.fn: c for c in CASES if c.tensors and c.fn not in known}
    return [
        Case(case.fn, (args, found))
        for case in others.values()
        if (args := as_floats(case.args)) is not None
        and (found := slopes(case.fn, args)) is not None
    ]


@pytest.mark.parametrize("case", differentiable(), ids=lambda c: c.fn.__name__)
def test_gradients_of_others(case):
    args, expected = case.args
    xs = [td.constant(a, td.float64) for a in args]
    try:
        with td.GradientTape() as tape:
            tape.watch(xs)
            y = td.function(case.fn)(*xs)
    except TypeError as error:  # its integers and these floats do not mix, as in TensorFlow
        assert "int32" in str(error)
        return
    found = tape.gradient(y, xs, unconnected_gradients="zero")
    flat = np.concatenate([np.ravel(np.asarray(td.convert_to_tensor(g))) for g in found])
    np.testing.assert_allclose(flat, expected, rtol=1e-4, atol=1e-6)
