"""td.distribute: strategies over two logical CPUs, what replicas see, and datasets they share.

Each program runs in a process of its own, which sets its devices up before anything else.
"""

from __future__ import annotations

import json
import os

import numpy as np

from tests.facts_tf.processes import alone
from tests.facts_tf.registry import outcome, raised


def two(tf):
    """A strategy of two replicas."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one, one])
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def each(strategy, value):
    """The values of the replicas."""
    return [np.asarray(v).tolist() for v in strategy.experimental_local_results(value)]


@alone
def without_a_strategy(tf):
    d = tf.distribute
    default, replica = d.get_strategy(), d.get_replica_context()
    with default.scope():
        inside = [d.in_cross_replica_context(), d.get_replica_context() is None, d.has_strategy()]
    merged = replica.merge_call(lambda s, x: [s is default, d.in_cross_replica_context(), x], (3,))
    return [
        d.has_strategy(), d.in_cross_replica_context(), default.num_replicas_in_sync,
        replica.replica_id_in_sync_group, replica.num_replicas_in_sync, inside, merged,
        default.run(lambda x: x + 1, (2,)), default.experimental_local_results(5),
        replica.all_reduce("sum", tf.constant(2.0)), default.reduce("SUM", tf.constant(2.0), None),
        default.reduce("MEAN", tf.constant([2.0, 4.0]), 0),
    ]  # fmt: skip


@alone
def scopes(tf):
    d, mirrored = tf.distribute, two(tf)
    one = d.OneDeviceStrategy("/cpu:0")
    seen = []
    with mirrored.scope() as given:
        seen += [given is mirrored, d.has_strategy(), d.get_strategy() is mirrored]
        seen += [d.in_cross_replica_context(), d.get_replica_context() is None]
        with mirrored.scope():
            seen.append(d.get_strategy() is mirrored)

        def other():
            with one.scope():
                pass

        seen.append(raised(other))
    seen += [d.has_strategy(), mirrored.num_replicas_in_sync, one.num_replicas_in_sync]

    def inside():
        c = d.get_replica_context()
        return (
            c.replica_id_in_sync_group, c.num_replicas_in_sync, d.in_cross_replica_context(),
            d.get_strategy() is mirrored, c.strategy is mirrored,
        )  # fmt: skip

    return seen, [each(mirrored, v) for v in mirrored.run(inside)]


@alone
def structures_of_results(tf):
    s = two(tf)
    number = lambda: tf.distribute.get_replica_context().replica_id_in_sync_group
    shared = object()

    def step(x, k=1):
        i = number()
        return {"a": (x + tf.cast(i, tf.float32), [x * k]), "none": None, "same": 7, "name": "n"}, i

    found, i = s.run(step, (tf.constant(3.0),), {"k": 2})
    made = s.experimental_distribute_values_from_function(
        lambda c: tf.constant([c.replica_id_in_sync_group, c.num_replicas_in_sync])
    )
    doubled = s.run(lambda x: x * 2, (made,))
    return [
        each(s, found["a"][0]), each(s, found["a"][1][0]), found["none"], each(s, i),
        type(found["a"]).__name__, found["same"], found["name"], each(s, made), each(s, doubled),
        type(made).__name__, isinstance(made, tf.distribute.DistributedValues),
        s.run(lambda: shared) is shared, raised(s.run, 3),
    ]  # fmt: skip


@alone
def mirrored_variables(tf):
    s, agg = two(tf), tf.VariableAggregation
    with s.scope():
        made = {
            a.name: tf.Variable(1.0, aggregation=a, trainable=a is not agg.NONE) for a in agg
        }
        counter = tf.Variable(0, dtype=tf.int32, aggregation=agg.SUM)
    outside = tf.Variable(1.0)

    def step(v, method):
        i = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        getattr(v, method)(i + 2.0)
        return v + 0.0

    seen = []
    for name, v in made.items():
        for method in ("assign", "assign_add", "assign_sub"):
            found = outcome(s.run, step, (v, method))
            shown = found if isinstance(found, str) else each(s, found)
            seen.append([name, method, shown, v.numpy()])
    s.run(lambda: counter.assign_add(tf.constant(3)))
    with s.scope():
        made["NONE"].assign(5.0)
        made["NONE"].assign_add(1.0)
        both = [v.numpy() for v in made["NONE"].values]
    return [
        seen, counter.numpy(), made["NONE"].numpy(), both, len(made["SUM"].values),
        s.extended.variable_created_in_scope(made["SUM"]),
        s.extended.variable_created_in_scope(outside),
        isinstance(made["SUM"], tf.Variable), made["SUM"].aggregation.name,
        made["SUM"].trainable, made["SUM"].shape,
    ]  # fmt: skip


@alone
def variables_that_are_one_when_read(tf):
    s, agg = two(tf), tf.VariableAggregation
    on_read = tf.VariableSynchronization.ON_READ
    with s.scope():
        made = {
            a.name: tf.Variable(1.0, synchronization=on_read, aggregation=a)
            for a in (agg.SUM, agg.MEAN, agg.ONLY_FIRST_REPLICA)
        }

    def step(v):
        i = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        v.assign_add(i + 2.0)
        return v.read_value()

    seen = []
    for name, v in made.items():
        own = each(s, s.run(step, (v,)))
        with s.scope():
            together = v.read_value().numpy()
            v.assign(8.0)
            after = [x.numpy() for x in v.values]
            adds = raised(v.assign_add, 1.0)
        seen.append([name, own, together, after, adds, v.numpy(), v.trainable])
    compiled = tf.function(lambda: s.run(step, (made["SUM"],)))
    return seen, each(s, compiled()), made["SUM"].numpy()


@alone
def reductions(tf):
    s, op = two(tf), tf.distribute.ReduceOp
    values = s.experimental_distribute_values_from_function(
        lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1)
    )
    ragged = s.experimental_distribute_values_from_function(
        lambda c: tf.ones([c.replica_id_in_sync_group + 1, 2])
        * (c.replica_id_in_sync_group + 1)
    )
    rows = s.run(
        lambda: tf.distribute.get_replica_context().all_reduce(
            op.SUM, tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2]))
        )
    )
    first = s.experimental_local_results(rows)[0]

    def replica(x):
        c = tf.distribute.get_replica_context()
        mean, total = c.all_reduce(op.MEAN, (x, {"s": tf.reduce_sum(x)}))
        return mean, total["s"], c.all_gather(x, 0)

    mean, total, gathered = s.run(replica, (values,))
    return [
        s.reduce(op.SUM, values, axis=None), s.reduce("mean", values, axis=None),
        s.reduce(op.SUM, values, axis=0), s.reduce(op.MEAN, values, axis=0),
        s.reduce(op.MEAN, ragged, axis=0), s.reduce(op.SUM, ragged, axis=0),
        s.gather(values, axis=0), s.gather(ragged, axis=0),
        each(s, mean), each(s, total), each(s, gathered),
        tf.convert_to_tensor(first), raised(s.reduce, "prod", values, None),
        raised(s.reduce, op.SUM, tf.constant(1.0), None),
        s.reduce(op.MEAN, tf.constant(1.0), None),
        s.reduce(op.MEAN, s.run(lambda: tf.distribute.get_replica_context()
                 .replica_id_in_sync_group + tf.constant(1)), None),
    ]  # fmt: skip


@alone
def gradients_of_reductions(tf):
    s = two(tf)

    def step(x):
        c = tf.distribute.get_replica_context()
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            total = c.all_reduce("sum", x * x)
            mean = c.all_reduce("mean", x * x)
            y = total * (tf.cast(c.replica_id_in_sync_group, tf.float32) + 1.0)
        return tape.gradient(y, x), tape.gradient(mean, x)

    x = s.experimental_distribute_values_from_function(
        lambda c: tf.constant(2.0) + tf.cast(c.replica_id_in_sync_group, tf.float32)
    )
    return [each(s, v) for v in s.run(step, (x,))]


@alone
def shared_datasets(tf):
    s, data = two(tf), tf.data.Dataset
    shown = lambda d: [each(s, x) for x in s.experimental_distribute_dataset(d)]
    pairs = data.from_tensor_slices({"x": np.arange(4.0), "y": np.arange(4)}).batch(4)
    (pair,) = list(s.experimental_distribute_dataset(pairs))
    told = []

    def make(context):
        told.append([
            context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync,
            context.get_per_replica_batch_size(6),
            raised(context.get_per_replica_batch_size, 5),
        ])  # fmt: skip
        return data.range(5).batch(2)

    from_function = [each(s, x) for x in s.distribute_datasets_from_function(make)]
    distributed = s.experimental_distribute_dataset(data.range(8).batch(4))
    iterator = iter(distributed)
    first = each(s, next(iterator))
    total = tf.function(
        lambda it: s.reduce("sum", s.run(lambda x: tf.reduce_sum(x), (next(it),)), axis=None)
    )
    return [
        shown(data.range(8).batch(4)), shown(data.range(6).batch(4)), shown(data.range(5).batch(5)),
        shown(data.range(9).batch(3, drop_remainder=True)), shown(data.range(3).batch(4)),
        {k: each(s, v) for k, v in pair.items()}, told, from_function, first, total(iterator),
        raised(next, iterator), raised(iterator.get_next),
    ]  # fmt: skip


@alone
def loops_of_functions_over_shared_datasets(tf):
    s = two(tf)
    with s.scope():
        v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    dataset = s.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(np.arange(10, dtype=np.float32)).batch(4)
    )

    def step(x):
        v.assign_add(tf.reduce_sum(x))
        if tf.reduce_sum(x) > 6.0:
            return tf.reduce_max(x)
        return tf.constant(-1.0)

    @tf.function
    def epoch():
        total, count = 0.0, 0
        for x in dataset:
            total += s.reduce("sum", s.run(step, (x,)), axis=None)
            count += 1
        return total, count

    whole = tf.function(step)
    singles = [each(s, s.run(whole, (x,))) for x in dataset]
    return epoch(), v.numpy(), singles, v.numpy()


@alone
def merges(tf):
    s = two(tf)
    calls = []

    def merged(strategy, x, name):
        calls.append([strategy is s, tf.distribute.in_cross_replica_context(), name])
        return strategy.reduce("sum", x, axis=None)

    def step(x):
        c = tf.distribute.get_replica_context()
        return c.merge_call(merged, (x + c.replica_id_in_sync_group,), {"name": "n"})

    def in_a_function():
        inner = tf.function(
            lambda: tf.distribute.get_replica_context().merge_call(lambda strategy: None)
        )
        return inner()

    def only_one():
        c = tf.distribute.get_replica_context()
        if c.replica_id_in_sync_group == 0:
            c.merge_call(lambda strategy: None)

    def fails():
        if tf.distribute.get_replica_context().replica_id_in_sync_group == 1:
            raise KeyError("one")

    return [
        each(s, s.run(step, (3,))), calls, raised(s.run, in_a_function), raised(s.run, only_one),
        raised(s.run, fails), s.run(lambda: 1),
    ]  # fmt: skip


@alone
def variables_made_by_replicas(tf):
    s, kept = two(tf), []

    @tf.function
    def step(x):
        def replica(x):
            if not kept:
                kept.append(tf.Variable(2.0, aggregation=tf.VariableAggregation.MEAN))
            kept[0].assign_add(x)
            return kept[0].read_value()

        return s.run(replica, (x,))

    x = s.experimental_distribute_values_from_function(
        lambda c: tf.cast(c.replica_id_in_sync_group, tf.float32)
    )
    first = each(s, step(x))
    return first, each(s, step(x)), len(kept), s.extended.variable_created_in_scope(kept[0])


@alone
def one_device(tf):
    s = tf.distribute.OneDeviceStrategy("/cpu:0")
    with s.scope():
        v = tf.Variable(1.0)
    dataset = s.experimental_distribute_dataset(tf.data.Dataset.range(5).batch(2))

    def step(x):
        v.assign_add(tf.cast(tf.reduce_sum(x), tf.float32))
        return tf.distribute.get_replica_context().all_reduce("sum", v.read_value())

    return [
        [s.run(step, (x,)) for x in dataset], s.num_replicas_in_sync, v.numpy(),
        s.reduce("sum", tf.constant([1.0, 2.0]), axis=0), s.gather(tf.constant([1]), axis=0),
        s.experimental_local_results(tf.constant(1)),
        s.experimental_distribute_values_from_function(lambda c: c.num_replicas_in_sync),
        s.extended.worker_devices, s.run(lambda: tf.constant(1.0).device),
    ]  # fmt: skip


@alone
def losses_of_replicas(tf):
    s, each_loss = two(tf), tf.constant([1.0, 2.0, 3.0])

    def step():
        return (
            tf.nn.compute_average_loss(each_loss),
            tf.nn.compute_average_loss(each_loss, global_batch_size=4),
            tf.nn.compute_average_loss(each_loss, sample_weight=2.0),
            tf.nn.scale_regularization_loss(tf.constant([3.0, 5.0])),
        )

    with s.scope():
        refused = [
            raised(tf.nn.compute_average_loss, each_loss),
            raised(tf.nn.scale_regularization_loss, each_loss),
        ]
    return [each(s, v) for v in s.run(step)], refused, step()


@alone
def resolvers(tf):
    r = tf.distribute.cluster_resolver
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": {1: "c:3"}})
    simple = r.SimpleClusterResolver(spec, master="m", task_type="worker", task_id=1)
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    )
    config = r.TFConfigClusterResolver()
    both = r.UnionResolver(simple, config)
    return [
        spec.jobs, spec.as_dict(), spec.num_tasks("worker"), spec.task_indices("ps"),
        spec.task_address("worker", 1), spec.job_tasks("ps"), raised(spec.num_tasks, "chief"),
        raised(spec.task_address, "ps", 0), raised(tf.train.ClusterSpec, 3), bool(spec),
        spec == tf.train.ClusterSpec(spec), simple.cluster_spec() == spec, simple.master(),
        simple.master("worker", 0), simple.task_type, simple.task_id,
        raised(r.SimpleClusterResolver, {"worker": ["a:1"]}),
        config.cluster_spec().as_dict(), config.task_type, config.task_id,
        config.master("worker", 0), both.task_type, both.task_id,
        both.cluster_spec().as_dict()["worker"],
    ]  # fmt: skip


@alone
def options(tf):
    e = tf.distribute.experimental
    o = e.CommunicationOptions(bytes_per_pack=100, timeout_seconds=2.0)
    c = tf.distribute.InputContext(4, 1, 8)
    return [
        o.bytes_per_pack, o.timeout_seconds, o.implementation.name,
        raised(e.CommunicationOptions, bytes_per_pack=-1),
        [i.name for i in e.CommunicationImplementation],
        c.num_input_pipelines, c.input_pipeline_id, c.num_replicas_in_sync,
        c.get_per_replica_batch_size(16), raised(c.get_per_replica_batch_size, 9),
        [m.name for m in tf.distribute.InputReplicationMode],
        [m.name for m in tf.distribute.ReduceOp],
        [(p.name, int(p)) for p in tf.data.experimental.AutoShardPolicy],
        tf.distribute.ReduceOp.from_variable_aggregation(tf.VariableAggregation.SUM).name,
    ]  # fmt: skip
