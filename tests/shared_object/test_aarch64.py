"""Libraries for 64-bit Arm, cross-compiled and run by qemu where both are installed.

TREADLE_TEST_AARCH64=1 says that they are: on Debian the packages qemu-user, gcc-aarch64-linux-gnu
and libc6-dev-arm64-cross. The tests fail then instead of being skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.shared_object.running import CROSS, HAS_CROSS, HAS_QEMU, Program

RNG = np.random.default_rng(1)
VARIABLE = "TREADLE_TEST_AARCH64"

needs_cross = pytest.mark.skipif(not HAS_CROSS, reason=f"there is no {CROSS}")
needs_qemu = pytest.mark.skipif(not HAS_QEMU, reason=f"there is no {CROSS} or no qemu-aarch64")


def test_where_it_must_run() -> None:
    if os.environ.get(VARIABLE) == "1":
        packages = "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        assert HAS_QEMU, f"{VARIABLE}=1 asks for tests with qemu: apt-get install {packages}"


def model() -> Any:
    layers = td.keras.layers
    return td.keras.Sequential([
        layers.Input((10, 10, 1)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(20, "tanh"), layers.Dense(5, "softmax"),
    ])  # fmt: skip


@needs_cross
def test_the_library_is_one_for_arm(tmp_path: Path) -> None:
    exported = td.shared_object.export(
        lambda x: td.nn.softmax(x), tmp_path / "libnet.so", td.TensorSpec([3]), target="aarch64"
    )
    head = exported.library.read_bytes()[:20]
    assert head[:4] == b"\x7fELF" and head[18] == 183  # EM_AARCH64
    assert "aarch64" in exported.header.read_text()
    names = subprocess.run(
        ["aarch64-linux-gnu-nm", "-D", str(exported.library)], capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    assert "Py" not in names


@needs_qemu
def test_a_model_and_its_training_step(tmp_path: Path) -> None:
    net = model()
    optimizer = td.keras.optimizers.SGD(0.1)

    @td.function(input_signature=[td.TensorSpec([None, 10, 10, 1], name="x")])
    def serve(x):
        return {"y": net(x, training=False)}

    @td.function(
        input_signature=[
            td.TensorSpec([None, 10, 10, 1], name="x"), td.TensorSpec([None], td.int32, "label"),
        ]
    )  # fmt: skip
    def train(x, label):
        with td.GradientTape() as tape:
            found = net(x, training=True)
            loss = td.reduce_mean(td.keras.losses.sparse_categorical_crossentropy(label, found))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return {"loss": loss}

    x = RNG.standard_normal((6, 10, 10, 1)).astype(np.float32)
    label = np.array([0, 1, 2, 3, 4, 0], np.int32)
    optimizer.build(net.trainable_variables)
    exported = td.shared_object.export(
        {"serve": serve, "train": train}, tmp_path / "libnet.so", target="aarch64", threads=2
    )
    program = Program(exported, """
        int main(void)
        {
            CHECK(net_set_threads(2));
            float *x = read_file("x"), losses[5];
            int32_t *label = read_file("label");
            struct net_train step = NET_TRAIN_INIT;
            step.x.data = x;
            step.label.data = label;
            step.x.shape[0] = step.label.shape[0] = 6;
            for (int i = 0; i < 5; i++) {
                CHECK(net_train(&step));
                losses[i] = step.loss;
            }
            write_file("losses", losses, sizeof losses);
            struct net_serve call = NET_SERVE_INIT;
            call.x.data = x;
            call.x.shape[0] = 6;
            CHECK(net_serve(&call));
            write_file("y", call.y.data, sizeof(float) * 30);
            net_free(call.y.data);
            call.x.shape[1] = 9;
            printf("%d %s\\n", net_serve(&call), net_error());
            return 0;
        }
        """, is_arm=True)  # fmt: skip
    (line,) = program(x=x, label=label)
    assert line.startswith("1 net_serve: x has the shape [6, 9, 10, 1], and must be float32 [x_")
    losses = np.array([train(x, label)["loss"] for _ in range(5)], np.float32)
    np.testing.assert_allclose(program.result("losses", losses), losses, rtol=1e-4)
    assert losses[-1] < losses[0]
    wanted = serve(x)["y"].numpy()
    np.testing.assert_allclose(program.result("y", wanted), wanted, rtol=1e-4, atol=1e-5)


@needs_qemu
def test_a_loop_with_an_array_that_grows(tmp_path: Path) -> None:
    @td.function(input_signature=[td.TensorSpec([None], td.float64, "x")])
    def halve(x):
        norms = td.TensorArray(td.float64, 0, dynamic_size=True)
        steps = 0
        while td.reduce_max(td.abs(x)) > 0.01:
            x = x / 2.0
            norms = norms.write(steps, td.reduce_sum(td.exp(x) * td.sin(x)))
            steps += 1
        return {"norms": norms.stack(), "order": td.argsort(x)}

    exported = td.shared_object.export({"halve": halve}, tmp_path / "libnet.so", target="aarch64")
    program = Program(exported, """
        int main(void)
        {
            struct net_halve call = NET_HALVE_INIT;
            call.x.data = read_file("x");
            call.x.shape[0] = 50;
            CHECK(net_halve(&call));
            write_file("norms", call.norms.data, sizeof(double) * call.norms.shape[0]);
            write_file("order", call.order.data, sizeof(int32_t) * call.order.shape[0]);
            return 0;
        }
        """, is_arm=True)  # fmt: skip
    x = RNG.standard_normal(50)
    program(x=x)
    wanted = {name: value.numpy() for name, value in halve(x).items()}
    np.testing.assert_allclose(program.result("norms", wanted["norms"]), wanted["norms"], 1e-12)
    assert np.array_equal(program.result("order", wanted["order"]), wanted["order"])
