"""Programs that another machine computes: functions, their arguments, and how near their results
are to this machine's.

Machines whose vectors have as many bits give the same results, bit for bit. Where those of others
may differ the comment beside a tolerance says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.core.records import record

EXACT = 0.0
# Sums of rows, and products of few rows by a transposed matrix, are added up in vectors of the
# machine's width, and tanh and erf have a form of their own for AVX-512.
NEAR = 2e-6
TRAINED = 1e-4  # after steps of training, which enlarge differences


@record(frozen=True)
class Workload:
    """A function of arrays, called `calls` times: a step of training changes its variables.

    Attributes:
        make: makes the function, with variables of its own.
        within: the largest difference from the results of a machine with other vectors, relative
            to the largest number of a result.
    """

    make: Callable[[], Callable[..., dict[str, Any]]]
    arrays: dict[str, np.ndarray]
    within: float = EXACT
    calls: int = 1


RNG = np.random.default_rng(7)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def _training(layers: Callable[[], list[Any]], optimizer: Callable[[], Any]) -> Any:
    """A step of training of a classifier: images or rows, and labels."""

    def make() -> Callable[..., dict[str, Any]]:
        td.keras.utils.set_random_seed(3)
        net = td.keras.Sequential(layers())
        chosen = optimizer()
        chosen.build(net.trainable_variables)

        def step(x: Any, label: Any) -> dict[str, Any]:
            with td.GradientTape() as tape:
                found = net(x, training=True)
                losses = td.keras.losses.sparse_categorical_crossentropy(label, found, True)
                loss = td.reduce_mean(losses)
            variables = net.trainable_variables
            chosen.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return {"loss": loss, "logits": found}

        return step

    return make


def _mlp() -> list[Any]:
    layers = td.keras.layers
    return [
        layers.Input((40,)), layers.Dense(33, "relu"), layers.Dense(17, "gelu"),
        layers.LayerNormalization(), layers.Dense(5),
    ]  # fmt: skip


def _cnn() -> list[Any]:
    layers = td.keras.layers
    return [
        layers.Input((12, 12, 3)), layers.Conv2D(9, 3, activation="relu", padding="same"),
        layers.BatchNormalization(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3),
        layers.Conv2D(6, 1, activation="tanh"), layers.Conv2D(8, 3, strides=2),
        layers.GlobalAveragePooling2D(), layers.Dense(5),
    ]  # fmt: skip


def rows(x: Any) -> dict[str, Any]:
    mean, variance = td.nn.moments(x, [1], keepdims=True)
    return {
        "softmax": td.nn.softmax(x), "log_softmax": td.nn.log_softmax(x, 0),
        "normalized": (x - mean) * td.math.rsqrt(variance + 1e-5),
        "logsumexp": td.reduce_logsumexp(x, 1), "columns": td.reduce_sum(x * x, 0),
    }  # fmt: skip


def scans(x: Any, n: Any) -> dict[str, Any]:
    state = td.zeros_like(x[0])
    for i in td.range(td.shape(x)[0]):
        state = 0.9 * state + x[i]
    return {
        "cumsum": td.cumsum(x, 1), "reverse": td.cumsum(x, 0, exclusive=True, reverse=True),
        "cumprod": td.math.cumprod(x, 1), "counts": td.cumsum(n), "decayed": state,
    }  # fmt: skip


def products(a: Any, b: Any, v: Any, d: Any, i: Any) -> dict[str, Any]:
    small = a[:7, :19]
    return {
        "plain": td.matmul(a, b), "turned": td.matmul(a, a, transpose_a=True),
        "dots": td.matmul(a[:3], a, transpose_b=True), "row": td.matmul(v[None], b),
        "column": td.matmul(a, v[:, None]), "small": td.matmul(small, b[:19, :5]),
        "doubles": td.matmul(d, d, transpose_b=True), "integers": td.matmul(i, i),
        "batched": td.matmul(td.stack([a, 2.0 * a]), b), "relu": td.nn.relu(td.matmul(a, b) + 1.0),
    }  # fmt: skip


def black_scholes(spot: Any, strike: Any, years: Any) -> dict[str, Any]:
    """Prices of options, with the normal distribution by erf (Black and Scholes 1973)."""
    spread = 0.3 * td.sqrt(years)
    above = (td.math.log(spot / strike) + (0.02 + 0.045) * years) / spread
    normal = lambda x: 0.5 * (1.0 + td.math.erf(x / np.sqrt(2.0).astype(np.float32)))
    later = strike * td.exp(-0.02 * years)
    call = spot * normal(above) - later * normal(above - spread)
    return {"call": call, "put": call + later - spot}


def loops(x: Any, n: Any) -> dict[str, Any]:
    """Newton's square roots until all are near; Collatz's sequence; a loop with a break."""
    root, steps = x, 0
    while td.reduce_max(td.abs(root * root - x)) > 1e-9:
        root = 0.5 * (root + x / root)
        steps += 1
    count, number = td.constant(0), n
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        count += 1
    total = td.constant(0.0, td.float64)
    for value in x:
        if total > 20.0:
            break
        total += value
    return {"root": root, "steps": steps, "collatz": count, "total": total}


def places(x: Any, which: Any) -> dict[str, Any]:
    best = td.math.top_k(x, 5)
    added = td.tensor_scatter_nd_add(td.zeros([50], td.float32), which[:, None], x[0, : len(which)])
    return {
        "sorted": td.sort(x, 1), "order": td.argsort(x, 0, stable=True), "best": best.values,
        "where": best.indices, "gathered": td.gather(x, which % 20, axis=0), "added": added,
        "largest": td.argmax(x, 1),
        "segments": td.math.unsorted_segment_max(x[0], td.range(60) % 7, 7),
    }  # fmt: skip


def random(seed: Any) -> dict[str, Any]:
    draw = td.random
    return {
        "uniform": draw.stateless_uniform([100], seed),
        "normal": draw.stateless_normal([101], seed, dtype=td.float64),
        "integers": draw.stateless_uniform([50], seed, -9, 90, td.int32),
        "truncated": draw.stateless_truncated_normal([33], seed),
    }


def narrow(x: Any) -> dict[str, Any]:
    """Numbers of 16 bits, integers, and bits."""
    half, brain = td.cast(x, td.float16), td.cast(x, td.bfloat16)
    whole = td.cast(x * 1000.0, td.int64)
    return {
        "half": td.exp(half) + half, "brain": brain * brain - brain,
        "whole": whole // 7 + whole % 5,
        "bits": td.bitwise.bitwise_xor(td.cast(whole, td.int32), 0x5A5A), "signs": x > 0.5,
        "product": td.matmul(brain, brain, transpose_b=True),
    }  # fmt: skip


WORKLOADS: dict[str, Workload] = {
    "mlp": Workload(
        _training(_mlp, lambda: td.keras.optimizers.Adam(0.01)),
        {"x": numbers(20, 40), "label": RNG.integers(0, 5, 20).astype(np.int32)}, TRAINED, 4,
    ),
    "cnn": Workload(
        _training(_cnn, lambda: td.keras.optimizers.SGD(0.05, momentum=0.9)),
        {"x": numbers(6, 12, 12, 3), "label": RNG.integers(0, 5, 6).astype(np.int32)}, TRAINED, 3,
    ),
    "rows": Workload(lambda: rows, {"x": numbers(37, 301)}, NEAR),
    "scans": Workload(
        lambda: scans, {"x": numbers(23, 45), "n": RNG.integers(-99, 99, 77)}
    ),
    "products": Workload(
        lambda: products,
        {"a": numbers(70, 130), "b": numbers(130, 50), "v": numbers(130),
         "d": numbers(33, 21, dtype=np.float64), "i": RNG.integers(-9, 9, (12, 12))}, NEAR,
    ),
    "black_scholes": Workload(
        lambda: black_scholes,
        {key: start + size * RNG.random(999, np.float32)
         for key, start, size in (("spot", 80, 40), ("strike", 80, 40), ("years", 0.1, 1))}, NEAR,
    ),
    "loops": Workload(lambda: loops, {"x": 1 + RNG.random(50), "n": np.array(27, np.int32)}),
    "places": Workload(
        lambda: places, {"x": numbers(20, 60), "which": RNG.integers(0, 50, 40).astype(np.int32)}
    ),
    "random": Workload(lambda: random, {"seed": np.array([3, 5], np.int32)}),
    "narrow": Workload(lambda: narrow, {"x": numbers(9, 24)}),
}  # fmt: skip


def traced(name: str) -> Any:
    """The function of a workload, for arrays of its shapes."""
    load = WORKLOADS[name]
    signature = [
        td.TensorSpec(array.shape, array.dtype, key) for key, array in load.arrays.items()
    ]
    return td.function(load.make(), input_signature=signature)
