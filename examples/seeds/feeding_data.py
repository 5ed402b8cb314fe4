"""Data come into a graph as constants, by feeding, from Python, and from a pipeline of files."""

import os
import tempfile

import numpy as np

import treadle.compat.v1 as tf


def numbers():
    return np.random.RandomState(0).normal(size=[100])


def record_of(value):
    features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[value]))}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def pipeline(dataset, batch_size, is_training):
    """The usual steps of a pipeline, of which repeating and shuffling are for training."""
    dataset = dataset.cache()
    if is_training:
        dataset = dataset.repeat().shuffle(batch_size * 5)
    return dataset.map(lambda x: x * 2, num_threads=8).batch(batch_size)


def main():
    actual = numbers()
    with tf.Session() as session:
        constant = tf.constant(actual)
        fed = tf.placeholder(tf.float64)
        from_python = tf.py_func(numbers, [], tf.float64)
        found = session.run([tf.square(x) + 1 for x in (constant, fed, from_python)], {fed: actual})
        for values in found:
            np.testing.assert_allclose(values, np.square(actual) + 1)

        dataset = tf.contrib.data.Dataset.from_tensor_slices(actual)
        element = dataset.make_one_shot_iterator().get_next()
        assert [session.run(element) for _ in range(3)] == actual[:3].tolist()

        batch = pipeline(dataset, 10, is_training=False).make_one_shot_iterator().get_next()
        seen = [session.run(batch) for _ in range(10)]
        np.testing.assert_allclose(np.concatenate(seen), actual * 2)
        try:
            session.run(batch)
        except tf.errors.OutOfRangeError:
            print("the pipeline ends after ten batches")
        else:
            raise AssertionError("the pipeline goes on")
        batch = pipeline(dataset, 10, is_training=True).make_one_shot_iterator().get_next()
        shuffled = np.concatenate([session.run(batch) for _ in range(30)])
        assert len(shuffled) == 300 and set(shuffled) <= set(actual * 2)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "numbers.tfrecord")
            with tf.io.TFRecordWriter(path) as writer:
                for value in (1.0, 2.5, 4.0):
                    writer.write(record_of(value))
            form = {"x": tf.io.FixedLenFeature([], tf.float32)}
            records = tf.data.TFRecordDataset(path)
            records = records.map(lambda text: tf.io.parse_single_example(text, form)["x"])
            element = records.make_one_shot_iterator().get_next()
            assert [session.run(element) for _ in range(3)] == [1.0, 2.5, 4.0]


if __name__ == "__main__":
    main()
