"""MirroredStrategy over several GPUs: recorded ones, whose kernels run through the shim."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.distribute.launching import finish, needs_mpi, start
from tests.runtime.gpu.recorder import recorded_gpu, recorded_gpus
from treadle.core import errors
from treadle.distribute.values import PerReplica

pytestmark = pytest.mark.thorough

R = np.random.RandomState(0)
X, Y = R.randn(16, 6).astype(np.float32), R.randn(16, 1).astype(np.float32)
WEIGHTS = [R.randn(6, 8).astype(np.float32), R.randn(8, 1).astype(np.float32)]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@contextmanager
def strategy_of(count: int, ops: Any = None, **settings: Any) -> Iterator[Any]:
    with recorded_gpus(count) as devices:
        for name, value in settings.items():
            for device in devices:
                setattr(device.storage.driver, name, value)
        names = [str(device) for device in devices]
        yield td.distribute.MirroredStrategy(names, cross_device_ops=ops)


def counts_of(strategy: Any) -> list[Counter[str]]:
    return [d.storage.driver.counts for d in strategy._replica_devices]


def shares(strategy: Any, *arrays: np.ndarray) -> Any:
    """Equal parts of arrays, on the devices of the replicas."""
    return tuple(
        strategy.experimental_distribute_values_from_function(
            lambda c, x=x: td.constant(
                np.split(x, c.num_replicas_in_sync)[c.replica_id_in_sync_group]
            )
        )
        for x in arrays
    )


def training(strategy: Any) -> tuple[Any, list[td.Variable]]:
    with strategy.scope():
        weights = [td.Variable(w) for w in WEIGHTS]
        optimizer = td.keras.optimizers.Adam(0.05)

    @td.function
    def train(batch: Any) -> Any:
        def replica(x: Any, y: Any) -> Any:
            with td.GradientTape() as tape:
                errors = td.reduce_sum((td.tanh(x @ weights[0]) @ weights[1] - y) ** 2, 1)
                loss = td.nn.compute_average_loss(errors, global_batch_size=16)
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        return strategy.run(replica, batch)

    return train, weights


def one_device() -> list[float]:
    train, _ = training(td.distribute.get_strategy())
    return [float(train((X, Y))) for _ in range(6)]


OPS = {
    "nccl": None, "copies": td.distribute.HierarchicalCopyAllReduce(),
    "one": td.distribute.ReductionToOneDevice(),
}  # fmt: skip


@pytest.mark.parametrize(("count", "ops"), [(2, "nccl"), (4, "nccl"), (2, "one"), (4, "copies")])
def test_a_training_step_has_the_losses_of_one_device(count: int, ops: str) -> None:
    with strategy_of(count, OPS[ops]) as strategy:
        train, weights = training(strategy)
        batch = shares(strategy, X, Y)
        losses = []
        for _ in range(6):
            found = train(batch)
            losses.append(sum(float(v) for v in strategy.experimental_local_results(found)))
        np.testing.assert_allclose(losses, one_device(), rtol=1e-5)
        for weight in weights:  # the same bits everywhere
            parts = [v.numpy() for v in weight.values]
            assert all(np.array_equal(parts[0], p) for p in parts)
            assert [v.spec.device for v in weight.values] == list(strategy._replica_devices)
        places = [v.device[-5:] for v in found.values]
        assert places == [f"GPU:{i}" for i in range(count)]


def test_a_hundred_steps_copy_nothing_to_the_host_and_exchange_once_each() -> None:
    with strategy_of(2) as strategy:
        train, _ = training(strategy)
        batch = shares(strategy, X, Y)
        train(batch)
        before = [c.copy() for c in counts_of(strategy)]
        train(batch)  # as the device is told to for the first time, or records
        first = [c - b for c, b in zip(counts_of(strategy), before, strict=True)]
        for _ in range(100):
            train(batch)
        for each, known, counts in zip(first, before, counts_of(strategy), strict=True):
            made = counts - known
            assert each["collectives"] == 1 and each["launches"] + each["products"] <= 12
            assert made["downloads"] == made["uploads"] == made["peer copies"] == 0
            assert made["submissions"] >= 95  # recordings, in which the exchanges are
            assert made["collectives"] <= 8


def test_without_nccl_values_are_copied_in_a_fixed_order() -> None:
    found = []
    for _ in range(2):
        with strategy_of(2, has_nccl=False) as strategy:
            train, weights = training(strategy)
            batch = shares(strategy, X, Y)
            for _ in range(4):
                train(batch)
            found.append(weights[0].numpy())
            before = [c.copy() for c in counts_of(strategy)]
            train(batch)
            for counts, known in zip(counts_of(strategy), before, strict=True):
                made = counts - known
                assert not made["collectives"] and not made["downloads"]
                assert made["peer copies"] == 2  # its part of the sum, and the other's
    assert np.array_equal(*found)


def test_nccl_is_asked_for_where_it_is_not() -> None:
    with recorded_gpu(0), recorded_gpu(1):  # of one GPU, which NCCL refuses
        with pytest.raises(errors.UnavailableError, match="NCCL"):
            td.distribute.MirroredStrategy(["GPU:0", "GPU:1"], td.distribute.NcclAllReduce())
        strategy = td.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
        assert strategy.reduce("SUM", PerReplica([1.0, 2.0]), None).numpy() == 3.0
        assert counts_of(strategy)[0]["peer copies"]
        with pytest.raises(ValueError, match="all GPUs or all CPUs"):
            td.distribute.MirroredStrategy(["GPU:0", "CPU:0"])
        with pytest.raises(TypeError, match="NcclAllReduce"):
            td.distribute.MirroredStrategy(["GPU:0", "GPU:1"], "nccl")  # type: ignore[arg-type]


def test_outside_of_functions() -> None:
    with strategy_of(2) as strategy:
        with strategy.scope():
            v = td.Variable([1.0, 2.0], aggregation=td.VariableAggregation.MEAN)

        def replica() -> Any:
            context = td.distribute.get_replica_context()
            number = float(context.replica_id_in_sync_group)
            mine = td.constant([number, 1.0])
            total = context.all_reduce("SUM", {"a": mine, "b": td.constant(number)})
            v.assign(v + total["a"] + number)
            rows = context.all_gather(td.fill([1, 2], number), axis=0)
            return total["b"], rows, v.value()

        before = [c.copy() for c in counts_of(strategy)]
        b, rows, values = strategy.run(replica)
        for counts, known in zip(counts_of(strategy), before, strict=True):
            assert (counts - known)["downloads"] == 0
        assert [x.device[-5:] for x in values.values] == ["GPU:0", "GPU:1"]
        assert [float(x) for x in strategy.experimental_local_results(b)] == [1.0, 1.0]
        for each in strategy.experimental_local_results(rows):
            assert each.numpy().tolist() == [[0.0, 0.0], [1.0, 1.0]]
        for each in (*values.values, *v.values):
            assert each.numpy().tolist() == [2.5, 4.5]
        assert strategy.reduce("MEAN", values, None).numpy().tolist() == [2.5, 4.5]
        assert strategy.reduce("MEAN", values, 0).numpy() == 3.5
        assert strategy.gather(values, 0).numpy().tolist() == [2.5, 4.5] * 2


def test_weights_of_mixed_precision_are_on_all_devices() -> None:
    losses = {}
    for policy in ("float32", "mixed_bfloat16"):
        with strategy_of(2) as strategy:
            with strategy.scope():
                dense = td.keras.layers.Dense(1, use_bias=False, dtype=policy)
                dense.build((None, 6))
                free = td.Variable([1.0])  # without an aggregation: a copy on each device
                optimizer = td.keras.optimizers.SGD(0.05)
            dense.kernel.assign(WEIGHTS[0][:, :1])
            assert [v.device[-5:] for v in dense.kernel.values] == ["GPU:0", "GPU:1"]

            def step(
                x: Any, y: Any, dense: Any = dense, own: Any = free, by: Any = optimizer
            ) -> Any:
                with td.GradientTape() as tape:
                    error = td.cast(dense(x), td.float32) - y
                    loss = td.reduce_sum(error**2) / len(X)
                by.apply_gradients([(tape.gradient(loss, dense.kernel), dense.kernel)])
                own.assign_add(td.reduce_sum(x)[None])
                return loss

            run = td.function(step)
            found = [strategy.run(run, shares(strategy, X, Y)) for _ in range(4)]
            losses[policy] = [float(strategy.reduce("SUM", loss, None)) for loss in found]
            one, two = (v.numpy() for v in dense.kernel.values)
            np.testing.assert_array_equal(one, two)
            sums = [4 * part.sum() + 1.0 for part in np.split(X, 2)]
            np.testing.assert_allclose([v.numpy()[0] for v in free.values], sums, rtol=1e-5)
    np.testing.assert_allclose(losses["mixed_bfloat16"], losses["float32"], rtol=2e-2)
    assert losses["float32"][-1] < losses["float32"][0]


def test_branches_and_loops_of_all_replicas() -> None:
    with strategy_of(2) as strategy:
        with strategy.scope():
            v = td.Variable(1.0, aggregation=td.VariableAggregation.SUM)
            metric = td.keras.metrics.Mean()

        @td.function
        def f(x: Any, most: Any) -> Any:
            total, last = td.constant(0.0), x
            for _ in td.range(most):
                last = strategy.run(lambda y: (y + 1.0) * v, (last,))
                part = strategy.reduce("SUM", strategy.run(td.reduce_sum, (last,)), None)
                if part > 10.0:
                    total += part
                else:
                    total -= part
            strategy.run(lambda y: metric.update_state(y), (last,))
            first, second = strategy.experimental_local_results(last)
            return total, last, first + 2.0 * second, metric.result()

        x = shares(strategy, np.float32([1, 2]))[0]
        total, last, both, mean = f(x, td.constant(3))
        assert [y.numpy().tolist() for y in last.values] == [[4.0], [5.0]]
        assert float(total) == -(2 + 3) - (3 + 4) - (4 + 5) and float(mean) == 4.5
        assert both.numpy().tolist() == [14.0]
        total, *_ = f(x, td.constant(6))
        assert float(total) == -5 - 7 - 9 + 11 + 13 + 15


def test_an_error_in_one_replica_ends_the_others() -> None:
    with strategy_of(2) as strategy:

        @td.function
        def f(x: Any) -> Any:
            def replica(y: Any) -> Any:
                y = td.ensure_shape(td.numpy_function(_refused, [y], td.float32), [1])
                return td.distribute.get_replica_context().all_reduce("SUM", y)

            return strategy.run(replica, (x,))

        good, bad = (shares(strategy, np.float32(x))[0] for x in ([1, 2], [1, -2]))
        assert [float(y[0]) for y in f(good).values] == [3.0, 3.0]
        with pytest.raises(Exception, match="it is negative"):
            f(bad)
        assert [float(y[0]) for y in f(good).values] == [3.0, 3.0]


def _refused(x: np.ndarray) -> np.ndarray:
    if x[0] < 0:
        raise ValueError("it is negative")
    return x.reshape(1)


def test_rows_of_an_embedding() -> None:
    ids = np.int32([[0, 1], [1, 3], [2, 2], [1, 0]])
    tables = []
    for count in (1, 2):
        with strategy_of(2) as several:
            strategy = several if count == 2 else td.distribute.get_strategy()
            with strategy.scope():
                table = td.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
                optimizer = td.keras.optimizers.SGD(0.1)

            @td.function
            def train(ids: Any) -> Any:
                def replica(ids: Any) -> Any:
                    with td.GradientTape() as tape:
                        loss = td.reduce_sum(td.nn.embedding_lookup(table, ids) ** 2)
                    gradient = tape.gradient(loss, table)
                    assert isinstance(gradient, td.IndexedSlices)
                    optimizer.apply_gradients([(gradient, table)])

                strategy.run(replica, (ids,))

            train(shares(strategy, ids)[0] if count == 2 else ids)
            tables.append(table.numpy())
    np.testing.assert_allclose(*tables, rtol=1e-6)


def test_keras_fit() -> None:
    def fit(strategy: Any) -> Any:
        td.keras.utils.set_random_seed(3)
        with strategy.scope():
            layers = td.keras.layers
            model = td.keras.Sequential([
                td.keras.Input((6,)), layers.Dense(4, "tanh"), layers.Dense(1),
            ])
            model.compile(td.keras.optimizers.Adam(0.01, clipnorm=1.0), "mse", metrics=["mae"])
        history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
        evaluated = model.evaluate(X, Y, batch_size=8, verbose=0)
        return history, evaluated, model.predict(X, batch_size=8, verbose=0), model

    with strategy_of(2) as strategy:
        history, evaluated, predicted, model = fit(strategy)
        assert int(model.optimizer.iterations.numpy()) == 4
        weight = model.weights[0]
        assert np.array_equal(*[v.numpy() for v in weight.values])
    wanted, evaluated_by_one, predicted_by_one, _ = fit(td.distribute.get_strategy())
    for name, values in wanted.items():
        np.testing.assert_allclose(history[name], values, rtol=2e-4, err_msg=name)
    np.testing.assert_allclose(evaluated, evaluated_by_one, rtol=2e-4)
    np.testing.assert_allclose(predicted, predicted_by_one, rtol=1e-3, atol=1e-5)


def test_each_replica_draws_numbers_of_its_own() -> None:
    with strategy_of(2) as strategy:
        draw = td.function(lambda: strategy.run(lambda: td.random.normal([4])))
        for function in (draw, lambda: strategy.run(lambda: td.random.normal([4]))):
            found = []
            for _ in range(2):
                td.random.set_seed(5)
                found.append([x.numpy() for x in function().values])
            assert not np.array_equal(*found[0])
            assert np.array_equal(found[0][0], found[1][0])
            assert np.array_equal(found[0][1], found[1][1])


def test_streams_that_are_first_used_in_a_scope_are_the_hosts() -> None:
    def draw() -> td.Tensor:
        return td.random.uniform([2], seed=815)  # a stream that no other test has

    with strategy_of(2) as strategy, strategy.scope():
        draw()
        data = td.data.Dataset.range(3).map(lambda x: td.random.uniform([], seed=815))
        assert len(set(data.as_numpy_iterator())) == 3
    td.random.set_seed(3)
    compiled = td.function(draw)().numpy()
    td.random.set_seed(3)
    np.testing.assert_array_equal(draw(), compiled)


def test_batches_of_datasets_are_copied_ahead_to_their_replicas() -> None:
    with strategy_of(2) as strategy:
        data = td.data.Dataset.from_tensor_slices((X, Y)).batch(8)
        shared = strategy.experimental_distribute_dataset(data)
        batches = list(shared)
        assert len(batches) == 2
        for number, (x, y) in enumerate(batches):
            assert [v.device[-5:] for v in (*x.values, *y.values)] == ["GPU:0", "GPU:1"] * 2
            part = X[8 * number : 8 * number + 8]
            assert np.array_equal(np.concatenate([v.numpy() for v in x.values]), part)
        assert all(c["ahead"] == 4 for c in counts_of(strategy))


def test_gradients_of_a_tape_around_a_function() -> None:
    with strategy_of(2) as strategy:
        with strategy.scope():
            v = td.Variable(3.0)

        @td.function
        def loss(x: Any) -> Any:
            return strategy.reduce("SUM", strategy.run(lambda y: y * v * v, (x,)), None)

        x = PerReplica([td.constant(1.0), td.constant(2.0)])
        with td.GradientTape() as tape:
            found = loss(x)
        assert float(found) == 27.0
        assert float(tape.gradient(found, v.values[0])) == 6.0




# -- workers with a GPU each -----------------------------------------------------------------------

_WORKER = """\
import contextlib, json, os, sys
import numpy as np
import treadle as td
from mpi4py import MPI
from tests.runtime.gpu.recorder import recorded_gpu
from treadle.core.context import set_home
from treadle.distribute import workers

rank = MPI.COMM_WORLD.rank
stack = contextlib.ExitStack()
gpu = stack.enter_context(recorded_gpu(0, physical=rank))
gpu.storage.driver.has_nccl = "no nccl" not in sys.argv
set_home(gpu)
workers.default_devices = lambda: [gpu.name]

def tell(*values):
    line = json.dumps([np.asarray(v).tolist() for v in values])
    sys.stdout.write(f"worker {rank}: {line}\\n")
    sys.stdout.flush()
"""

_STEPS = """
way = td.distribute.experimental.CommunicationImplementation[sys.argv[1]]
options = td.distribute.experimental.CommunicationOptions(implementation=way)
try:
    strategy = td.distribute.MultiWorkerMirroredStrategy(communication_options=options)
except td.errors.UnavailableError as error:
    tell("refused", str(error))
    sys.exit()
with strategy.scope():
    v, w = td.Variable([1.0, 2.0]), td.Variable(3.0)
    optimizer = td.keras.optimizers.SGD(0.5)

@td.function
def train(x):
    def replica(x):
        with td.GradientTape() as tape:
            loss = td.reduce_sum(v * x) * w
        optimizer.apply_gradients(zip(tape.gradient(loss, [v, w]), [v, w]))
    strategy.run(replica, (x,))

x = td.constant([1.0 + rank, 0.0])
counts = gpu.storage.driver.counts
for _ in range(2):
    train(x)
before = counts.copy()
for _ in range(3):
    train(x)
made = counts - before
tell(v.numpy(), w.numpy(), counts["collectives"], made["downloads"], made["submissions"])
"""


def _told_with_gpus(tmp_path: Any, *arguments: str) -> list[Any]:
    started = start(_STEPS, 2, tmp_path, *arguments, head=_WORKER)
    status, out, err = finish(started)
    assert status == 0, out + err
    lines = sorted(line for line in out.splitlines() if line.startswith("worker"))
    return [json.loads(line.partition(": ")[2]) for line in lines]


@pytest.mark.thorough
@needs_mpi
def test_workers_with_gpus_add_up_by_nccl(tmp_path: Any) -> None:
    by_nccl = _told_with_gpus(tmp_path, "AUTO")
    assert by_nccl[0] == by_nccl[1] and by_nccl[0][3] == 0
    assert by_nccl[0][4] == 3  # recorded with the exchange in it
    by_mpi = _told_with_gpus(tmp_path, "RING")
    assert by_mpi[0][:2] == by_mpi[1][:2] == by_nccl[0][:2]
    assert by_mpi[0][2] == 0 and by_mpi[0][3] > 0
    (refused, text), _ = _told_with_gpus(tmp_path, "NCCL", "no nccl")
    assert refused == "refused" and "NCCL is not installed" in text
