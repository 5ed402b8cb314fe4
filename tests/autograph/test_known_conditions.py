"""Conditions that follow from known ranks and sizes: only the branch that is taken is traced."""

from __future__ import annotations

from typing import Any

import pytest

import treadle as td


@td.function
def by_if(x: Any) -> Any:
    if td.rank(x) == 0:
        x = td.stack([x, x])
    return x[0]


@td.function
def by_cond(x: Any) -> Any:
    x = td.cond(td.equal(td.rank(x), 0), lambda: td.stack([x, x]), lambda: x)
    return x[0]


@td.function
def by_expression(x: Any) -> Any:
    return (td.stack([x, x]) if td.rank(x) == 0 else x)[0]


@td.function
def by_early_return(x: Any) -> Any:
    if td.equal(td.rank(x), 0):
        return x
    return x[0]


@pytest.mark.parametrize("function", [by_if, by_cond, by_expression, by_early_return])
def test_ranks_decide_while_tracing(function: Any) -> None:
    assert function(td.constant(2)).numpy() == 2
    assert function(td.constant([3, 4])).numpy() == 3
    for given in (td.constant(2), td.constant([3, 4])):
        assert " = cond(" not in str(function.get_concrete_function(given).graph)


def test_sizes_and_python_values_decide() -> None:
    @td.function
    def f(x: Any, training: bool) -> Any:
        y = x
        if td.logical_and(training, td.equal(td.shape(x)[0], 2)):
            y = x[0]
        return y + 1

    assert f(td.constant([2, 3]), True).numpy() == 3
    assert f(td.constant([2, 3]), False).numpy().tolist() == [3, 4]
    assert f(td.constant([2, 3, 4]), True).numpy().tolist() == [3, 4, 5]


def test_the_other_branch_need_not_be_possible() -> None:
    @td.function
    def f(x: Any) -> Any:
        if td.size(x) == 1:
            x = td.reshape(x, [])
        return x * 2

    assert f(td.constant([2])).numpy() == 4
    assert f(td.constant([2, 3])).numpy().tolist() == [4, 6]


def test_open_sizes_are_left_to_the_run() -> None:
    @td.function(input_signature=[td.TensorSpec([None])])
    def f(x: Any) -> Any:
        if td.rank(x) == 1 and td.shape(x)[0] > 2:
            x = x[:2]
        return x

    assert f(td.constant([1.0, 2.0, 3.0])).numpy().tolist() == [1.0, 2.0]
    assert f(td.constant([1.0])).numpy().tolist() == [1.0]


def test_none_is_a_condition_of_python() -> None:
    @td.function
    def f(x: Any, mask: Any = None) -> Any:
        if mask:
            x = x * mask
        return x

    assert f(td.constant(2.0)).numpy() == 2.0


def test_long_chains_of_constants_are_computed_once() -> None:
    @td.function
    def f(x: Any) -> Any:
        n = td.rank(x)
        for _ in range(60):
            n = td.minimum(n + n, 3)
        if n == 3:
            return x
        return -x

    assert f(td.constant([2.0])).numpy().tolist() == [2.0]
