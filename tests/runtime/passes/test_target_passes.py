"""The passes that prepare a graph for its target are run, verified and shown like the others."""

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.graph.verifier import GraphError
from treadle.passes import TARGET_PIPELINE, TargetPass
from treadle.runtime import passes
from treadle.runtime.cpu.facts import CpuFacts


@td.function
def checked(x, i, n):
    y = td.gather(x, i)
    total = td.zeros_like(x)
    for k in td.range(n):
        total = total + td.scatter_nd([[k]], [y[0]], td.shape(x))
    return td.linalg.inv(x), n // i[0], total


SPECS = (td.TensorSpec([3, 3]), td.TensorSpec([None], td.int32), td.TensorSpec([], td.int32))


def optimized():
    graph = clone_graph(checked.get_concrete_function(*SPECS).graph)
    optimize(graph)
    return graph


def ops(graph):
    return {node.op.name for node in graph.walk()}


def test_each_pass_is_reported_and_dumped(monkeypatch):
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    graph, dumped = optimized(), []
    reports = passes.prepare(graph, CpuFacts(), lambda label, g: dumped.append((label, ops(g))))
    assert [r.name for r in reports] == [p.name for p in TARGET_PIPELINE]
    changed = [r.name for r in reports if r.changed]
    assert [label for label, _ in dumped] == [f"{name} (round 1)" for name in changed]
    assert changed == ["additions", "checks", "verdicts"]
    by_label = dict(dumped)
    assert "tensor_scatter_nd_add" in by_label["additions (round 1)"]
    assert "check" not in by_label["additions (round 1)"]
    assert "check" in by_label["checks (round 1)"]
    assert "is_set" in by_label["verdicts (round 1)"]


def test_they_can_be_switched_off():
    graph = optimized()
    with disabled("additions"):
        reports = passes.prepare(graph, CpuFacts())
    assert "additions" not in {r.name for r in reports}
    assert "scatter_nd" in ops(graph)
    with disabled("all"):
        reports = passes.prepare(optimized(), CpuFacts())
    assert [r.name for r in reports] == [p.name for p in TARGET_PIPELINE if p.required]


def test_verification_names_the_pass_that_broke_the_graph(monkeypatch):
    def breaks(graph, backend):
        graph.nodes.reverse()
        return True

    broken = TargetPass("additions", breaks, "a test")
    monkeypatch.setattr(passes, "PIPELINE", (broken,))
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with pytest.raises(GraphError, match="after pass 'additions'"):
        passes.prepare(optimized(), CpuFacts())


def test_the_prepared_graph_is_a_stage():
    stages = td.inspect.stages(checked, *SPECS)
    names = list(stages)
    assert names.index("graph for the target") == names.index("graph after passes") + 1
    assert "check(" in stages["graph for the target"]
    assert "check(" not in stages["graph after passes"]
    x = np.eye(3, dtype=np.float32) * 2
    np.testing.assert_allclose(checked(x, np.int32([1, 2]), np.int32(3))[0], np.linalg.inv(x))
