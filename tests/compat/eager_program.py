"""What the article on the first release of eager execution shows, as a program."""

import sys

import numpy as np

import treadle.compat.v1 as tf
import treadle.compat.v1.contrib.eager as tfe

tfe.enable_eager_execution()
folder = sys.argv[1]

assert tf.matmul([[2.0]], [[2.0]]).numpy() == [[4.0]]
dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5, 6])
dataset = dataset.map(tf.square).shuffle(2).batch(2)
assert sorted(v for x in tfe.Iterator(dataset) for v in x.numpy()) == [1, 4, 9, 16, 25, 36]
x = tf.add(1, 1)
y = tf.add(np.array(1), np.array(1))
assert np.multiply(x, y) == 4
np_x = np.array(2.0, dtype=np.float32)
z = tf.constant(np_x) + tf.constant(3.0) + 1
assert z.numpy() == 6.0


def f(x):
    return tf.multiply(x, x)


df = tfe.gradients_function(f)
d2f = tfe.gradients_function(lambda x: df(x)[0])
d3f = tfe.gradients_function(lambda x: d2f(x)[0])
assert f(3.0).numpy() == 9 and df(3.0)[0].numpy() == 6
assert d2f(3.0)[0].numpy() == 2 and d3f(3.0)[0] in (None, 0) or d3f(3.0)[0].numpy() == 0


@tfe.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return tf.log(1 + e), grad


assert tfe.gradients_function(log1pexp)(0.0)[0].numpy() == 0.5
assert tfe.gradients_function(log1pexp)(100.0)[0].numpy() in (1.0, np.float32(1.0))


class MNISTModel:
    def __init__(self, data_format):
        self._input_shape = [-1, 1, 12, 12] if data_format == "channels_first" else [-1, 12, 12, 1]
        self.conv1 = tf.layers.Conv2D(
            4, 5, padding="same", activation=tf.nn.relu, data_format=data_format
        )
        self.max_pool2d = tf.layers.MaxPooling2D(
            (2, 2), (2, 2), padding="same", data_format=data_format
        )
        self.conv2 = tf.layers.Conv2D(
            8, 5, padding="same", activation=tf.nn.relu, data_format=data_format
        )
        self.dense1 = tf.layers.Dense(32, activation=tf.nn.relu)
        self.dropout = tf.layers.Dropout(0.5)
        self.dense2 = tf.layers.Dense(10)

    def predict(self, inputs):
        x = tf.reshape(inputs, self._input_shape)
        x = self.max_pool2d(self.conv1(x))
        x = self.max_pool2d(self.conv2(x))
        x = tf.layers.flatten(x)
        x = self.dropout(self.dense1(x))
        return self.dense2(x)


def loss(model, inputs, targets):
    return tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(logits=model.predict(inputs), labels=targets)
    )


random = np.random.default_rng(0)
labels = random.integers(0, 10, 200)
images = random.normal(size=(200, 144)).astype(np.float32) * 0.1
images[np.arange(200), labels * 14] += 3.0
targets = np.eye(10, dtype=np.float32)[labels]
device = "gpu:0" if tfe.num_gpus() else "cpu:0"
model = MNISTModel("channels_first" if tfe.num_gpus() else "channels_last")
optimizer = tf.train.AdamOptimizer(learning_rate=0.01)
grad = tfe.implicit_gradients(loss)
first = loss(model, images, targets).numpy()
for i in range(30):
    with tf.device(device):
        batch = random.integers(0, 200, 50)
        optimizer.apply_gradients(grad(model, images[batch], targets[batch]))
last = loss(model, images, targets).numpy()
assert last < first / 2, (first, last)

x = tfe.Variable(10.0, name="x")
y = tfe.Variable(5.0, name="y")
saver = tfe.Saver([x, y])
x.assign(2.0)
saver.save(folder + "/ckpt")
x.assign(11.0)
assert (x + y).numpy() == 16.0
saver.restore(folder + "/ckpt")
assert (x + y).numpy() == 7.0


class Net(tfe.Network):
    def __init__(self):
        super().__init__(name="net")
        self.one = self.track_layer(tf.layers.Dense(3, name="one"))
        self.two = self.track_layer(tf.layers.Dense(1, name="two"))

    def call(self, x):
        return self.two(self.one(x))


net = Net()
net(tf.ones([2, 4]))
assert [v.shape.as_list() for v in net.variables] == [[4, 3], [3], [3, 1], [1]]
tf.train.get_or_create_global_step()
my_mean = tfe.metrics.Mean(name="my_mean")
my_mean(0.0)
my_mean(10.0)
assert my_mean.result().numpy() == 5.0
print("done")
