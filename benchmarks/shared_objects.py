"""`python -m benchmarks.shared_objects`: libraries of `td.shared_object`: size, load time, calls.

Each library is called by a program in C that times it: how long `dlopen` takes in a fresh process,
and a call by the median of the rounds. The same function is called from Python beside it: a
`td.function` with a tensor. Both use one thread. A library is as large as its machine code, its
tables and its constants and variables together; `values` are the bytes of the last two.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.measure import measure
from benchmarks.report import machine

ROUNDS = 9
TARGETS = ("native", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "net.h"

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(void)
{
    double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    void *library = dlopen("./libnet.so", RTLD_NOW);
    double loaded = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    if (!library) return 1;
    int (*f)(struct net_f *) = (int (*)(struct net_f *))dlsym(library, "net_f");
    float *x = calloc(INPUTS, sizeof *x), *y = calloc(OUTPUTS, sizeof *y);
    struct net_f call = NET_F_INIT;
    call.x.data = x;
    call.y.data = y;
    call.y.room = OUTPUTS;
    begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (f(&call)) return 2;
    double first = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin, took = 0;
    long count = 1;
    while (took < 0.02) {
        count *= 2;
        begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (long k = 0; k < count; k++) f(&call);
        took = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    }
    printf("%g %g %g\n", 1e6 * loaded, 1e6 * first, 1e6 * took / count);
    return 0;
}
"""


def add_one() -> tuple[Callable[..., Any], tuple[int, ...]]:
    """Next to no work: what is measured is the call."""
    return (lambda x: {"y": x + 1.0}), (4,)


def mlp() -> tuple[Callable[..., Any], tuple[int, ...]]:
    """784-128-10, one example."""
    layers = td.keras.layers
    model = td.keras.Sequential([
        layers.Input((784,)), layers.Dense(128, "relu"), layers.Dense(10, "softmax")
    ])  # fmt: skip
    return (lambda x: {"y": model(x, training=False)}), (1, 784)


def cnn() -> tuple[Callable[..., Any], tuple[int, ...]]:
    """Two convolutions with pools and a dense layer, one image of 28 x 28."""
    layers = td.keras.layers
    model = td.keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
        layers.Dense(10),
    ])  # fmt: skip
    return (lambda x: {"y": model(x, training=False)}), (1, 28, 28, 1)


def lstm() -> tuple[Callable[..., Any], tuple[int, ...]]:
    """32 cells over 20 steps of 16 numbers, one sequence."""
    layers = td.keras.layers
    model = td.keras.Sequential([layers.Input((20, 16)), layers.LSTM(32), layers.Dense(4)])
    return (lambda x: {"y": model(x, training=False)}), (1, 20, 16)


MODELS = {"x + 1 of 4 numbers": add_one, "mlp 784-128-10": mlp, "cnn 16-32": cnn, "lstm 32": lstm}


def figures(make: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """The row of a function."""
    python, shape = make()
    function = td.function(python)
    x = td.constant(np.zeros(shape, np.float32))
    y = function(x)["y"].numpy()
    spec = td.TensorSpec(shape, name="x")
    concrete = function.get_concrete_function(spec)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = td.shared_object.export({"f": concrete}, folder / "libnet.so")
        (folder / "main.c").write_text(PROGRAM)
        sizes = [f"-DINPUTS={x.numpy().size}", f"-DOUTPUTS={y.size}"]
        build = ["cc", "-O2", *sizes, "main.c", "-o", "main"]
        subprocess.run(build, cwd=folder, check=True)
        runs, calls = [], []
        for _ in range(ROUNDS):
            done = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True)
            runs.append([float(word) for word in done.stdout.split()])
            calls.append(1e6 * measure((function, x), seconds, clock="processor").median)
        size = made.library.stat().st_size
    load, first, call = (statistics.median(column) for column in zip(*runs, strict=True))
    return {
        "bytes": size,
        "values": sum(v.numpy().nbytes for v in concrete.captured_inputs),
        "load_us": round(load, 1),
        "first_call_us": round(first, 2),
        "c_call_us": round(call, 3),
        "python_call_us": round(statistics.median(calls), 3),
    }


def sizes_by_target() -> dict[str, int]:
    """The bytes of the library of the convolutional network for each machine that can be linked."""
    python, shape = cnn()
    concrete = td.function(python).get_concrete_function(td.TensorSpec(shape, name="x"))
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for target in TARGETS:
            path = Path(name) / "libnet.so"
            try:
                made = td.shared_object.export({"f": concrete}, path, target=target)
            except td.errors.FailedPreconditionError:
                continue  # there is no compiler for it
            found[target] = made.library.stat().st_size
    return found


def report(seconds: float) -> dict[str, Any]:
    """All figures, of one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    td.config.threading.set_intra_op_parallelism_threads(1)
    return {
        "machine": machine(),
        "clock": "processor",
        "rounds": ROUNDS,
        "libraries": {name: figures(make, seconds) for name, make in MODELS.items()},
        "bytes_of_cnn_by_target": sizes_by_target(),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=0.1, help="for each job in a round")
    options.add_argument("--json", type=Path, help="write the report there")
    given = options.parse_args()
    found = report(given.seconds)
    text = json.dumps(found, indent=1)
    print(text)
    if given.json:
        given.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
