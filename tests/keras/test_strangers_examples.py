"""What examples of Keras by others needed: docs/results/strangers_keras_examples.json."""

import numpy as np

import treadle as td
from treadle import keras


class Standardized(keras.layers.Conv2D):
    """Kernels without their mean."""

    def convolution_op(self, inputs, kernel):
        return super().convolution_op(inputs, kernel - td.reduce_mean(kernel, [0, 1, 2]))


class Called(keras.layers.Conv2D):
    def call(self, inputs):
        mean = td.reduce_mean(self.kernel, [0, 1, 2])
        return self.convolution_op(inputs, self.kernel - mean) + self.bias


def test_convolutions_may_be_changed_in_subclasses():
    images = np.sin(np.arange(2 * 6 * 7 * 3)).reshape(2, 6, 7, 3).astype("float32")
    layer, other, called = keras.layers.Conv2D(4, 3), Standardized(4, 3), Called(4, 3)
    for each in (layer, other, called):
        each.build(images.shape)
    kernel, bias = layer.get_weights()
    layer.set_weights([kernel - kernel.mean((0, 1, 2)), bias + 0.5])
    for each in (other, called):
        each.set_weights([kernel, bias + 0.5])
        np.testing.assert_allclose(each(images), layer(images), rtol=1e-4, atol=1e-5)
