"""Several workers that MPI starts: they compute what one would, and a lost one ends the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.distribute.launching import HAS_MPI, finish, needs_mpi, start, told
from treadle.distribute.workers import _packs

pytestmark = pytest.mark.thorough


def test_mpi_is_there_where_it_must_be() -> None:
    """TREADLE_TEST_MPI=1, which .ci/run sets, says that the tests with MPI must not be skipped."""
    if os.environ.get("TREADLE_TEST_MPI") == "1":
        assert HAS_MPI, "TREADLE_TEST_MPI=1 asks for tests with MPI: pip install treadle[mpi]"


def test_one_process_is_one_worker() -> None:
    code = """
import treadle as td
s = td.distribute.MultiWorkerMirroredStrategy()
v = s.run(lambda x: td.distribute.get_replica_context().all_reduce("sum", x), (td.constant(2.0),))
print(s.num_replicas_in_sync, s.cluster_resolver.task_id, float(v))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["1", "0", "2.0"], done.stderr


def test_tf_config_of_other_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    with pytest.raises(ValueError, match=r"TF_CONFIG names 2 workers, and MPI started 1.*mpiexec"):
        td.distribute.MultiWorkerMirroredStrategy()


def test_small_tensors_share_a_pack() -> None:
    floats = [td.zeros([n]) for n in (10, 20, 30, 300, 5)]
    mixed = [floats[0], td.zeros([4], td.float64), floats[1], td.zeros([4], td.float64)]
    assert _packs(floats, 400) == [[0, 1, 2], [3], [4]]
    assert _packs(floats, 1 << 20) == [[0, 1, 2, 3, 4]]
    assert _packs(mixed, 1 << 20) == [[0, 2], [1, 3]]
    assert _packs([], 100) == []


_REDUCE = """
def exchange(i):
    replica = td.distribute.get_replica_context()
    values = {
        "f": td.cast(td.range(5), td.float32) * (i + 1.0),
        "d": td.fill([2, 3], td.cast(i, td.float64)),
        "i": td.cast([[1, 2]], td.int32) + td.cast(i, td.int32), "h": td.cast(i, td.float16),
        "b": td.cast(td.fill([3], i), td.bfloat16), "n": td.zeros([0]),
        "z": td.complex(td.fill([2], i), td.ones([2])),
    }
    total = replica.all_reduce("sum", values)
    mean = replica.all_reduce("mean", i)
    rows = td.IndexedSlices(td.fill([1, 2], i), td.cast([i], td.int64), td.constant([9, 2]))
    parts = replica.all_gather(td.fill([td.cast(i, td.int32) + 1, 2], i), 0)
    across = replica.all_gather(td.fill([2, td.cast(i, td.int32) + 1], i), 1)
    return total, mean, td.convert_to_tensor(replica.all_reduce("sum", rows)), parts, across

for run in (exchange, td.function(exchange)):
    total, mean, rows, parts, across = strategy.run(run, (td.constant(float(rank)),))
    total["z"] = td.stack([td.math.real(total["z"]), td.math.imag(total["z"])])
    tell(*(td.cast(total[k], td.float64) for k in sorted(total)), mean, rows, parts, across)
    assert [total[k].dtype.name for k in "bdfhi"] == [
        "bfloat16", "float64", "float32", "float16", "int32"]
concrete = strategy._functions[id(run)][1].get_concrete_function(td.constant(0.0))
text = str(concrete.executable.graph)
tell(text.count("all_reduce("))
"""


@needs_mpi
@pytest.mark.parametrize("workers", [2, 4])
def test_exchanges(workers: int, tmp_path: Path) -> None:
    everyone = told(_REDUCE, workers, tmp_path)
    assert all(lines == everyone[0] for lines in everyone)
    eager, compiled, reduces = map(json.loads, everyone[0])
    assert eager == compiled
    b, d, f, h, i, n, z, mean, rows, parts, across = eager
    ranks = range(workers)
    total = sum(ranks)
    assert (b, h, n, mean) == ([total] * 3, total, [], total / workers)
    assert d == [[total] * 3] * 2 and i == [[workers + total, 2 * workers + total]]
    assert z == [[total] * 2, [workers] * 2]
    assert f == [k * (total + workers) for k in range(5)]
    assert rows == [[r, r] if r < workers else [0, 0] for r in range(9)]
    assert parts == [[r, r] for r in ranks for _ in range(r + 1)]
    assert across == [[r for r in ranks for _ in range(r + 1)]] * 2
    # One for each dtype of the structure (those of 16 bits are sent as float32, as are the parts of
    # complex numbers), one for the mean, and none for the gathers.
    assert reduces == [4]


_AGREED = """
with strategy.scope():
    v = td.Variable(td.random.normal([3]) + rank)
    s = td.Variable(str(rank))
tell(v)
tell(s.numpy().decode())
data = td.data.Dataset.range(40).shuffle(40).batch(10)
for x in strategy.experimental_distribute_dataset(data):
    tell(strategy.gather(x, 0))
"""


@needs_mpi
def test_workers_agree_on_variables_and_shuffles_without_a_seed(tmp_path: Path) -> None:
    everyone = told(_AGREED, 2, tmp_path)
    assert everyone[0] == everyone[1]
    _, text, *batches = map(json.loads, everyone[0])
    assert text == ["0"]
    seen = [n for (batch,) in batches for n in batch]
    assert sorted(seen) == list(range(40)) and seen != list(range(40))


_STEP = """
x = np.random.RandomState(1).randn(64, 12).astype(np.float32)
y = np.random.RandomState(2).randn(64, 1).astype(np.float32)
with strategy.scope():
    td.random.set_seed(5)
    weights = [td.Variable(td.random.normal([12, 16])), td.Variable(td.zeros([16])),
               td.Variable(td.random.normal([16, 1]))]
    optimizer = td.keras.optimizers.SGD(0.01, momentum=0.9)

data = strategy.experimental_distribute_dataset(
    td.data.Dataset.from_tensor_slices((x, y)).shuffle(64, seed=3).batch(16).repeat(3))

@td.function
def train(batch):
    def replica(x, y):
        with td.GradientTape() as tape:
            hidden = td.tanh(td.matmul(x, weights[0]) + weights[1])
            error = td.matmul(hidden, weights[2]) - y
            loss = td.nn.compute_average_loss(td.reduce_sum(error ** 2, 1), global_batch_size=16)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss
    losses = strategy.run(replica, batch)
    return strategy.reduce("sum", losses, axis=None)

for batch in data:
    tell(train(batch))
tell([td.reduce_sum(w) for w in weights])
"""


def floats(lines: list[str]) -> list[np.ndarray]:
    return [np.array(json.loads(line), np.float64) for line in lines]


@needs_mpi
def test_a_step_gives_the_losses_of_one_worker_with_the_joined_batch(tmp_path: Path) -> None:
    """And the same bits at each worker, and in each run."""
    seen: list[list[list[str]]] = []
    (alone,) = told(_STEP, 1, tmp_path)
    for workers in (2, 2, 4):
        everyone = told(_STEP, workers, tmp_path)
        if workers == 2:
            seen.append(everyone)
        assert all(lines == everyone[0] for lines in everyone)  # bit for bit
        for one, several in zip(floats(alone), floats(everyone[0]), strict=True):
            np.testing.assert_allclose(several, one, rtol=2e-5, atol=1e-6)
    assert seen[0] == seen[1]


_FIT = """
from treadle import keras
td.keras.utils.set_random_seed(7)
with strategy.scope():
    model = keras.Sequential([
        keras.Input((10,)), keras.layers.Dense(24, "relu", kernel_regularizer="l2"),
        keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)])
x = np.random.RandomState(0).randn(96, 10).astype(np.float32)
y = np.random.RandomState(1).randint(0, 3, 96)
"""


@needs_mpi
def test_fit_gives_the_losses_of_one_worker(tmp_path: Path) -> None:
    code = (
        _FIT
        + """
history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_split=0.25)
for name in sorted(history.history):
    tell(history.history[name])
tell(model.evaluate(x, y, verbose=0))
tell(model.predict(x[:33], verbose=0))
data = td.data.Dataset.from_tensor_slices((x, y)).batch(32)
tell(model.fit(data, epochs=2, verbose=0).history["loss"])
"""
    )
    (alone,) = told(code, 1, tmp_path)
    everyone = told(code, 2, tmp_path)
    assert everyone[0] == everyone[1]
    for one, several in zip(floats(alone), floats(everyone[0]), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-4, atol=1e-5)


@needs_mpi
def test_only_the_chief_leaves_checkpoints(tmp_path: Path) -> None:
    code = (
        _FIT
        + """
folder = sys.argv[1]
class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1 and sys.argv[2] == "stop":
            self.model.stop_training = True
    def on_train_end(self, logs=None):
        if sys.argv[2] == "stop":
            raise RuntimeError("interrupted")
backup = keras.callbacks.BackupAndRestore(folder + "/backup")
best = keras.callbacks.ModelCheckpoint(folder + "/{epoch}.weights.h5", save_weights_only=True)
log = keras.callbacks.CSVLogger(folder + "/log.csv")
try:
    found = model.fit(x, y, batch_size=16, epochs=4, verbose=0, shuffle=False,
                      callbacks=[Stop(), best, log, backup])
    tell(found.epoch, found.history["loss"])
except RuntimeError:
    tell(sorted(os.listdir(folder)), sorted(os.listdir(folder + "/backup")))
"""
    )
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    once = told(code, 2, tmp_path, whole, "go")
    interrupted = told(code, 2, tmp_path, parts, "stop")
    there, backup = json.loads(interrupted[0][0])
    assert there == ["1.weights.h5", "2.weights.h5", "backup", "log.csv"]
    assert len(backup) == 1  # nothing of the other worker
    rest = told(code, 2, tmp_path, parts, "go")
    (epochs, losses), (_, all_losses) = json.loads(rest[0][0]), json.loads(once[0][0])
    assert epochs == [2, 3]
    np.testing.assert_allclose(losses, all_losses[2:], rtol=1e-6)
    assert rest[0] == rest[1]


# -- the end ---------------------------------------------------------------------------------------

_LOOP = """
with strategy.scope():
    v = td.Variable(0.0, aggregation=td.VariableAggregation.SUM)
checkpoint = td.train.Checkpoint(v=v)
@td.function
def step():
    return strategy.run(lambda: v.assign_add(1.0))
def forever():
    for n in range(100000):
        step()
        if n == 5:
            if rank == 0:
                checkpoint.write(sys.argv[1] + "/saved")
            tell(os.getpid())
        if n > 5:
            time.sleep(0.01)
"""


def pids(out: str) -> dict[int, int]:
    """The number of the process of each worker, from what they told."""
    lines = [line for line in out.splitlines() if line.startswith("worker ")]
    pairs = (line.removeprefix("worker ").split(": ") for line in lines)
    return {int(rank): json.loads(told)[0] for rank, told in pairs}


def begun(started: subprocess.Popen[str], workers: int) -> dict[int, int]:
    """The processes of a program, when all of them have told their numbers."""
    assert started.stdout is not None
    return pids("".join(started.stdout.readline() for _ in range(workers)))


def runs(process: int) -> bool:
    """Whether a process runs; one that nobody has waited for has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def restored(folder: Path) -> float:
    v = td.Variable(0.0)
    td.train.Checkpoint(v=v).read(folder / "saved").assert_consumed()
    return float(v.numpy())


@needs_mpi
@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_worker_ends_the_others_and_leaves_the_checkpoint(
    lost: int, tmp_path: Path
) -> None:
    started = start(_LOOP + "forever()\n", 2, tmp_path, tmp_path)
    numbers = begun(started, 2)
    os.kill(numbers[lost], signal.SIGKILL)
    begin = time.monotonic()
    status, out, err = finish(started, 40)
    assert status != 0 and time.monotonic() - begin < 30
    # The launcher may see it first; it says so, too.
    assert f"worker {lost} is lost" in err or "KILLED BY SIGNAL: 9" in out + err \
        or "Killed (signal 9)" in out + err, out + err  # fmt: skip
    assert restored(tmp_path) == 12.0
    while any(map(runs, numbers.values())):  # the launcher may end before they have
        assert time.monotonic() - begin < 60
        time.sleep(0.1)


@needs_mpi
def test_a_stopped_worker_is_missed(tmp_path: Path) -> None:
    started = start(_LOOP + "forever()\n", 2, tmp_path, tmp_path, TREADLE_WORKER_TIMEOUT="4")
    numbers = begun(started, 2)
    os.kill(numbers[1], signal.SIGSTOP)
    status, out, err = finish(started, 60)
    assert status != 0
    assert "treadle: all 2 workers end: worker 1 is lost" in err
    assert "no sign of life for 4 seconds" in err and err.count("is lost") == 1
    assert restored(tmp_path) == 12.0


@needs_mpi
def test_an_error_of_a_worker_ends_the_others(tmp_path: Path) -> None:
    code = _LOOP + "if rank == 1: raise KeyError('no such file')\nforever()\n"
    status, out, err = finish(start(code, 2, tmp_path, tmp_path), 60)
    assert status != 0
    assert "worker 1 ended with KeyError: 'no such file'" in err and err.count("treadle: all") == 1


@needs_mpi
def test_a_worker_that_ends_early_is_named(tmp_path: Path) -> None:
    code = _LOOP + "step()\nif rank == 1: sys.exit(0)\nforever()\n"
    status, out, err = finish(start(code, 2, tmp_path, tmp_path), 60)
    assert status != 0
    assert "worker 1 is lost" in err and "it ended its program after" in err
    assert err.count("treadle: all") == 1


@needs_mpi
def test_a_worker_that_does_not_come_is_named(tmp_path: Path) -> None:
    head = """\
import os, sys, time
import treadle as td
options = td.distribute.experimental.CommunicationOptions(timeout_seconds=3)
strategy = td.distribute.MultiWorkerMirroredStrategy(communication_options=options)
rank = strategy.cluster_resolver.task_id
tell = print
"""
    code = _LOOP + "step()\nif rank == 1: time.sleep(1000)\nforever()\n"
    status, out, err = finish(start(code, 2, tmp_path, tmp_path, head=head), 60)
    assert status != 0
    assert "worker 1 is lost" in err and "wait for it in exchange" in err


@needs_mpi
def test_workers_that_make_different_variables_are_told(tmp_path: Path) -> None:
    code = """
    with strategy.scope():
        v = td.Variable(td.zeros([rank + 1]))
    """
    status, out, err = finish(start(code, 2, tmp_path), 60)
    assert status != 0
    assert "all workers must make the same ones in the same order" in err
