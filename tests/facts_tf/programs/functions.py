"""Input signatures, relaxed shapes, concrete functions, methods."""

from __future__ import annotations

import functools

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


@program
def signature_with_open_dim(tf):
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        shapes.append(x.shape.as_list())
        return tf.reduce_sum(x), tf.shape(x)

    results = [f(tf.ones([n, 2])) for n in (0, 1, 3)]
    return results, shapes, f.experimental_get_tracing_count()


@program
def open_sizes_that_broadcast(tf):
    spec = tf.TensorSpec([None])

    @tf.function(input_signature=[spec, spec])
    def f(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = tf.maximum(x * y, y - x)
        return z, tape.gradient(z, [x, y])

    sizes = ((1, 3), (3, 1), (2, 2), (1, 1), (0, 1))
    results = [f(tf.range(a, dtype="float32"), tf.ones([b]) * 2) for a, b in sizes]
    refused = raised(lambda: f(tf.ones([2]), tf.ones([3])))
    return results, f.experimental_get_tracing_count(), refused


@program
def sizes_of_a_run_that_broadcast(tf):
    @tf.function
    def f(x):
        return tf.boolean_mask(x, x > 0) * tf.boolean_mask(x, x < 0)

    given = [[1, -1], [1, 2, -1, -2], [1, -1, -2]]
    return [outcome(lambda x=x: f(tf.constant(x))) for x in given]


@program
def conditions_of_known_ranks(tf):
    @tf.function
    def f(x):
        if tf.rank(x) == 0:
            x = tf.stack([x, x])
        return x[0]

    return f(tf.constant(1)), f(tf.constant([2, 3]))


@program
def signature_of_unknown_rank(tf):
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(x):
        return tf.reduce_sum(x), tf.rank(x)

    return outcome(f, tf.ones([2, 3])), outcome(f, tf.ones([4])), f.experimental_get_tracing_count()


@program
def signature_casts_numbers_and_arrays(tf):
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        return x * 2

    values = (1, 1.5, True, np.float32(3), np.int32(3), np.float64(3), tf.constant(2))
    return [outcome(f, v) for v in values], f.experimental_get_tracing_count()


@program
def signature_takes_lists_as_tensors(tf):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        return x * 2

    return [outcome(f, v) for v in ([1, 2], [1.5], [], (3, 4), [[1]])]


@program
def signature_refusals(tf):
    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def f(x):
        return x

    bad = [
        tf.ones([3]),
        tf.ones([2], tf.float64),
        tf.ones([2, 1]),
        None,
        "a",
        tf.ones([], tf.int32),
    ]
    return [raised(f, v) for v in bad], raised(f), raised(f, tf.ones([2]), tf.ones([2]))


@program
def signature_by_keyword(tf):
    spec = tf.TensorSpec([], tf.int32)

    @tf.function(input_signature=[spec, spec])
    def f(a, b):
        return a - b

    one, two = tf.constant(1), tf.constant(2)
    return f(one, two), f(one, b=two), f(b=two, a=one), raised(f, one, c=two)


@program
def signature_with_default(tf):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def f(a, b=10):
        return a - b

    return f(tf.constant(1)), raised(f, tf.constant(1), 10), raised(f, tf.constant(1), b=3)


@program
def signature_nested(tf):
    spec = tf.TensorSpec([None], tf.float32)

    @tf.function(input_signature=[{"a": spec, "b": [spec, spec]}])
    def f(d):
        return tf.concat([d["a"], *d["b"]], 0)

    x = tf.constant([1.0])
    wrong = raised(f, {"a": x}), raised(f, {"a": x, "b": [x]}), raised(f, [x, x, x])
    return f({"a": x, "b": [x, x]}), f({"b": [x + 1, x], "a": x}), wrong


@program
def signature_checked_when_made(tf):
    spec = tf.TensorSpec([], tf.int32)
    many = raised(tf.function, lambda x: x, input_signature=[spec, spec])
    few = raised(tf.function, lambda x, y: x, input_signature=[spec])
    return many, few, raised(tf.function, lambda x: x, input_signature=spec)


@program
def signature_not_of_specs(tf):
    def call(bad):
        tf.function(lambda x: x, input_signature=[bad])(tf.constant(1))

    return [raised(call, bad) for bad in (3, "int32", tf.float32, None)]


@program
def signature_of_star_arguments(tf):
    spec = tf.TensorSpec([], tf.int32)
    f = tf.function(lambda *args: sum(args), input_signature=[spec, spec])
    one = tf.constant(1)
    return outcome(f, one, one), raised(f, one), raised(f, one, one, one)


@program
def empty_signature(tf):
    f = tf.function(lambda: tf.constant(3), input_signature=[])
    return f(), raised(f, 1), f.get_concrete_function()()


@program
def relaxed_shapes(tf):
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list())
        return tf.reduce_sum(x)

    for n in (1, 2, 3, 4, 2, 1):
        f(tf.ones([n, 2]))
    return shapes, f.experimental_get_tracing_count()


@program
def relaxed_shapes_of_two_dims(tf):
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.as_list())

    for shape in ([2, 3], [2, 4], [5, 4], [6, 7], [1, 1]):
        f(tf.ones(shape))
    return shapes


@program
def relaxed_rank(tf):
    f = tf.function(lambda x: tf.reduce_sum(x), reduce_retracing=True)
    results = [f(tf.ones(shape)) for shape in ([2], [2, 2], [3, 3], [2])]
    return results, f.experimental_get_tracing_count()


@program
def relaxed_shapes_and_python_values(tf):
    f = tf.function(lambda x, n: x * n, reduce_retracing=True)
    counts = []
    for length, n in ((1, 2), (2, 2), (3, 2), (3, 5), (4, 5), (5, 5)):
        f(tf.ones([length], tf.int32), n)
        counts.append(f.experimental_get_tracing_count())
    return counts


@program
def relaxed_shapes_of_two_dtypes(tf):
    f = tf.function(lambda x: x + x, reduce_retracing=True)
    counts = []
    for n, dtype in ((1, "int32"), (2, "float32"), (3, "int32"), (4, "float32"), (5, "int32")):
        f(tf.ones([n], dtype))
        counts.append(f.experimental_get_tracing_count())
    return counts


@program
def get_concrete_function_traces_once(tf):
    f = tf.function(lambda x: x + 1)
    first = f.get_concrete_function(tf.TensorSpec([2], tf.int32))
    second = f.get_concrete_function(tf.constant([1, 2]))
    f(tf.constant([3, 4]))
    return first is second, first(tf.constant([1, 2])), f.experimental_get_tracing_count()


@program
def an_open_concrete_function_serves_calls(tf):
    f = tf.function(lambda x: x + 1)
    f.get_concrete_function(tf.TensorSpec([None], tf.int32))
    results = f(tf.constant([1])), f(tf.constant([1, 2]))
    return results, f.experimental_get_tracing_count()


@program
def concrete_function_calls(tf):
    f = tf.function(lambda a, b: a - b)
    spec = tf.TensorSpec([], tf.int32)
    c = f.get_concrete_function(spec, spec)
    one, two = tf.constant(1), tf.constant(2)
    return [outcome(c, one, two), outcome(c, a=one, b=two), outcome(c, one, b=two)]


@program
def concrete_function_refusals(tf):
    c = tf.function(lambda a: a).get_concrete_function(tf.TensorSpec([2], tf.float32))
    bad = [tf.ones([3]), tf.ones([2], tf.int32), None, "a"]
    return (
        [raised(c, b) for b in bad],
        raised(c),
        raised(c, tf.ones([2]), tf.ones([2])),
        raised(c, b=tf.ones([2])),
    )


@program
def concrete_function_converts_python_values(tf):
    c = tf.function(lambda a: a * 2).get_concrete_function(tf.TensorSpec([], tf.float32))
    return [outcome(c, v) for v in (1.5, 2, np.float32(3), np.float64(3))]


@program
def concrete_function_with_python_argument(tf):
    f = tf.function(lambda x, n: x * n)
    c = f.get_concrete_function(tf.TensorSpec([], tf.int32), 3)
    three = tf.constant(3)
    return [outcome(c, three), outcome(c, three, 3), outcome(c, three, 4), outcome(c, three, n=3)]


@program
def concrete_function_of_keywords(tf):
    spec = tf.TensorSpec([], tf.int32)
    f = tf.function(lambda **kw: kw["b"] * 10 + kw["a"])
    c = f.get_concrete_function(b=spec, a=spec)
    return outcome(c, a=tf.constant(1), b=tf.constant(2))


@program
def concrete_function_of_a_structure(tf):
    spec = tf.TensorSpec([], tf.int32)
    f = tf.function(lambda d: {"out": (d["x"] + d["y"][0], [d["y"][1]])})
    c = f.get_concrete_function({"x": spec, "y": (spec, spec)})
    one = tf.constant(1)
    return c.structured_outputs, outcome(c, {"x": one, "y": (one, one)})


@program
def concrete_function_names(tf):
    f = tf.function(lambda a, b: a)
    c = f.get_concrete_function(
        tf.TensorSpec([], tf.int32, name="first"), tf.TensorSpec([], tf.int32)
    )
    one = tf.constant(1)
    return outcome(c, first=one, b=one), outcome(c, a=one, b=one), outcome(c, one, one)


@program
def concrete_function_outputs(tf):
    f = tf.function(lambda x: (x, {"n": x.shape[0]}, None))
    c = f.get_concrete_function(tf.TensorSpec([2], tf.float32))
    return [t.shape.as_list() for t in c.outputs], [t.dtype for t in c.inputs], c(tf.ones([2]))


@program
def concrete_function_shapes(tf):
    f = tf.function(lambda x: (tf.transpose(x), x[0], tf.reduce_sum(x, 0)))
    c = f.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
    return c.output_shapes, c.output_dtypes


@program
def concrete_function_captures(tf):
    v, t = tf.Variable(2.0), tf.constant(3.0)
    f = tf.function(lambda x: x * v + t)
    c = f.get_concrete_function(tf.TensorSpec([], tf.float32))
    return len(c.captured_inputs), len(c.inputs), [x.name for x in c.variables], c(t)


@program
def structured_input_signature(tf):
    f = tf.function(lambda x, y=2: x)
    c = f.get_concrete_function(tf.TensorSpec([None], tf.int32))
    args, kwargs = c.structured_input_signature
    return args[0].shape.as_list(), args[0].name, args[0].dtype, len(args), len(kwargs)


@program
def get_concrete_function_needs_arguments(tf):
    f = tf.function(lambda x: x)
    return raised(f.get_concrete_function), raised(f.get_concrete_function, y=1)


@program
def methods_trace_per_object(tf):
    class Scale:
        def __init__(self, k):
            self.k = k

        @tf.function
        def apply(self, x):
            return x * self.k

    a, b = Scale(2), Scale(3)
    one = tf.constant(1)
    results = [a.apply(one), b.apply(one), a.apply(one), b.apply(one + 1)]
    counts = a.apply.experimental_get_tracing_count(), b.apply.experimental_get_tracing_count()
    return results, counts


@program
def method_called_through_the_class(tf):
    class Scale:
        @tf.function
        def apply(self, x):
            return x * 2

    return outcome(Scale.apply, Scale(), tf.constant(2))


@program
def callable_objects(tf):
    class Add:
        def __call__(self, x, n=1):
            return x + n

    f = tf.function(Add())
    return f(tf.constant(1)), f(tf.constant(1), 2), f.experimental_get_tracing_count()


@program
def bound_methods_wrapped(tf):
    class Add:
        n = 5

        def apply(self, x):
            return x + self.n

    f = tf.function(Add().apply)
    return f(tf.constant(1)), f(tf.constant(2)), f.experimental_get_tracing_count()


@program
def static_and_class_methods(tf):
    class Tools:
        factor = 3

        @staticmethod
        @tf.function
        def double(x):
            return x * 2

        @classmethod
        def times(cls, x):
            return x * cls.factor

    times = tf.function(Tools.times)
    return Tools.double(tf.constant(2)), Tools().double(tf.constant(3)), times(tf.constant(2))


@program
def partials_wrapped(tf):
    def scaled(x, k, offset=0):
        return x * k + offset

    f = tf.function(functools.partial(scaled, k=3))
    g = tf.function(functools.partial(scaled, tf.constant(2)))
    return f(tf.constant(2)), f(tf.constant(2), offset=1), g(4), g(4, 1)


@program
def partial_overrides(tf):
    f = tf.function(functools.partial(lambda x, k=1: x * k, k=3))
    return f(tf.constant(2)), f(tf.constant(2), k=5), f.experimental_get_tracing_count()


@program
def decorated_by_wraps(tf):
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return fn(fn(*args))

        return wrapper

    @tf.function
    @twice
    def f(x):
        if x > 0:
            x = x * 2
        return x

    return f(tf.constant(1)), f(tf.constant(-1)), f.experimental_get_tracing_count()


@program
def not_callable(tf):
    return raised(tf.function, 3), raised(tf.function, "f")


@program
def recursion_on_a_python_value(tf):
    @tf.function
    def power(x, n):
        if n == 0:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    return power(tf.constant(2), 5), power.experimental_get_tracing_count()


@program
def no_results(tf):
    f = tf.function(lambda x: None)
    g = tf.function(lambda x: [])
    h = tf.function(lambda x: (x, None, [x, {"a": None}]))
    return f(tf.constant(1)), g(tf.constant(1)), h(tf.constant(1))


@program
def python_results(tf):
    f = tf.function(lambda: (1, 2.5, True, np.float32(3), [4], np.ones([2], np.int64)))
    return f()


@program
def list_and_tuple_results(tf):
    f = tf.function(lambda x: ([x], (x,), [(x, [x])]))
    result = f(tf.constant(1))
    return result, [type(r).__name__ for r in result]


@program
def objects_as_results(tf):
    class Thing:
        pass

    return [raised(tf.function(lambda: r)) for r in (Thing(), "text", object, lambda x: x)]


@program
def string_results(tf):
    return outcome(tf.function(lambda x: ("text", x)), tf.constant(1))


@program
def a_result_that_is_a_variable(tf):
    v = tf.Variable(2.0)
    result = tf.function(lambda: v)()
    v.assign(5.0)
    return result, hasattr(result, "assign")


@program
def decorated_function_names(tf):
    @tf.function
    def named(x):
        """What it does."""
        return x

    return named.__name__, named.__doc__, named.python_function.__name__


@program
def traces_after_an_error(tf):
    @tf.function
    def f(x, fail):
        if fail:
            raise KeyError("no")
        return x

    one = tf.constant(1)
    return raised(f, one, True), f(one, False), raised(f, one, True), f(one, False)


@program
def jit_compile_is_accepted(tf):
    f = tf.function(lambda x: x * x + 1, jit_compile=True)
    return f(tf.constant(3.0)), f.experimental_get_tracing_count()
