"""`python -m benchmarks.session_run`: what does `compat.v1.Session.run` cost over its program?

The graph is small: ``tanh(x * w + b)`` of four numbers. `run` gets an array for the placeholder and
gives one; the native program that it runs is called with the same arrays, and so is a
`td.function` of the same computation. Calls of the three take turns; the report has the median of
the rounds in microseconds, and of their differences.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
import treadle.compat.v1 as tf
from benchmarks.measure import measure
from benchmarks.report import machine

ROUNDS = 15
BOUND_US = 3.0


def jobs() -> dict[str, Any]:
    """The calls, by name."""
    numbers = np.arange(4, dtype=np.float32)
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [4], "x")
        y = tf.tanh(x * 2.0 + 1.0, "y")
        session = tf.Session(graph=graph)
    feeds = {x: numbers}

    @td.function
    def same(x):
        return td.tanh(x * 2.0 + 1.0)

    tensor = td.constant(numbers)
    program = same.get_concrete_function(tensor).executable
    return {
        "session": (session.run, y, feeds),
        "program": (program.run, [numbers]),
        "function": (same, tensor),
    }


def report(seconds: float) -> dict[str, Any]:
    """The medians of the rounds."""
    found: dict[str, list[float]] = {}
    made = jobs()
    for job in made.values():
        job[0](*job[1:])
    for _ in range(ROUNDS):
        for name, job in made.items():
            found.setdefault(name, []).append(1e6 * measure(job, seconds, clock="processor").median)
    added = [s - p for s, p in zip(found["session"], found["program"], strict=True)]
    return {
        "machine": machine(),
        "clock": "processor",
        "rounds": ROUNDS,
        **{f"{name}_us": round(statistics.median(times), 3) for name, times in found.items()},
        "added_us": round(statistics.median(added), 3),
        "added_us_of_best": round(min(found["session"]) - min(found["program"]), 3),
        "bound_us": BOUND_US,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=0.1, help="for each job in a round")
    options.add_argument("--json", type=Path, help="write the report there")
    given = options.parse_args()
    found = report(given.seconds)
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
