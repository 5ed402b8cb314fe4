"""td.config on processors: every function, as it is and after it is set."""

from __future__ import annotations

from tests.facts_tf.processes import alone
from tests.facts_tf.registry import outcome, raised


@alone
def devices_before_anything_is_computed(tf):
    c = tf.config
    cpu = c.list_physical_devices("CPU")
    D = c.LogicalDeviceConfiguration
    found = [
        [d.name for d in cpu],
        c.get_logical_device_configuration(cpu[0]),
        raised(c.set_logical_device_configuration, cpu[0], [D(memory_limit=10)]),
        c.set_logical_device_configuration(cpu[0], [D(), D(), D()]),
        len(c.get_logical_device_configuration(cpu[0])),
        c.set_logical_device_configuration(cpu[0], [D()] * 4),
        [d.name for d in c.list_logical_devices("CPU")],
        [d.device_type for d in c.list_logical_devices()][:4],
        raised(c.set_logical_device_configuration, cpu[0], [D()]),
        raised(c.get_logical_device_configuration, "CPU:9"),
        [d.name for d in c.list_logical_devices("cpu")],
        c.list_physical_devices("XLA_CPU"),
        c.list_logical_devices("TPU"),
        c.experimental.get_device_details(cpu[0]),
        c.experimental.get_virtual_device_configuration(cpu[0]) is not None,
    ]
    with tf.device("CPU:3"):
        found.append(tf.constant(1.0).device.rpartition("/")[2])
    return [*found, raised(lambda: tf.device("CPU:7").__enter__() and tf.constant(1.0))]


@alone
def devices_that_are_hidden(tf):
    c = tf.config
    cpu = c.list_physical_devices("CPU")
    return [
        [d.name for d in c.get_visible_devices()][:1],
        c.set_visible_devices(cpu),
        c.set_visible_devices(cpu, "CPU"),
        c.set_visible_devices([], "GPU"),
        c.get_visible_devices("GPU"),
        raised(c.set_visible_devices, cpu, "GPU"),
        raised(c.set_visible_devices, [3]),
        [d.name for d in c.list_logical_devices("CPU")],
    ]


@alone
def threads_and_optimizer(tf):
    c = tf.config
    t = c.threading
    found = [
        t.get_inter_op_parallelism_threads(),
        t.get_intra_op_parallelism_threads(),
        t.set_inter_op_parallelism_threads(2),
        t.set_intra_op_parallelism_threads(1),
        t.get_inter_op_parallelism_threads(),
        t.get_intra_op_parallelism_threads(),
        c.optimizer.get_jit(),
        c.optimizer.set_jit(False),
        c.optimizer.get_experimental_options(),
        c.optimizer.set_experimental_options(
            {"constant_folding": False, "disable_meta_optimizer": True}
        ),
        c.optimizer.get_experimental_options().get("constant_folding"),
        c.optimizer.get_experimental_options().get("disable_meta_optimizer"),
        outcome(c.optimizer.set_experimental_options, {"loop_optimization": True}),
        c.optimizer.get_experimental_options().get("loop_optimization"),
    ]
    return found


@alone
def switches(tf):
    c = tf.config
    found = [
        c.get_soft_device_placement(),
        c.set_soft_device_placement(False),
        c.get_soft_device_placement(),
        c.functions_run_eagerly(),
    ]
    found += [c.run_functions_eagerly(True), c.functions_run_eagerly()]
    calls = []

    @tf.function
    def f(x):
        calls.append(tf.executing_eagerly())
        return x + 1

    f(tf.constant(1)), f(tf.constant(2))
    c.run_functions_eagerly(False)
    f(tf.constant(1)), f(tf.constant(2))
    found += [calls]
    found += [
        c.experimental.get_synchronous_execution(),
        c.experimental.set_synchronous_execution(True),
    ]
    found += [
        c.set_soft_device_placement(True),
        raised(c.set_soft_device_placement, "yes"),
    ]
    found += [
        raised(c.experimental.get_memory_usage, "CPU:0"),
        raised(c.experimental.get_memory_info, "CPU:0"),
        raised(c.experimental.get_memory_info, "nonsense"),
        raised(c.experimental.reset_memory_stats, "CPU:0"),
    ]
    found += [c.experimental.enable_op_determinism()]
    return found


@alone
def determinism(tf):
    tf.config.experimental.enable_op_determinism()
    without = raised(tf.random.normal, [1])
    tf.random.set_seed(3)
    first = tf.random.uniform([3])
    tf.random.set_seed(3)
    return [without, bool(tf.reduce_all(first == tf.random.uniform([3])))]
