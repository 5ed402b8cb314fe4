"""SavedModels that TensorFlow wrote (`of_tensorflow/make.py`) give what they gave there."""

import json
import random
import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as v1
from treadle.compat.graph_messages import message

HERE = Path(__file__).parent / "of_tensorflow"
RESULTS = json.loads((HERE / "results.json").read_text())
X = np.array([[1, 2, 3], [0.1, 0.2, 0.3]], np.float32)
IMAGES = np.random.RandomState(0).rand(2, 8, 8, 1).astype(np.float32)
GRIDS = np.random.RandomState(3).randn(2, 6, 6, 2).astype(np.float32)
TOKENS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], np.int32)
Point = namedtuple("Point", "x y")


@pytest.fixture
def folder(tmp_path):
    """Gives the folder of a model."""

    def of(name):
        shutil.unpack_archive(HERE / f"{name}.zip", tmp_path / name)
        return tmp_path / name

    return of


def same(name, found, tolerance=1e-5):
    wanted = np.array(RESULTS[name])
    np.testing.assert_allclose(np.asarray(found), wanted, tolerance, tolerance)


# -- functions and variables -----------------------------------------------------------------------


def test_variables_and_control_flow(folder):
    model = td.saved_model.load(folder("classifier"))
    assert model.count == 7 and model.w.name == "w:0"
    assert [v.name for v in model.trainable_variables if v.name in "w:0 b:0"] == ["b:0", "w:0"]
    assert model.parts["l"][0] == 1.0 and model.parts["l"][1][0] == 2.0
    same("scores", model.scores(X))
    same("scores", model.scores(X.tolist()))
    np.testing.assert_array_equal(model.doubled([1.0, 2, 3, 4]), [2, 4, 6, 8])
    assert len(model.scores.concrete_functions) == 1


def test_python_arguments_and_structures(folder):
    model = td.saved_model.load(folder("classifier"))
    same("called", model(X)["y"])
    found = model(X, training=True)
    same("trained", found["y"])
    assert found["t"][1] == 1 and model.count == 9
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        model(X, training="yes")
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        model(np.zeros([5, 4], np.float32))


def test_a_step_of_training(folder):
    model = td.saved_model.load(folder("classifier"))
    wanted = np.ones((2, 2), np.float32)
    same("losses", [float(model.train(X, wanted)) for _ in range(3)])


def test_signatures(folder):
    model = td.saved_model.load(folder("classifier"))
    assert list(model.signatures) == ["serving_default"]
    (found,) = model.signatures["serving_default"](x=td.constant(X)).values()
    same("scores", found)


def test_loaded_functions_have_gradients(folder):
    model = td.saved_model.load(folder("classifier"))
    with td.GradientTape() as tape:
        y = td.reduce_sum(model(X, training=True)["y"])
    slopes = tape.gradient(y, [model.w, model.b])
    near = []
    for step in (1e-2, -1e-2):
        model.b.assign([0.5 + step, -0.5])
        near.append(float(td.reduce_sum(model(X, training=True)["y"])))
    assert slopes[0].shape == (3, 2)
    np.testing.assert_allclose(slopes[1][0], (near[0] - near[1]) / 2e-2, 0.02)


def test_a_loaded_model_is_saved_as_one_of_treadle(folder, tmp_path):
    model = td.saved_model.load(folder("many"))
    td.saved_model.save(model, tmp_path / "own")
    again = td.saved_model.load(tmp_path / "own")
    same("words", again.words(["CAT", "dog"]))
    same("switch", [again.switch(i, [1.0, 2.0]) for i in (0, 1, 2, 7)])


def test_tables(folder):
    model = td.saved_model.load(folder("many"))
    same("words", model.words(["CAT", "dog"]))
    found, size = model.letters(["b", "z"])
    same("letters", found)
    assert size == 2


def test_branches_by_number(folder):
    model = td.saved_model.load(folder("many"))
    same("switch", [model.switch(i, [1.0, 2.0]) for i in (0, 1, 2, 7)])


def test_nested_arguments(folder):
    model = td.saved_model.load(folder("many"))
    d = {"a": td.constant([1.0, 2.0]), "b": (td.constant(3.0), td.constant(4.0))}
    plain = model.nested(d)
    assert type(plain).__name__ == "Point" and plain.y[1] is None
    np.testing.assert_array_equal(plain.x, [13, 14])
    np.testing.assert_array_equal(model.nested(d, td.constant(1.0), flag=False).y[0], [42, 45])
    moved = model.nested(d, p=Point(td.constant(1.0), td.constant(2.0)))
    np.testing.assert_array_equal(moved.y[0], [24, 26])


def test_assignments_to_rows_and_assertions(folder):
    model = td.saved_model.load(folder("many"))
    same("scatter", model.scatter([1, 2, 1], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    with pytest.raises(td.errors.InvalidArgumentError, match="the sums are too large"):
        model.scatter([1], [[1000.0, 0.0]])


def test_random_numbers(folder):
    """Those of a seed are TensorFlow's; the others are numbers of such a distribution."""
    model = td.saved_model.load(folder("many"))
    found = model.random(X)
    same("uniform", found["uniform"])
    same("integers", found["integers"])
    assert set(np.unique(found["dropped"] / X)) <= {0.0, 2.0}
    np.testing.assert_array_equal(np.sort(found["shuffled"], 0), np.sort(X, 0))
    assert not np.array_equal(found["generated"], model.random(X)["generated"])


def test_gradients_of_windows_in_graphs(folder):
    model = td.saved_model.load(folder("many"))
    slopes, slope = model.windows(GRIDS)
    same("slopes", slopes, 1e-4)
    same("slope", slope, 1e-4)


def test_a_gradient_of_the_programs_own(folder):
    model = td.saved_model.load(folder("many"))
    x = td.Variable(1.0)
    with td.GradientTape() as tape:
        y = model.steep(x)
    np.testing.assert_allclose(y, np.e, 1e-6)
    assert tape.gradient(y, x) == 100.0


def test_arguments_of_any_rank(folder):
    model = td.saved_model.load(folder("many"))
    assert model.total(td.ones([2, 3])) == 12.0 and model.total(3.0) == 6.0


# -- Keras -----------------------------------------------------------------------------------------


def test_exported_keras_models(folder):
    same("keras_cnn", td.saved_model.load(folder("keras_cnn")).serve(IMAGES))
    recurrent = folder("keras_recurrent")
    same("keras_recurrent", td.saved_model.load(recurrent).serve(TOKENS))
    layer = td.keras.layers.TFSMLayer(recurrent, call_endpoint="serve")
    same("keras_recurrent", layer(TOKENS))


def test_a_model_of_keras_2_is_trained_further(folder):
    model = td.saved_model.load(folder("keras2_cnn"))
    same("keras2_cnn", model(IMAGES))
    same("keras2_cnn", model.signatures["serving_default"](td.constant(IMAGES))["dense"])
    optimizer, losses = td.keras.optimizers.SGD(0.05), []
    for _ in range(8):
        with td.GradientTape() as tape:
            shares = model(IMAGES, training=True)
            loss = -td.reduce_mean(td.math.log(td.linalg.diag_part(shares[:, :2])))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        losses.append(-float(np.log(np.asarray(model(IMAGES))[[0, 1], [0, 1]]).mean()))
    assert len(model.trainable_variables) == 6 and losses[-1] < losses[0]


# -- TensorFlow 1 ----------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", ["references", "handles"])
FEED = {"x:0": np.eye(3, dtype=np.float32), "wanted:0": np.zeros((3, 2), np.float32)}


@KINDS
def test_a_graph_of_tensorflow_1_trains_on(folder, kind):
    files = folder(f"tensorflow_1_{kind}")
    with v1.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(files / "model.ckpt.meta")
        saver.restore(session, str(files / "model.ckpt"))
        (train,) = v1.get_collection("train_op")
        losses = []
        for _ in range(3):
            losses.append(float(session.run("loss:0", FEED)))
            session.run(train, FEED)
        assert session.run("global_step:0") == 6
        trained = [v.name for v in v1.trainable_variables()]
    same(f"losses_{kind}", losses)
    assert trained == ["layer/w:0", "layer/b:0"]


@KINDS
def test_a_graph_of_tensorflow_1_begins_anew(folder, kind):
    files = folder(f"tensorflow_1_{kind}")
    with v1.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(files / "model.ckpt.meta")
        assert len(session.run(v1.report_uninitialized_variables())) == 9
        session.run(v1.global_variables_initializer())
        assert session.run("loss:0", FEED) == 1.0


@KINDS
def test_a_saved_model_of_tensorflow_1(folder, kind):
    files = folder(f"tensorflow_1_{kind}") / "saved"
    loaded = td.saved_model.load(files)
    found = loaded.signatures["serving_default"](a=td.constant(X))["b"]
    with v1.Graph().as_default(), v1.Session() as session:
        graph = v1.saved_model.loader.load(session, [v1.saved_model.SERVING], str(files))
        signature = graph.signature_def["serving_default"]
        feed = {signature.inputs["a"].name: X}
        np.testing.assert_allclose(session.run(signature.outputs["b"].name, feed), found, 1e-6)
    weight, bias = sorted(loaded.variables[:2], key=lambda v: -len(v.shape))
    np.testing.assert_allclose(found, np.maximum(X @ weight.numpy() + bias.numpy(), 0), 1e-6)
    with v1.Session() as session, pytest.raises(RuntimeError, match="could not be found"):
        v1.saved_model.loader.load(session, ["gpu"], str(files))


# -- damaged and hostile files ---------------------------------------------------------------------


def changed(files, edit):
    """Change the message of a model."""
    path = files / "saved_model.pb"
    model = message("SavedModel").FromString(path.read_bytes())
    edit(model, model.meta_graphs[0])
    path.write_bytes(model.SerializeToString())


def test_damaged_bytes(folder):
    files, draw = folder("classifier"), random.Random(2)
    path = files / "saved_model.pb"
    data = path.read_bytes()
    outcomes = set()
    for _ in range(25):
        spoilt = bytearray(data)
        for _ in range(20):
            spoilt[draw.randrange(len(spoilt))] ^= 1 << draw.randrange(8)
        path.write_bytes(spoilt)
        try:
            td.saved_model.load(files).scores(X)
            outcomes.add("ran")
        except (td.errors.OpError, ValueError, TypeError, AttributeError) as error:
            outcomes.add(type(error).__name__)
    assert "DataLossError" in outcomes
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(td.errors.DataLossError, match="is damaged"):
        td.saved_model.load(files)


def test_a_newer_version(folder):
    files = folder("classifier")
    changed(files, lambda model, graph: setattr(model, "saved_model_schema_version", 2))
    with pytest.raises(td.errors.UnimplementedError, match="version 2"):
        td.saved_model.load(files)


def test_assets_outside_of_the_folder(folder):
    files = folder("many")
    changed(files, lambda _, graph: setattr(graph.asset_file_def[0], "filename", "../../secret"))
    with pytest.raises(td.errors.DataLossError, match="not inside of it"):
        td.saved_model.load(files)


def test_objects_that_are_not_there(folder):
    files = folder("classifier")
    changed(
        files,
        lambda _, graph: setattr(graph.object_graph_def.nodes[0].children[0], "node_id", 999),
    )
    with pytest.raises(td.errors.DataLossError, match="no object 999"):
        td.saved_model.load(files)


def test_damaged_values(folder):
    files = folder("classifier")
    path = next((files / "variables").glob("*.data-*"))
    data = bytearray(path.read_bytes())
    data[4] ^= 1
    path.write_bytes(data)
    with pytest.raises(td.errors.DataLossError):
        td.saved_model.load(files)


def function_named(graph, name):
    """The function of a signature, or of a method, which others call."""
    found = [f for f in graph.graph_def.library.function if name in f.signature.name]
    return next(f for f in found if "wrapper" not in f.signature.name)


def node_of(graph, type_):
    nodes = function_named(graph, "__inference_scores").node_def
    return next(n for n in nodes if n.op == type_)


def test_a_function_that_calls_itself(folder):
    files = folder("classifier")

    def edit(_, graph):
        caller = function_named(graph, "__inference___call__")
        call = next(n for n in caller.node_def if n.op == "StatefulPartitionedCall")
        call.attr["f"].func.name = caller.signature.name
        del call.input[:]
        call.input.extend(a.name for a in caller.signature.input_arg)

    changed(files, edit)
    with pytest.raises(ValueError, match="calls itself"):
        td.saved_model.load(files)(X)


def test_a_cycle_of_operations(folder):
    files = folder("classifier")

    def edit(_, graph):
        node = node_of(graph, "MatMul")
        node.input[0] = f"{node.name}:product:0"

    changed(files, edit)
    with pytest.raises(ValueError, match="comes from its own result"):
        td.saved_model.load(files).scores(X)


def test_a_constant_that_is_too_large(folder):
    files = folder("classifier")

    def edit(_, graph):
        shape = node_of(graph, "Const").attr["value"].tensor.tensor_shape
        del shape.dim[:]
        shape.dim.add(size=1 << 40)

    changed(files, edit)
    with pytest.raises(ValueError, match="a constant of"):
        td.saved_model.load(files).scores(X)


def test_types_that_are_not_known(folder):
    files = folder("classifier")

    def edit(_, graph):
        node_of(graph, "Relu").op = "Relu9"

    changed(files, edit)
    model = td.saved_model.load(files)
    with pytest.raises(td.errors.UnimplementedError, match=r"not read: Relu9 \('Relu'\)"):
        model.scores(X)
    assert len(model.doubled([1.0, 2, 3, 4])) == 4
