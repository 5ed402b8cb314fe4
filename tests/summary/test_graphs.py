"""Graphs as TensorBoard draws them: names, scopes, edges, shapes; traces of what runs."""

import threading

import numpy as np
import pytest
from tensorboard.compat.proto import config_pb2, graph_pb2

import treadle as td
from tests.summary.reading import entries, events
from treadle.summary.graphs import graph_def


@pytest.fixture
def writer(tmp_path):
    made = td.summary.create_file_writer(tmp_path)
    yield made
    made.close()


def nodes(message):
    """The nodes by name; all names are different and all inputs there, as TensorBoard needs it."""
    found = {node.name: node for node in message.node}
    assert len(found) == len(message.node)
    for node in message.node:
        for name in node.input:
            assert name.partition(":")[0] in found, f"{node.name} takes {name}"
    return found


def sizes(node):
    return [[dim.size for dim in shape.dim] for shape in node.attr["_output_shapes"].list.shape]


def test_names_types_shapes_and_lines():
    weights = td.Variable(np.ones([3, 2], np.float32), name="weights")

    @td.function
    def f(x):
        with td.name_scope("layer"):
            return td.nn.relu(td.matmul(x, weights, name="product") + 1.0)

    found = nodes(graph_def(f.get_concrete_function(td.TensorSpec([None, 3])).graph))
    assert found["x"].op == "Placeholder" and sizes(found["x"]) == [[-1, 3]]
    assert found["weights"].op == "VarHandleOp"
    product = found["layer/product"]
    assert product.op == "MatMul" and sizes(product) == [[-1, 2]]
    assert list(product.input) == ["x", "layer/ReadVariableOp"]
    assert product.attr["transpose_a"].b is False
    assert "test_graphs.py:" in product.attr["line"].s.decode()
    assert list(found["layer/Relu"].input) == ["layer/add"]
    assert found["layer/Const"].attr["value"].tensor.dtype == 1


def test_branches_are_scopes():
    @td.function
    def f(x, y):
        return td.cond(x > 0.0, lambda: x * y, lambda: td.exp(y))

    spec = td.TensorSpec([], td.float32)
    found = nodes(graph_def(f.get_concrete_function(spec, spec).graph))
    branch = found["cond"]
    assert branch.op == "If"
    assert set(branch.input) == {"Greater", "x", "y", "cond/then/mul", "cond/else/Exp"}
    assert set(found["cond/then/mul"].input) == {"x", "y"}
    assert list(found["cond/else/Exp"].input) == ["y"]


def test_loops_are_scopes():
    @td.function
    def f(x, n):
        i = td.constant(0)
        while i < n:
            i, x = i + 1, x * 2.0
        return x

    specs = td.TensorSpec([], td.float32), td.TensorSpec([], td.int32)
    found = nodes(graph_def(f.get_concrete_function(*specs).graph))
    loop = found["while"]
    assert loop.op == "While"
    carried = [name for name, node in found.items() if node.op == "Merge"]
    assert carried == ["while/Merge_0", "while/Merge_1"]
    assert {found[name].input[0] for name in carried} == {"Const", "x"}
    (less,) = [node for name, node in found.items() if name.startswith("while/condition/")]
    assert less.op == "Less" and list(less.input) == ["while/Merge_0", "n"]
    (product,) = [node for node in found.values() if node.op == "Mul"]
    assert product.name.startswith("while/body/")
    assert any(name in carried for name in product.input) and product.name in loop.input


def test_layers_gradients_and_optimizers_are_scopes():
    keras = td.keras
    model = keras.Sequential([keras.layers.Dense(4, "relu", name="hidden"), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.train_on_batch(np.ones([5, 3], np.float32), np.ones([5, 2], np.float32))
    (trace,) = model.make_train_function().concrete_functions
    found = nodes(graph_def(trace.graph))
    product = found[f"{model.name}/hidden/MatMul"]
    assert product.op == "MatMul"
    assert f"{model.name}/hidden/Relu" in found
    assert any(n.startswith(f"gradient_tape/{model.name}/hidden/MatMul") for n in found)
    assert any(n.startswith(f"{model.optimizer.name}/") for n in found)
    paths = [w.path for w in model.weights]
    assert paths[0] == f"{model.name}/hidden/kernel", paths


def test_layers_name_no_variables():
    class Twice(td.keras.layers.Layer):
        def __init__(self):
            super().__init__(name="twice")
            self.inner = td.keras.layers.Dense(2, name="inner")
            self.own = None

        def call(self, x):
            if self.own is None:
                self.own = td.Variable(1.0, name="own")
            with td.name_scope("part"):
                return self.inner(x) * self.own

    layer = Twice()

    @td.function
    def f(x):
        with td.name_scope("outer"):
            return layer(x)

    graph = f.get_concrete_function(td.TensorSpec([2, 3])).graph
    assert layer.own.name == "outer/own:0"
    found = nodes(graph_def(graph))
    assert "outer/twice/part/inner/MatMul" in found
    assert "outer/twice/part/mul" in found


def test_graphs_are_written(tmp_path, writer):
    f = td.function(lambda x: x + 1.0)
    graph = f.get_concrete_function(td.TensorSpec([], td.float32)).graph
    assert not bool(td.summary.graph(graph))
    with writer.as_default():
        with td.summary.record_if(False):
            assert not bool(td.summary.graph(graph))
        assert bool(td.summary.graph(graph)) and bool(td.summary.graph(graph_def(graph)))
    found = [e for e in entries(tmp_path) if e.kind == "graphs"]
    assert len(found) == 2
    message = graph_pb2.GraphDef.FromString(found[0].value.item())
    assert set(nodes(message)) == {"x", "Const", "add"}
    assert any(event.graph_def for event in events(tmp_path))


def test_graphs_in_functions_are_refused(writer):
    @td.function
    def f(x):
        td.summary.graph(None)
        return x

    with writer.as_default(), pytest.raises(ValueError, match="inside a graph context"):
        f(td.constant(1.0))


def test_traces_have_the_functions_that_ran(tmp_path, writer):
    @td.function
    def first(x):
        return td.sin(x)

    @td.function
    def second(x):
        return td.cos(x) + first(x)

    @td.function
    def third(x):
        return x

    x = td.constant(1.0)
    for f in (first, second, third):
        for _ in range(3):
            f(x)  # the plans for later calls are there
    with writer.as_default(step=2):
        td.summary.trace_on()
        for _ in range(2):
            second(x)
            first(x)
        td.summary.trace_export("run")
        third(x)
    (entry,) = entries(tmp_path)
    assert (entry.step, entry.tag, entry.kind) == (2, "run", "graph_run_metadata_graph")
    message = config_pb2.RunMetadata.FromString(entry.value.item())
    kinds = [
        {node.op for node in f.pre_optimization_graph.node} & {"Sin", "Cos"}
        for f in message.function_graphs
    ]
    assert kinds == [{"Sin", "Cos"}, {"Sin"}]


def test_traces_see_other_threads(tmp_path, writer):
    f = td.function(lambda x: td.sin(x))
    f(td.constant(1.0))
    with writer.as_default(step=0):
        td.summary.trace_on()
        thread = threading.Thread(target=lambda: f(td.constant(2.0)))
        thread.start()
        thread.join()
        td.summary.trace_export("t")
    message = config_pb2.RunMetadata.FromString(entries(tmp_path)[0].value.item())
    assert len(message.function_graphs) == 1


def test_the_graph_of_a_function_as_a_message():
    """As tutorials print it."""
    f = td.function(lambda x: td.nn.relu(x) + 1.0)
    made = f.get_concrete_function(td.TensorSpec([2])).graph.as_graph_def()
    assert {"Relu", "AddV2"} <= {node.op for node in made.node}
    assert "Relu" in str(made)


def test_a_function_as_a_message():
    """Its signature, as tutorials print it, and where its results are."""
    counter = td.Variable(1.0)

    @td.function
    def scaled(x):
        return td.nn.relu(x) * counter, {"more": td.shape(x)}

    concrete = scaled.get_concrete_function(td.TensorSpec([2]))
    made = concrete.function_def
    assert made.signature.name.startswith("__inference_scaled")
    arguments = [(a.name, a.type) for a in made.signature.input_arg]
    assert arguments[0] == ("x", 1) and [kind for _, kind in arguments] == [1, 20]
    results = [(a.name, a.type) for a in made.signature.output_arg]
    assert results == [("identity", 1), ("identity_1", 3)]
    nodes = {node.name: node.op for node in made.node_def}
    assert nodes[made.ret["identity"]] == "Mul" and "x" not in nodes
    names = [concrete.graph.get_tensor_by_name(f"{n}:0") for n in ("Identity", "Identity_1")]
    assert [t.dtype for t in names] == [td.float32, td.int32]
    with pytest.raises(KeyError, match="Identity_2"):
        concrete.graph.get_tensor_by_name("Identity_2:0")
