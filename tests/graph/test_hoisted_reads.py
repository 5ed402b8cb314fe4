"""Variables that a branch or loop only reads are read before it."""

import numpy as np

import treadle as td
from treadle.graph.verifier import verify

X = np.array([1.0, 2.0], np.float32)


def trace(fn):
    graph = td.function(fn, autograph=False).get_concrete_function(td.constant(X)).graph
    verify(graph)
    return graph


def names(region):
    return [n.op.name for n in region.nodes]


def test_loop():
    v, limit = td.Variable(2.0), td.Variable(10.0)

    def fn(x):
        return td.while_loop(lambda y: td.reduce_sum(y) < limit, lambda y: [y * v + v], [x])[0]

    graph = trace(fn)
    (loop,) = [n for n in graph.nodes if n.regions]
    assert names(graph).count("read_variable") == 2
    assert not any(n.op.name == "read_variable" for r in loop.regions for n in r.walk())
    f = td.function(fn, autograph=False)
    np.testing.assert_array_equal(f(td.constant(X)), [4.0, 6.0])
    v.assign(3.0)
    np.testing.assert_array_equal(f(td.constant(X)), [6.0, 9.0])


def test_nested():
    v = td.Variable(2.0)

    def fn(x):
        def body(i, y):
            return i + 1, td.cond(y[0] > 3.0, lambda: y + v, lambda: y * v)

        return td.while_loop(lambda i, y: i < 4, body, (0, x))[1]

    graph = trace(fn)
    assert names(graph).count("read_variable") == 1
    assert [n.op.name for n in graph.walk()].count("read_variable") == 1
    np.testing.assert_array_equal(td.function(fn, autograph=False)(td.constant(X)), [8.0, 12.0])


def test_an_assigned_variable_is_read_where_it_stands():
    v, w = td.Variable(1.0), td.Variable(10.0)

    def fn(x):
        def body(i, y):
            y = y + v * w
            v.assign_add(1.0)
            return i + 1, y

        return td.while_loop(lambda i, y: i < 3, body, (0, x))[1]

    graph = trace(fn)
    (loop,) = [n for n in graph.nodes if n.regions]
    assert names(graph).count("read_variable") == 1
    assert names(loop.regions[1]).count("read_variable") == 2
    result = td.function(fn, autograph=False)(td.constant(X))
    np.testing.assert_array_equal(result, X + 10.0 + 20.0 + 30.0)


def test_one_branch_assigns():
    v = td.Variable(1.0)

    def fn(x):
        def then():
            v.assign(5.0)
            return x * v

        return td.cond(x[0] > 0.0, then, lambda: x + v)

    trace(fn)
    f = td.function(fn, autograph=False)
    np.testing.assert_array_equal(f(td.constant(-X)), 1.0 - X)
    np.testing.assert_array_equal(f(td.constant(X)), X * 5.0)
