"""`python -m benchmarks.fit_overhead`: what does `model.fit` cost over a loop of compiled steps?

The loop calls a training step as programs write it (a tape, the gradients, the optimizer, and the
metric where there is one) on the same batches. Both train models of equal weights, in turn, some
hundred steps each; a round's ratio is that of two neighbours, and the report has the median of all
rounds. The data are tensors in a list (nothing is done to make a batch), a `td.data.Dataset`, or
arrays that are shuffled.

What `fit` adds to a step does not depend on the step, so the report also says from which time of a
step on it is below 3 %.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.measure import CLOCKS
from benchmarks.report import machine, markdown

BATCHES = 200  # different ones, which an epoch repeats


def mlp(size: int, hidden: int, batch: int) -> Any:
    """A network of two dense layers, on rows of `size` numbers."""
    layers = td.keras.layers
    inputs = td.keras.Input((size,), batch_size=batch)
    return td.keras.Sequential(
        [inputs, layers.Dense(hidden, activation="relu"), layers.Dense(10)]
    )


def cnn(batch: int) -> Any:
    """Two convolutions with pools and a dense layer, on images of 28 x 28."""
    layers = td.keras.layers
    return td.keras.Sequential([
        td.keras.Input((28, 28, 1), batch_size=batch),
        layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(10),
    ])  # fmt: skip


# Name -> the model, the shape of an example, examples a batch, steps an epoch.
MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...], int, int]] = {
    "mlp 64-32-10 b32": (lambda: mlp(64, 32, 32), (64,), 32, 5_000),
    "mnist mlp 784-128-10 b128": (lambda: mlp(784, 128, 128), (784,), 128, 400),
    "cnn 16-32 b32": (lambda: cnn(32), (28, 28, 1), 32, 200),
}
BOUND = 1.03
COLUMNS = ("fit_us", "loop_us", "ratio", "ratio_of_best", "added_us")
KINDS = ("list", "dataset", "arrays")


class Run:
    """A model with its data, trained by `fit` and by a loop.

    Args:
        name: of the model.
        kind: of the data, one of `KINDS`.
        accuracy: whether the accuracy is followed.
        clock: one of `measure.CLOCKS`.
    """

    def __init__(self, name: str, kind: str, accuracy: bool, clock: str) -> None:
        self.now = CLOCKS[clock]
        make, shape, self.batch, self.steps = MODELS[name]
        self.random = random = np.random.default_rng(0)
        self.x = random.random((self.batch * BATCHES, *shape), np.float32)
        self.y = random.integers(0, 10, self.batch * BATCHES).astype(np.int32)
        self.kind, self.accuracy = kind, accuracy
        self.fitted, self.bare = self._compiled(make()), make()
        self.bare.set_weights(self.fitted.get_weights())
        self.step = self._step()
        self.data = None if kind == "arrays" else self._batches()

    def _compiled(self, model: Any) -> Any:
        losses = td.keras.losses
        model.compile(
            td.keras.optimizers.Adam(), losses.SparseCategoricalCrossentropy(from_logits=True),
            ["sparse_categorical_accuracy"] if self.accuracy else None,
        )  # fmt: skip
        return model

    def _step(self) -> Callable[[Any, Any], Any]:
        model, optimizer = self.bare, td.keras.optimizers.Adam()
        loss_of = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        metric = td.keras.metrics.SparseCategoricalAccuracy() if self.accuracy else None
        weights = model.trainable_variables

        def step(x: Any, y: Any) -> Any:
            with td.GradientTape() as tape:
                logits = model(x, training=True)
                loss = loss_of(y, logits)
            gradients = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
            if metric is not None:
                metric.update_state(y, logits)
            return loss

        return td.function(step)

    def _batches(self) -> Any:
        if self.kind == "list":
            parts = (np.split(a, BATCHES) for a in (self.x, self.y))
            pairs = [tuple(map(td.constant, pair)) for pair in zip(*parts, strict=True)]
            return pairs * (self.steps // BATCHES)
        data = td.data.Dataset.from_tensor_slices((self.x, self.y))
        return data.batch(self.batch, drop_remainder=True).repeat(self.steps // BATCHES)

    def fit(self) -> float:
        """Train for an epoch; seconds a step."""
        start = self.now()
        if self.kind == "arrays":
            epochs = self.steps // BATCHES
            self.fitted.fit(self.x, self.y, batch_size=self.batch, epochs=epochs, verbose=0)
        else:
            self.fitted.fit(self.data, verbose=0)
        return (self.now() - start) / self.steps

    def loop(self) -> float:
        """The same by the loop."""
        start, step = self.now(), self.step
        for x, y in self._shuffled() if self.kind == "arrays" else self.data:
            step(x, y)
        return (self.now() - start) / self.steps

    def _shuffled(self) -> Iterator[Any]:
        """The batches of arrays as programs make them."""
        for _ in range(self.steps // BATCHES):
            order = self.random.permutation(len(self.x))
            for begin in range(0, len(order), self.batch):
                rows = order[begin : begin + self.batch]
                yield self.x[rows], self.y[rows]


def compare(name: str, kind: str, accuracy: bool, rounds: int, clock: str) -> dict[str, Any]:
    """The medians of `rounds` pairs of epochs, in microseconds a step."""
    run = Run(name, kind, accuracy, clock)
    run.fit(), run.loop()
    pairs = []
    for number in range(rounds):
        ways = (run.fit, run.loop) if number % 2 else (run.loop, run.fit)
        times = {way.__name__: way() for way in ways}
        pairs.append((times["fit"], times["loop"]))
    fits, loops = zip(*pairs, strict=True)
    return {
        "fit_us": round(statistics.median(fits) * 1e6, 2),
        "loop_us": round(statistics.median(loops) * 1e6, 2),
        "ratio": round(statistics.median(f / b for f, b in pairs), 4),
        "ratio_of_best": round(min(fits) / min(loops), 4),
        "added_us": round(statistics.median(f - b for f, b in pairs) * 1e6, 2),
        "rounds": rounds,
    }


def holds_from(rows: dict[str, Any]) -> dict[str, float]:
    """For each kind of data, from which time of a step on, in microseconds, `fit` keeps the bound:
    by what it adds to the steps of the smallest model, of which a run has most."""
    smallest = next(iter(MODELS))
    added = {
        kind: max(row["added_us"] for name, row in rows.items() if f"{smallest}, {kind}" in name)
        for kind in KINDS
    }
    return {kind: round(us / (BOUND - 1.0), 1) for kind, us in added.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fit_overhead", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="as of benchmarks (%(default)s)"
    )
    parser.add_argument("--models", default="", help="the beginning of a model's name")
    parser.add_argument("--out", type=Path, help="write the times to this JSON file")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    titles = "model, data", "fit (µs a step)", "loop (µs a step)", "ratio", "ratio of best", "added"
    lines = [[*titles]]
    for name in (n for n in MODELS if n.startswith(options.models)):
        for kind in KINDS:
            for accuracy in (False, True):
                label = f"{name}, {kind}{', accuracy' if accuracy else ''}"
                found = rows[label] = compare(
                    name, kind, accuracy, options.rounds, options.clock
                )
                cells = (found[k] for k in COLUMNS)
                lines.append([label, *map(str, cells)])
                print(" | ".join(lines[-1]), flush=True)
    print(markdown(lines))
    if options.out:
        report = {
            "machine": machine(), "clock": options.clock, "load_average": os.getloadavg(),
            "steps": rows, "below_3_percent_from_us": holds_from(rows),
        }  # fmt: skip
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
