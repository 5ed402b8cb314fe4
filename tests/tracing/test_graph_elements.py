"""The operations of a graph with TensorFlow's names, and how they are looked up."""

import gc

import pytest

import treadle as td


@pytest.fixture
def matrix():
    return td.Variable([[1.0, 2.0], [3.0, 4.0]], name="matrix")


def traced(function, *specs):
    return td.function(function).get_concrete_function(*specs)


SPEC = td.TensorSpec([2, 2], td.float32)


def names_in(function):
    found = []
    traced(lambda x: found.extend(t.name for t in function(x)), SPEC)
    return found


def test_names_are_those_of_the_ops():
    def some(x):
        return (
            x, x + 1.0, x - 1.0, x * 2.0, x / 2.0, -x, x**x, x @ x, td.matmul(x, x), td.exp(x),
            td.reduce_sum(x), td.nn.relu(x), td.reshape(x, [4]), td.concat([x, x], 0), td.square(x),
            td.transpose(x), td.where(x > 0.0, x, 0.0), td.nn.softmax(x), td.cast(x, td.int32),
        )  # fmt: skip

    assert names_in(some) == [
        "x:0", "add:0", "sub:0", "mul:0", "truediv:0", "Neg:0", "pow:0", "MatMul:0", "MatMul_1:0",
        "Exp:0", "Sum:0", "Relu:0", "Reshape:0", "concat:0", "Square:0", "transpose:0",
        "SelectV2:0", "Softmax:0", "Cast:0",
    ]  # fmt: skip


def test_names_that_are_asked_for_and_scopes():
    def some(x):
        first = td.add(x, 1.0, name="plus")
        with td.name_scope("outer"):
            second = td.add(x, 1.0, name="plus")
            with td.name_scope("inner"):
                third = td.exp(second)
        return first, second, third, td.exp(x), td.exp(x), td.add(x, 2.0, name="PLUS")

    names = ["plus:0", "outer/plus:0", "outer/inner/Exp:0", "Exp:0", "Exp_1:0", "PLUS_1:0"]
    assert names_in(some) == names
    with td.name_scope("around"):  # of another graph
        assert names_in(some) == names


@pytest.mark.parametrize("name", ["a b", "", "_hidden", None])
def test_a_name_that_is_none_is_not_taken(name):
    assert names_in(lambda x: [td.add(x, 1.0, name=name)]) == ["add:0"]


def test_a_name_is_not_put_on_what_was_there_before():
    def some(x):
        y = td.exp(x)
        return td.identity(y, name="other"), y, td.reshape(y, [2, 2], name="same"), y

    first, *rest = names_in(some)
    assert first == "other:0" and rest[0] == rest[2] == "Exp:0"


def test_operations_and_tensors_by_name(matrix):
    kept = []

    def some(x):
        y = td.matmul(x, matrix, name="product")
        matrix.assign(y)
        kept.append((y, y.op, y.graph))
        return td.nn.relu(y)

    graph = traced(some, SPEC).graph
    tensor, operation, recorded = kept.pop()
    assert recorded is graph
    assert graph.get_tensor_by_name("product:0") is tensor
    assert graph.get_operation_by_name("product") == operation
    assert graph.as_graph_element("product") == operation
    assert graph.as_graph_element("product:0") is graph.as_graph_element(tensor) is tensor
    assert (operation.type, [i.name for i in operation.inputs]) == (
        "MatMul", ["x:0", "ReadVariableOp:0"],
    )  # fmt: skip
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("x", "Placeholder"), ("matrix", "Placeholder"), ("ReadVariableOp", "ReadVariableOp"),
        ("product", "MatMul"), ("AssignVariableOp", "AssignVariableOp"), ("Relu", "Relu"),
    ]  # fmt: skip


def test_the_graph_tells_its_elements_when_no_tensor_of_the_trace_is_left():
    graph = traced(lambda x: td.nn.relu(x * 2.0), SPEC).graph
    gc.collect()
    relu = graph.get_tensor_by_name("Relu:0")
    assert relu.shape == [2, 2] and relu.op.inputs[0].name == "mul:0"
    assert graph.get_tensor_by_name("Relu:0").op == relu.op


@pytest.mark.parametrize(("method", "name", "kind"), [
    ("get_tensor_by_name", "nope", ValueError), ("get_tensor_by_name", "nope:0", KeyError),
    ("get_tensor_by_name", "Relu", ValueError), ("get_tensor_by_name", "Relu:3", KeyError),
    ("get_tensor_by_name", "Relu:0:0", ValueError), ("get_tensor_by_name", 3, TypeError),
    ("get_operation_by_name", "nope", KeyError), ("get_operation_by_name", "Relu:0", ValueError),
    ("get_operation_by_name", 3, TypeError), ("as_graph_element", "nope", KeyError),
    ("as_graph_element", "nope:0", KeyError), ("as_graph_element", 3, TypeError),
])  # fmt: skip
def test_what_is_no_element_is_refused_as_in_tensorflow(method, name, kind):
    graph = traced(lambda x: td.nn.relu(x), SPEC).graph
    with pytest.raises(kind):
        getattr(graph, method)(name)


def test_names_inside_branches_and_loops_are_unique():
    found = []

    @td.function
    def some(x):
        y = x + 1.0
        if td.reduce_sum(x) > 0.0:
            y = y + 2.0
            found.append(y.name)
        for _ in td.range(3):
            y = y + 3.0
            found.append(y.name)
        found.append(y.name)
        return y

    some(td.ones([2, 2]))
    assert len({*found}) == len(found) and found[-1].startswith("while:")
