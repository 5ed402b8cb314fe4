"""td.distribute with Keras, structures of values, and what replicas ask of their contexts."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.processes import alone
from tests.facts_tf.registry import outcome, raised


def two(tf):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def values(strategy, found):
    local = strategy.experimental_local_results(found)
    return [v.numpy() if hasattr(v, "numpy") else v for v in local]


@alone
def structures_and_keywords(tf):
    strategy = two(tf)
    give = strategy.experimental_distribute_values_from_function
    pair = give(
        lambda c: {
            "a": tf.constant(float(c.replica_id_in_sync_group)),
            "b": (tf.constant([1.0, 2.0]),),
        }
    )

    def step(x, scale=1.0):
        c = tf.distribute.get_replica_context()
        return {
            "sum": c.all_reduce(tf.distribute.ReduceOp.SUM, x["a"]),
            "mean": c.all_reduce("MEAN", [x["a"], x["b"][0]]),
            "own": x["a"] * scale,
            "gathered": c.all_gather(x["b"][0] + x["a"], axis=0),
            "id": int(c.replica_id_in_sync_group),
            "count": c.num_replicas_in_sync,
            "ragged": None,
        }

    traced = tf.function(lambda x: strategy.run(step, args=(x,), kwargs={"scale": 3.0}))
    one, other = strategy.run(step, args=(pair,), kwargs={"scale": 3.0}), traced(pair)
    found = []
    for result in (one, other):
        found.append(
            [[k, values(strategy, result[k])] for k in ("sum", "own", "gathered", "id", "count")]
        )
        found.append([values(strategy, part) for part in result["mean"]])
    found += [
        strategy.reduce("SUM", one["own"], axis=None),
        strategy.reduce("MEAN", one["gathered"], axis=0),
        strategy.reduce("SUM", one["gathered"], axis=0),
        strategy.gather(one["gathered"], axis=0),
        raised(strategy.reduce, "SUM", one["own"], axis=1),
        raised(strategy.gather, one["own"], axis=0),
        raised(strategy.run, 3),
        values(strategy, strategy.run(lambda: tf.constant(2.0))),
        strategy.run(lambda: None),
        [str(type(one["own"]).__name__) == str(type(other["own"]).__name__)],
    ]
    return found


@alone
def shares_of_batches_and_of_structures(tf):
    """How batches that do not divide are shared out; results in structures; one device's scope."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    found = []
    for examples, batch, replicas in (
        (10, 6, 3), (10, 7, 2), (11, 4, 4), (5, 8, 4), (10, 3, 4), (9, 9, 4), (7, 7, 3), (20, 10, 4)
    ):  # fmt: skip
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        data = tf.data.Dataset.range(examples).batch(batch).prefetch(1)
        shared = strategy.experimental_distribute_dataset(data)
        found.append([values(strategy, x) for x in shared])
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    given = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant(float(c.replica_id_in_sync_group))
    )
    result = strategy.run(lambda x: {"a": x + 1, "b": (x, [tf.constant(2)], 3)}, (given,))
    local = strategy.experimental_local_results
    found += [local(result), local(result["b"]), local(result["a"]), local([1, 2]), local(5)]
    one = tf.distribute.OneDeviceStrategy("CPU:1")
    with one.scope():
        v = tf.Variable(1.0)
    found += [v.device, one.run(lambda: v + 1).device, one.experimental_local_results([1, 2])]
    return found


@alone
def input_contexts(tf):
    strategy = two(tf)
    seen = []

    def make(context):
        seen.append(
            [
                context.num_input_pipelines,
                context.input_pipeline_id,
                context.num_replicas_in_sync,
                context.get_per_replica_batch_size(4),
            ]
        )
        return tf.data.Dataset.range(10).batch(context.get_per_replica_batch_size(4))

    made = strategy.distribute_datasets_from_function(make)
    shared = strategy.experimental_distribute_dataset(tf.data.Dataset.range(7).batch(4))
    dropped = strategy.experimental_distribute_dataset(
        tf.data.Dataset.range(7).batch(4, drop_remainder=True)
    )
    iterator = iter(shared)
    found = [
        seen,
        [values(strategy, x) for x in made],
        [values(strategy, x) for x in shared],
        [values(strategy, x) for x in dropped],
        values(strategy, next(iterator)),
        values(strategy, iterator.get_next()),
        raised(next, iterator),
        raised(iterator.get_next),
        bool(iter(shared).get_next_as_optional().has_value()),
        int(shared.cardinality)
        if not callable(getattr(shared, "cardinality", 0))
        else int(shared.cardinality()),
        raised(strategy.experimental_distribute_dataset, [1, 2]),
    ]
    return found


@alone
def models_are_fitted(tf):
    strategy = two(tf)
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2)
    y = x.sum(1, keepdims=True)

    def made():
        model = tf.keras.Sequential(
            [
                tf.keras.Input((2,)),
                tf.keras.layers.Dense(3, activation="tanh"),
                tf.keras.layers.BatchNormalization(),
                tf.keras.layers.Dense(1),
            ]
        )
        for number, w in enumerate(model.trainable_weights):
            w.assign(0.5 * np.random.RandomState(number).normal(size=w.shape).astype(np.float32))
        model.compile(tf.keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
        return model

    with strategy.scope():
        model = made()
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(6)
    history = model.fit(data, epochs=3, shuffle=False, verbose=0).history
    dense = tf.keras.Sequential(
        [tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    )
    dense.compile("sgd", "mse")
    with strategy.scope():
        shared = tf.keras.Sequential(
            [tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
        )
        shared.compile("sgd", "mse")
    alone_, together = (
        m.fit(data, epochs=3, shuffle=False, verbose=0).history["loss"] for m in (dense, shared)
    )
    return [
        {k: [float(v) for v in history[k]] for k in sorted(history)},
        [float(v) for v in model.evaluate(data, verbose=0)],
        model.predict(data.map(lambda a, b: a), verbose=0),
        bool(np.allclose(alone_, together, rtol=1e-5)),
        [float(v) for v in together],
        outcome(lambda: model.predict(x[:5], verbose=0).shape),
    ]


# Training amplifies rounding: TensorFlow's own numbers differ by 1.5e-5 between two processors.
models_are_fitted.rounding = 1e-4


@alone
def variables_without_aggregation(tf):
    """Trained variables that replicas assign themselves after they made gradients one."""
    strategy = two(tf)
    with strategy.scope():
        w = tf.Variable([[1.0], [-2.0]])
        each = tf.Variable(1.0, trainable=False)
        read = tf.Variable(
            0.0, aggregation=tf.VariableAggregation.SUM,
            synchronization=tf.VariableSynchronization.ON_READ,
        )  # fmt: skip

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ w) ** 2)
        c = tf.distribute.get_replica_context()
        w.assign_sub(0.05 * c.all_reduce("sum", tape.gradient(loss, w)))
        number = tf.cast(c.replica_id_in_sync_group, tf.float32)
        each.assign_add(number)
        read.assign_add(number + 1.0)
        return loss

    batches = strategy.experimental_distribute_values_from_function(
        lambda c: tf.fill([2, 2], float(c.replica_id_in_sync_group + 1) / 2)
    )
    losses = [values(strategy, strategy.run(step, (batches,)))]
    losses.append(values(strategy, tf.function(lambda x: strategy.run(step, (x,)))(batches)))
    return [
        losses, [values(strategy, v) for v in (w, each, read)],
        [v.numpy() for v in (w, each, read)], strategy.reduce("SUM", read, axis=None),
    ]  # fmt: skip


class _Sums:
    """Layers whose weights replicas assign, in the dtypes of a policy."""

    def __init__(self, tf):
        class Sums(tf.keras.layers.Layer):
            def __init__(self, method, **kwargs):
                super().__init__(**kwargs)
                self.method = method

            def build(self, shape):
                for name in ("mean", "only_first_replica", "none"):
                    weight = self.add_weight(
                        shape=(), initializer="ones", trainable=False, aggregation=name, name=name
                    )
                    setattr(self, name, weight)

            def call(self, x):
                for name in ("mean", "only_first_replica", "none"):
                    getattr(getattr(self, name), self.method)(tf.reduce_sum(x))
                return x

        self.made = Sums


@alone
def weights_in_mixed_precision(tf):
    strategy = two(tf)
    made = _Sums(tf).made
    batches = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant([[1.0, 2.0, 3.0]]) * (c.replica_id_in_sync_group + 1)
    )
    seen = []
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        for method in ("assign", "assign_add", "assign_sub"):
            with strategy.scope():
                layer = made(method, dtype=policy)
                layer.build((2, 3))
            for wrap in (lambda f: f, tf.function):
                wrap(lambda x, layer=layer: strategy.run(layer, (x,)))(batches)
            seen.append(
                [
                    [policy, method, w.numpy(), str(w.dtype).replace("<dtype: '", "").rstrip("'>")]
                    + values(strategy, getattr(w, "_value", w))
                    for w in layer.weights
                ]
            )
    return seen


@alone
def mixed_precision_is_fitted(tf):
    strategy = two(tf)
    random = np.random.RandomState(0)
    x, y = random.normal(size=(16, 4)).astype("f"), random.normal(size=(16, 2)).astype("f")
    found = []
    for policy in ("mixed_bfloat16", "mixed_float16"):
        tf.keras.mixed_precision.set_global_policy(policy)
        with strategy.scope():
            model = tf.keras.Sequential(
                [
                    tf.keras.Input((4,)),
                    tf.keras.layers.Dense(8, activation="relu"),
                    tf.keras.layers.LayerNormalization(),
                    tf.keras.layers.Dense(2, dtype="float32"),
                ]
            )
            for number, w in enumerate(model.trainable_weights):
                start = np.random.RandomState(number).normal(size=w.shape)
                w.assign(0.5 * start.astype(np.float32))
            optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
            if policy == "mixed_float16":  # gradients stay finite
                scaling = tf.keras.mixed_precision.LossScaleOptimizer
                optimizer = scaling(optimizer, initial_scale=1024.0, dynamic_growth_steps=4)
            model.compile(optimizer, "mse", metrics=["mae"])
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
        history = model.fit(data, epochs=3, shuffle=False, verbose=0).history
        loss = tf.keras.losses.MeanSquaredError(reduction="sum")

        def step(a, b, model=model, loss=loss):
            with tf.GradientTape() as tape:
                mean = loss(b, model(a, training=True)) / 16.0
                scaled = model.optimizer.scale_loss(mean)
            grads = tape.gradient(scaled, model.trainable_variables)
            model.optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
            return mean

        shared = tf.function(lambda a, b, step=step: strategy.run(step, (a, b)))
        own = [
            strategy.reduce("SUM", shared(a, b), axis=None)
            for a, b in strategy.experimental_distribute_dataset(data)
        ]
        found.append(
            [
                type(model.optimizer).__name__,
                {k: [float(v) for v in history[k]] for k in sorted(history)},
                own,
                [np.asarray(w.numpy()) for w in model.weights],
                int(model.optimizer.iterations.numpy()),
                float(getattr(model.optimizer, "dynamic_scale", tf.constant(0.0)).numpy()),
                [len(values(strategy, getattr(w, "_value", w))) for w in model.weights],
            ]
        )
    tf.keras.mixed_precision.set_global_policy("float32")
    return found


# Sums of 16 bits depend on the order of the products.
mixed_precision_is_fitted.rounding = 3e-2


@alone
def what_is_kept_of_keras_2(tf):
    """Sums of what replicas add to a weight, and statistics read outside of replicas."""
    strategy = two(tf)

    class Sum(tf.keras.layers.Layer):
        def build(self, shape):
            self.total = self.add_weight(
                shape=(), initializer="ones", trainable=False, aggregation="sum"
            )

        def call(self, x):
            self.total.assign_add(tf.reduce_sum(x))
            return x

    with strategy.scope():
        total, norm = Sum(), tf.keras.layers.BatchNormalization(momentum=0.0)
        total.build((1, 3))
        norm.build((None, 1))
    batches = strategy.experimental_distribute_values_from_function(
        lambda c: tf.fill([4, 1], float(c.replica_id_in_sync_group + 1))
    )
    strategy.run(total, (batches,))
    strategy.run(lambda x: norm(x, training=True), (batches,))
    return {"sum": total.total.numpy(), "mean": norm.moving_mean.numpy()}
