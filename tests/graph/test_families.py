"""Patterns of graphs that differ in dims: finding them, and matching graphs with them."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.graph.random_graphs import RandomGraph
from treadle.core.context import recording
from treadle.core.shapes import SymbolicDim
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.graph.families import Mismatch, NoPattern, generalize
from treadle.graph.families.expressions import Expressions
from treadle.graph.replay import replay
from treadle.graph.verifier import verify
from treadle.runtime import compile_native, interpreter

B, C = SymbolicDim.symbol("B"), SymbolicDim.symbol("C")


def graph_of(fn, *shapes):
    """The trace of `fn` for float32 arguments called x, y, z of these shapes."""
    builder = GraphBuilder("f")
    with recording(builder):
        names = "xyz"[: len(shapes)]
        specs = [builder.parameter(TensorSpec(s), n) for s, n in zip(shapes, names, strict=True)]
        results = fn(*specs)
        return builder.finish(results if isinstance(results, list) else [results])


def pattern_of(fn, *samples):
    pattern = generalize([graph_of(fn, *shapes) for shapes in samples])
    verify(pattern.graph)
    return pattern


def text(graph):
    return re.sub(r"  # .*|\n# .*", "", str(graph)).strip()


# -- expressions ---------------------------------------------------------------------------------


def two_symbols():
    expressions = Expressions([{}, {}, {}], taken={"C"})
    assert [repr(expressions.symbol(s)) for s in ((2, 3, 7), (4, 4, 4), (5, 1, 6))] == [
        "B", "4", "D",
    ]  # fmt: skip
    return expressions


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ((9, 9, 9), "9"),
        ((2, 3, 7), "B"),
        ((20, 30, 70), "B*10"),
        ((5, 6, 10), "B + 3"),
        ((1, 2, 6), "B - 1"),
        ((5, 7, 15), "B*2 + 1"),
        ((4, 9, 49), "B*B"),
        ((10, 3, 42), "B*D"),
        ((30, 9, 126), "B*D*3"),
        ((1, 1, 3), "floordiv(B, 2)"),
        ((1, 2, 4), "floordiv(B + 1, 2)"),
        ((2, 3, 5), "min(B, 5)"),
        ((3, 3, 7), "max(B, 3)"),
        ((7, 4, 13), "D + B"),
        ((3, -2, -1), "D - B"),
        ((2, 3, 8), None),
    ],
)
def test_an_expression_is_found(sample, expected):
    found = two_symbols().find(sample)
    assert (None if found is None else repr(found)) == expected


def test_dims_nearby_come_first():
    expressions = two_symbols()
    far = expressions.symbol((4, 6, 14))
    near = expressions.find((2, 3, 7)) * 2
    assert expressions.find((4, 6, 14), [near]) == near
    assert expressions.find((4, 6, 14)) == far


# -- patterns ------------------------------------------------------------------------------------


def test_the_text_of_a_pattern():
    def f(x, y):
        flat = td.reshape(x, [-1])
        return [td.reshape(flat, [x.shape[0], -1]) * 2.0, y / x.shape[0]]

    pattern = pattern_of(f, [(4, 8), (5,)], [(6, 8), (7,)])
    assert text(pattern.graph) == (
        "graph f(%x: f32[B, 8], %y: f32[C]) {\n"
        "  %0: f32[B*8] = reshape(%x) {shape=(<B*8>,)}\n"
        "  %1: f32[B, 8] = reshape(%0) {shape=(<B>, 8)}\n"
        "  %2: f32[] = const() {value=f32[](2.0)}\n"
        "  %3: f32[B, 8] = multiply(%1, %2)\n"
        "  %4: f32[] = dim() {dim=<B>, out_type=f32}\n"
        "  %5: f32[C] = divide(%y, %4)\n"
        "  return %3, %5\n"
        "}"
    )
    assert list(map(str, pattern.symbols)) == ["B = dim 0 of x", "C = dim 0 of y"]
    assert pattern.match(graph_of(f, (1, 8), (0,))) == {"B": 1, "C": 0}


def test_equal_dims_are_one_symbol():
    pattern = pattern_of(lambda x, y: x + y, [(4, 2), (4, 2)], [(5, 2), (5, 2)])
    assert [s.name for s in pattern.symbols] == ["B"]
    with pytest.raises(Mismatch):
        pattern.match(graph_of(lambda x, y: x + y, (4, 2), (1, 2)))


FUNCTIONS = {
    "rows": lambda x: td.nn.softmax(x - td.reduce_mean(x, 0, keepdims=True)),
    "slices": lambda x: x[1:] + x[:-1],
    "reversed": lambda x: td.reverse(x, [0]),
    "tiled": lambda x: td.tile(x, [2, 3]),
    "padded": lambda x: td.pad(x, [[1, 2], [0, 0]]),
    "joined": lambda x: td.concat([x, x, x], 0),
    "stacked": lambda x: td.stack([x, x]),
    "outer": lambda x: td.matmul(x, x, transpose_b=True),
    "range": lambda x: td.cast(td.range(x.shape[0]), td.float32),
    "ones": lambda x: td.ones([x.shape[0], 3]),
    "eye": lambda x: td.eye(x.shape[0]),
    "count": lambda x: td.reduce_sum(x) / x.shape[0],
    "reciprocal": lambda x: x * (1.0 / x.shape[0]),
    "shape": lambda x: td.cast(td.shape(x), td.float32) * 2.0,
    "size": lambda x: td.cast(td.size(x), td.float32),
    "split": lambda x: td.reshape(x, [x.shape[0], 2, -1]),
}


@pytest.mark.parametrize("order", [(2, 3), (1, 2), (5, 1), (9, 4)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_pattern_fits_every_size_and_runs_it(name, order):
    fn = FUNCTIONS[name]
    pattern = pattern_of(fn, *([(b, 4)] for b in order))
    program = compile_native(pattern.graph)
    for size in (1, 2, 3, 8, 17):
        graph = graph_of(fn, (size, 4))
        assert pattern.match(graph) == {"B": size}
        x = np.random.default_rng(size).standard_normal((size, 4)).astype(np.float32)
        (found,), (expected,) = program.run([x]), interpreter.run(graph, [x])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_node_that_changes_nothing_may_be_missing():
    def f(x):
        return td.broadcast_to(td.reduce_sum(x, 0, keepdims=True), x.shape)

    def missing(x):
        return td.reduce_sum(x, 0, keepdims=True)

    one, more = graph_of(missing, (1, 4)), graph_of(f, (5, 4))
    for samples in ((one, more), (more, one), (more, graph_of(f, (7, 4)))):
        pattern = generalize(samples)
        assert "broadcast_to" in str(pattern.graph)
        assert pattern.match(one) == {"B": 1} and pattern.match(more) == {"B": 5}
    with pytest.raises(Mismatch):
        pattern.match(graph_of(missing, (2, 4)))


def test_a_sum_over_one_row_may_be_missing():
    def gradient(x, y):
        with td.GradientTape() as tape:
            tape.watch(y)
            z = td.reduce_sum(td.tanh(x + y))
        return tape.gradient(z, y)

    pattern = pattern_of(gradient, [(3, 4), (1, 4)], [(5, 4), (1, 4)])
    assert "reduce_sum" in str(pattern.graph)
    assert pattern.match(graph_of(gradient, (1, 4), (1, 4))) == {"B": 1}


@pytest.mark.parametrize(
    "other",
    [
        lambda x: td.tanh(x) * 2.5,
        lambda x: td.tanh(x) * td.constant(2.0, td.float32) + 0.0,
        lambda x: td.sinh(x) * 2.0,
        lambda x: 2.0 * td.tanh(x),
        lambda x: td.tanh(x) * -2.0,
        lambda x: td.cast(td.tanh(x) * 2.0, td.float64),
        lambda x: td.tanh(x * 2.0),
        lambda x: [td.tanh(x) * 2.0, x],
    ],
)
def test_other_graphs_do_not_match(other):
    def f(x):
        return td.tanh(x) * 2.0

    pattern = pattern_of(f, [(4, 2)], [(5, 2)])
    assert pattern.match(graph_of(f, (6, 2))) == {"B": 6}
    with pytest.raises(Mismatch):
        pattern.match(graph_of(other, (6, 2)))


def test_zeros_of_different_sign_are_different():
    pattern = pattern_of(lambda x: x + 0.0, [(4,)], [(5,)])
    with pytest.raises(Mismatch):
        pattern.match(graph_of(lambda x: x + -0.0, (6,)))


def test_captured_variables_count_by_identity_and_tensors_by_value():
    v, w = td.Variable([1.0]), td.Variable([1.0])
    pattern = pattern_of(lambda x: x * v, [(4,)], [(5,)])
    with pytest.raises(Mismatch, match="captures"):
        pattern.match(graph_of(lambda x: x * w, (6,)))
    with pytest.raises(NoPattern, match="capture"):
        generalize([graph_of(lambda x: x * v, (4,)), graph_of(lambda x: x * w, (5,))])
    pattern = pattern_of(lambda x: x * td.constant([1.0]), [(4,)], [(5,)])
    assert pattern.match(graph_of(lambda x: x * td.constant([1.0]), (6,)))
    with pytest.raises(Mismatch):
        pattern.match(graph_of(lambda x: x * td.constant([2.0]), (6,)))


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: td.add_n([x] * x.shape[0]), "different numbers of inputs"),
        (lambda x: x if x.shape[0] < 5 else td.tanh(x), "the graphs differ"),
        (lambda x: x * float(np.sin(x.shape[0])), "the constants"),
        (lambda x: x * td.constant(np.arange(x.shape[0], dtype=np.float32)[:, None]), "const"),
        (lambda x: td.transpose(x) if x.shape[0] % 2 else td.tanh(x), "differ"),
    ],
)
def test_python_code_that_looks_at_the_shape_has_no_pattern(fn, why):
    with pytest.raises(NoPattern, match=why):
        pattern_of(fn, [(4, 2)], [(7, 2)])


def test_a_guess_that_fits_two_sizes_is_refused_for_a_third():
    def f(x):
        return td.reshape(x, [-1])[: 2 if x.shape[0] < 6 else 3] if x.shape[0] > 4 else x[0]

    first, second, third = (graph_of(f, (b, 2)) for b in (5, 6, 7))
    pattern = generalize([first, second])
    assert repr(pattern.graph.results[0].spec.dims[0]) == "B - 3"
    with pytest.raises(Mismatch, match="strided_slice"):
        pattern.match(third)


def test_regions_are_compared_too():
    def f(x):
        return td.while_loop(lambda i, s: i < x.shape[0], lambda i, s: (i + 1, td.tanh(s + x)),
                             (td.constant(0), td.zeros([x.shape[0], 2])))[1]  # fmt: skip

    def g(x):
        return td.while_loop(lambda i, s: i < x.shape[0], lambda i, s: (i + 1, td.sinh(s + x)),
                             (td.constant(0), td.zeros([x.shape[0], 2])))[1]  # fmt: skip

    pattern = pattern_of(f, [(4, 2)], [(5, 2)])
    assert pattern.match(graph_of(f, (1, 2))) == {"B": 1}
    with pytest.raises(Mismatch):
        pattern.match(graph_of(g, (1, 2)))


# -- random graphs -------------------------------------------------------------------------------


def at_size(random, rows):
    """The random graph as a trace for this many rows would give it."""
    builder = GraphBuilder("random")
    own = random.graph
    with recording(builder):
        params = [
            builder.parameter(
                TensorSpec([rows if not isinstance(d, int) else d for d in p.spec.dims],
                           p.spec.dtype), p.name)
            for p in own.arguments
        ]  # fmt: skip
        captured = [builder.use(c) for c in own.captures]
        return builder.finish(replay(own, [*params, *captured]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 7), min_size=3, max_size=3, unique=True))
def test_random_graphs(seed, sizes):
    """The pattern of two sizes fits a third, and its program computes the same."""
    random = RandomGraph(seed, size=12)
    first, second, third = (at_size(random, n) for n in sizes)
    pattern = generalize([first, second])
    verify(pattern.graph)
    for graph, size in zip((first, second, third), sizes, strict=True):
        assert pattern.match(graph).get("B", size) == size
    values = [random.array((sizes[2], 4)), *random.start[1:], *third.captures]
    before = [v.numpy().copy() for v in random.variables]
    expected = [*interpreter.run(third, values), *(v.numpy().copy() for v in random.variables)]
    for variable, array in zip(random.variables, before, strict=True):
        variable.assign(array)
    found = [*compile_native(pattern.graph).run(values), *(v.numpy() for v in random.variables)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
