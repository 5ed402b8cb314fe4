"""The pipeline as a whole: results stay bit by bit, passes can be switched off and watched."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from tests.graph.passes.helpers import graph_of
from tests.graph.random_graphs import RandomGraph
from treadle.graph.ir import Graph
from treadle.graph.passes import PIPELINE, disabled, optimize
from treadle.graph.passes.algebra import simplify_algebra
from treadle.graph.passes.bisect import find_culprit
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.pipeline import Pass, count_nodes
from treadle.graph.rewrite import clone_graph
from treadle.graph.verifier import GraphError
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import MULTIPLY
from treadle.ops.registry import OPS
from treadle.ops.state import Variable
from treadle.runtime import interpreter

ROUNDING = (
    "powers",
    "complex_parts",
    "repeated_rows",
    "product_sums",
    "accumulations",
    "row_sums",
)  # the passes that may change the last bits


LAST = {item.name for item in PIPELINE if item.last}


def results(random: RandomGraph, graph: Graph) -> list[bytes]:
    """Results and final variables as bytes."""
    args = random.arguments()
    values = interpreter.run(graph, args)
    values += [a.numpy() for a in args if isinstance(a, Variable)]
    return [np.asarray(v).tobytes() for v in values]


@pytest.mark.parametrize("seed", range(60))
def test_the_pipeline_keeps_every_bit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    random = RandomGraph(seed)
    expected = results(random, random.graph)
    graph = clone_graph(random.graph)
    with disabled(*ROUNDING):
        reports = optimize(graph)
    assert results(random, graph) == expected
    assert reports[-1].nodes_after == count_nodes(graph)


@pytest.mark.parametrize("item", PIPELINE, ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(100, 106))
def test_each_pass_alone_keeps_every_bit(item: Pass, seed: int) -> None:
    random = RandomGraph(seed)
    graph = clone_graph(random.graph)
    item.run(graph)
    close = item.name in ROUNDING
    before, after = (interpreter.run(g, random.arguments()) for g in (random.graph, graph))
    for a, b in zip(before, after, strict=True):
        if close:
            np.testing.assert_allclose(a, b, rtol=1e-4)
        else:
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_nodes_keep_an_origin(seed: int) -> None:
    graph = clone_graph(RandomGraph(seed).graph)
    optimize(graph)
    assert all(node.origin is not None for node in graph.walk())


def test_a_clone_is_independent() -> None:
    graph = RandomGraph(3).graph
    before = str(graph)
    optimize(clone_graph(graph))
    assert str(graph) == before


TEXT = """(%x: f32[]) {
  %0: f32[] = const() {value=f32[](1.0)}
  %1: f32[] = multiply(%x, %0)
  %2: f32[] = tanh(%1)
  %3: f32[] = tanh(%x)
  %4: f32[] = add(%2, %3)
  return %4
}"""


def test_passes_build_on_each_other_until_nothing_changes() -> None:
    graph = graph_of(TEXT)
    dumped: list[str] = []
    reports = optimize(graph, dump=lambda label, g: dumped.append(label))
    assert [n.op.name for n in graph.nodes] == ["tanh", "add"]
    assert dumped == ["algebra (round 1)", "common (round 1)", "dead_code (round 1)"]
    assert {r.name for r in reports if r.changed} == {"algebra", "common", "dead_code"}
    assert reports[0].nodes_before == 5
    assert reports[-1].round == 1
    again = [r.name for r in reports if r.round == 1 and r.name not in LAST]
    assert again[-1] == "dead_code"  # nothing has changed since it ran


@pytest.mark.parametrize("seed", range(20))
def test_a_pass_that_tells_of_no_change_makes_none(seed: int) -> None:
    graph = clone_graph(RandomGraph(seed).graph)
    before = str(graph)
    for item in PIPELINE + PIPELINE:
        changed, after = item.run(graph), str(graph)
        assert changed or after == before, item.name
        before = after


def test_passes_leave_graphs_alone_that_have_none_of_their_ops() -> None:
    """They are not even run there."""
    left: Counter[str] = Counter()
    for seed in range(80):
        graph = clone_graph(RandomGraph(seed, size=8).graph)
        ops, before = {node.op for node in graph.walk()}, str(graph)
        for item in PIPELINE:
            if item.rewrites and ops.isdisjoint(item.rewrites):
                assert not item.run(graph), item.name
                left[item.name] += 1
        assert str(graph) == before
    assert left.keys() == {item.name for item in PIPELINE if item.rewrites}
    assert min(left.values()) > 3
    assert sum(item.rewrites == (WHILE,) for item in PIPELINE) == 8


def test_a_pass_is_not_run_where_the_graph_has_none_of_its_ops() -> None:
    """Also where one before it has taken the last of them away."""
    ran: list[str] = []

    def look(graph: Graph) -> bool:
        ran.append("look")
        return False

    def drop_products(graph: Graph) -> bool:
        ran.append("drop")
        return simplify_algebra(graph) and eliminate_dead_code(graph)

    loops = Pass("loops", look, "a test", rewrites=(WHILE,))
    products = Pass("products", look, "a test", rewrites=(MULTIPLY,))
    reports = optimize(graph_of(TEXT), (loops, products, Pass("drop", drop_products, "a test")))
    assert ran == ["look", "drop", "drop"]
    assert [(r.name, r.nodes_after) for r in reports] == [
        ("loops", 5), ("products", 5), ("drop", 3), ("loops", 3), ("products", 3), ("drop", 3)
    ]  # fmt: skip


def test_passes_over_loops_are_imported_for_loops_only() -> None:
    code = (
        "import sys, numpy as np, treadle as td\n"
        "f = td.function(lambda x: td.nn.relu(x @ x) + 1.0)\n"
        "f(np.ones((2, 2), np.float32))\n"
        "print('treadle.graph.passes.loops' in sys.modules,"
        " 'treadle.runtime.passes.loops' in sys.modules)\n"
        "f = td.function(lambda x: td.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * x),"
        " (0, x)))\n"
        "f(np.ones((2, 2), np.float32))\n"
        "print('treadle.graph.passes.loops' in sys.modules,"
        " 'treadle.runtime.passes.loops' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True"], done.stderr


def test_switching_passes_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with disabled("common"), disabled("algebra"):
        graph = graph_of(TEXT)
        assert not {"common", "algebra"} & {r.name for r in optimize(graph)}
        assert count_nodes(graph) == 5
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", "dead_code, common")
    graph = graph_of(TEXT)
    optimize(graph)
    assert count_nodes(graph) == 5
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", "all")
    assert optimize(graph_of(TEXT)) == []
    with pytest.raises(ValueError, match="no pass is called nonsense; there are"):
        with disabled("nonsense"):
            pass


def test_verification_names_the_pass_that_broke_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(graph: Graph) -> bool:
        graph.nodes.reverse()
        return True

    monkeypatch.setenv("TREADLE_VERIFY", "1")
    broken = Pass("breaks", breaks, "a test")
    with pytest.raises(GraphError, match="after pass 'breaks'"):
        optimize(graph_of(TEXT), (broken,))


def test_the_pass_that_changes_the_result_is_found() -> None:
    def wrong(graph: Graph) -> bool:
        """Turns every add into a subtract."""
        found = [n for n in graph.nodes if n.op.name == "add"]
        for node in found:
            node.op = OPS["subtract"]
        return bool(found)

    graph = graph_of(TEXT)
    x = np.float32(0.5)

    def is_good(candidate: Graph) -> bool:
        return interpreter.run(candidate, [x]) == interpreter.run(graph, [x])

    pipeline = (*PIPELINE[:3], Pass("wrong", wrong, "a test"), *PIPELINE[3:])
    culprit = find_culprit(graph, is_good, pipeline)
    assert culprit is not None
    assert (culprit.name, culprit.round) == ("wrong", 0)
    assert "add" in str(culprit.before)
    assert "subtract" in str(culprit.after)
    assert find_culprit(graph, is_good) is None
    with disabled("all"):
        assert find_culprit(graph, is_good, pipeline) is None
    with pytest.raises(ValueError, match="not good before any pass"):
        find_culprit(graph, lambda g: False)
