"""The first release of eager execution: calls at once, gradients of functions, state that is saved.

Summaries and metrics of that release are read back by TensorBoard's reader.
"""

import tempfile

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import treadle.compat.v1 as tf
import treadle.compat.v1.contrib.eager as tfe


def square(x):
    return tf.multiply(x, x)


@tfe.custom_gradient
def log1pexp(x):
    """log(1 + exp(x)), whose gradient has no quotient of infinities."""
    power = tf.exp(x)
    return tf.log(1 + power), lambda slope: slope * (1 - 1 / (1 + power))


class Net(tfe.Network):
    """Two dense layers, whose variables the network knows."""

    def __init__(self):
        super().__init__(name="net")
        self.first = self.track_layer(tf.layers.Dense(3, activation=tf.nn.relu, name="first"))
        self.second = self.track_layer(tf.layers.Dense(1, name="second"))

    def call(self, x):
        return self.second(self.first(x))


def values_and_arrays():
    assert tf.matmul([[2.0]], [[2.0]]).numpy() == [[4.0]]
    dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5, 6])
    dataset = dataset.map(tf.square).shuffle(2).batch(2)
    batches = [batch.numpy() for batch in tfe.Iterator(dataset)]
    assert sorted(np.concatenate(batches)) == [1, 4, 9, 16, 25, 36]
    x, y = tf.add(1, 1), tf.add(np.array(1), np.array(1))
    assert np.multiply(x, y) == 4
    assert (tf.constant(np.float32(2)) + tf.constant(3.0) + 1).numpy() == 6.0


def gradients():
    first = tfe.gradients_function(square)
    second = tfe.gradients_function(lambda x: first(x)[0])
    third = tfe.gradients_function(lambda x: second(x)[0])
    assert square(3.0).numpy() == 9
    assert [f(3.0)[0].numpy() for f in (first, second, third)] == [6, 2, 0]
    stable = tfe.gradients_function(log1pexp)
    assert stable(0.0)[0].numpy() == 0.5 and stable(100.0)[0].numpy() == 1.0
    naive = tfe.gradients_function(lambda x: tf.log(1 + tf.exp(x)))
    assert np.isnan(naive(100.0)[0].numpy())


def state(folder):
    x, y = tfe.Variable(10.0, name="x"), tfe.Variable(5.0, name="y")
    saver = tfe.Saver([x, y])
    x.assign(2.0)
    saver.save(folder + "/ckpt")
    x.assign(11.0)
    assert (x + y).numpy() == 16.0
    saver.restore(folder + "/ckpt")
    assert (x + y).numpy() == 7.0


def network(folder):
    tf.set_random_seed(1)  # of three units none is to be idle at first
    net = Net()
    inputs, targets = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[1.0], [-1.0]])
    loss = tfe.implicit_gradients(lambda: tf.reduce_mean(tf.square(net(inputs) - targets)))
    optimizer = tf.train.AdamOptimizer(0.1)
    for _ in range(60):
        optimizer.apply_gradients(loss())
    trained = net(inputs).numpy()
    np.testing.assert_allclose(trained, targets, atol=0.3)
    assert [v.shape.as_list() for v in net.variables] == [[2, 3], [3], [3, 1], [1]]
    path = tfe.save_network_checkpoint(net, folder + "/net")
    for variable in net.variables:
        variable.assign(tf.zeros_like(variable))
    assert not net(inputs).numpy().any()
    tfe.restore_network_checkpoint(net, path)
    np.testing.assert_array_equal(net(inputs), trained)


def summaries(folder):
    step = tf.train.get_or_create_global_step()
    writer = tf.contrib.summary.create_summary_file_writer(folder)
    for number in range(300):
        step.assign_add(1)
        now_and_then = tf.contrib.summary.record_summaries_every_n_global_steps(100)
        with writer.as_default(), now_and_then:
            tf.contrib.summary.scalar("loss", 1.0 / (1 + tf.constant(float(number))))
            mean = tfe.metrics.Mean(name="my_mean")
            mean(0.0)
            mean(10.0)
            assert mean.result().numpy() == 5.0
    writer.close()
    found = EventAccumulator(folder).Reload()
    assert [event.step for event in found.Scalars("loss")] == [100, 200, 300]
    assert [event.value for event in found.Scalars("my_mean")] == [5.0] * 3


def main():
    tfe.enable_eager_execution()
    values_and_arrays()
    gradients()
    for program in (state, network, summaries):
        with tempfile.TemporaryDirectory() as folder:
            program(folder)
    print("values, gradients, state, a network and summaries are what they should be")


if __name__ == "__main__":
    main()
