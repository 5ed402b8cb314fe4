"""A node that joins a group adds its own expressions to those of the group: the kernels are those
of groups whose expressions are all built again."""

import numpy as np
import pytest

import treadle as td
from treadle.runtime.fusion.group import Group
from treadle.runtime.fusion.unit_graph import UnitGraph


def chain(x, y):
    for _ in range(4):
        x = td.tanh(x * y + 1.0) - y
    return x, td.reduce_sum(x, axis=1)


def softmax(x, y):
    shifted = td.exp(x - td.reduce_max(x, axis=1, keepdims=True))
    return shifted / td.reduce_sum(shifted, axis=1, keepdims=True) + y


def several_groups(x, y):
    a, b = td.exp(x), td.exp(y)
    return a * b, td.transpose(a) @ b, td.cumsum(a + b, axis=1)


def too_many_buffers(x, y):
    total = x
    for i in range(45):
        total = total + y[i]
    return total


def kernels(f, x):
    """The kernels of f(x, x), by the hashes of their structure."""
    text = td.inspect.stages(td.function(f), x, x)["kernels"]
    return [line for line in text.splitlines() if line.startswith(";")]


def rebuilt(self, groups, members, placements):
    return self._group(placements[members[-1]], members, placements)


@pytest.mark.parametrize("f", [chain, softmax, several_groups, too_many_buffers])
def test_kernels_are_those_of_groups_that_are_built_again(f, monkeypatch):
    x = np.random.default_rng(0).normal(size=(45, 45)).astype("f")
    added = []
    with_last = Group.with_last
    monkeypatch.setattr(
        Group, "with_last", lambda *args: added.append(args[1]) or with_last(*args)
    )
    found, count = kernels(f, x), len(added)
    assert found and count
    monkeypatch.setattr(UnitGraph, "_joined", rebuilt)
    assert kernels(f, x) == found
    assert len(added) == count
