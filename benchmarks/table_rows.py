"""`python -m benchmarks.table_rows`: what does a step on rows of a table cost as the table grows?

A compiled step reads rows of an embedding table, and an optimizer changes it by their gradient.
SGD and Adagrad change the rows that were read, so a step should take as long for a large table as
for a small one, but for the caches: the rows of a large one come from memory. Adam's rule, as Keras
has it, moves all rows at every step: it is here for comparison.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td

WIDTH, BATCH = 64, 512
SIZES = [10**3, 10**4, 10**5, 10**6]
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: td.keras.optimizers.SGD(0.1),
    "Adagrad": lambda: td.keras.optimizers.Adagrad(0.1),
    "Adam": lambda: td.keras.optimizers.Adam(0.1),
}


def microseconds(name: str, rows: int, seconds: float = 0.5, batches: int = 50) -> float:
    """The shortest of the steps that fit into some seconds, each on other rows."""
    table = td.Variable(np.zeros((rows, WIDTH), np.float32))
    optimizer = OPTIMIZERS[name]()
    optimizer.build([table])

    @td.function
    def step(ids: Any, wanted: Any) -> Any:
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(td.gather(table, ids) - wanted))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
        return loss

    random = np.random.default_rng(0)
    ids = [td.constant(random.integers(0, rows, BATCH)) for _ in range(batches)]
    wanted = td.constant(random.standard_normal((BATCH, WIDTH)).astype(np.float32))
    step(ids[0], wanted)
    found, end = [], time.perf_counter() + seconds
    while not found or time.perf_counter() < end:
        for batch in ids:
            start = time.perf_counter()
            step(batch, wanted)
            found.append(time.perf_counter() - start)
    return min(found) * 1e6


def measure(sizes: list[int], seconds: float = 0.5) -> dict[str, dict[str, float]]:
    """Microseconds a step, by optimizer and rows of the table."""
    return {
        name: {str(rows): round(microseconds(name, rows, seconds), 1) for rows in sizes}
        for name in OPTIMIZERS
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_rows", description=__doc__)
    parser.add_argument("file", nargs="?", help="write the figures as JSON")
    file = parser.parse_args().file
    found = measure(SIZES)
    print(f"microseconds a step on {BATCH} rows of {WIDTH} numbers, by rows of the table")
    print("| | " + " | ".join(f"{n:,}" for n in SIZES) + " |")
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(f"{t:,.1f}" for t in row.values()) + " |")
    if file:
        with open(file, "w") as out:
            json.dump({"rows": BATCH, "width": WIDTH, "microseconds": found}, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
