"""A small framework for training: a model function, inputs, an experiment, flags for all of it.

`python estimator_framework.py --output_dir DIR --hparams learning_rate=0.1` goes on from the
checkpoints in DIR; without a folder it trains in one of its own.
"""

import os
import tempfile

import numpy as np

import treadle.compat.v1 as tf
from treadle.datasets import digits

tf.flags.DEFINE_string("output_dir", "", "The folder of checkpoints and summaries.")
tf.flags.DEFINE_string("schedule", "train_and_evaluate", "The method of the experiment.")
tf.flags.DEFINE_string("hparams", "learning_rate=0.02,steps=200", "Settings of the model.")
FLAGS = tf.flags.FLAGS
ModeKeys = tf.estimator.ModeKeys


def model_fn(features, labels, mode, params):
    """A convolution and a dense layer for images of digits."""
    images = tf.reshape(features, [-1, 8, 8, 1])
    maps = tf.layers.conv2d(images, params.filters, 3, activation=tf.nn.relu)
    maps = tf.layers.max_pooling2d(maps, 2, 2)
    logits = tf.layers.dense(tf.layers.flatten(maps), 10)
    predictions = {"class": tf.argmax(logits, axis=1), "chances": tf.nn.softmax(logits)}
    if mode == ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    tf.summary.histogram("logits", logits)
    train = tf.train.AdamOptimizer(params.learning_rate).minimize(
        loss, global_step=tf.train.get_global_step()
    )
    accuracy = tf.metrics.accuracy(labels, predictions["class"])
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train,
        eval_metric_ops={"accuracy": accuracy},
    )


def make_input_fn(mode, params):
    def input_fn():
        images, labels = digits.load_data()[0 if mode == ModeKeys.TRAIN else 1]
        data = (images / 16).astype(np.float32), labels.astype(np.int64)
        dataset = tf.data.Dataset.from_tensor_slices(data)
        if mode == ModeKeys.TRAIN:
            dataset = dataset.shuffle(1000, seed=1).repeat()
        return dataset.batch(params.batch_size)

    return input_fn


def experiment_fn(run_config, hparams):
    estimator = tf.estimator.Estimator(model_fn=model_fn, config=run_config, params=hparams)
    return tf.contrib.learn.Experiment(
        estimator=estimator,
        train_input_fn=make_input_fn(ModeKeys.TRAIN, hparams),
        eval_input_fn=make_input_fn(ModeKeys.EVAL, hparams),
        train_steps=hparams.steps,
    )


def train(folder):
    """The metrics of a training, which goes on where there are checkpoints."""
    config = tf.contrib.learn.RunConfig(model_dir=folder, save_summary_steps=50, tf_random_seed=1)
    hparams = tf.contrib.training.HParams(learning_rate=0.01, filters=8, batch_size=32, steps=100)
    hparams.parse(FLAGS.hparams)
    return tf.contrib.learn.learn_runner.run(
        experiment_fn=experiment_fn, run_config=config, schedule=FLAGS.schedule, hparams=hparams
    )


def main(unused_argv):
    if FLAGS.output_dir:
        print(train(FLAGS.output_dir))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = train(folder)
        print(found)
        assert found["accuracy"] > 0.9 and found["global_step"] == 200
        assert train(folder)["global_step"] == 200  # there is nothing left to train
        assert any("tfevents" in name for name in os.listdir(folder))
        hparams = tf.contrib.training.HParams(filters=8, batch_size=8, learning_rate=0.0)
        estimator = tf.estimator.Estimator(model_fn, folder, params=hparams)
        predicted = estimator.predict(make_input_fn(ModeKeys.EVAL, hparams))
        first = [next(predicted) for _ in range(8)]
        labels = digits.load_data()[1][1][:8]
        assert sum(p["class"] == label for p, label in zip(first, labels)) >= 6
        np.testing.assert_allclose([p["chances"].sum() for p in first], 1.0, rtol=1e-5)


if __name__ == "__main__":
    tf.app.run()
