"""String tensors: constants, operators, moving elements, functions, loops, variables, refusals."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

VALUES = [
    "abc", b"abc", "", "é", b"a\0b\0", ["a", b"b"], [["a", "b"], ["c", "d"]], np.array(["a", "é"]),
    np.array([b"a", b"b\0c"]), np.array(["a", b"b"], object), np.str_("a"), np.bytes_(b"a"),
]  # fmt: skip


@program
def constants(tf):
    return [outcome(tf.constant, value) for value in VALUES]


@program
def conversions(tf):
    return [
        outcome(tf.convert_to_tensor, [tf.constant("a"), "b"]),
        tf.constant("x", shape=[2]),
        tf.zeros([2], tf.string),
        tf.zeros_like(tf.constant(["a", "b"])),
        tf.fill([2], "a"),
        tf.cast(tf.constant("a"), tf.string),
        tf.identity(tf.constant("a")),
        [tf.as_dtype(x).name for x in ("string", object, np.dtype("S3"), np.dtype("U3"))],
        [tf.string.is_numeric, tf.string.is_integer, tf.string.is_floating],
    ]


@program
def refused_conversions(tf):
    return [
        raised(tf.constant, ["a", 1]),
        raised(tf.constant, "a", dtype=tf.float32),
        raised(tf.constant, 1, dtype=tf.string),
        raised(tf.constant, np.array(["a", 1], object)),
        raised(tf.convert_to_tensor, "a", dtype=tf.int32),
        raised(tf.cast, tf.constant("1"), tf.int32),
        raised(tf.cast, tf.constant(1), tf.string),
        raised(tf.ones, [2], tf.string),
        raised(tf.as_dtype, str),
        raised(tf.as_dtype, "str"),
    ]


@program
def values_and_texts(tf):
    one, two = tf.constant("é"), tf.constant(["b", "a"])
    return {
        "numpy": [repr(one.numpy()), repr(two.numpy()), repr(two[0].numpy())],
        "repr": [repr(one), repr(two), repr(tf.constant([["a", "b"], ["c", "d"]]))],
        "str": [str(one), str(two), f"{two}"],
        "python": [bool(tf.constant("a")), bool(tf.constant("")), int(tf.constant("12"))],
        "items": [len(two), list(two), "a" in two, raised(hash, two)],
        "spec": tf.TensorSpec([None], tf.string).dtype.name,
    }


@program
def comparisons(tf):
    s, t = tf.constant(["b", "a"]), tf.constant([["a"], ["b"]])
    return [
        s == "a", s != "a", s == tf.constant("a"), tf.equal(s, b"b"), tf.not_equal(s, s), t == s,
        tf.reduce_any(s == "a"), raised(lambda: s == 1),
        raised(lambda: s < "b"), raised(tf.less, s, s), raised(tf.greater_equal, s, s),
    ]  # fmt: skip


@program
def addition(tf):
    s = tf.constant(["b", "a"])
    f = tf.function(lambda x, y: x + y + "!")
    return [
        s + "x", "x" + s, s + s, tf.add(s, "q"), s + tf.constant([["1"], ["2"]]),
        f(s, s), f(s, tf.constant("")), raised(lambda: s + 1), raised(f, s, tf.constant(1)),
    ]  # fmt: skip


def _moved(tf, s, m):
    return {
        "index": [s[0], s[-1], s[1:], s[::-1], m[1], m[:, 0], m[..., tf.newaxis], m[1, 0]],
        "gather": [
            tf.gather(s, [2, 0]), tf.gather(m, [1], axis=1), tf.gather_nd(m, [[0, 1], [1, 1]]),
        ],
        "join": [tf.concat([s, ["z"]], 0), tf.concat([m, m], 1), tf.stack([s, s]),
                 tf.stack([s, s], axis=1), tf.unstack(m), tf.unstack(m, axis=1)],
        "shape": [tf.reshape(m, [4]), tf.reshape(m, [-1, 1]), tf.expand_dims(s, 0),
                  tf.squeeze(tf.expand_dims(s, 1)), tf.tile(s, [2]), tf.transpose(m),
                  tf.broadcast_to(s[:1], [3]), tf.shape(m), tf.size(m), tf.rank(m)],
        "mask": [tf.boolean_mask(s, [True, False, True]), tf.where([True, False, True], s, "z"),
                 tf.where(s == "b", s, tf.constant(["x", "y", "w"]))],
        "order": [tf.reverse(s, [0]), tf.roll(s, 1, 0), tf.repeat(s, 2), tf.split(s, 3)],
        "pad": [tf.pad(s, [[1, 1]]), tf.pad(m, [[0, 0], [1, 0]], constant_values="p")],
        "update": [tf.tensor_scatter_nd_update(s, [[0]], ["q"]), tf.one_hot([0, 1], 2, "y", "n")],
    }  # fmt: skip


@program
def moving_elements(tf):
    return _moved(tf, tf.constant(["a", "b", "c"]), tf.constant([["1", "2"], ["3", "4"]]))


@program
def moving_elements_in_a_function(tf):
    f = tf.function(lambda s, m: _moved(tf, s, m))
    return f(tf.constant(["a", "b", "c"]), tf.constant([["1", "2"], ["3", "4"]]))


@program
def open_dims(tf):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def f(s):
        return s + "!", tf.boolean_mask(s, s != "b"), tf.shape(s), tf.stack([s, s]), s[-1]

    return [f(tf.constant(x)) for x in (["a"], ["a", "b", "c"], ["b", "b"])]


@program
def other_ops_refuse(tf):
    s = tf.constant(["b", "a"])
    m = tf.constant([["b"]])
    eagerly = [
        raised(tf.exp, s), raised(tf.reduce_sum, s), raised(tf.reduce_max, s), raised(tf.sort, s),
        raised(tf.matmul, m, m), raised(lambda: s - s), raised(lambda: s * 2), raised(lambda: -s),
        raised(tf.abs, s), raised(tf.maximum, s, s), raised(tf.logical_not, s),
        raised(tf.nn.relu, s), raised(tf.add_n, [s, s]), raised(lambda: s / s),
    ]  # fmt: skip
    traced = [
        raised(tf.function(tf.exp), s), raised(tf.function(tf.reduce_sum), s),
        raised(tf.function(lambda x: x * x), s), raised(tf.function(lambda x: x < x), s),
        raised(tf.function(lambda x: tf.cast(x, tf.int32)), s),
    ]  # fmt: skip
    return eagerly, traced


@program
def arguments_and_results(tf):
    traces = []

    @tf.function
    def f(x, y="default"):
        traces.append(1)
        return {"x": x, "y": y, "both": x + y}

    results = [f(tf.constant("a")), f(tf.constant("b")), f(tf.constant("a"), tf.constant("c")),
               f(tf.constant(["a", "b"]))]  # fmt: skip
    return results, len(traces)


@program
def python_strings_are_no_tensors(tf):
    @tf.function
    def f(mode):
        return 1 if mode == "train" else 2

    return f("train"), f("test"), f.experimental_get_tracing_count()


@program
def captured(tf):
    words = tf.constant(["a", "b", "c"])

    @tf.function
    def f(i):
        return words[i] + "!", words

    return f(tf.constant(1)), f(tf.constant(-1))


@program
def loops(tf):
    @tf.function
    def f(n):
        text = tf.constant("")
        for i in tf.range(n):
            if i % 2 == 0:
                text += "even "
            else:
                text = "odd " + text
        return text

    return [f(tf.constant(n)) for n in (0, 1, 4)]


@program
def while_with_a_string_condition(tf):
    @tf.function
    def f(word):
        n = 0
        while word != "aaaa":
            word += "a"
            n += 1
        return n, word

    return f(tf.constant("")), f(tf.constant("aa"))


@program
def branches(tf):
    @tf.function
    def f(x, flag):
        if flag:
            y = x + "?"
        else:
            y = tf.constant(["other", "words"])
        return tf.cond(y[0] == "other", lambda: "yes", lambda: y[1])

    x = tf.constant(["a", "b"])
    return [f(x, tf.constant(flag)) for flag in (True, False)]


@program
def iteration_over_strings(tf):
    @tf.function
    def f(words):
        text = tf.constant("")
        for word in words:
            text += word + ";"
        return text

    return f(tf.constant(["a", "b", "c"])), f(tf.constant([], tf.string))


@program
def tensor_arrays(tf):
    @tf.function
    def f(n):
        items = tf.TensorArray(tf.string, size=0, dynamic_size=True)
        for i in tf.range(n):
            items = items.write(i, tf.where(i > 1, "big", "small"))
        return items.stack()

    unwritten = tf.TensorArray(tf.string, 2, element_shape=[]).write(1, "a").stack()
    return f(tf.constant(3)), unwritten


@program
def variables(tf):
    v, w = tf.Variable("abc"), tf.Variable(["a", "b"])

    @tf.function
    def f(x):
        w.assign(w + x)
        for _ in tf.range(2):
            v.assign(v + "!")
        return v + w[0]

    results = [f(tf.constant("1")), f(tf.constant(["2", "3"]))]
    refused = raised(v.assign, 1), raised(w.assign, ["a"])
    return results, v, w, v.dtype.name, refused


@program
def python_functions(tf):
    seen = []

    def upper(x):
        seen.append(repr(x.numpy()))
        return tf.constant(np.array([s.upper() for s in x.numpy()], object))

    @tf.function
    def f(x):
        return tf.py_function(upper, [x], tf.TensorSpec([2], tf.string)) + "?"

    eagerly = tf.numpy_function(lambda a: a + b"!", [tf.constant(["a", "b"])], tf.string)
    return f(tf.constant(["a", "b"])), seen, eagerly


@program
def gradients(tf):
    @tf.function
    def f(x, s):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if tf.reduce_any(s == "double"):
                y = x * 2.0
            else:
                y = x * x
        return tape.gradient(y, x), s + "!"

    x = tf.constant(3.0)
    return f(x, tf.constant(["double"])), f(x, tf.constant(["other"]))


@program
def scattered_strings(tf):
    def scattered(positions, words):
        return tf.scatter_nd(positions, words, [4])

    positions, words = tf.constant([[1], [3], [1]]), tf.constant(["p", "q", "r"])
    rows = tf.constant([["p", "q"], ["r", "s"]])
    return (
        scattered(positions, words),
        tf.function(scattered)(positions, words),
        tf.scatter_nd([[1], [0]], rows, [3, 2]),
        tf.scatter_nd([[0, 1], [2, 0], [0, 1]], words, [3, 2]),
        outcome(tf.scatter_nd, [[7]], ["p"], [3]),
    )
