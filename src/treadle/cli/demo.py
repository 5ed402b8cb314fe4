"""`treadle demo`: a small CNN on real digits, trained eagerly and as a graph side by side."""

import argparse
import inspect
import statistics
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import treadle as td
from treadle.datasets import digits
from treadle.examples.collatz import collatz
from treadle.examples.digits_cnn import Trainer, as_images
from treadle.version import __version__

from .code import print_code

BATCH = 32

NEXT = """\
Where to look further
  treadle bench                                       eager against graph on five workloads
  treadle inspect treadle.examples.collatz:collatz --args int32[]
                                                      every stage of the function above
  td.benchmark(function, *args)                       the same comparison for your own function
"""


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
