"""A saved model in a process that has none of the user's source."""

import subprocess
import sys
import textwrap

import numpy as np

import treadle as td

SOURCE = """
import treadle as td

class Layer(td.Module):
    def __init__(self, size):
        super().__init__()
        self.w = td.Variable(td.random.normal([size, size], seed=1), name="w")

    def __call__(self, x):
        return td.nn.relu(x @ self.w)

class Network(td.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Layer(3), Layer(3)]

    @td.function(input_signature=[td.TensorSpec([None, 3], name="x")])
    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        if td.reduce_max(x) > 2.0:
            x = x / td.reduce_max(x)
        return x
"""

PROGRAM = """
import sys
import numpy as np
import treadle as td

loaded = td.saved_model.load("model")
x = np.load("x.npy")
with td.GradientTape() as tape:
    y = loaded(x)
    loss = td.reduce_sum(y * y)
gradients = tape.gradient(loss, loaded.trainable_variables)
served = loaded.signatures["serving_default"](x=td.constant(x))["output_0"]
np.savez("results.npz", y, served, *gradients)
assert "user_network" not in sys.modules
"""


def test_a_process_without_the_source(tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "user_network.py").write_text(textwrap.dedent(SOURCE))
    monkeypatch.syspath_prepend(source)
    import user_network

    network = user_network.Network()
    td.saved_model.save(network, tmp_path / "model")
    x = np.random.RandomState(0).randn(4, 3).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    (source / "user_network.py").unlink()
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True, timeout=120)
    y, served, *gradients = np.load(tmp_path / "results.npz").values()
    with td.GradientTape() as tape:
        expected = network(x)
        loss = td.reduce_sum(expected * expected)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(served, expected)
    wanted = tape.gradient(loss, network.trainable_variables)
    for mine, theirs in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
