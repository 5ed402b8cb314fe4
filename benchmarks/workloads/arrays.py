"""Reductions in every direction, and operations that only move elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Workload

Array = Any


class OnArrays(Workload):
    """A function of float32 arrays, written for each library.

    shapes: of the arguments; their elements are normally distributed.
    """

    tolerance = 1e-4
    without = ("treadle-eager",)
    shapes: list[tuple[int, ...]]
    with_numpy: Callable[..., Any]  # (np, *arrays)
    with_tf: Callable[..., Any]
    with_jax: Callable[..., Any]
    with_torch: Callable[..., Any]

    def data(self) -> list[Array]:
        random = np.random.default_rng(1)
        return [random.standard_normal(shape).astype(np.float32) for shape in self.shapes]

    def numpy(self, np):
        return lambda *x: self.with_numpy(np, *x), *self.data()

    def tf2(self, tf, function):
        def work(*x):
            return self.with_tf(tf, *x)

        return function(work), *map(tf.constant, self.data())

    def jax(self, jax):
        f = jax.jit(lambda *x: self.with_jax(jax, *x))
        data = [jax.numpy.asarray(x) for x in self.data()]
        return lambda: jax.block_until_ready(f(*data))

    def torch(self, torch, compile):
        def work(*x):
            return self.with_torch(torch, *x)

        return compile(work), *map(torch.from_numpy, self.data())


def softmax(axis: int) -> dict[str, Callable[..., Any]]:
    def plain(np: Any, x: Array) -> Array:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return {
        "with_numpy": plain,
        "with_tf": lambda tf, x: tf.nn.softmax(x, axis),
        "with_jax": lambda jax, x: jax.nn.softmax(x, axis),
        "with_torch": lambda torch, x: torch.softmax(x, axis),
    }


def sums(axes: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    """The gradient of a bias."""
    return {
        "with_numpy": lambda np, x: x.sum(axes),
        "with_tf": lambda tf, x: tf.reduce_sum(x, axes),
        "with_jax": lambda jax, x: x.sum(axes),
        "with_torch": lambda torch, x: x.sum(axes),
    }


def moments(axes: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    """What a batch normalisation needs to know."""
    return {
        "with_numpy": lambda np, x: (x.mean(axes), x.var(axes)),
        "with_tf": lambda tf, x: tf.nn.moments(x, axes),
        "with_jax": lambda jax, x: (x.mean(axes), x.var(axes)),
        "with_torch": lambda torch, x: (x.mean(axes), x.var(axes, correction=0)),
    }


def positions(axis: int) -> dict[str, Callable[..., Any]]:
    return {
        "with_numpy": lambda np, x: x.argmax(axis),
        "with_tf": lambda tf, x: tf.argmax(x, axis),
        "with_jax": lambda jax, x: x.argmax(axis),
        "with_torch": lambda torch, x: x.argmax(axis),
    }


LOGSUMEXP = {
    "with_numpy": lambda np, x: np.logaddexp.reduce(x, -1),
    "with_tf": lambda tf, x: tf.reduce_logsumexp(x, -1),
    "with_jax": lambda jax, x: jax.nn.logsumexp(x, -1),
    "with_torch": lambda torch, x: torch.logsumexp(x, -1),
}
VARIANCE = {
    "with_numpy": lambda np, x: x.var(-1),
    "with_tf": lambda tf, x: tf.math.reduce_variance(x, -1),
    "with_jax": lambda jax, x: x.var(-1),
    "with_torch": lambda torch, x: x.var(-1, correction=0),
}


def transpose(order: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    return {
        "with_numpy": lambda np, x: np.ascontiguousarray(x.transpose(order)),
        "with_tf": lambda tf, x: tf.transpose(x, order),
        "with_jax": lambda jax, x: x.transpose(order),
        "with_torch": lambda torch, x: x.permute(order).contiguous(),
    }


RUNNING = {
    "with_numpy": lambda np, x: x.cumsum(1),
    "with_tf": lambda tf, x: tf.cumsum(x, 1),
    "with_jax": lambda jax, x: x.cumsum(1),
    "with_torch": lambda torch, x: x.cumsum(1),
}
CONCAT = {
    "with_numpy": lambda np, x, y: np.concatenate([x, y], 1),
    "with_tf": lambda tf, x, y: tf.concat([x, y], 1),
    "with_jax": lambda jax, x, y: jax.numpy.concatenate([x, y], 1),
    "with_torch": lambda torch, x, y: torch.cat([x, y], 1),
}
SLICE = {
    "with_numpy": lambda np, x: x[:, 100:612].reshape(512, 1024) * 2,
    "with_tf": lambda tf, x: tf.reshape(x[:, 100:612], [512, 1024]) * 2.0,
    "with_jax": lambda jax, x: x[:, 100:612].reshape(512, 1024) * 2,
    "with_torch": lambda torch, x: x[:, 100:612].reshape(512, 1024) * 2,
}
FRAME = ((0, 0), (1, 1), (1, 1), (0, 0))
PAD = {
    "with_numpy": lambda np, x: np.pad(x, FRAME),
    "with_tf": lambda tf, x: tf.pad(x, FRAME),
    "with_jax": lambda jax, x: jax.numpy.pad(x, FRAME),
    "with_torch": lambda torch, x: torch.nn.functional.pad(x, (0, 0, 1, 1, 1, 1)),
}

SQUARE, IMAGES = (1024, 1024), (50, 28, 28, 32)
WORKLOADS = [
    OnArrays("softmax down columns 1024x1024", shapes=[SQUARE], **softmax(0)),
    OnArrays("softmax in the middle 64x128x256", shapes=[(64, 128, 256)], **softmax(1)),
    OnArrays("softmax of short rows 4096x128", shapes=[(4096, 128)], **softmax(1)),
    OnArrays("column sums 1024x1024", shapes=[SQUARE], **sums((0,))),
    OnArrays("column sums 100000x32", shapes=[(100_000, 32)], **sums((0,))),
    OnArrays("moments over 50x28x28 of 32", shapes=[IMAGES], **moments((0, 1, 2))),
    OnArrays("argmax of rows 1024x1024", shapes=[SQUARE], **positions(1)),
    OnArrays("argmax of columns 1024x1024", shapes=[SQUARE], **positions(0)),
    OnArrays("logsumexp of rows 1024x1024", shapes=[SQUARE], **LOGSUMEXP),
    OnArrays("variance of rows 1024x1024", shapes=[SQUARE], **VARIANCE),
    OnArrays("running sums of rows 1024x1024", shapes=[SQUARE], **RUNNING),
    OnArrays("transpose 2048x2048", shapes=[(2048, 2048)], **transpose((1, 0))),
    OnArrays("channels first 50x28x28x32", shapes=[IMAGES], **transpose((0, 3, 1, 2))),
    OnArrays("concatenation 2 of 1024x1024", shapes=[SQUARE, SQUARE], **CONCAT),
    OnArrays("slice and reshape 1024x1024", shapes=[SQUARE], **SLICE),
    OnArrays("zero frame 50x28x28x32", shapes=[IMAGES], **PAD),
]
