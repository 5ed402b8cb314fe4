"""cond and while_loop: eager values run Python, symbolic ones record nodes that mean the same."""

import numpy as np
import pytest

import treadle as td
from treadle.core import dtypes
from treadle.core.context import recording
from treadle.core.spec import TensorSpec
from treadle.graph.builder import GraphBuilder
from treadle.ops.control.control_flow import cond, while_loop
from treadle.ops.conversion import constant
from treadle.ops.elementwise.arithmetic import add, multiply
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import less
from treadle.ops.shaping.joining import concat
from treadle.runtime import interpreter


def traced(fn, *arrays):
    """`fn` traced on parameters like `arrays` and interpreted."""
    builder = GraphBuilder("f")
    params = [
        builder.parameter(TensorSpec(a.shape, dtypes.from_numpy(a.dtype)), f"x{i}")
        for i, a in enumerate(map(np.asarray, arrays))
    ]
    with recording(builder):
        results = fn(*params)
    graph = builder.finish(results if isinstance(results, list) else [results])
    captures = [c._buffer if hasattr(c, "dims") else c for c in graph.captures]
    out = interpreter.run(graph, [*map(np.asarray, arrays), *captures])
    return out[0] if len(out) == 1 else out


@pytest.mark.parametrize("value", [-1.0, 2.0])
def test_cond_takes_the_right_branch(value):
    def fn(x):
        return cond(less(x, 0.0), lambda: multiply(x, -1.0), lambda: add(x, 10.0))

    expected = -value if value < 0 else value + 10
    assert fn(constant(value)).numpy() == expected
    assert traced(fn, np.float32(value)) == expected


def test_eager_cond_runs_one_branch_only():
    calls = []
    cond(True, lambda: calls.append("then"), lambda: calls.append("else"))
    assert calls == ["then"]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_while_counts(n):
    def fn(limit):
        i, total = while_loop(
            lambda i, total: less(i, limit), lambda i, total: (add(i, 1), add(total, i)), (0, 0)
        )
        return [i, total] if hasattr(i, "dims") else [constant(i), constant(total)]

    expected = [n, n * (n - 1) // 2]
    assert [int(t.numpy()) for t in fn(constant(n))] == expected
    assert traced(fn, np.int32(n)) == expected


def test_captured_values_become_operands_of_nested_regions():
    def fn(x, y):
        def body(i, v):
            return add(i, 1), cond(less(v, y), lambda: multiply(v, x), lambda: add(v, 1.0))

        return while_loop(lambda i, v: less(i, 5), body, [0, x])[1]

    v = 2.0
    for _ in range(5):
        v = v * 2.0 if v < 9.0 else v + 1.0
    assert traced(fn, np.float32(2.0), np.float32(9.0)) == v


def test_eager_tensors_are_captured_once():
    weight = constant([1.0, 2.0])
    builder = GraphBuilder("f")
    x = builder.parameter(TensorSpec([2]))
    with recording(builder):
        chosen = builder.parameter(TensorSpec([], dtypes.bool))
        y = cond(chosen, lambda: add(x, weight), lambda: multiply(x, weight))
        z = add(y, weight)
    graph = builder.finish([z])
    assert graph.captures == [weight] and len(graph.params) == 3
    node = next(n for n in graph.nodes if n.op.name == "cond")
    assert len(node.inputs) == 3
    assert [len(r.params) for r in node.regions] == [2, 2]


def test_maximum_iterations():
    def fn(x):
        return while_loop(
            lambda v: less(v, 100.0), lambda v: [multiply(v, 2.0)], [x], maximum_iterations=3
        )[0]

    assert fn(constant(1.0)).numpy() == 8
    assert traced(fn, np.float32(1)) == 8


def test_nested_structures_are_carried():
    def fn(n):
        state = {"a": constant(0), "b": [constant(1.0)]}
        (out,) = while_loop(
            lambda s: less(s["a"], n),
            lambda s: ({"a": add(s["a"], 1), "b": [multiply(s["b"][0], 2.0)]},),
            (state,),
        )
        return [out["a"], out["b"][0]]

    assert traced(fn, np.int32(3)) == [3, 8.0]


def test_shape_invariants_let_a_variable_grow():
    def fn(n):
        _, v = while_loop(
            lambda i, v: less(i, n),
            lambda i, v: (add(i, 1), concat([v, v], 0)),
            (0, constant([1.0])),
            shape_invariants=(TensorSpec([]), TensorSpec([None])),
        )
        assert v.shape.as_list() == [None]
        return v

    assert traced(fn, np.int32(3)).shape == (8,)


def raised(fn, *specs):
    builder = GraphBuilder("f")
    params = [builder.parameter(s) for s in specs]
    with recording(builder), pytest.raises((TypeError, ValueError)) as info:
        fn(*params)
    return info


BOOL, F32, I32 = TensorSpec([], "bool"), TensorSpec([]), TensorSpec([], "int32")


@pytest.mark.parametrize(
    ("fn", "specs", "words"),
    [
        (
            lambda p, x: cond(p, lambda: x, lambda: cast(x, "int32")),
            [BOOL, F32],
            ["f32[]", "i32[]"],
        ),
        (lambda p, x: cond(p, lambda: [x], lambda: x), [BOOL, F32], ["structures"]),
        (lambda p, x: cond(x, lambda: x, lambda: x), [BOOL, F32], ["scalar bool", "f32[]"]),
        (lambda p, x: while_loop(lambda v: x, lambda v: [v], [x]), [BOOL, F32], ["scalar bool"]),
        (
            lambda p, x: while_loop(lambda v: p, lambda v: [cast(v, "int32")], [x]),
            [BOOL, F32],
            ["loop_vars[0]", "f32[]", "i32[]"],
        ),
        (
            lambda p, x: while_loop(lambda v: p, lambda v: [concat([v, v], 0)], [x]),
            [BOOL, TensorSpec([2])],
            ["loop_vars[0]", "(2,)", "(4,)", "shape_invariants"],
        ),
        (lambda p, x: while_loop(lambda v: p, lambda v: (v, v), [x]), [BOOL, F32], ["structure"]),
    ],
)
def test_errors_name_what_differs_and_the_line(fn, specs, words):
    message = str(raised(fn, *specs).value)
    for word in [*words, "test_control_flow.py"]:
        assert word in message


def test_a_tensor_of_a_branch_cannot_be_used_outside():
    leaked = []

    def fn(p, x):
        cond(p, lambda: leaked.append(add(x, 1.0)) or x, lambda: x)
        return add(leaked[0], 1.0)

    assert "return it from the branch" in str(raised(fn, BOOL, F32).value) or "ended" in str(
        raised(fn, BOOL, F32).value
    )


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_loop_returns_its_variables_as_they_came(kind):
    def count(limit=None):
        start = kind([td.constant(0), td.constant(1)])
        step = lambda i, x: (i + 1, x * 2)
        return td.while_loop(lambda i, x: i < 5, step, start, maximum_iterations=limit)

    for result, expected in (
        (count(), [5, 32]),
        (count(2), [2, 4]),
        (td.function(count)(), [5, 32]),
        (td.function(count)(2), [2, 4]),
    ):
        assert type(result) is kind and [int(x) for x in result] == expected


def test_shape_invariants_that_the_first_value_does_not_fit():
    """Nobody looks at them in TensorFlow; the variable keeps its shape, as without one."""

    def loop(body=lambda x: x + 1.0, start=(), shape=(None,)):
        return td.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, body(x)), [0, td.zeros(start)],
            shape_invariants=[td.TensorShape([]), td.TensorShape(shape)],
        )[1]  # fmt: skip

    for run in (loop, td.function(loop)):
        assert run().numpy() == 3.0
        np.testing.assert_array_equal(run(start=(3,), shape=(4,)), [3.0] * 3)
        np.testing.assert_array_equal(run(start=(3,), shape=(None, 2)), [3.0] * 3)
    with pytest.raises(ValueError, match="shape_invariants with None.*which its first value fits"):
        td.function(loop)(lambda x: td.zeros([2]))
