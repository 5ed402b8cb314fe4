"""Which units of a region may be joined is found from both ends, as a plain search finds it."""

import cProfile
import warnings

import numpy as np
import pytest

import treadle as td
from benchmarks.chains import CHAINS, argument
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.passes import disabled
from treadle.runtime.compiler import plan_program
from treadle.runtime.fusion.unit_graph import UnitGraph, _Walk


def planned(function, *arguments):
    with warnings.catch_warnings(), disabled("rolled_loops"):
        warnings.simplefilter("ignore")  # that loops were unrolled
        concrete = td.function(function).get_concrete_function(*arguments)
        graph = clone_graph(concrete.graph)
    optimize(graph)
    return plan_program(graph)


def plain(graph, node, units):
    """Whether no path comes back, by a search through everything before the members."""
    ends = set(units).union(graph._overwriting(node))
    members = [node, *(n for u in units for n in u.nodes)] if len(ends) > 1 else [node]
    needed = [u for n in members for u in graph._needed(n, graph.read_by(n))]
    stack, seen = [u for u in needed if u not in set(units)], set()
    while stack:
        unit = stack.pop()
        if unit in ends:
            return False
        if unit not in seen:
            seen.add(unit)
            stack += [graph.unit_of[part.nodes[0]] for part in graph.preceding[unit]]
    return True


def moved_by_totals(u, n):
    """Totals over all rows, which later steps need: joins around them would be cycles."""
    first = u
    for _ in range(n):
        u = td.exp(u - td.reduce_max(u)) * td.reduce_mean(first * u, 0) + first
    return u, td.reduce_sum(first), td.reduce_sum(u)


PROGRAMS = {name: CHAINS[name] for name in ("joins", "residuals", "old_readers", "means")}
PROGRAMS["totals"] = moved_by_totals


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_those_of_a_plain_search(name, monkeypatch):
    asked = []
    is_acyclic = UnitGraph.is_acyclic

    def compared(graph, node, units):
        found = is_acyclic(graph, node, units)
        assert found == plain(graph, node, units)
        asked.append(found)
        return found

    monkeypatch.setattr(UnitGraph, "is_acyclic", compared)
    x = argument(name) if name in CHAINS else np.ones((8, 8), np.float32)
    planned(lambda u: PROGRAMS[name](u, 6), x)
    assert True in asked
    if name in ("residuals", "totals"):
        assert False in asked


def test_edges_are_known_from_both_ends(monkeypatch):
    graphs = []
    before = UnitGraph.consumers_first
    monkeypatch.setattr(
        UnitGraph, "consumers_first", lambda graph: graphs.append(graph) or before(graph)
    )
    planned(lambda u: CHAINS["residuals"](u, 6), argument("residuals"))
    for graph in graphs:
        units = dict.fromkeys(graph.unit_of.values())
        ends = [(graph.unit_of[a.nodes[0]], u) for u in units for a in graph.preceding[u]]
        starts = [(u, graph.unit_of[a.nodes[0]]) for u in units for a in graph.following[u]]
        assert {e for e in ends if e[0] is not e[1]} == {s for s in starts if s[0] is not s[1]}
    assert graphs


def test_a_join_looks_at_what_is_near_one_of_its_ends():
    """Both readers of an array are joined though a long chain lies between them, which follows one
    of them and leads nowhere near the other."""

    def program(u, n):
        v = u
        for i in range(n):
            v = td.reduce_mean(v, 1, keepdims=True) * u[i % 8] + v
        return td.reduce_sum(u, 0), v, td.reduce_max(u, 0)

    def steps(n):
        profile = cProfile.Profile(subcalls=False, builtins=False)
        profile.enable()
        try:
            planned(lambda u: program(u, n), argument("joins"))
        finally:
            profile.disable()
        return sum(e.callcount for e in profile.getstats() if e.code is _Walk.go_on.__code__)

    steps(4)
    assert steps(96) < 5 * steps(24) + 8
