"""A model is saved in two ways: variables beside the graph, and a frozen graph without any."""

import os
import tempfile

import numpy as np

import treadle.compat.v1 as tf


def make():
    x, y = tf.Variable(tf.random_uniform([3])), tf.Variable(tf.random_uniform([3]))
    return tf.add(x, y, name="op_to_store")


def save(folder):
    """Save variables, the graph, and the frozen graph; give the sum that they have."""
    with tf.Graph().as_default(), tf.Session() as session:
        total = make()
        saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=2)
        session.run(tf.global_variables_initializer())
        for step in (1000, 2000, 3000):
            saver.save(session, f"{folder}/model", global_step=step, write_meta_graph=step > 2000)
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph_def, ["op_to_store"]
        )
        with tf.gfile.FastGFile(f"{folder}/model.pb", mode="wb") as file:
            file.write(frozen.SerializeToString())
        return session.run(total)


def main():
    with tempfile.TemporaryDirectory() as folder:
        expected = save(folder)
        names = sorted(os.listdir(folder))
        print("\n".join(names))
        assert not any("model-1000" in name for name in names)  # the oldest was dropped
        assert "model-3000.meta" in names and "model-2000.meta" not in names
        latest = tf.train.latest_checkpoint(folder)
        assert latest == os.path.join(folder, "model-3000")

        # The program makes the graph again, and restores its variables.
        with tf.Graph().as_default(), tf.Session() as session:
            total = make()
            tf.train.Saver().restore(session, latest)
            np.testing.assert_array_equal(session.run(total), expected)

        # The graph comes from its file: tensors are found by their names.
        with tf.Graph().as_default(), tf.Session() as session:
            tf.train.import_meta_graph(f"{latest}.meta").restore(session, latest)
            total = session.graph.get_tensor_by_name("op_to_store:0")
            np.testing.assert_array_equal(session.run(total), expected)

        # A frozen graph has constants instead of variables.
        with tf.Graph().as_default(), tf.Session() as session:
            graph_def = tf.GraphDef()
            with tf.gfile.FastGFile(f"{folder}/model.pb", "rb") as file:
                graph_def.ParseFromString(file.read())
            tf.import_graph_def(graph_def, name="")
            session.run(tf.global_variables_initializer())  # there are none
            total = session.graph.get_tensor_by_name("op_to_store:0")
            np.testing.assert_array_equal(session.run(total), expected)
            assert not tf.global_variables()


if __name__ == "__main__":
    main()
