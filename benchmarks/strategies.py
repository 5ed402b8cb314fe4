"""Several workers: the same losses as one, the time of a step, and what an exchange costs.

    python -m benchmarks.strategies --out docs/results/strategies.json

Starts itself under ``mpiexec`` of the wheel of MPI (``pip install treadle[mpi]``) with 1 and 2
workers, each with one thread, and with 2 workers for the exchanges. Times are the best ones.

    python -m benchmarks.strategies --gpus 2 --out docs/results/strategies_gpu.json

compares one GPU with several of this process (`MirroredStrategy`), by NCCL and by copies.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.report import cpu_name

BATCH, WIDTH, STEPS = 256, 1024, 30
CALLS = 20  # of an exchange in a block that is timed
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)  # bytes


def fastest(call: Callable[[], Any], times: int) -> float:
    """The best time of a call in milliseconds."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return 1e3 * min(taken)


def hand_written(strategy: Any) -> tuple[list[float], float]:
    """The losses of a loop of steps, and the milliseconds of a step."""
    x = np.random.RandomState(0).randn(BATCH * 4, WIDTH).astype(np.float32)
    y = np.random.RandomState(1).randint(0, 10, BATCH * 4)
    td.random.set_seed(1)
    with strategy.scope():
        sizes = [WIDTH, WIDTH, WIDTH, 10]
        weights = [
            td.Variable(td.random.normal([a, b]) / a**0.5)
            for a, b in zip(sizes, sizes[1:], strict=False)
        ]
        optimizer = td.keras.optimizers.SGD(0.05, momentum=0.9)
    data = td.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).repeat()
    batches = iter(strategy.experimental_distribute_dataset(data))

    @td.function
    def train(batch: Any) -> Any:
        def replica(x: Any, y: Any) -> Any:
            with td.GradientTape() as tape:
                h = x
                for w in weights[:-1]:
                    h = td.nn.relu(td.matmul(h, w))
                logits = td.matmul(h, weights[-1])
                each = td.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
                loss = td.reduce_sum(each) / BATCH
            gradients = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
            return loss

        return strategy.reduce("sum", strategy.run(replica, batch), axis=None)

    losses = [float(train(next(batches))) for _ in range(STEPS)]
    batch = next(batches)
    return losses, fastest(lambda: train(batch).numpy(), STEPS)


def by_fit(strategy: Any) -> list[float]:
    """The losses of the epochs of a `fit`."""
    td.keras.utils.set_random_seed(2)
    x = np.random.RandomState(0).randn(512, 20).astype(np.float32)
    y = np.random.RandomState(1).randint(0, 4, 512)
    layers = td.keras.layers
    with strategy.scope():
        model = td.keras.Sequential([
            td.keras.Input((20,)), layers.Dense(64, "relu"), layers.Dense(4)
        ])  # fmt: skip
        model.compile("adam", td.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=32, epochs=5, verbose=0)
    return [float(v) for v in history.history["loss"]]


def replica_sum(x: Any) -> Any:
    """The sum over all replicas."""
    return td.distribute.get_replica_context().all_reduce("sum", x)


def exchanges(strategy: Any) -> dict[str, Any]:
    """For sizes in bytes the milliseconds of mpi4py's Allreduce on arrays, and of a compiled
    function with one all-reduce."""
    from mpi4py import MPI

    found: dict[str, Any] = {}
    for size in SIZES:
        sent = np.ones(size // 4, np.float32)
        got, value = np.empty_like(sent), td.constant(sent)

        @td.function
        def total(x: Any) -> Any:
            return strategy.run(replica_sum, (x,))

        times = 20 if size > 1 << 20 else 200
        total(value)
        rounds: dict[str, list[float]] = {"mpi4py": [], "treadle": []}
        direct = functools.partial(MPI.COMM_WORLD.Allreduce, sent, got)
        for _ in range(5):
            rounds["mpi4py"].append(fastest(direct, times))
            rounds["treadle"].append(fastest(functools.partial(total, value), times))
        best = {name: min(taken) for name, taken in rounds.items()}
        found[str(size)] = {
            f"{name}, ms": round(ms, 4) for name, ms in best.items()
        } | {"treadle over mpi4py": round(best["treadle"] / best["mpi4py"], 2)}  # fmt: skip
    return found


def work(what: str) -> None:
    """A worker's part; the first one writes what was found."""
    td.config.threading.set_intra_op_parallelism_threads(1)
    strategy = td.distribute.MultiWorkerMirroredStrategy()
    if what == "exchanges":
        found: Any = exchanges(strategy)
    else:
        losses, step = hand_written(strategy)
        found = {"losses": losses, "step, ms": round(step, 3), "fit": by_fit(strategy)}
    if strategy.cluster_resolver.task_id == 0:
        print("found", json.dumps(found))


def started(workers: int, what: str) -> Any:
    """What the workers of a run of this file found."""
    command = [
        str(Path(sys.prefix, "bin", "mpiexec")), "-n", str(workers), sys.executable, "-m",
        "benchmarks.strategies", "--work", what,
    ]  # fmt: skip
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("found ")]
    return json.loads(line.removeprefix("found "))


def farthest(a: Sequence[float], b: Sequence[float]) -> float:
    """The largest relative difference."""
    return float(np.max(np.abs(np.array(a) - b) / np.abs(a)))


def summed_on_gpus(strategy: Any) -> dict[str, float]:
    """For sizes in bytes the milliseconds of a compiled function with one all-reduce over GPUs,
    in blocks of calls that end when the GPUs have done their work."""
    found = {}
    for size in SIZES:
        value = strategy.experimental_distribute_values_from_function(
            lambda _, size=size: td.ones([size // 4])
        )

        @td.function
        def total(x: Any) -> Any:
            return strategy.run(replica_sum, (x,))

        def block(total: Any = total, value: Any = value) -> None:
            for _ in range(CALLS):
                result = total(value)
            for part in strategy.experimental_local_results(result):
                part[0].numpy()

        block()
        found[str(size)] = round(fastest(block, 5) / CALLS, 4)
    return found


def on_gpus(count: int) -> dict[str, Any]:
    """Steps and exchanges of one GPU and of several."""
    names = [f"GPU:{i}" for i in range(count)]
    several = td.distribute.MirroredStrategy
    strategies = {
        "one GPU": td.distribute.OneDeviceStrategy("GPU:0"),
        f"{count} GPUs": several(names),
        f"{count} GPUs by copies": several(names, td.distribute.HierarchicalCopyAllReduce()),
    }
    report: dict[str, Any] = {
        "command": f"python -m benchmarks.strategies --gpus {count}",
        "GPU": td.config.experimental.get_device_details(
            td.config.list_physical_devices("GPU")[0]
        ).get("device_name"),
        "what": (
            f"{STEPS} steps of a dense network of {WIDTH} units and three layers, batches of "
            f"{BATCH}, SGD with momentum, by a hand-written loop whose loss is read in each step; "
            "the largest relative difference of losses is to those of one GPU. Then all-reduces of "
            "float32."
        ),
    }
    wanted: list[float] = []
    for name, strategy in strategies.items():
        losses, step = hand_written(strategy)
        wanted = wanted or losses
        report[name] = {
            "step, ms": round(step, 3),
            "largest relative difference of losses": farthest(wanted, losses),
        }
        if strategy.num_replicas_in_sync > 1:
            report[name]["all-reduce of so many bytes, ms"] = summed_on_gpus(strategy)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--gpus", type=int, help="compare so many GPUs with one")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    if options.gpus:
        write(on_gpus(options.gpus), options.out)
        return
    one, two = started(1, "training"), started(2, "training")
    report = {
        "command": "python -m benchmarks.strategies",
        "processor": cpu_name(),
        "processors": len(os.sched_getaffinity(0)),
        "load of other runs beside it": round(os.getloadavg()[2], 1),
        "what": (
            f"{STEPS} steps of a dense network of {WIDTH} units and three layers, batches of "
            f"{BATCH}, SGD with momentum, by a hand-written loop, and 5 epochs of a small model by "
            "fit; one worker with the whole batch, and two with half of it each, one thread a "
            "worker. Then all-reduces of float32 between two workers, by mpi4py on NumPy arrays "
            "and by a compiled function."
        ),
        "largest relative difference of losses": {
            "loop": farthest(one["losses"], two["losses"]), "fit": farthest(one["fit"], two["fit"]),
        },
        "losses of the loop, first and last": [one["losses"][0], one["losses"][-1]],
        "step of one worker, ms": one["step, ms"],
        "step of two workers, ms": two["step, ms"],
        "speed of two workers": round(one["step, ms"] / two["step, ms"], 2),
        "all-reduce of so many bytes": started(2, "exchanges"),
    }
    write(report, options.out)


def write(report: dict[str, Any], out: Path | None) -> None:
    """Write a report to a file, or print it."""
    text = json.dumps(report, indent=1) + "\n"
    if out is None:
        print(text)
    else:
        out.write_text(text)


if __name__ == "__main__":
    main()
