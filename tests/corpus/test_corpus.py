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


@over(list({c.fn: c for c in CASES}.values()))
def test_code_compiles(case):
    compile(td.autograph.to_code(case.fn), case.fn.__name__, "exec")
