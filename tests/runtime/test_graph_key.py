"""Keys of graphs: equal for what compiles to the same program, and only for that."""

import numpy as np
import pytest

import treadle as td
from treadle.runtime.graph_key import graph_key

X = td.TensorSpec([3, 4], td.float32)


def traced(function, *specs):
    return td.function(function).get_concrete_function(*(specs or [X])).graph


def key(function, *specs):
    return graph_key(traced(function, *specs))


def test_names_and_lines_do_not_matter():
    def one(x):
        doubled = x * 2.0
        return td.tanh(doubled)

    def other(value):
        # moved
        return td.tanh(value * 2.0)

    assert key(one) == key(other) is not None


DIFFERENT = {
    "op": lambda x: td.tanh(x * 2.0),
    "other op": lambda x: td.sin(x * 2.0),
    "constant": lambda x: td.tanh(x * 2.5),
    "sign of zero": lambda x: td.tanh(x * -0.0),
    "zero": lambda x: td.tanh(x * 0.0),
    "order of operands": lambda x: td.tanh(2.0 * x),
    "result": lambda x: x * 2.0 + 0.0 * td.tanh(x),
    "two results": lambda x: (td.tanh(x * 2.0), x),
    "results exchanged": lambda x: (x, td.tanh(x * 2.0)),
    "attribute": lambda x: td.reduce_sum(x, 0),
    "other attribute": lambda x: td.reduce_sum(x, 1),
    "array": lambda x: x + np.arange(4, dtype=np.float32),
    "other array": lambda x: x + np.arange(1, 5, dtype=np.float32),
    "branch": lambda x: td.cond(td.reduce_sum(x) > 0.0, lambda: x, lambda: -x),
    "branches exchanged": lambda x: td.cond(td.reduce_sum(x) > 0.0, lambda: -x, lambda: x),
    "loop": lambda x: td.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + x), [0, x])[1],
    "longer loop": lambda x: td.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + x), [0, x])[
        1
    ],
}


def test_everything_else_matters():
    keys = {name: key(function) for name, function in DIFFERENT.items()}
    keys["dtype"] = key(DIFFERENT["op"], td.TensorSpec([3, 4], td.float64))
    keys["dims"] = key(DIFFERENT["op"], td.TensorSpec([4, 3], td.float32))
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)


def test_captures_are_told_by_kind_not_by_value():
    def adder(captured):
        return key(lambda x: x + captured)

    tensors = [td.constant([1.0, 2.0, 3.0, 4.0]), td.constant([5.0, 6.0, 7.0, 8.0])]
    assert adder(tensors[0]) == adder(tensors[1]) != adder(td.Variable(tensors[0]))


@pytest.mark.parametrize("other", [1, True, "1", 1.0, (1,), [1], None, np.float32(1), b"1", 1j])
def test_literals_differ_by_type(other):
    from treadle.runtime.graph_key import _Writer

    literals = [1, True, "1", 1.0, (1,), [1], None, np.float32(1), b"1", 1j]
    texts = [_Writer().literal(v) for v in literals]
    assert len(set(texts)) == len(texts) and _Writer().literal(other) in texts


def test_no_key_for_python_functions():
    assert key(lambda x: td.numpy_function(lambda a: a + 1, [x], X)) is None
