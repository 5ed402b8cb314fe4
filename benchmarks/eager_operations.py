"""`python -m benchmarks.eager_operations`: single operations on large arrays, run eagerly, beside
TensorFlow's eager mode.

A new process for each library and a new cache: so the first call has to find out how to compute the
operation. What is given is the processor time of the process, threads that compile in the
background among it, for the first call and the median of the last five of ten.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import ROOT
from benchmarks.report import machine

CALLS, LAST = 10, 5
LIBRARIES = {"treadle": "treadle", "tensorflow": "tensorflow"}
Call = Callable[[], Any]


def operations(tf: Any) -> dict[str, Call]:
    """Operations by name, with their operands."""
    random = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return tf.constant(random.standard_normal(shape).astype(np.float32))

    x, v = floats(2000, 2000), floats(4_000_000)
    positive, images = tf.abs(x) + 0.1, floats(64, 128, 128, 8)
    numbers = tf.constant(random.integers(0, 1000, 4_000_000).astype(np.int32))
    filters, wide, cube = floats(3, 3, 8, 16), floats(3, 3, 8, 1), floats(64, 256, 256)
    up, volumes = floats(64, 64, 64, 16), floats(16, 32, 32, 32, 4)
    deep, pictures = floats(3, 3, 3, 4, 8), tf.abs(floats(32, 128, 128, 3)) % 1.0
    sparse = tf.sparse.from_dense(tf.where(x > 2, x, tf.zeros_like(x)))
    whole = tf.cast(x[:500, :500], tf.int32)
    nn, image, math, draws = tf.nn, tf.image, tf.math, tf.random
    layers = tf.keras.layers
    return {
        "conv2d": lambda: nn.conv2d(images, filters, 1, "SAME"),
        "conv2d, strides of 2": lambda: nn.conv2d(images, filters, 2, "SAME"),
        "conv2d, dilated": lambda: nn.conv2d(images, filters, 1, "SAME", dilations=2),
        "conv2d_transpose": lambda: nn.conv2d_transpose(up, filters, [64, 128, 128, 8], 2, "SAME"),
        "depthwise_conv2d": lambda: nn.depthwise_conv2d(images, wide, [1, 1, 1, 1], "SAME"),
        "conv3d": lambda: nn.conv3d(volumes, deep, [1, 1, 1, 1, 1], "SAME"),
        "max_pool2d": lambda: nn.max_pool2d(images, 2, 2, "SAME"),
        "avg_pool2d": lambda: nn.avg_pool2d(images, 3, 2, "SAME"),
        "lrn": lambda: nn.lrn(images),
        "moments": lambda: nn.moments(images, [0, 1, 2]),
        "softmax": lambda: nn.softmax(x),
        "logsumexp": lambda: tf.reduce_logsumexp(x, 1),
        "gelu": lambda: nn.gelu(x),
        "erf": lambda: math.erf(x),
        "lgamma": lambda: math.lgamma(positive),
        "digamma": lambda: math.digamma(positive),
        "ndtri": lambda: math.ndtri(tf.sigmoid(x)),
        "pow": lambda: positive**x,
        "cumsum": lambda: tf.cumsum(x, 1),
        "sort": lambda: tf.sort(x),
        "top_k": lambda: math.top_k(x, 10),
        "unique": lambda: tf.unique(numbers),
        "gather": lambda: tf.gather(v, numbers),
        "unsorted_segment_sum": lambda: math.unsorted_segment_sum(v, numbers, 1000),
        "bincount": lambda: math.bincount(numbers),
        "one_hot": lambda: tf.one_hot(numbers[:100_000], 100),
        "boolean_mask": lambda: tf.boolean_mask(x, x > 0),
        "transpose": lambda: tf.transpose(images, [0, 3, 1, 2]),
        "einsum": lambda: tf.einsum("bij,bjk->bik", cube, cube),
        "matmul of int32": lambda: tf.matmul(whole, whole),
        "sparse_dense_matmul": lambda: tf.sparse.sparse_dense_matmul(sparse, x),
        "fft": lambda: tf.signal.fft(tf.cast(x, tf.complex64)),
        "inv": lambda: tf.linalg.inv(x[:200, :200]),
        "svd": lambda: tf.linalg.svd(x[:200, :200]),
        "random.normal": lambda: draws.normal([10_000_000]),
        "random.uniform": lambda: draws.uniform([10_000_000]),
        "random.uniform, int32": lambda: draws.uniform([5_000_000], 0, 10, tf.int32),
        "dropout": lambda: nn.dropout(x, 0.5),
        "resize, bilinear": lambda: image.resize(images, [200, 200]),
        "resize, bicubic": lambda: image.resize(images, [64, 64], method="bicubic"),
        "adjust_hue": lambda: image.adjust_hue(pictures, 0.1),
        "ssim": lambda: image.ssim(pictures[:16], pictures[16:], 1.0),
        "RandomRotation": lambda: layers.RandomRotation(0.2)(pictures, training=True),
        "LSTM": lambda: layers.LSTM(64)(cube[:32, :100, :32]),
        "MultiHeadAttention": lambda: layers.MultiHeadAttention(4, 32)(
            cube[:16, :128, :128], cube[:16, :128, :128]
        ),
    }


def measure(library: str, out: Path) -> None:
    """Write the seconds of each call of each operation."""
    found: dict[str, list[float]] = {}
    for name, call in operations(importlib.import_module(library)).items():
        found[name] = []
        for _ in range(CALLS):
            begun = time.process_time()
            call()
            found[name].append(time.process_time() - begun)
    out.write_text(json.dumps(found))


def of_library(name: str, python: str) -> dict[str, list[float]]:
    """What a new process measures."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seconds.json"
        environment = {
            **os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "TREADLE_CACHE_DIR": folder, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
        }  # fmt: skip
        command = [python, "-m", "benchmarks.eager_operations", "--measure", LIBRARIES[name]]
        subprocess.run([*command, "--out", str(out)], env=environment, cwd=ROOT, check=True)
        found: dict[str, list[float]] = json.loads(out.read_text())
        return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.eager_operations", description=__doc__.split(":", 1)[1].strip()
    )
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="write the report to this JSON file")
    options = parser.parse_args(arguments)
    if options.measure:
        measure(options.measure, options.out)
        return
    pythons = {"treadle": sys.executable, "tensorflow": options.peers_python}
    seconds = {name: of_library(name, pythons[name]) for name in LIBRARIES}
    rows: dict[str, dict[str, dict[str, float]]] = {}
    print(f"{'milliseconds':24s} treadle: first    later  TensorFlow: first    later")
    for operation in seconds["treadle"]:
        rows[operation] = {
            name: {
                "first_ms": round(1e3 * seconds[name][operation][0], 2),
                "later_ms": round(1e3 * statistics.median(seconds[name][operation][-LAST:]), 3),
            }
            for name in LIBRARIES
        }
        ours, theirs = (rows[operation][name] for name in LIBRARIES)
        print(
            f"{operation:24s} {ours['first_ms']:15.1f} {ours['later_ms']:8.2f} "
            f"{theirs['first_ms']:18.1f} {theirs['later_ms']:8.2f}"
        )
    if options.out is not None:
        report = {"machine": machine(), "load_average": os.getloadavg(), "operations": rows}
        options.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
