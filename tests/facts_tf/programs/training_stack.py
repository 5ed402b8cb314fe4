"""td.io, td.config, td.distribute, td.train, td.summary and td.profiler: names that other facts do
not use, and what programs ask of them."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import program, raised


@program
def options_of_records(tf):
    options = tf.io.TFRecordOptions("GZIP", compression_level=3)
    kinds = tf.io.TFRecordOptions.get_compression_type_string
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "r")
        with tf.io.TFRecordWriter(path, options) as writer:
            writer.write(b"one")
            writer.flush()
            writer.write(b"two")
        first = open(path, "rb").read(2)
        read = list(tf.data.TFRecordDataset(path, "GZIP").as_numpy_iterator())
    return [
        options.compression_type, options.compression_level, kinds(options), kinds("ZLIB"),
        kinds(None), kinds(""), first, read, raised(tf.io.TFRecordOptions, "LZ4"),
        raised(kinds, "zip"),
    ]  # fmt: skip


@program
def files_by_line(tf):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f")
        with tf.io.gfile.GFile(path, "w") as file:
            file.write("one\ntwo\nthree")
        with tf.io.gfile.GFile(path) as file:
            found = [file.next(), file.tell(), file.readline(), file.next(), raised(file.next)]
            file.seek(4)
            found.append(file.read(3))
            file.seek(offset=-5, whence=2)
            found.append(file.readlines())
            file.seek(position=1)
            found += [file.read(2), file.size(), file.seekable(), file.name == path, file.mode]
            found.append(raised(file.seek))
        return found


@program
def fields_of_messages(tf):
    train = tf.train
    example = train.Example()
    example.features.feature["a"].int64_list.value.extend([3, 4])
    feature = example.features.feature["a"]
    sequence = train.SequenceExample()
    sequence.feature_lists.feature_list["b"].feature.add().float_list.value.append(0.5)
    sequence.context.feature["c"].bytes_list.value.append(b"x")

    def fields(message):
        return [(field.name, field.number) for field, _ in message.ListFields()]

    found = [
        fields(example), fields(example.features), fields(feature), fields(feature.int64_list),
        fields(sequence), fields(train.Example()), fields(train.Feature()),
        [list(value) for _, value in feature.int64_list.ListFields()],
        raised(feature.int64_list.HasField, "value"), raised(example.HasField, "other"),
        raised(feature.int64_list.WhichOneof, "kind"), raised(example.ClearField, "other"),
        example.HasField("features"), feature.WhichOneof("kind"), sequence.HasField("context"),
    ]  # fmt: skip
    feature.int64_list.ClearField("value")
    example.ClearField("features")
    left = [list(feature.int64_list.value), example.HasField("features"), len(fields(example))]
    return [*found, *left]


@program
def averages_to_restore(tf):
    average = tf.train.ExponentialMovingAverage(0.5)
    a, b = tf.Variable(1.0, name="a"), tf.Variable(3.0, name="b")
    average.apply([a])
    a.assign(3.0)
    average.apply([a])
    given = average.variables_to_restore([a, b])
    return [
        average.average(a), average.average_name(a), average.average_name(b),
        sorted(given), given[average.average_name(a)] is a, average.name,
        sorted(average.variables_to_restore([a])),
    ]  # fmt: skip


@program
def threads_that_stop_together(tf):
    coordinator = tf.train.Coordinator()
    seen = []

    def work(number):
        with coordinator.stop_on_exception():
            while not coordinator.should_stop():
                seen.append(number)
                if number == 2:
                    raise ValueError("enough")
                coordinator.wait_for_stop(0.05)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    found = raised(coordinator.join, threads)
    quiet = tf.train.Coordinator()
    quiet.request_stop()
    before = quiet.should_stop()
    quiet.clear_stop()
    return [
        found, coordinator.should_stop(), coordinator.joined, 2 in seen, before,
        quiet.should_stop(), quiet.wait_for_stop(0.01),
    ]  # fmt: skip


@program
def options_of_strategies(tf):
    distribute = tf.distribute
    options, run = distribute.InputOptions(), distribute.RunOptions()
    return [
        options.experimental_fetch_to_device, options.experimental_replication_mode.name,
        options.experimental_place_dataset_on_device, options.experimental_per_replica_buffer_size,
        run.experimental_enable_dynamic_batch_size, run.experimental_bucketizing_dynamic_shape,
        [(m.name, m.value) for m in distribute.InputReplicationMode],
        [(m.name, m.value) for m in distribute.ReduceOp],
        [m.name for m in distribute.experimental.CommunicationImplementation],
        distribute.InputContext(4, 1, 8).get_per_replica_batch_size(16),
        raised(distribute.InputContext(4, 1, 8).get_per_replica_batch_size, 15),
        distribute.InputContext().num_input_pipelines,
    ]  # fmt: skip


@program
def strategies_and_their_contexts(tf):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    default = tf.distribute.get_strategy()
    found = [
        tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context(),
        isinstance(default, tf.distribute.Strategy), default.num_replicas_in_sync,
        isinstance(tf.distribute.get_replica_context(), tf.distribute.ReplicaContext),
    ]  # fmt: skip
    with strategy.scope():
        found += [
            tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context(),
            tf.distribute.get_replica_context() is None,
            tf.distribute.get_strategy() is strategy,
            isinstance(strategy.extended, tf.distribute.StrategyExtended),
        ]  # fmt: skip

    def step(x):
        context = tf.distribute.get_replica_context()
        return x * 2, int(context.replica_id_in_sync_group), context.all_reduce("sum", x)

    given = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(3.0 + context.replica_id_in_sync_group)
    )
    result = strategy.run(step, (given,))
    return [
        *found, result, strategy.reduce("SUM", result[0], axis=None),
        strategy.reduce("MEAN", tf.constant([1.0, 3.0]), axis=0),
        [float(v) for v in strategy.experimental_local_results(result[0])],
        strategy.gather(tf.constant([1.0, 2.0]), axis=0), strategy.num_replicas_in_sync,
        strategy.extended.parameter_devices == strategy.extended.worker_devices,
        strategy.extended.reduce_to("SUM", tf.constant(2.0), "/cpu:0"),
        strategy.extended.batch_reduce_to("SUM", [(tf.constant(2.0), "/cpu:0")]),
        raised(strategy.reduce, "MIDDLE", tf.constant(1.0), None),
    ]  # fmt: skip


@program
def datasets_of_strategies(tf):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    dataset = tf.data.Dataset.range(6).batch(2)
    distributed = strategy.experimental_distribute_dataset(dataset)
    made = strategy.distribute_datasets_from_function(
        lambda context: dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    )
    return [
        [x for x in distributed], [x for x in made],
        distributed.element_spec.shape.as_list(),
        next(iter(made)),
    ]  # fmt: skip


@program
def switches_of_the_configuration(tf):
    config = tf.config
    config.experimental.enable_tensor_float_32_execution(False)
    found = [config.experimental.tensor_float_32_execution_enabled()]
    config.experimental.enable_tensor_float_32_execution(True)
    found.append(config.experimental.tensor_float_32_execution_enabled())
    config.experimental.enable_tensor_float_32_execution(False)  # as other programs expect it
    cpu = config.list_physical_devices("CPU")[0]
    config.experimental.enable_mlir_bridge()
    config.experimental.disable_mlir_bridge()
    return [
        *found, cpu.name, cpu.device_type, [d.name for d in config.list_logical_devices("CPU")][:1],
        [d.name for d in config.get_visible_devices("CPU")], config.list_physical_devices("TPU"),
        config.experimental.VirtualDeviceConfiguration is config.LogicalDeviceConfiguration,
        config.LogicalDeviceConfiguration(memory_limit=10).memory_limit,
        raised(config.experimental.get_memory_info, "GPU:0"),
        raised(config.experimental.set_memory_growth, cpu, True),
        config.functions_run_eagerly(), config.get_soft_device_placement(),
        raised(config.set_visible_devices, ["CPU:7"]), raised(config.get_visible_devices, 3),
    ]  # fmt: skip


@program
def writers_and_steps(tf):
    summary = tf.summary
    found = [summary.experimental.get_step(), summary.should_record_summaries()]
    with tempfile.TemporaryDirectory() as folder:
        writer = summary.create_file_writer(folder)
        found += [isinstance(writer, summary.SummaryWriter), summary.scalar("x", 1.0, step=1)]
        with writer.as_default(step=3):
            found += [
                summary.experimental.get_step(), summary.should_record_summaries(),
                summary.scalar("x", 1.0), summary.scalar("x", 1.0, step=4),
            ]  # fmt: skip
            with summary.record_if(False):
                found += [summary.scalar("x", 1.0), summary.should_record_summaries()]
            summary.experimental.set_step(9)
            found.append(summary.experimental.get_step())
        found.append(summary.experimental.get_step())
        with writer.as_default():
            found.append(raised(summary.scalar, "x", 1.0))
            with summary.experimental.summary_scope("scope", values=[1]) as (tag, scope):
                found += [tag, scope]
            found += [
                raised(summary.scalar, "x", [1.0, 2.0], step=1),
                raised(summary.image, "i", np.zeros((3, 3)), step=1),
                raised(summary.audio, "a", np.zeros((3, 3)), 100, step=1),
            ]  # fmt: skip
        writer.flush()
        writer.close()
        found.append(raised(written_late, summary, writer))
        found.append(len(list(Path(folder).iterdir())))
    with summary.create_noop_writer().as_default(step=1):
        found += [summary.scalar("x", 1.0), summary.should_record_summaries()]
    return found


def written_late(summary, writer):
    with writer.as_default(step=1):
        summary.scalar("x", 2.0)


@program
def checkpoints_and_their_options(tf):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        value = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(value=value, step=tf.Variable(0))
        options = tf.train.CheckpointOptions(experimental_io_device="/cpu:0")
        first = checkpoint.save(str(root / "ck"), options=options)
        value.assign(2.0)
        second = checkpoint.save(str(root / "ck"))
        written = checkpoint.write(str(root / "one"))
        status = checkpoint.restore(first)
        status.assert_consumed().assert_existing_objects_matched()
        found = [
            Path(first).name, Path(second).name, Path(written).name, float(value),
            int(checkpoint.save_counter), Path(tf.train.latest_checkpoint(folder)).name,
            tf.train.latest_checkpoint(str(root / "none")),
            options.experimental_io_device, options.experimental_enable_async_checkpoint,
            [name.split("/")[0] for name, _ in tf.train.list_variables(second) if name[0] != "_"],
            tf.train.load_variable(second, "value/.ATTRIBUTES/VARIABLE_VALUE"),
            raised(checkpoint.restore, str(root / "no")),
            raised(checkpoint.read, str(root / "no")),
            raised(lambda: tf.train.Checkpoint(other=tf.Variable(1.0)).restore(first)
                   .assert_existing_objects_matched()),
            raised(lambda: tf.train.Checkpoint(value=tf.Variable(1.0)).restore(first)
                   .assert_consumed()),
            raised(tf.train.Checkpoint, value=3), raised(tf.train.load_variable, second, "none"),
        ]  # fmt: skip
        manager = tf.train.CheckpointManager(checkpoint, str(root / "many"), max_to_keep=2)
        for _ in range(3):
            last = manager.save()
        found += [
            Path(last).name, [Path(p).name for p in manager.checkpoints],
            Path(manager.latest_checkpoint).name, manager.directory == str(root / "many"),
            manager.checkpoint_interval, Path(manager.restore_or_initialize()).name,
            Path(manager.save(checkpoint_number=9)).name,
            raised(tf.train.CheckpointManager, checkpoint, str(root), 0),
        ]  # fmt: skip
        return found


@program
def options_of_profiles(tf):
    options = tf.profiler.experimental.ProfilerOptions()
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        again = raised(tf.profiler.experimental.start, folder)
        with tf.profiler.experimental.Trace("step", step_num=1):
            tf.constant(1.0) + 1.0
        tf.profiler.experimental.stop()
        stopped = raised(tf.profiler.experimental.stop)
        with tf.profiler.experimental.Profile(folder):
            tf.constant(1.0) + 1.0
        written = any(p.is_file() for p in Path(folder).rglob("*"))
    return [
        options.host_tracer_level, options.python_tracer_level, options.device_tracer_level,
        options.delay_ms, again, stopped, written,
    ]  # fmt: skip


@program
def losses_of_single_outputs(tf):
    """Of batches of 2, 2 and 1 examples."""
    x = tf.keras.Input([1])
    outputs = [tf.keras.layers.Dense(1, kernel_initializer="ones", name=n)(x) for n in ("a", "b")]
    model = tf.keras.Model(x, outputs)
    data = np.arange(5.0, dtype=np.float32)[:, None]
    found = {}
    for eagerly in (True, False):
        model.compile(tf.keras.optimizers.SGD(0.0), ["mse", "mae"], run_eagerly=eagerly)
        history = model.fit(data, [data * 2, data * 3], batch_size=2, shuffle=False, verbose=0)
        name = "eagerly" if eagerly else "in a graph"
        found[name] = {key: float(value[0]) for key, value in history.history.items()}
    return found


@program
def steps_at_once_of_endless_data(tf):
    """Three steps an epoch, of which two are taken at once."""

    def batches():
        while True:
            yield np.ones([2, 1], np.float32), np.ones([2, 1], np.float32)

    model = tf.keras.Sequential([tf.keras.Input([1]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=2)
    model.fit(batches(), steps_per_epoch=3, epochs=2, verbose=0)
    return int(model.optimizer.iterations)
