import numpy as np

import treadle as td
from treadle.core.context import recording, taping
from treadle.graph.builder import GraphBuilder
from treadle.graph.replay import replay
from treadle.graph.verifier import verify
from treadle.runtime import interpreter


def graph_of(fn, *specs):
    return td.function(fn, autograph=False, input_signature=specs).get_concrete_function().graph


def replayed(graph, *specs):
    """`graph` replayed into a new graph with parameters of other specs."""
    builder = GraphBuilder("outer")
    params = [builder.parameter(s) for s in specs]
    with recording(builder), taping(()):
        copy = builder.finish(replay(graph, params))
    verify(copy)
    return copy


def test_symbols_become_the_dims_of_the_inputs():
    graph = graph_of(
        lambda x: td.reshape(x, [td.shape(x)[0], 6]) * td.ones([td.shape(x)[0], 1]),
        td.TensorSpec([None, 2, 3]),
    )
    copy = replayed(graph, td.TensorSpec([5, 2, 3]))
    assert copy.results[0].spec is td.TensorSpec([5, 6])
    x = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
    np.testing.assert_array_equal(interpreter.run(copy, [x])[0], x.reshape(5, 6))


def test_symbols_may_become_other_symbols():
    graph = graph_of(lambda x: x * 2.0, td.TensorSpec([None]))
    spec = td.TensorSpec([None]).with_fresh_symbols()
    assert replayed(graph, spec).results[0].spec.dims == spec.dims


def test_two_replays_of_a_loop_with_a_changing_shape():
    """The sizes that the loop ends with are different symbols in the two copies."""

    def grow(x):
        return td.while_loop(
            lambda y: td.shape(y)[0] < 5,
            lambda y: [td.concat([y, y], 0)],
            [x],
            shape_invariants=[td.TensorShape([None])],
        )[0]

    graph = graph_of(grow, td.TensorSpec([None]))
    builder = GraphBuilder("outer")
    params = [builder.parameter(td.TensorSpec([n])) for n in (1, 3)]
    with recording(builder), taping(()):
        copy = builder.finish([replay(graph, [p])[0] for p in params])
    verify(copy)
    sizes = [len(a) for a in interpreter.run(copy, [np.ones(1, "f4"), np.ones(3, "f4")])]
    assert sizes == [8, 6]


def test_origins_are_kept():
    graph = graph_of(lambda x: td.tanh(x), td.TensorSpec([2]))
    copy = replayed(graph, td.TensorSpec([2]))
    assert [n.origin for n in copy.nodes] == [n.origin for n in graph.nodes]
    assert copy.nodes[0].origin.file.endswith("test_replay.py")


def test_tapes_see_every_op():
    graph = graph_of(lambda x: td.tanh(x) * x, td.TensorSpec([2], td.float64))

    @td.function(autograph=False)
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            (y,) = replay(graph, [x])
        return tape.gradient(y, x)

    x = np.array([0.5, -1.0])
    t = np.tanh(x)
    np.testing.assert_allclose(f(td.constant(x)), t + x * (1 - t * t))
