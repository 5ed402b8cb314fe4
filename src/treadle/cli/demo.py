"""`treadle demo`: a small CNN on real digits, trained eagerly and as a graph side by side."""

import argparse
import inspect
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import treadle as td
from treadle.datasets import digits
from treadle.version import __version__

from .code import print_code

BATCH = 32

NEXT = """\
Where to look further
  treadle bench                                       eager against graph on five workloads
  treadle inspect treadle.cli.demo:collatz --args int32[]
                                                      every stage of the function above
  td.benchmark(function, *args)                       the same comparison for your own function
"""


def collatz(n: Any) -> Any:
    """Steps of the Collatz sequence from n to 1, at most 200."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
        if steps >= 200:
            break
    return steps


@dataclass
class Trainer:
    """A model with its optimizer; `decorate` makes its step eager or a graph."""

    name: str
    decorate: Callable[[Any], Any]
    times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        td.random.set_seed(0)
        self.model = make_model()
        self.model(td.zeros((1, 8, 8, 1)))  # creates the variables
        self.optimizer = td.keras.optimizers.Adam(2e-3)
        self.loss = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.step = self.decorate(self._step)
        self.predict = self.decorate(lambda x: td.argmax(self.model(x), axis=-1))

    def _step(self, x: Any, y: Any) -> Any:
        with td.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True))
        variables = self.model.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def epoch(self, batches: list[tuple[Any, Any]], seed: int) -> float:
        """Train on every batch; returns the mean loss. The seed decides what is dropped out."""
        td.random.set_seed(seed)
        for x, y in batches:
            start = time.perf_counter()
            loss = self.step(x, y)
            self.times.append(time.perf_counter() - start)
            self.losses.append(float(loss))
        return statistics.fmean(self.losses[-len(batches) :])

    def accuracy(self, images: Any, labels: np.ndarray[Any, Any]) -> float:
        return float(np.mean(np.asarray(self.predict(images)) == labels))


def make_model() -> Any:
    layers = td.keras.layers
    return td.keras.Sequential(
        [
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )


def as_images(pixels: np.ndarray[Any, Any]) -> Any:
    return td.constant((pixels[..., np.newaxis] / 16).astype(np.float32))


def shuffled_batches(
    images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], epoch: int
) -> list[tuple[Any, Any]]:
    """Full batches only: every step of an epoch has the same shapes."""
    order = np.random.default_rng(epoch).permutation(len(images))
    starts = range(0, len(order) - BATCH + 1, BATCH)
    chosen = [order[start : start + BATCH] for start in starts]
    return [(as_images(images[c]), td.constant(labels[c].astype(np.int32))) for c in chosen]


def train(trainers: list[Trainer], data: digits.Part, epochs: int, console: Console) -> None:
    """Train in turn, an epoch each, on the same batches."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TextColumn("epochs  {task.fields[loss]}"), console=console) as bars:
        tasks = [bars.add_task(t.name, total=epochs, loss="") for t in trainers]
        for epoch in range(epochs):
            batches = shuffled_batches(*data, epoch)
            for task, trainer in zip(tasks, trainers, strict=True):
                loss = trainer.epoch(batches, seed=epoch)
                bars.update(task, advance=1, loss=f"loss {loss:.4f}")


def results(trainers: list[Trainer], accuracies: list[float]) -> Table:
    shown = Table()
    for heading in ("", "a step (median)", "first step", "test accuracy"):
        shown.add_column(heading, justify="right")
    for trainer, accuracy in zip(trainers, accuracies, strict=True):
        median = statistics.median(trainer.times)
        shown.add_row(
            trainer.name,
            f"{median * 1e6:,.0f} µs",
            f"{trainer.times[0] * 1e3:,.0f} ms",
            f"{accuracy * 100:.1f} %",
        )
    return shown


def difference(trainers: list[Trainer]) -> float:
    """The largest relative difference of the losses over the first 50 steps."""
    one, other = (np.array(trainer.losses[:50]) for trainer in trainers)
    return float(np.max(np.abs(one - other) / one))


def run(options: argparse.Namespace) -> None:
    console = Console()
    training, (x_test, y_test) = digits.load_data()
    console.print(f"treadle {__version__}: a CNN learns {len(training[0]):,} handwritten digits\n")
    trainers = [Trainer("eager", lambda f: f), Trainer("graph", td.function)]
    train(trainers, training, options.epochs, console)
    images = as_images(x_test)
    accuracies = [trainer.accuracy(images, y_test) for trainer in trainers]
    console.print(results(trainers, accuracies))
    eager, graph = (statistics.median(trainer.times) for trainer in trainers)
    console.print(f"a step of the graph is {eager / graph:.1f} x as fast as an eager one;")
    console.print(f"their losses differ by at most {difference(trainers):.1e} over 50 steps\n")
    show_autograph(console)
    console.print(NEXT, markup=False, highlight=False, soft_wrap=True)


def show_autograph(console: Console) -> None:
    console.print("Python with a loop, a branch and a break")
    print_code(console, inspect.getsource(collatz))
    console.print("is rewritten by AutoGraph into")
    print_code(console, td.autograph.to_code(collatz))
    steps = td.function(collatz)(td.constant(27))
    console.print(f"and runs as one native program: collatz(27) = {int(steps)} steps\n")
