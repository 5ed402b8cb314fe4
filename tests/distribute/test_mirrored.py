"""Several replicas in one process, and strategies that are refused."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import treadle as td

_TWO = """\
import json
import numpy as np
import treadle as td

(cpu,) = td.config.list_physical_devices("CPU")
part = td.config.LogicalDeviceConfiguration()
td.config.set_logical_device_configuration(cpu, [part, part])
strategy = td.distribute.MirroredStrategy() if {several} else td.distribute.get_strategy()
"""

_TRAINING = """
from treadle import keras
td.keras.utils.set_random_seed(3)
with strategy.scope():
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(8, "tanh", kernel_regularizer="l2")(inputs)
    outputs = {"a": keras.layers.Dense(3)(hidden), "b": keras.layers.Dense(1)(hidden)}
    model = keras.Model(inputs, outputs)
    model.compile(
        keras.optimizers.Adam(0.01, clipnorm=1.0, use_ema=True),
        {"a": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "b": "mse"},
        metrics={"a": "accuracy", "b": ["mae", keras.metrics.RootMeanSquaredError()]},
    )
r = np.random.RandomState(0)
x = r.randn(96, 6).astype(np.float32)
y = {"a": r.randint(0, 3, 96), "b": r.randn(96, 1).astype(np.float32)}
found = model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_split=0.25,
                  class_weight=None).history
found["evaluated"] = model.evaluate(x, y, verbose=0)
found["predicted"] = float(np.abs(model.predict(x[:33], verbose=0)["a"]).sum())
found["iterations"] = int(model.optimizer.iterations.numpy())
print(json.dumps(found))
"""


def printed(code: str, several: bool = True) -> str:
    """What a program with two logical CPUs prints."""
    program = _TWO.replace("{several}", str(several)) + code
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_training_gives_the_losses_of_one_replica() -> None:
    one, two = (json.loads(printed(_TRAINING, several)) for several in (False, True))
    assert one.keys() == two.keys() and two["iterations"] == 15
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=2e-4, atol=1e-5, err_msg=name)


def test_statistics_of_a_batch_are_the_mean_of_those_of_the_replicas() -> None:
    code = """
with strategy.scope():
    layer = td.keras.layers.BatchNormalization(momentum=0.0)
    layer.build((None, 1))
x = strategy.experimental_distribute_values_from_function(
    lambda c: td.fill([4, 1], 1.0 + c.replica_id_in_sync_group))
strategy.run(lambda x: layer(x, training=True), (x,))
print([v.numpy().tolist() for v in layer.moving_mean.values], layer.moving_mean.numpy().tolist())
"""
    assert printed(code).strip() == "[[1.0], [2.0]] [1.5]"


def test_weights_without_aggregation_are_assigned_alike_by_replicas() -> None:
    code = """
with strategy.scope():
    weight = td.Variable(1.0)
    counter = td.Variable(0)
number = lambda: float(td.distribute.get_replica_context().replica_id_in_sync_group)
for wrap in (lambda f: f, td.function):
    try:
        strategy.run(wrap(lambda: weight.assign(number())))
    except td.errors.InvalidArgumentError as error:
        print(str(error).splitlines()[0])
    strategy.run(wrap(lambda: weight.assign(2.0 + 0.0 * number())))
strategy.run(td.function(lambda: counter.assign_add(1)))
print(counter.numpy(), weight.numpy())
# A program's own variables of Keras; one gradient that all replicas have is added up.
keras, replica = td.keras, td.distribute.get_replica_context
with strategy.scope():
    own, optimizer = keras.Variable([1.0, 1.0]), keras.optimizers.SGD(0.5)
    seen = keras.Variable([0.0], synchronization="on_read", aggregation="sum", trainable=False)
grad = td.constant([1.0, 2.0])
strategy.run(lambda: optimizer.apply([grad], [own]))
strategy.run(lambda: seen.assign_add([1.0 + replica().replica_id_in_sync_group]))
print(own.numpy().tolist(), seen.numpy().tolist())
"""
    *found, values, of_keras = printed(code).splitlines()
    assert of_keras == "[0.0, -1.0] [3.0]"
    assert len(found) == 2
    for error in found:
        assert "The replicas assign different values to variable 'Variable'" in error
    assert values == "1 2.0"


def test_a_strategy_for_all_that_follows() -> None:
    code = """
td.distribute.experimental_set_strategy(strategy)
v = td.Variable(1.0)
print(td.distribute.has_strategy(), strategy.extended.variable_created_in_scope(v))
td.distribute.experimental_set_strategy(None)
print(td.distribute.has_strategy())
"""
    assert printed(code).split() == ["True", "True", "False"]


def test_interrupted_replicas_end() -> None:
    code = """
import threading
def fails():
    replica = td.distribute.get_replica_context()
    replica.all_reduce("sum", td.constant(1.0))
    if replica.replica_id_in_sync_group == 1:
        raise KeyboardInterrupt
    replica.all_reduce("sum", td.constant(1.0))
try:
    strategy.run(fails)
except KeyboardInterrupt:
    print(threading.active_count(), td.distribute.has_strategy())
"""
    assert printed(code).split() == ["1", "False"]


@pytest.mark.parametrize(
    "make",
    [
        td.distribute.ParameterServerStrategy, td.distribute.TPUStrategy,
    ],
)  # fmt: skip
def test_refused_strategies_say_what_to_use(make: type) -> None:
    with pytest.raises(NotImplementedError, match=r"td.distribute.*is not provided.*Mirrored"):
        make()


def test_a_central_storage_has_one_replica_without_gpus() -> None:
    strategy = td.distribute.experimental.CentralStorageStrategy()
    assert strategy.num_replicas_in_sync == max(1, len(td.config.list_logical_devices("GPU")))
    with strategy.scope():
        weight = td.Variable(1.0)
    found = strategy.reduce("SUM", strategy.run(lambda: weight + 1.0), axis=None)
    assert float(found) == 2.0 * strategy.num_replicas_in_sync


def test_devices_of_a_mirrored_strategy() -> None:
    strategy = td.distribute.MirroredStrategy(["/cpu:0"])
    assert strategy.num_replicas_in_sync == 1
    assert strategy.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
    with pytest.raises(ValueError, match="There is no device .*CPU:77.*set_logical_device"):
        td.distribute.MirroredStrategy(["CPU:0", "CPU:77"])
    with pytest.raises(ValueError, match="No duplicates"):
        td.distribute.MirroredStrategy(["CPU:0", "/device:CPU:0"])
    with pytest.raises(ValueError, match="at least one device"):
        td.distribute.MirroredStrategy([])


def test_the_processor_computes_for_gpus_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpus = td.config.list_logical_devices("CPU")
    monkeypatch.setattr(td.config, "list_logical_devices", lambda kind=None: cpus)
    with pytest.warns(UserWarning, match="no GPU; the processor computes"):
        strategy = td.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    assert [name[-5:] for name in strategy.extended.worker_devices] == ["GPU:0", "GPU:1"]
    with strategy.scope():
        weight = td.Variable(2.0)
    context = td.distribute.get_replica_context

    @td.function
    def step() -> td.Tensor:
        number = td.cast(context().replica_id_in_sync_group, td.float32)
        return weight * (number + 1.0)

    assert float(strategy.reduce("SUM", strategy.run(step), axis=None)) == 6.0
    soft = td.config.get_soft_device_placement()
    td.config.set_soft_device_placement(False)
    try:
        with pytest.raises(ValueError, match="There is no device .*GPU:0"):
            td.distribute.MirroredStrategy(["/gpu:0"])
    finally:
        td.config.set_soft_device_placement(soft)


_DROPPING = """
from treadle import keras
with strategy.scope():
    layer = keras.layers.Dropout(0.5, seed=1)


@td.function
def drop():
    return strategy.run(lambda: layer(td.ones((1, 64)), training=True))


def parts():
    return [np.asarray(x).tolist() for x in strategy.experimental_local_results(drop())]


print(json.dumps([parts(), parts(), layer.seed_generator.state.numpy().tolist()]))
"""


def test_replicas_drop_other_elements_and_count_together() -> None:
    (one, two), (three, _), state = json.loads(printed(_DROPPING))
    assert one != two and one != three
    assert state == [1, 2]
