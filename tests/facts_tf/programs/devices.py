"""Devices: settings and their errors, scopes, and where tensors are.

Each program runs in a process of its own, which sets its devices up before anything else.
"""

from __future__ import annotations

from tests.facts_tf.processes import alone
from tests.facts_tf.registry import outcome


def said(function, *args):
    """What a call gives, or the type of its error and the first line of what it says."""
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def processors(tf, count=3):
    """Several logical processors."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    part = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [part] * count)


def place(*tensors):
    """Where tensors and variables are, such as "CPU:1"."""
    return [t.device.rpartition("device:")[2] for t in tensors]


@alone
def settings_of_devices(tf):
    config = tf.config
    (cpu,) = config.list_physical_devices("CPU")
    part = config.LogicalDeviceConfiguration
    gpu = config.PhysicalDevice("/physical_device:GPU:7", "GPU")
    divide = config.set_logical_device_configuration
    divided = config.get_logical_device_configuration
    see, seen = config.set_visible_devices, config.get_visible_devices
    grow, grows = config.experimental.set_memory_growth, config.experimental.get_memory_growth
    details = config.experimental.get_device_details
    before = [
        cpu, config.list_physical_devices("XYZ"), divided(cpu), part(), part(100),
        said(divide, cpu, [part(memory_limit=100)]),
        said(divide, cpu, [part(experimental_priority=1)]),
        said(divide, cpu, [part(experimental_device_ordinal=1)]), said(divide, gpu, [part()]),
        said(divide, "CPU:0", [part()]), said(divided, gpu), said(divide, cpu, []), divided(cpu),
        said(see, gpu), said(see, "CPU:0"), said(see, cpu, "GPU"), said(see, None),
        said(see, [], "GPU"), seen(), seen("GPU"), said(see, [], "CPU"), seen(),
        said(see, cpu, "CPU"), said(see, cpu), seen(), said(grow, gpu, True), said(grows, gpu),
        said(grow, cpu, True), details(cpu),
    ]  # fmt: skip
    processors(tf)
    after = [
        divided(cpu), config.list_logical_devices("CPU"), config.list_logical_devices("XYZ"),
        said(processors, tf), said(processors, tf, 2), said(see, [], "CPU"), said(see, cpu, "CPU"),
        said(grow, cpu, True), said(config.experimental.get_memory_info, "GPU:7"),
        said(config.experimental.get_memory_info, "nonsense"),
        said(config.experimental.get_memory_info, "CPU"),
        said(config.experimental.reset_memory_stats, "GPU:7"), said(details, gpu)[:50],
        config.get_soft_device_placement(),
    ]  # fmt: skip
    return before, after


@alone
def setup_after_operations(tf):
    assert float(tf.constant(1.0) + 1.0) == 2.0
    late = said(processors, tf), said(tf.config.set_visible_devices, [], "GPU")
    return late, tf.config.list_logical_devices("CPU"), said(processors, tf, 2)


@alone
def names_of_scopes(tf):
    processors(tf)

    def here(name):
        with tf.device(name):
            return place(tf.constant(1.0))

    names = [
        "CPU:1", "/cpu:2", "/Cpu:1", "/device:cpu:1", "CPU:01", "CPU", "/device:CPU:*", "CPU:3",
        "GPU:0", "/device:XYZ:0", "TPU:0", "", None, "/job:localhost", "/replica:0",
        "/job:localhost/replica:0/task:0/device:CPU:2", "/job:localhost/replica:0/task:0/cpu:2",
        tf.config.LogicalDevice("/device:CPU:1", "CPU"),
        tf.DeviceSpec(device_type="CPU", device_index=1),
    ]  # fmt: skip
    wrong = [
        "nonsense", "a:b", "/cpu:0/gpu:0", "CPU:x", "/device:CPU", " /CPU:0",
        "/physical_device:CPU:0", "/job:foo/device:CPU:0", "/task:1/device:CPU:0",
    ]  # fmt: skip
    (cpu,) = tf.config.list_physical_devices("CPU")
    other = [3, 1.5, b"CPU:1", cpu, lambda op: "CPU:1", "CPU:-1"]
    nested = []
    with tf.device("CPU:1"):
        for name in ("", "CPU", "CPU:2", "GPU", "/job:localhost", None, "/device:GPU:1"):
            nested.append(here(name))
        nested.append(place(tf.constant(1.0)))
    soft = [said(here, name) for name in names], [said(here, name) for name in wrong]
    again = tf.device("CPU:1")
    with again, again:
        nested.append(place(tf.constant(1.0)))
    nested.append(place(tf.constant(1.0)))
    tf.config.set_soft_device_placement(False)
    hard = [outcome(_variable, tf, n) for n in ("CPU:3", "GPU:0", "/device:XYZ:0", "CPU:2")]
    return soft, [outcome(here, name) for name in other], nested, hard


def _variable(tf, name):
    with tf.device(name):
        return place(tf.Variable(1.0))


@alone
def places_of_tensors(tf):
    processors(tf)
    x0 = tf.constant([1.0, 2.0])
    with tf.device("CPU:1"):
        x1, v1, sum_there = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0]), x0 + 1.0
    with tf.device("CPU:2"):
        x2, same = tf.constant([3.0, 4.0]), x0
    made = place(x0, x1, v1, sum_there, x2, same), x1.backing_device == x1.device
    v1.assign(x0)
    with tf.device("CPU:2"):
        v1.assign_add(x2)
        variable = place(v1, v1.value(), v1 + 1.0)
    with tf.device("CPU:1"):
        inside = place(
            x0 + 1.0, x2 * x0, tf.convert_to_tensor(x0), tf.identity(x0), tf.constant([1, 2]),
            tf.Variable(x0), v1.value(), tf.shape(x0), x0[0], tf.range(3), tf.zeros([2]),
            tf.random.normal([2]), tf.ones_like(x0), tf.cast(x0, tf.float32), tf.constant("a"),
            x2.cpu(),
        )  # fmt: skip
    with tf.GradientTape() as tape:
        tape.watch(x1)
        with tf.device("CPU:2"):
            y = tf.reduce_sum(x1 * x0)
    return made, variable, v1, inside, place(y), tape.gradient(y, x1)


@alone
def places_outside_of_scopes(tf):
    processors(tf)
    x0 = tf.constant([1.0, 2.0])
    with tf.device("CPU:1"):
        x1, v1 = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with tf.device("CPU:2"):
        x2 = tf.constant([3.0, 4.0])
    return place(x0 + 1.0, x1 + 1.0, x1 + x2, x0 + x2, v1 + x2, tf.identity(x2), tf.Variable(x1))


@alone
def places_of_results_of_functions(tf):
    processors(tf)
    x0 = tf.constant([1.0, 2.0])
    with tf.device("CPU:1"):
        x1, v1 = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with tf.device("CPU:2"):
        x2, v2 = tf.constant([3.0, 4.0]), tf.Variable([1.0, 2.0])
    f = tf.function(lambda a: a * 2.0)
    g = tf.function(lambda a, b: (a + b, a * 1.0, b * 1.0))
    h = tf.function(lambda a: (a + v1, v2 * 1.0, v1 * v2))
    made = []

    @tf.function
    def makes(a):
        if not made:
            made.append(tf.Variable(1.0))
        return a * made[0]

    with tf.device("CPU:2"):
        scoped = place(f(x0), f(x1), *g(x0, x1))
    with tf.device("CPU:1"):
        scoped += place(*h(x0), makes(x0), *made)
    return scoped, place(f(x0)), [tf.reduce_sum(a) for a in (*g(x1, x2), *g(x0, x2), *h(x0))]


@alone
def places_of_functions_of_tensors_elsewhere(tf):
    processors(tf)
    x0 = tf.constant([1.0, 2.0])
    with tf.device("CPU:1"):
        x1, v1 = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    f = tf.function(lambda a: a * 2.0)
    h = tf.function(lambda a: a + v1)
    with tf.device("CPU:2"):
        x2 = tf.constant([3.0, 4.0])
        f(x0)
    g = tf.function(lambda a, b: a + b)
    return place(f(x1), h(x0), g(x1, x2), g(x0, x2)), f(x0), f.experimental_get_tracing_count()


@alone
def scopes_inside_of_functions(tf):
    processors(tf)
    x0 = tf.constant([1.0, 2.0])

    @tf.function
    def f(a):
        with tf.device("CPU:2"):
            b = a * 2.0
            with tf.device(None):
                c = a * 3.0
        return b, b + 1.0, c

    with tf.device("CPU:1"):
        return place(*f(x0)), place(*tf.function(lambda a: f(a))(x0))


@alone
def results_of_scopes_inside_of_functions(tf):
    processors(tf)

    @tf.function
    def f(a, name):
        with tf.device(name):
            return tf.reduce_sum(a * 2.0)

    x0 = tf.constant([1.0, 2.0])
    names = ("CPU:1", "GPU:0", "/device:XYZ:0", "nonsense", lambda op: "CPU:1", None)
    soft = [outcome(f, x0, name) for name in names]
    tf.config.set_soft_device_placement(False)
    return soft, [outcome(f, x0, name) for name in ("CPU:3", "GPU:0", "CPU:1")]
