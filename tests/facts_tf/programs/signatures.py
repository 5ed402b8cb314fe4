"""Which calls of a function trace it again, and what it receives."""

from __future__ import annotations

import collections
import dataclasses
import functools

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def counted(tf, arguments, **options):
    """The number of traces after each of the calls f(*args)."""
    f = tf.function(lambda *args: None, **options)
    counts = []
    for args in arguments:
        f(*args)
        counts.append(f.experimental_get_tracing_count())
    return counts


@program
def python_ints(tf):
    return counted(tf, [(1,), (2,), (1,), (2,), (3,)])


@program
def python_floats(tf):
    return counted(tf, [(0.5,), (1.5,), (0.5,), (-0.5,), (float("inf"),), (float("inf"),)])


@program
def negative_zero(tf):
    return counted(tf, [(0.0,), (-0.0,), (0.0,)])


@program
def int_float_and_bool_of_one_value(tf):
    f = tf.function(lambda x: x)
    results = [f(1), f(1.0), f(True), f(0), f(False), f(0.0)]
    return results, f.experimental_get_tracing_count()


@program
def first_of_equal_values_wins(tf):
    f = tf.function(lambda x: x)
    return f(True), f(1), f(1.0)


@program
def big_ints(tf):
    return counted(tf, [(2**40,), (2**40,), (2**70,), (2**70,)])


@program
def strings(tf):
    return counted(tf, [("a",), ("b",), ("a",), ("",)])


@program
def bytes_and_str(tf):
    return counted(tf, [("a",), (b"a",), ("a",), (b"a",)])


@program
def none_and_false(tf):
    return counted(tf, [(None,), (False,), (None,), (0.5,)])


@program
def ellipsis_and_slices(tf):
    arguments = [(...,), (...,), (slice(1, 2),), (slice(1, 2),), (slice(1, 3),)]
    return outcome(counted, tf, arguments)


@program
def dtypes_as_arguments(tf):
    return counted(tf, [(tf.float32,), (tf.float32,), (tf.int32,), (np.float32,), (np.float32,)])


@program
def types_as_arguments(tf):
    return counted(tf, [(int,), (float,), (int,)])


@program
def shapes_as_arguments(tf):
    shapes = [tf.TensorShape([2]), tf.TensorShape([2]), tf.TensorShape([3])]
    return counted(tf, [(s,) for s in shapes])


@program
def functions_as_arguments(tf):
    def double(x):
        return 2 * x

    return counted(tf, [(double,), (double,), (abs,), (double,), (np.sin,), (np.sin,)])


@program
def equal_lambdas_differ(tf):
    return counted(tf, [(lambda x: x,), (lambda x: x,)])


@program
def partials_as_arguments(tf):
    p = functools.partial(max, 1)
    return counted(tf, [(p,), (p,), (functools.partial(max, 1),)])


@program
def objects_count_by_identity(tf):
    class Thing:
        pass

    a, b = Thing(), Thing()
    return counted(tf, [(a,), (b,), (a,), (b,)])


@program
def objects_with_equality(tf):
    class Thing:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __hash__(self):
            return self.n

    return counted(tf, [(Thing(1),), (Thing(1),), (Thing(2),)])


@program
def unhashable_objects(tf):
    class Thing:
        def __eq__(self, other):
            return True

        __hash__ = None

    thing = Thing()
    return outcome(counted, tf, [(thing,), (thing,)])


@program
def a_changed_object_is_not_noticed(tf):
    class Settings:
        scale = 2

    settings = Settings()
    f = tf.function(lambda x, s: x * s.scale)
    before = f(tf.constant(3), settings)
    settings.scale = 5
    return before, f(tf.constant(3), settings), f.experimental_get_tracing_count()


@program
def a_changed_closure_value_is_not_noticed(tf):
    scale = 2

    @tf.function
    def f(x):
        return x * scale

    before = f(tf.constant(3))
    scale = 5
    return before, f(tf.constant(3)), f(tf.constant(3.0))


@program
def sets_as_arguments(tf):
    return outcome(counted, tf, [({1, 2},), ({1, 2},)])


@program
def ranges_as_arguments(tf):
    return outcome(counted, tf, [(range(3),), (range(3),), (range(4),)])


@program
def tensor_values(tf):
    return counted(tf, [(tf.constant(1),), (tf.constant(2),), (tf.constant(2.5),)])


@program
def tensor_shapes(tf):
    return counted(tf, [(tf.ones([2]),), (tf.ones([3]),), (tf.ones([2]),), (tf.ones([2, 1]),)])


@program
def tensor_dtypes(tf):
    names = ["float32", "float64", "int32", "int64", "bool", "float16", "float32"]
    return counted(tf, [(tf.cast(1, name),) for name in names])


@program
def scalar_tensor_and_number(tf):
    return counted(tf, [(1,), (tf.constant(1),), (np.int32(1),), (np.array(1, np.int32),)])


@program
def numpy_arrays_count_as_tensors(tf):
    x = np.ones([2], np.float32)
    return counted(tf, [(x,), (tf.ones([2]),), (x + 1,), (x.astype(np.float64),)])


@program
def numpy_scalars(tf):
    values = [np.float32(1), np.float32(2), np.int64(1), np.int64(2), np.bool_(True)]
    return counted(tf, [(v,) for v in values])


@program
def what_numpy_arguments_become(tf):
    seen = []
    f = tf.function(lambda x: seen.append((x.dtype, x.shape, tf.is_tensor(x))))
    for value in (np.ones([2]), np.ones([1, 2], np.int8), np.float32(1), np.int64(3)):
        f(value)
    return seen


@program
def what_python_arguments_become(tf):
    kinds = []
    f = tf.function(lambda x: kinds.append(type(x).__name__))
    for value in (1, 1.5, True, "a", None, b"a"):
        f(value)
    return kinds


@program
def lists_and_tuples_differ(tf):
    t = tf.constant(1)
    return counted(tf, [([t, t],), ((t, t),), ([t, t],), ([t],), ([[t], t],)])


@program
def lists_of_numbers(tf):
    return counted(tf, [([1, 2],), ([1, 2],), ([1, 3],), ([],), ([],)])


@program
def what_lists_become(tf):
    kinds = []
    f = tf.function(lambda x: kinds.append((type(x).__name__, type(x[0]).__name__)))
    f([1, 2])
    f((1, 2))
    f([[1], 2])
    return kinds


@program
def dict_order_does_not_matter(tf):
    a, b = tf.constant(1), tf.constant(2)
    f = tf.function(lambda d: d["a"] * 10 + d["b"])
    first, second = f({"a": a, "b": b}), f({"b": b, "a": a})
    return first, second, f.experimental_get_tracing_count()


@program
def dict_keys_matter(tf):
    t = tf.constant(1)
    return counted(tf, [({"a": t},), ({"b": t},), ({"a": t},), ({"a": t, "b": t},), ({},)])


@program
def dict_kinds(tf):
    t = tf.constant(1)
    ordered = collections.OrderedDict(a=t)
    default = collections.defaultdict(int, a=t)
    return counted(tf, [({"a": t},), (ordered,), (default,), ({"a": t},)])


@program
def dict_result_order(tf):
    f = tf.function(lambda x: {"b": x, "a": x + 1})
    return list(f(tf.constant(1))), f(tf.constant(1))


@program
def namedtuples(tf):
    t = tf.constant(1)
    f = tf.function(lambda p: Point(p.y, p.x))
    result = f(Point(t, t + 1))
    f(Point(t, t))
    return result, f.experimental_get_tracing_count()


@program
def namedtuple_is_not_a_tuple(tf):
    t = tf.constant(1)
    return counted(tf, [(Point(t, t),), ((t, t),), (Point(t, t),)])


@program
def dataclass_arguments_count_by_identity(tf):
    t = tf.constant(1)
    pair = Pair(t, t)
    return counted(tf, [(pair,), (pair,), (Pair(t, t),)])


@program
def dataclass_results(tf):
    f = tf.function(lambda x: Pair(x, x + 1))
    return outcome(f, tf.constant(1))


@program
def nested_structures(tf):
    f = tf.function(lambda s: {"sum": s["a"][0] + s["b"]["c"][1], "same": s})
    one, two = tf.constant(1), tf.constant(2)
    return f({"a": [one], "b": {"c": (one, two)}})


@program
def python_values_inside_structures(tf):
    t = tf.constant(1)
    return counted(tf, [([t, 1],), ([t, 1],), ([t, 2],), ([t, None],), ([t, "a"],)])


@program
def variables_count_by_identity_or_shape(tf):
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable([1.0])
    f = tf.function(lambda v: v + 1.0)
    results = [f(v) for v in (a, b, a, c)]
    return results, f.experimental_get_tracing_count()


@program
def variable_and_tensor_differ(tf):
    return counted(tf, [(tf.Variable(1.0),), (tf.constant(1.0),)])


@program
def two_variables_aliased(tf):
    a, b = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function
    def f(x, y):
        x.assign_add(10.0)
        return x + y

    first, second = f(a, b), f(a, a)
    return first, second, f.experimental_get_tracing_count()


@program
def keyword_and_positional(tf):
    @tf.function
    def f(x, y=2):
        return x - y

    t = tf.constant(5)
    results = [f(t, 3), f(t, y=3), f(x=t, y=3), f(y=3, x=t)]
    return results, f.experimental_get_tracing_count()


@program
def default_given_or_left_out(tf):
    @tf.function
    def f(x, y=2, *, z=3):
        return x + y * z

    t = tf.constant(1)
    results = [f(t), f(t, 2), f(t, y=2), f(t, z=3), f(t, 2, z=3), f(t, 5)]
    return results, f.experimental_get_tracing_count()


@program
def tensor_defaults(tf):
    default = tf.constant(2)

    @tf.function
    def f(x, y=default):
        return x * y

    return f(tf.constant(3)), f(tf.constant(3), tf.constant(5)), f.experimental_get_tracing_count()


@program
def keyword_order(tf):
    f = tf.function(lambda **kw: len(kw))
    t = tf.constant(1)
    f(a=t, b=t)
    f(b=t, a=t)
    once = f.experimental_get_tracing_count()
    f(a=t, c=t)
    return once, f.experimental_get_tracing_count()


@program
def star_arguments(tf):
    f = tf.function(lambda x, *rest, **named: x + sum(rest) + sum(named.values()))
    t = tf.constant(1)
    results = [f(t), f(t, t), f(t, t, t), f(t, a=t), f(t, t, b=t)]
    return results, f.experimental_get_tracing_count()


@program
def wrong_arguments(tf):
    f = tf.function(lambda x, y=1, *, z=2: x)
    t = tf.constant(1)
    return [raised(f), raised(f, t, t, t), raised(f, t, w=1), raised(f, t, x=t), raised(f, 1, 2)]


@program
def positional_only(tf):
    @tf.function
    def f(x, /, y):
        return x - y

    t = tf.constant(1)
    return f(t, t), f(t, y=t), raised(f, x=t, y=t), f.experimental_get_tracing_count()


@program
def counts_of_two_functions_are_their_own(tf):
    def plain(x):
        return x + 1

    f, g = tf.function(plain), tf.function(plain)
    f(tf.constant(1))
    f(tf.constant(1.0))
    g(tf.constant(1))
    return f.experimental_get_tracing_count(), g.experimental_get_tracing_count()


@program
def function_of_a_function(tf):
    inner = tf.function(lambda x: x + 1)
    outer = tf.function(inner)
    results = [outer(tf.constant(1)), outer(tf.constant(2))]
    return results, outer.experimental_get_tracing_count()


@program
def traces_of_an_inner_function(tf):
    inner = tf.function(lambda x, n: x * n)
    outer = tf.function(lambda x, n: inner(x, n) + inner(x + 1, n))
    t = tf.constant(2)
    results = [outer(t, 2), outer(t, 3), outer(t, 2)]
    counts = outer.experimental_get_tracing_count(), inner.experimental_get_tracing_count()
    inner(t, 2)
    return results, counts, inner.experimental_get_tracing_count()


@program
def weird_values(tf):
    nan = float("nan")
    return counted(tf, [(nan,), (nan,), (complex(1, 2),), (complex(1, 2),)])


@program
def empty_and_nested_empty(tf):
    return counted(tf, [([],), ((),), ({},), ([[]],), ([()],), ([],)])


@program
def specs_as_arguments(tf):
    f = tf.function(lambda x: None)
    return outcome(f, tf.TensorSpec([2], tf.float32)), f.experimental_get_tracing_count()


@program
def ragged_tensors_of_other_lengths(tf):
    traced = []

    def f(x):
        traced.append((x.shape.as_list(), x.flat_values.shape.as_list()))
        return x

    def counts(**options):
        g = tf.function(f, **options)
        found = []
        for rows in ([[1], [2, 3, 4]], [[1, 2], [3]], [[1]] * 3, [[1, 1]] * 4, [[], [1]]):
            g(tf.ragged.constant(rows, tf.int32))
            found.append(g.experimental_get_tracing_count())
        g.get_concrete_function(tf.RaggedTensorSpec([2, None], tf.int32))
        return found, g.experimental_get_tracing_count()

    return counts(), counts(reduce_retracing=True), traced


@program
def shapes_of_open_sizes_are_equal(tf):
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def f(x):
        found.extend([x.shape == tf.TensorShape([None, 2]), x.shape == [None, 2]])
        found.append(x.shape != tf.concat([x, x], 0).shape)
        return x

    found = []
    f(tf.ones([3, 2]))
    ragged = tf.ragged.constant([[1], [2, 3]])
    found.append(tf.type_spec_from_value(ragged) == tf.RaggedTensorSpec([2, None], tf.int32))
    return found
