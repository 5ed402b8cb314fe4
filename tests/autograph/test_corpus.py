"""Every function of the corpus: plain Python = converted = traced with tensors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.autograph.corpus import CASES, PYTHON_ONLY


def ids(cases: list[Any]) -> list[str]:
    return [f"{fn.__name__}-{args}" for fn, args in cases]


@pytest.mark.parametrize(("fn", "args"), CASES + PYTHON_ONLY, ids=ids(CASES + PYTHON_ONLY))
def test_python_values(fn, args):
    expected = fn(*copy.deepcopy(args))
    assert td.autograph.to_graph(fn)(*copy.deepcopy(args)) == expected


@pytest.mark.parametrize(("fn", "args"), CASES, ids=ids(CASES))
def test_eager_tensors(fn, args):
    result = td.autograph.to_graph(fn)(*map(td.constant, args))
    assert np.asarray(result) == fn(*args)


@pytest.mark.parametrize(("fn", "args"), CASES, ids=ids(CASES))
def test_traced(fn, args):
    result = td.function(fn)(*map(td.constant, args))
    assert np.asarray(result) == fn(*args)


@pytest.mark.parametrize(("fn", "args"), CASES + PYTHON_ONLY, ids=ids(CASES + PYTHON_ONLY))
def test_code_compiles(fn, args):
    compile(td.autograph.to_code(fn), fn.__name__, "exec")
