"""Graphs as messages of TensorFlow: those that it froze are read, and treadle's own come back.

``graph_defs/make.py`` recorded the files with TensorFlow, and what it computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf
from treadle.compat.graph_messages import message
from treadle.compat.v1.recording import in_graphs

FILES = Path(__file__).parent / "graph_defs"
NAMES = sorted(path.stem for path in FILES.glob("*.npz"))


def graph_of(name: str) -> Any:
    return tf.GraphDef.FromString((FILES / f"{name}.pb").read_bytes())


def arrays_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a graph was given, and what it gave, by the names of the tensors."""
    with np.load(FILES / f"{name}.npz") as found:
        arrays = {key: found[key] for key in found}
    given = {key[3:]: value for key, value in arrays.items() if key.startswith("in ")}
    return given, {key[4:]: value for key, value in arrays.items() if key.startswith("out ")}


def check(graph_def: Any, name: str, scope: str = "") -> None:
    """A graph gives what TensorFlow computed."""
    given, wanted = arrays_of(name)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name=scope)
        prefix = f"{scope}/" if scope else ""
        feeds = {prefix + key: value for key, value in given.items()}
        found = session.run([prefix + key for key in wanted], feeds)
    for (key, b), a in zip(wanted.items(), found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), key
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=key)


def test_there_are_files() -> None:
    assert NAMES == [
        "cnn", "control_down", "control_up", "many", "mlp", "old_arrays", "old_control_0",
        "old_control_1", "old_control_2", "old_rnn", "old_training", "recurrent",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*has no native form")  # arrays of elements of any shape
@pytest.mark.parametrize("name", NAMES)
def test_frozen_graphs_of_tensorflow_are_read(name: str) -> None:
    check(graph_of(name), name)


@pytest.mark.parametrize("name", [n for n in NAMES if n[:4] != "old_"])
def test_what_was_read_is_written_again_for_tensorflow(name: str) -> None:
    """As operations of TensorFlow's types with their attributes and functions."""
    given = graph_of(name)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(given, name="")
        again = graph.as_graph_def()
    nodes, before = ({n.name: n for n in g.node} for g in (again, given))
    assert set(nodes) == set(before)
    for key, node in before.items():
        assert nodes[key].op == node.op and list(nodes[key].input) == list(node.input)
        for attr, value in node.attr.items():
            if attr[0] != "_" and node.op not in ("Placeholder", "Const"):
                assert nodes[key].attr[attr] == value, (key, attr)
    functions = {f.signature.name: f for f in given.library.function}
    assert {f.signature.name: f for f in again.library.function} == functions
    check(tf.GraphDef.FromString(again.SerializeToString()), name, "again")


def test_nodes_may_come_in_any_order() -> None:
    graph_def = graph_of("control_up")
    nodes = list(graph_def.node)
    del graph_def.node[:]
    graph_def.node.extend(reversed(nodes))
    check(graph_def, "control_up")


def test_inputs_are_mapped_and_elements_returned() -> None:
    x = tf.constant(np.ones([2, 8], np.float32))
    shares, op = tf.import_graph_def(graph_of("mlp"), {"x:0": x}, ["shares:0", "classes"])
    assert shares.name == "import/shares:0" and op.type == "ArgMax"
    assert shares.shape.as_list() == [2, 3]
    rows = tf.Session().run(shares)
    np.testing.assert_allclose(rows.sum(1), [1, 1], rtol=1e-6)
    with pytest.raises(ValueError, match=r"map inputs that were not found in graph_def: \[q:0\]"):
        tf.import_graph_def(graph_of("mlp"), {"q:0": x})
    with pytest.raises(ValueError, match="return_element 'q:0' not found"):
        tf.import_graph_def(graph_of("mlp"), return_elements=["q:0"])


def test_gradients_go_through_what_was_read() -> None:
    given, _ = arrays_of("mlp")
    x = tf.placeholder(tf.float32, [None, 8])
    (shares,) = tf.import_graph_def(graph_of("mlp"), {"x": x}, ["shares:0"])
    (slope,) = tf.gradients(tf.reduce_sum(tf.square(shares)), x)
    run = tf.Session().run
    step = np.zeros([5, 8], np.float32)
    step[2, 3] = 1e-2
    ahead, behind = (
        run(tf.reduce_sum(tf.square(shares)), {x: given["x:0"] + s}) for s in (step, -step)
    )
    found = run(slope, {x: given["x:0"]})
    np.testing.assert_allclose((ahead - behind) / 2e-2, found[2, 3], rtol=1e-2)


# -- treadle's own -------------------------------------------------------------------------------


def test_own_graphs_come_back() -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.nn.dropout(tf.matmul(x, tf.eye(3)), keep_prob=1.0, name="y")
    with tf.control_dependencies([y]):
        z = tf.identity(y * 2.0, name="z")
    graph_def = tf.get_default_graph().as_graph_def()
    nodes = {n.name: n for n in graph_def.node}
    assert nodes["x"].op == "Placeholder" and nodes["x"].attr["dtype"].type == 1
    assert [d.size for d in nodes["x"].attr["shape"].shape.dim] == [-1, 3]
    assert "^y" in nodes["z"].input
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = tf.Session().run(z, {x: value})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(graph_def.SerializeToString()), name="")
        np.testing.assert_array_equal(session.run("z:0", {"x:0": value}), wanted)


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3)])
def test_products_of_bytes_come_back(shape: tuple[int, ...]) -> None:
    """Their sums are int32; the operation written has the type that TensorFlow's has."""
    x = tf.placeholder(tf.int8, [None, *shape[1:]], name="x")
    w = np.array([[200, 3], [255, 7], [128, 9]], np.uint8)
    y = tf.matmul(x, tf.constant(w), output_type=tf.int32)
    assert y.dtype == tf.int32
    graph_def = tf.get_default_graph().as_graph_def()
    (made,) = (node for node in graph_def.node if node.op == "BatchMatMulV3")
    kinds = {key: made.attr[key].type for key in ("Ta", "Tb", "Tout")}
    assert kinds == {"Ta": 6, "Tb": 4, "Tout": 3}
    value = np.arange(-100, -100 + np.prod(shape)).reshape(shape).astype(np.int8)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(graph_def.SerializeToString()), name="")
        found = session.run(f"{made.name}:0", {"x:0": value})
    np.testing.assert_array_equal(found, value.astype(np.int32) @ w.astype(np.int32))


def test_inputs_of_own_nodes_can_be_changed() -> None:
    a, b = tf.constant(2.0, name="a"), tf.constant(3.0, name="b")
    tf.nn.dropout(a, keep_prob=1.0, name="c")
    graph_def = tf.get_default_graph().as_graph_def()
    node = next(n for n in graph_def.node if n.name == "c")
    assert list(node.input) == ["a"]
    node.input[0] = "b"
    with tf.Graph().as_default():
        (c,) = tf.import_graph_def(graph_def, return_elements=["c:0"])
        assert tf.Session().run(c) == 3.0
    assert b.name == "b:0"


def test_variables_become_constants() -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable("w", initializer=np.array([[1.0], [2.0]], np.float32))
    tf.add(tf.matmul(x, w), 1.0, name="y")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["y"])
    node = next(n for n in frozen.node if n.name == "w")
    assert node.op == "Const" and node.attr["dtype"].type == 1 and not node.input
    assert all(n.op != "VariableV2" for n in frozen.node)
    (y,) = tf.import_graph_def(frozen, return_elements=["y:0"])
    assert tf.Session().run(y, {"import/x:0": [[3.0, 4.0]]}).tolist() == [[12.0]]


def test_files_of_graphs(tmp_path: Path) -> None:
    tf.add(tf.placeholder(tf.float32, [], name="x"), 1.0, name="y")
    graph_def = tf.get_default_graph().as_graph_def()
    path = tf.io.write_graph(graph_def, str(tmp_path), "g.pb", as_text=False)
    assert tf.GraphDef.FromString(Path(path).read_bytes()) == graph_def
    text = Path(tf.train.write_graph(graph_def, str(tmp_path), "g.pbtxt")).read_text()
    assert text == str(graph_def) and 'op: "Placeholder"' in text


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMES if n[:5] in ("old_c", "old_t")])
def test_old_branches_and_loops_are_written_as_calls(name: str) -> None:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_of(name), name="")
        again = graph.as_graph_def()
    assert not {n.op for n in again.node} & {"Switch", "Merge", "Enter", "Exit", "NextIteration"}
    check(tf.GraphDef.FromString(again.SerializeToString()), name, "again")


def test_loops_that_carry_arrays_are_not_written() -> None:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_of("old_rnn"), name="")
        again = graph.as_graph_def()
    with pytest.raises(ValueError, match="loops that carry arrays of tensors are not written"):
        tf.import_graph_def(again)


def test_gradients_go_through_old_loops() -> None:
    given, _ = arrays_of("old_control_0")
    x, limit = tf.placeholder(tf.float32, [3, 4]), tf.constant(3)
    mapped = dict(zip(sorted(given), (x, limit), strict=True))
    (y,) = tf.import_graph_def(graph_of("old_control_0"), mapped, ["y0:0"])
    (slope,) = tf.gradients(tf.reduce_sum(y), x)
    start = given[min(given)]
    step = np.zeros_like(start)
    step[1, 2] = 1e-2
    with tf.Session() as session:
        found = session.run(slope, {x: start})
        ahead, behind = (
            session.run(tf.reduce_sum(y), {x: start + s}) for s in (step, -step)
        )
    np.testing.assert_allclose((ahead - behind) / 2e-2, found[1, 2], rtol=2e-2)


def test_long_branches_are_read() -> None:
    graph_def = tf.GraphDef()
    for name, dtype in (("x", 1), ("p", 10)):
        graph_def.node.add(name=name, op="Placeholder").attr["dtype"].type = dtype
    graph_def.node.add(name="s", op="Switch", input=["x", "p"])
    before = "s:1"
    for index in range(700):
        graph_def.node.add(name=f"n{index}", op="Neg", input=[before])
        before = f"n{index}"
    graph_def.node.add(name="m", op="Merge", input=["s", before])
    graph_def.node.add(name="y", op="Identity", input=["m"])
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        assert session.run("y:0", {"x:0": [1.5], "p:0": True}).tolist() == [1.5]


def test_other_uses_of_switch_and_merge_are_refused() -> None:
    graph_def = tf.GraphDef()
    for name in "ab":
        graph_def.node.add(name=name, op="Placeholder").attr["dtype"].type = 1
    graph_def.node.add(name="m", op="Merge", input=["a", "b"])
    with pytest.raises(tf.errors.UnimplementedError, match="'m' are not those of tf.cond"):
        tf.import_graph_def(graph_def)
    graph_def.node.add(name="n", op="NextIteration", input=["m"])
    graph_def.node.add(name="e", op="Enter", input=["a"]).attr["frame_name"].s = b"f"
    graph_def.node[2].input[:] = ["e", "n"]
    graph_def.node.add(name="p", op="Placeholder").attr["dtype"].type = 10
    graph_def.node.add(name="s", op="Switch", input=["m", "p"])
    graph_def.node.add(name="x", op="Exit", input=["s"])
    with pytest.raises(tf.errors.UnimplementedError, match="'x' are not those of tf.cond"):
        tf.import_graph_def(graph_def)


def test_unknown_types_are_named() -> None:
    graph_def = tf.GraphDef()
    graph_def.node.add(name="a", op="Barrier")
    graph_def.node.add(name="b", op="SparseCross")
    with pytest.raises(tf.errors.UnimplementedError, match=r"Barrier \('a'\), SparseCross"):
        tf.import_graph_def(graph_def)
    with pytest.raises(TypeError, match="graph_def must be a GraphDef"):
        tf.import_graph_def(b"")


def damaged() -> Any:
    """Graphs that no program wrote, each with what is said of it."""
    cycle = tf.GraphDef()
    cycle.node.add(name="a", op="Neg", input=["b"])
    cycle.node.add(name="b", op="Neg", input=["a"])
    yield cycle, "comes from its own result"
    missing = tf.GraphDef()
    missing.node.add(name="a", op="Neg", input=["nothing:1"])
    yield missing, "reads 'nothing:1', which is not in the graph"
    twice = tf.GraphDef()
    twice.node.add(name="a", op="NoOp")
    twice.node.add(name="a", op="NoOp")
    yield twice, "two operations have one name"
    huge = tf.GraphDef()
    tensor = huge.node.add(name="a", op="Const").attr["value"].tensor
    tensor.dtype = 1
    tensor.float_val.append(0.0)
    tensor.tensor_shape.dim.add(size=1 << 20)
    tensor.tensor_shape.dim.add(size=1 << 20)
    yield huge, "a constant of 1099511627776 elements"
    short = tf.GraphDef()
    short.CopyFrom(huge)
    short.node[0].attr["value"].tensor.tensor_shape.dim.pop()
    short.node[0].attr["value"].tensor.tensor_content = b"abc"
    yield short, "3 bytes for a tensor"
    forever = tf.GraphDef()
    function = forever.library.function.add()
    function.signature.name = "f"
    function.node_def.add(name="again", op="PartitionedCall").attr["f"].func.name = "f"
    forever.node.add(name="a", op="PartitionedCall").attr["f"].func.name = "f"
    yield forever, "function 'f' calls itself"
    nowhere = tf.GraphDef()
    nowhere.node.add(name="a", op="PartitionedCall").attr["f"].func.name = "g"
    yield nowhere, "calls 'g', which is not in the library"
    for function_name in ("os.system", "treadle.io.gfile.remove", "treadle.compat.v1.gfile.Remove"):
        hostile = tf.GraphDef()
        call = {"inputs": [], "args": {"tuple": []}, "kwargs": {"dict": []},
                "function": function_name}  # fmt: skip
        node = hostile.node.add(name="a", op="A")
        node.attr["_treadle_call"].s = json.dumps(call).encode()
        yield hostile, "which graphs do not have"
    for text in (b"[]", b"{", b'{"inputs": [1]}', b'{"inputs": [], "function": "treadle.add"}'):
        broken = tf.GraphDef()
        broken.node.add(name="a", op="A").attr["_treadle_call"].s = text
        yield broken, "operation 'a' is damaged"


@pytest.mark.parametrize("number", range(14))
def test_damaged_and_hostile_graphs_are_one_clear_error(number: int) -> None:
    graph_def, text = list(damaged())[number]
    with pytest.raises(ValueError, match=text):
        tf.import_graph_def(graph_def)


def test_files_are_not_for_graphs_though_the_program_has_used_them() -> None:
    in_graphs(td.io.gfile.remove)
    hostile = tf.GraphDef()
    call = {"inputs": [], "args": {"tuple": []}, "kwargs": {"dict": []},
            "function": "treadle.io.gfile.remove"}  # fmt: skip
    hostile.node.add(name="a", op="A").attr["_treadle_call"].s = json.dumps(call).encode()
    with pytest.raises(ValueError, match="which graphs do not have"):
        tf.import_graph_def(hostile)


def test_bytes_that_are_no_graph() -> None:
    from google.protobuf.message import DecodeError

    with pytest.raises(DecodeError):
        tf.GraphDef.FromString(b"\x0a\x05hello")


def test_saved_models_of_tensorflow_can_be_parsed() -> None:
    """Their messages are there for a reader of saved models."""
    saved = message("SavedModel")(saved_model_schema_version=1)
    meta = saved.meta_graphs.add()
    meta.graph_def.CopyFrom(graph_of("mlp"))
    meta.signature_def["serving_default"].inputs["x"].name = "x:0"
    again = message("SavedModel").FromString(saved.SerializeToString())
    assert again.meta_graphs[0].signature_def["serving_default"].inputs["x"].name == "x:0"
    check(again.meta_graphs[0].graph_def, "mlp")
