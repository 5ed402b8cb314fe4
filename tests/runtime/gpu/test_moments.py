"""Means and variances down columns: memory is read once, though blocks share the rows."""

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_matrices import on
from treadle.core import dtypes
from treadle.runtime.gpu.facts import GpuFacts

SMALL = replace(GPU, multiprocessors=16)
IMAGES = np.random.default_rng(2).standard_normal((4, 28, 28, 16))
CASES = {
    "images": (lambda x: td.nn.moments(x, (0, 1, 2)), IMAGES),
    "float64": (lambda x: td.nn.moments(x, (0, 1, 2), keepdims=True), IMAGES),
    "rows": (lambda x: td.nn.moments(x, 0), IMAGES.reshape(-1, 16)),
    "far from zero": (lambda x: td.nn.moments(x, (0, 1, 2)), IMAGES + 1000),
    "one that is not finite": (
        lambda x: td.nn.moments(x, (0, 1, 2)), np.where(np.arange(16) == 3, np.inf, IMAGES),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_moments(name):
    function, x = CASES[name]
    x = x.astype("float64" if name == "float64" else "float32")
    wanted = function(td.constant(x.astype("float64")))
    with recorded_gpu(gpu=SMALL) as gpu:
        given, compiled, driver = on(gpu, x), td.function(function), gpu.storage.driver
        compiled(given)
        driver.cached, driver.moved = 1 << 20, 0
        found = compiled(given)
        assert driver.moved < 1.15 * x.nbytes
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-5, 1e-5)


def test_moments_of_what_a_kernel_computes():
    """It is stored once and read once."""
    x = IMAGES.astype("float32")
    with recorded_gpu(gpu=SMALL) as gpu:
        given, driver = on(gpu, x), gpu.storage.driver
        compiled = td.function(lambda x: td.nn.moments(td.nn.relu(x) * 2.0, (0, 1, 2)))
        compiled(given)
        driver.cached, driver.moved = 1 << 20, 0
        found = compiled(given)
        assert driver.moved < 3.15 * x.nbytes
    y = np.maximum(x.astype("float64"), 0) * 2
    np.testing.assert_allclose(found[1].numpy(), y.reshape(-1, 16).var(0), 1e-5)


def test_training_with_normalised_batches():
    x = IMAGES.astype("float32")

    def trained():
        layer = td.keras.layers.BatchNormalization()

        @td.function
        def step(x):
            with td.GradientTape() as tape:
                y = layer(x, training=True)
                loss = td.reduce_sum(y * y * x)
            return [y, *tape.gradient(loss, layer.trainable_variables)]

        return [y.numpy() for y in step(td.constant(x))] + [w.numpy() for w in layer.weights]

    wanted = trained()
    with recorded_gpu(gpu=SMALL) as gpu, td.device(gpu.name):
        for one, other in zip(trained(), wanted, strict=True):
            np.testing.assert_allclose(one, other, 2e-4, 2e-4)


def test_parts():
    parts = GpuFacts(GPU).parts_of_rows
    assert parts(39200, 32, dtypes.float32) == 140
    assert parts(39200, 1 << 16, dtypes.float32) == 40  # the elements of a column that a warp keeps
    assert parts(39209, 32, dtypes.float32) is None  # a prime
    assert parts(100, 32, dtypes.float32) is None and parts(39200, 3, dtypes.float32) is None
    assert parts(39200, 32, dtypes.float16) is None
