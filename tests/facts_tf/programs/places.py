"""Bits, fingerprints, devices, scopes, what is known while tracing, and other small names."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.helpers import both, gradients
from tests.facts_tf.registry import outcome, program, raised

VOLUME = np.arange(2 * 3 * 4 * 3 * 2, dtype=np.float32).reshape(2, 3, 4, 3, 2)


@program
def bits(tf):
    x = np.float32([[1, -2, 0.5, np.inf]])
    cases = [
        (x, "int32"), (x, "uint8"), (x, "float16"), (x, "bfloat16"), (x.reshape(2, 2), "float64"),
        (np.float64([1, np.pi]), "int64"), (np.float64([1, np.pi]), "int32"),
        (np.uint8([[0, 0, 128, 63], [1, 2, 3, 4]]), "float32"), (np.int16([[1, -1]]), "uint32"),
        (np.int8([-1, 1]), "uint8"), (np.complex64([1 + 2j]), "float32"),
        (x.reshape(2, 2), "complex64"), (np.int32(7), "uint8"), (np.uint64([2**63]), "int64"),
    ]  # fmt: skip
    return [
        *(outcome(lambda x=x, t=t: tf.bitcast(tf.constant(x), getattr(tf, t))) for x, t in cases),
        *(outcome(tf.function(lambda x, t=t: tf.bitcast(x, getattr(tf, t))), tf.constant(x))
          for x, t in cases),
        raised(tf.bitcast, [True], tf.uint8), raised(tf.bitcast, np.uint8([1]), tf.bool),
        raised(tf.bitcast, ["a"], tf.uint8), raised(tf.bitcast, np.uint8([1, 2, 3]), tf.float32),
        raised(tf.bitcast, np.uint8(1), tf.int32), raised(tf.bitcast, x, "no dtype"),
    ]  # fmt: skip


@program
def fingerprints(tf):
    fn = tf.fingerprint
    rows = (
        ["a", "bc", ""], [["a", "b"], ["c", "d"]], [[1, 2], [3, 4]], [1.0, 2.0],
        np.arange(40.0).reshape(2, 20), ["x" * 100], [[["a"], ["b"]]],
    )  # fmt: skip
    return [
        *(both(tf, fn, x) for x in rows if np.asarray(x).dtype.kind != "U"),
        *(outcome(fn, x) for x in rows), raised(fn, "a"), raised(fn, ["a"], "md5"),
    ]  # fmt: skip


@program
def places_of_operations(tf):
    names = (
        "CPU:0", "/cpu:0", "/device:CPU:0", "cpu", "GPU:0", "CPU:1", "", None, "nonsense",
        "/job:localhost/replica:0/task:0/device:CPU:0", "/gpu:x", "/cpu:0/gpu:0", "a:b",
    )  # fmt: skip

    def of(name):
        with tf.device(name):
            return tf.constant(1.0) + 1.0, tf.Variable(2.0)

    def traced(name):
        @tf.function
        def f(x):
            with tf.device(name):
                return x * 2

        return f(tf.constant([1, 2]))

    found = [(outcome(of, name), outcome(traced, name)) for name in names]
    before = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(False)
    try:
        hard = [outcome(of, "GPU:0"), outcome(of, "CPU:0"), outcome(traced, "GPU:0")]
        return found, before, hard, tf.config.get_soft_device_placement()
    finally:
        tf.config.set_soft_device_placement(True)


@program
def names_of_devices(tf):
    spec = tf.DeviceSpec
    one = spec(job="w", replica=1, task=2, device_type="cpu", device_index=3)
    names = (
        "CPU:0", "/job:a/gpu:1", "/device:GPU:*", "/job:b/replica:1/task:2", "", "/device:TPU:1",
    )  # fmt: skip
    parsed = [spec.from_string(name) for name in names]
    return (
        [(s.job, s.replica, s.task, s.device_type, s.device_index, s.to_string()) for s in parsed],
        one.to_string(), one == spec.from_string(one.to_string()), one == spec(),
        hash(one) == hash(one.replace()), one.replace(job="x", task=None).to_string(),
        spec(job="a", task=1).make_merged_spec(spec(task=2, device_type="CPU")).to_string(),
        raised(spec.from_string, "no:such:name"), raised(spec.from_string, "/job:a/nothing"),
        repr(one),
    )  # fmt: skip


@program
def known_while_tracing(tf):
    known = tf.get_static_value
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        seen.append([
            known(tf.constant([1, 2])), known(x), known(tf.shape(x)), known(tf.fill([2], 3)),
            known(tf.stack([1, 2])), known(tf.stack([x[0, 0], 3.0])), known(5), known("a"),
            known(tf.range(4)), known(tf.zeros([2, 2])), known(tf.constant(["a", "b"])),
            known(tf.concat([tf.constant([1]), tf.constant([2])], 0)),
        ])  # fmt: skip
        return x

    f(tf.ones([2, 3]))
    return (
        seen, known(tf.constant([1.5])), known(3), known(np.ones(2)), known([1, 2]),
        known(tf.constant(2)), known(tf.constant("s")),
    )  # fmt: skip


@program
def scopes(tf):
    found = [tf.inside_function(), tf.get_current_name_scope()]

    @tf.function
    def f(x):
        found.append(tf.inside_function())
        with tf.name_scope("a"), tf.name_scope("b"):
            found.append(tf.get_current_name_scope())
            with tf.name_scope("c/"):
                found.append(tf.get_current_name_scope())
        found.append(tf.get_current_name_scope())
        return x

    f(tf.constant(1))
    with tf.name_scope("outer"):
        found.append(tf.get_current_name_scope())
    return found


@program
def lists_of_tensors(tf):
    x = tf.constant(1.0)
    return (
        tf.tuple([x, None]), tf.tuple((x, x)), tf.function(lambda v: tf.tuple([v, v + 1]))(x),
        outcome(tf.function(lambda v: tf.tuple([v, None])[0]), x),
        raised(tf.function(lambda v: tf.tuple([None])), x), tf.guarantee_const([1, 2]),
        gradients(tf, lambda v: tf.tuple([v * 2, v * 3]), np.float64([1, 2])),
    )


@program
def times(tf):
    first, second = tf.timestamp(), tf.timestamp()
    f = tf.function(lambda: (tf.timestamp(), tf.timestamp()))
    a, b = f()
    c, _ = f()
    return first.dtype, first.shape, bool(first <= second <= a <= b <= c), bool(c - first < 1000)


@program
def patches_of_volumes(tf):
    fn = tf.extract_volume_patches
    cases = [
        ([1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID"), ([1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME"),
        ([1, 1, 3, 2, 1], [1, 2, 1, 1, 1], "SAME"), ([1, 3, 4, 3, 1], [1, 1, 1, 1, 1], "VALID"),
        ([1, 1, 1, 1, 1], [1, 2, 3, 1, 1], "VALID"),
    ]  # fmt: skip
    return [
        *(both(tf, lambda x, c=c: fn(x, *c), VOLUME) for c in cases),
        gradients(tf, lambda x: fn(x, *cases[1]), VOLUME), fn(np.int32(VOLUME), *cases[0]),
        raised(fn, VOLUME, [2, 2, 2, 2, 1], [1] * 5, "SAME"),
        raised(fn, VOLUME, [1, 2, 2, 2, 1], [1] * 5, "FULL"),
        raised(fn, VOLUME[0], [1, 2, 2, 2, 1], [1] * 5, "SAME"),
        raised(fn, VOLUME, [1, 2, 2], [1] * 5, "SAME"),
    ]  # fmt: skip


@program
def blocks_of_any_axes(tf):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    fn = tf.space_to_batch_nd
    return (
        both(tf, lambda v: fn(v, [3], [[0, 0]]), x), fn(x, [2, 2], [[1, 0], [0, 0]]),
        raised(fn, x, [2], [[0, 0]]), raised(fn, x, [3], [[0, 0], [0, 0]]),
    )


@program
def largest_by_and_large(tf):
    x = np.float32([[1, 3, 2, 5], [7, 0, -1, 4]])
    return (
        tf.approx_top_k(x, 2), tf.approx_top_k(x[0], k=1), tf.math.approx_max_k(x, 3),
        both(tf, tf.math.softsign, x),
    )


@program
def cosines_of_frames(tf):
    s = tf.signal
    x = np.cos(np.arange(20.0) ** 1.3)
    rows = np.stack([x, 2 * x])
    return [
        both(tf, lambda v: s.mdct(v, 8), x), s.mdct(rows, 8, pad_end=True),
        s.mdct(x, 8, None), s.mdct(x, 8, norm="ortho"), s.mdct(np.float32(x), 4),
        s.mdct(x, 8, s.kaiser_bessel_derived_window), s.inverse_mdct(s.mdct(rows, 8)),
        s.inverse_mdct(s.mdct(x, 8, None, norm="ortho"), None, "ortho"),
        gradients(tf, lambda v: s.mdct(v, 8), x),
        gradients(tf, lambda v: s.inverse_mdct(v), rows[:, :4]),
        raised(s.mdct, x, 6), raised(s.mdct, 1.0, 8), raised(s.inverse_mdct, x),
    ]  # fmt: skip


class Reading:
    """A class of a user."""

    def __init__(self, values):
        self.values = values


class Other(Reading):
    """Another one."""


@program
def conversions_of_users(tf):
    def convert(value, dtype=None, name=None, as_ref=False):
        return tf.constant(value.values, dtype)

    def never(value, dtype=None, name=None, as_ref=False):
        return NotImplemented

    register = tf.register_tensor_conversion_function
    register(Reading, convert)
    register(Other, never, priority=1)
    x = Reading([1.0, 2.0])
    return (
        tf.convert_to_tensor(x), tf.convert_to_tensor(Other([1])),
        tf.constant([1.0, 1.0]) * x, tf.reduce_sum(x), tf.function(lambda: tf.add(x, 1.0))(),
        tf.convert_to_tensor(x, tf.float64), raised(register, Reading, 3),
        raised(register, 3, convert), raised(register, int, convert),
        raised(register, np.ndarray, convert),
    )  # fmt: skip


class Converts:
    """An object that says itself which tensor it is."""

    def __init__(self, tf):
        self.tf = tf

    def __tf_tensor__(self, dtype=None, name=None):
        return self.tf.constant([1.0, 2.0], dtype)


@program
def objects_that_convert_themselves(tf):
    x = Converts(tf)
    return (
        tf.convert_to_tensor(x), tf.convert_to_tensor(x, tf.float64), tf.add(x, 1.0),
        tf.constant([3.0, 4.0]) * x, tf.reduce_sum(x), tf.function(lambda: tf.add(x, 1.0))(),
        tf.is_tensor(x), tf.stack([x, x]), raised(lambda: tf.constant([1, 2]) * x),
    )  # fmt: skip


@program
def small_names(tf):
    method = tf.AggregationMethod
    return (
        method.ADD_N, method.DEFAULT, method.EXPERIMENTAL_TREE, method.EXPERIMENTAL_ACCUMULATE_N,
        tf.dtypes.cast([1.5], tf.int32), tf.dtypes.complex(1.0, 2.0),
        tf.dtypes.saturate_cast([300, -5], tf.uint8), isinstance(tf.version.VERSION, str),
        tf.debugging.get_log_device_placement(), tf.get_logger().level >= 0,
    )  # fmt: skip


@program
def scopes_of_names_within_themselves(tf):
    scope, names = tf.name_scope("a"), []

    def note():
        names.append(tf.Variable(1.0, name="v").name)

    with scope:
        with scope:
            note()
        note()
    note()
    with tf.name_scope("b"), scope:
        note()
    note()
    return names


@program
def creators_hear_nothing_of_random_numbers(tf):
    made = []

    def creator(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        tf.random.uniform([2], seed=3)
        tf.function(lambda: tf.random.normal([2]))()
        list(tf.data.Dataset.range(2).map(lambda x: tf.random.uniform([])))
    return made


@program
def creators_of_variables(tf):
    calls = []

    def creator(name, **changed):
        def create(next_creator, **kwargs):
            calls.append((name, kwargs["name"], kwargs["trainable"]))
            return next_creator(**{**kwargs, **changed})

        return create

    with tf.variable_creator_scope(creator("outer", trainable=False)):
        first = tf.Variable(1.0, name="a")
        with tf.variable_creator_scope(creator("inner", name="b", dtype=tf.float64)):
            second = tf.Variable(2.0)
    third = tf.Variable(3.0, name="c")
    made = [(v.name, v.trainable, v.dtype, v) for v in (first, second, third)]

    return made, list(calls), isinstance(first, tf.Variable)
