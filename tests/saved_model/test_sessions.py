"""Sessions as saved models: td.compat.v1.saved_model."""

import numpy as np
import pytest

import treadle as td

tf = td.compat.v1


def made(folder, **more):
    """A session's graph, saved with two signatures."""
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
        b = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
        y = tf.identity(tf.matmul(x, w) + b, name="y")
        tf.identity(tf.reduce_sum(y), name="total")
        sess.run(tf.global_variables_initializer())
        sess.run(b.assign([1.0, 2.0]))
        graph = sess.graph
        info = tf.saved_model.utils.build_tensor_info
        total = tf.saved_model.signature_def_utils.build_signature_def(
            {"features": info(x)}, {"sum": info(graph.get_tensor_by_name("total:0"))},
            tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
        )  # fmt: skip
        predict = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(
            sess, [tf.saved_model.tag_constants.SERVING],
            {"serving_default": predict, "total": total}, **more,
        )  # fmt: skip
        builder.save()


X = np.array([[1.0, 2.0, 3.0]], np.float32)


def test_signatures_are_functions(tmp_path):
    made(tmp_path)
    loaded = td.saved_model.load(tmp_path)
    served = loaded.signatures["serving_default"](x=td.constant(X))
    np.testing.assert_array_equal(served["y"], [[7.0, 8.0]])
    assert loaded.signatures["total"](features=td.constant(X))["sum"] == 15.0
    with td.GradientTape() as tape:
        total = loaded.signatures["total"](features=td.constant(X))["sum"]
    (gradient,) = tape.gradient(total, [loaded.variables_of_session["w"]])
    np.testing.assert_array_equal(gradient, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


@pytest.mark.parametrize("scope", [None, "inner"])
def test_a_session_gets_the_graph(tmp_path, scope):
    made(tmp_path)
    with tf.Graph().as_default(), tf.Session() as sess:
        found = tf.saved_model.loader.load(sess, ["serve"], tmp_path, import_scope=scope)
        signature = found.signature_def["serving_default"]
        names = [signature.outputs["y"].name, signature.inputs["x"].name]
        y, x = (f"{scope}/{name}" if scope else name for name in names)
        np.testing.assert_array_equal(sess.run(y, {x: X}), [[7.0, 8.0]])
        assert len(tf.global_variables()) == 2


def test_simple_save_and_an_operation_after_loading(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        sess.run(tf.global_variables_initializer())
        add = tf.assign_add(v, 5.0)
        tf.saved_model.simple_save(
            sess, tmp_path, {"x": x}, {"y": x * v}, legacy_init_op=add.op
        )
    with tf.Graph().as_default(), tf.Session() as sess:
        signature = tf.saved_model.load(sess, "serve", tmp_path).signature_def["serving_default"]
        assert sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: 2.0}) == 10.0
    assert tf.saved_model.maybe_saved_model_directory(tmp_path)
    with pytest.raises(AssertionError, match="already exists"):
        tf.saved_model.Builder(tmp_path)


def test_what_is_refused(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        v = tf.get_variable("v", [])
        with pytest.raises(td.errors.FailedPreconditionError, match="uninitialized"):
            tf.saved_model.simple_save(sess, tmp_path, {"x": x}, {"y": x * v})
        sess.run(tf.global_variables_initializer())
        python = tf.py_func(lambda a: a + 1.0, [x], tf.float32)
        with pytest.raises(ValueError, match="Python"):
            tf.saved_model.simple_save(sess, tmp_path, {"x": x}, {"y": python})
    with pytest.raises(AssertionError, match="no graph"):
        tf.saved_model.Builder(tmp_path).save()
    root = td.Module()
    root.v = td.Variable(1.0)
    td.saved_model.save(root, tmp_path)
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(ValueError, match=r"td.saved_model.load"):
            tf.saved_model.load(sess, ["serve"], tmp_path)
        with pytest.raises(RuntimeError, match="train"):
            tf.saved_model.load(sess, ["train"], tmp_path)
