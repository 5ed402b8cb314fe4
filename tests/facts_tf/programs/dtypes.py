"""Dtypes of results, conversion of Python numbers, refusals, integer arithmetic at its limits."""

from __future__ import annotations

import operator

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

NAMES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64")
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<": operator.lt,
    "==": operator.eq, "!=": operator.ne, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


def dtype_of(function, *args):
    result = outcome(function, *args)
    return result if isinstance(result, str) else result.dtype.name


def table(tf, left, right):
    """The dtype of every operator's result, or what it raises."""
    return {sign: dtype_of(op, left, right) for sign, op in OPERATORS.items()}


@program
def operators_per_dtype(tf):
    return {name: table(tf, tf.cast([3, 1], name), tf.cast([1, 1], name)) for name in NAMES}


@program
def operators_of_two_dtypes(tf):
    pairs = [("int32", "float32"), ("float32", "float64"), ("int32", "int64"), ("bool", "int32")]
    return {f"{a} {b}": table(tf, tf.cast([1], a), tf.cast([1], b)) for a, b in pairs}


@program
def operators_with_a_python_int(tf):
    return {name: table(tf, tf.cast([3, 1], name), 1) for name in NAMES}


@program
def operators_with_a_python_float(tf):
    return {name: table(tf, tf.cast([3, 1], name), 1.5) for name in ("int32", "float32", "float64")}


@program
def operators_with_a_bool(tf):
    return {name: table(tf, tf.cast([1, 0], name), True) for name in ("bool", "int32", "float32")}


@program
def python_number_on_the_left(tf):
    names = ("int32", "float32", "float64", "bool")
    return {name: table(tf, 2, tf.cast([3, 1], name)) for name in names}


@program
def operators_with_numpy_arrays(tf):
    t = tf.constant([1.0, 2.0])
    arrays = [np.ones(2), np.ones(2, np.float32), np.ones(2, np.int32), np.ones(2, np.int64)]
    return [dtype_of(operator.add, t, a) for a in arrays]


@program
def operators_with_numpy_scalars(tf):
    t = tf.constant([1.0, 2.0])
    scalars = [np.float64(2), np.float32(2), np.int32(2), np.int64(2), np.bool_(True)]
    return [dtype_of(operator.mul, t, s) for s in scalars]


@program
def operators_with_lists(tf):
    t = tf.constant([1.0, 2.0])
    return t + [1, 2], outcome(lambda: [1.5, 2.5] * t), outcome(lambda: t + [1, 2, 3])


@program
def operators_with_other_things(tf):
    t = tf.constant([1.0])
    return [raised(operator.add, t, other) for other in ("a", None, object(), {}, b"a")]


@program
def equality_with_other_things(tf):
    t = tf.constant([1, 2])
    others = ("a", None, 1, 1.5, [1, 2], [1, 2, 3], tf.constant([1.0, 2.0]))
    return [outcome(operator.eq, t, other) for other in others]


@program
def the_same_rules_inside_a_function(tf):
    def dtypes(x):
        seen = []
        for op in (operator.add, operator.truediv, operator.lt):
            for other in (1, 1.5, True, np.float64(1), np.ones(2), tf.constant(1.0)):
                seen.append(dtype_of(op, x, other))
        return seen

    results = []
    f = tf.function(lambda x: results.append(dtypes(x)), autograph=False)
    f(tf.constant([1, 2]))
    f(tf.constant([1.0, 2.0]))
    return results


@program
def dtype_of_python_values(tf):
    values = (1, 1.5, True, 1j, [1, 2], [1, 2.5], [True, False], [], [[]], (1.0, 2))
    return [dtype_of(tf.constant, v) for v in values]


@program
def dtype_of_mixed_lists(tf):
    values = ([1, True], [True, 1], [1.5, True], [1, "a"], [[1, 2], [3]], [None], [1, None])
    return [dtype_of(tf.constant, v) for v in values]


@program
def dtype_of_numpy_values(tf):
    values = [np.float64(1), np.ones(2), np.arange(3), np.float32(1), np.array(True), np.int8(1)]
    return [dtype_of(tf.constant, v) for v in values]


@program
def constants_of_a_given_dtype(tf):
    cases = [(1, "float32"), (1.0, "int32"), (1.5, "int32"), (True, "int32"), (True, "float32")]
    cases += [(1, "bool"), (300, "uint8"), (-1, "uint8"), (2**40, "int32"), (1e40, "float32")]
    cases += [(1 + 2j, "float32"), (1, "complex64"), (1e6, "float16"), ([1, 2.5], "int32")]
    return [(v, name, outcome(tf.constant, v, name)) for v, name in cases if v != 1 + 2j]


@program
def numpy_constants_of_a_given_dtype(tf):
    cases = [(np.float64(1.5), "int32"), (np.array([1.7, -1.7]), "int32"), (np.ones(2), "float32")]
    cases += [(np.int64(5), "int32"), (np.int64(2**40), "int32"), (np.array(True), "int32")]
    return [outcome(tf.constant, v, name) for v, name in cases]


@program
def dates_of_a_given_dtype(tf):
    dates = np.array(["2020-01-02", "1970-01-03"], "datetime64[D]")
    return (
        tf.constant(dates, tf.int32), tf.constant(dates - dates[0], tf.float32),
        tf.convert_to_tensor(dates[0], tf.int64), raised(tf.constant, dates),
    )  # fmt: skip


@program
def big_python_ints(tf):
    return [outcome(tf.constant, n) for n in (2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**31) - 1)]


@program
def tensors_of_tensors(tf):
    one, half = tf.constant(1), tf.constant(0.5)
    return [
        outcome(tf.convert_to_tensor, v) for v in ([one, 2], [one, half], [half, 1], [[one], [one]])
    ]


@program
def convert_with_another_dtype(tf):
    t = tf.constant([1, 2])
    return [
        outcome(tf.convert_to_tensor, t, tf.float32),
        outcome(tf.convert_to_tensor, t, tf.int32),
        outcome(tf.convert_to_tensor, [1, 2], dtype_hint=tf.float32),
        outcome(tf.convert_to_tensor, [1.5, 2], dtype_hint=tf.int32),
        outcome(tf.constant, t, tf.float32),
    ]


@program
def casts_of_floats(tf):
    x = tf.constant([1.7, -1.7, 0.0, 2.5, 3.5, -0.5])
    return [tf.cast(x, name) for name in ("int32", "int64", "int8", "bool", "float16", "float64")]


@program
def casts_of_ints(tf):
    x = tf.constant([0, 1, 127, 128, 255, 256, 300, 65536])
    return [tf.cast(x, name) for name in ("int8", "uint8", "int16", "uint16", "bool", "bfloat16")]


@program
def casts_of_bools(tf):
    x = tf.constant([True, False])
    return [tf.cast(x, name) for name in ("int32", "float32", "uint8", "complex64")]


@program
def casts_of_python_values(tf):
    return [
        outcome(tf.cast, v, tf.float32) for v in (1, True, [1, 2.5], 2**40, np.float64(0.1), 1.0j)
    ]


@program
def saturating_casts(tf):
    x = tf.constant([300.7, -300.7, 5.5])
    return [tf.saturate_cast(x, name) for name in ("uint8", "int8", "int32")]


@program
def division_of_integers(tf):
    a, b = tf.constant([7, -7, 7, -7]), tf.constant([2, 2, -2, -2])
    functions = (tf.truediv, tf.math.floordiv, tf.math.floormod, tf.truncatediv, tf.truncatemod)
    return [f(a, b) for f in functions], a / b, a // b, a % b, tf.divide(a, b)


@program
def division_of_floats(tf):
    a, b = tf.constant([7.5, -7.5, 7.5, -7.5]), tf.constant([2.0, 2.0, -2.0, -2.0])
    return a / b, a // b, a % b, tf.truncatemod(a, b)


@program
def float_division_by_zero(tf):
    a, zero = tf.constant([1.0, -1.0, 0.0]), tf.constant(0.0)
    return a / zero, a // zero, a % zero, tf.math.divide_no_nan(a, zero), a / -zero


@program
def integer_division_by_zero(tf):
    a, zero = tf.constant([1, 0]), tf.constant(0)
    functions = (operator.floordiv, operator.mod, operator.truediv, tf.truncatediv)
    eager = [outcome(f, a, zero) for f in functions]
    return eager, [outcome(tf.function(lambda x, y, f=f: f(x, y)), a, zero) for f in functions[:2]]


@program
def division_of_small_integers(tf):
    names = ("int8", "uint8", "int16", "int32", "int64")
    return {name: tf.cast([7], name) / tf.cast([2], name) for name in names}


@program
def overflow_of_integers(tf):
    top = tf.constant([2**31 - 1])
    byte = tf.constant([200], tf.uint8)
    low = tf.constant([-(2**31)])
    return (
        top + 1,
        top * 2,
        byte + byte,
        byte * 2,
        byte - tf.constant([201], tf.uint8),
        -low,
        abs(low),
    )


@program
def powers(tf):
    x = tf.constant([2, 3])
    y = tf.constant([2.0, 3.0])
    return x**2, x**0, y**2, y**0.5, y**-1, outcome(lambda: x**-1), outcome(lambda: x**0.5)


@program
def powers_of_negative_numbers(tf):
    x = tf.constant([-2.0, -0.5])
    return x**2, x**3, x**0.5, x**-1.0


@program
def rounding(tf):
    x = tf.constant([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6])
    return tf.round(x), tf.floor(x), tf.math.ceil(x), tf.math.rint(x)


@program
def comparisons_of_nan(tf):
    nan, one = tf.constant(float("nan")), tf.constant(1.0)
    return nan == nan, nan != nan, nan < one, tf.maximum(nan, one), tf.minimum(one, nan), bool(nan)


@program
def reductions_keep_dtype(tf):
    functions = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_prod)
    names = ("int8", "int32", "int64", "float16", "float32", "bool")
    return {name: [outcome(f, tf.cast([3, 4], name)) for f in functions] for name in names}


@program
def reductions_of_nothing(tf):
    empty = tf.zeros([0])
    functions = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)
    return [f(empty) for f in functions], [f(tf.zeros([2, 0]), 1) for f in functions]


@program
def logic_of_other_dtypes(tf):
    functions = (tf.math.logical_and, tf.math.logical_or, tf.math.logical_xor)
    results = [outcome(f, True, [True, False]) for f in functions]
    return (
        results,
        [raised(f, tf.constant(1), tf.constant(0)) for f in functions],
        raised(tf.logical_not, tf.constant(1)),
    )


@program
def inverting(tf):
    return (
        [outcome(operator.invert, tf.constant(v)) for v in (True, [True, False], 5, 1.5)],
        outcome(lambda: -tf.constant(True)),
        outcome(lambda: -tf.constant(5, tf.uint8)),
    )


@program
def functions_of_integers(tf):
    x = tf.constant([4, 9])
    names = ("sqrt", "exp", "sin", "tanh", "sigmoid", "floor", "round", "abs", "sign", "square")
    return {name: dtype_of(getattr(tf, name), x) for name in names}


@program
def functions_of_python_numbers(tf):
    names = ("sqrt", "exp", "abs", "square", "sign", "floor")
    return {name: [outcome(getattr(tf, name), v) for v in (4, 4.0)] for name in names}


@program
def dtype_of_creations(tf):
    return [
        t.dtype
        for t in (
            tf.zeros([1]), tf.ones([1]), tf.range(3), tf.range(3.0), tf.range(0, 1, 0.5),
            tf.eye(2), tf.fill([1], 2), tf.fill([1], 2.0), tf.linspace(0.0, 1.0, 3),
            tf.one_hot([1], 2), tf.random.uniform([1]), tf.random.normal([1]),
            tf.zeros_like([1]), tf.ones_like([True]), tf.shape([1]), tf.size([1]), tf.rank([1]),
            tf.argmax([1.0]), tf.argsort([1.0]), tf.where([True]), tf.math.count_nonzero([1]),
        )
    ]  # fmt: skip


@program
def ranges(tf):
    cases = [(5,), (2, 5), (5, 2), (5, 0, -2), (0, 1, 0.25), (0.0, 3), (0, 0), (3, 10, 3)]
    return [outcome(tf.range, *c) for c in cases], raised(tf.range, 0, 5, 0)


@program
def dtype_objects(tf):
    names = ("float32", "int64", "bool", "uint8", "bfloat16", "complex64")
    dtypes = [tf.as_dtype(name) for name in names]
    return (
        [
            (d.name, d.size, d.is_floating, d.is_integer, d.is_bool, d.is_unsigned, d.is_complex)
            for d in dtypes
        ],
        [d == d.name for d in dtypes],
        [repr(d) for d in dtypes],
        [str(d) for d in dtypes],
    )


@program
def limits_of_dtypes(tf):
    return [(d.min, d.max) for d in (tf.int8, tf.uint8, tf.int32, tf.int64)]


@program
def limits_of_bool(tf):
    return tf.bool.min, tf.bool.max


@program
def dtypes_from_names(tf):
    values = ("float", "double", "half", "int32", np.float32, np.dtype("int16"), int, float, bool)
    return [outcome(tf.as_dtype, v) for v in values], raised(tf.as_dtype, "nonsense")


@program
def where_and_select_dtypes(tf):
    c = tf.constant([True, False])
    one, half = tf.constant([1, 2]), tf.constant([0.5, 1.5])
    return [
        outcome(tf.where, c, one, 0), outcome(tf.where, c, half, 0), outcome(tf.where, c, one,
        half),
        outcome(tf.where, c, 1, 0.5), outcome(tf.where, c, 0.5, 1), outcome(tf.where, one, one,
        one),
    ]  # fmt: skip


@program
def joining_dtypes(tf):
    one, half = tf.constant([1]), tf.constant([0.5])
    return [
        outcome(tf.concat, [one, half], 0), outcome(tf.stack, [one, half]),
        outcome(tf.concat, [one, [2]], 0), outcome(tf.stack, [half, [2]]),
        outcome(tf.concat, [[1], half], 0), outcome(tf.add_n, [one, half]),
    ]  # fmt: skip


@program
def matmul_dtypes(tf):
    names = ("bool", "int8", "int32", "float16", "float32", "bfloat16", "complex64")
    eyes = {name: tf.cast([[1, 0], [0, 1]], name) for name in names}
    return {name: dtype_of(tf.matmul, e, e) for name, e in eyes.items()}


@program
def indices_of_other_dtypes(tf):
    x = tf.constant([1, 2, 3])
    return [
        outcome(lambda: x[tf.constant(1)]), outcome(lambda: x[tf.constant(1, tf.int64)]),
        outcome(lambda: x[1.0]), outcome(lambda: x[tf.constant(1.0)]), outcome(lambda: x[True]),
        outcome(lambda: x[np.int64(1)]), outcome(lambda: x["a"]), outcome(lambda: x[None].shape),
        outcome(tf.gather, x, [0.5]), outcome(tf.gather, x, tf.constant([1], tf.int64)),
        outcome(lambda: x[tf.constant([0, 1])]), outcome(lambda: x[[0, 1]]), outcome(lambda: x[5]),
    ]  # fmt: skip


@program
def python_conversions(tf):
    t = tf.constant(2.7)
    return [
        outcome(float, t), outcome(int, t), outcome(bool, t), outcome(bool, tf.constant([1])),
        outcome(bool, tf.constant([1, 2])), outcome(float, tf.constant([1.0])),
        outcome(int, tf.constant([1, 2])), outcome(lambda: range(3)[tf.constant(1)]),
        outcome(lambda: list(range(tf.constant(2)))), outcome(len, tf.constant([1, 2])),
        outcome(len, tf.constant(1)), outcome(lambda: [1, 2][tf.constant(1.0)]),
        outcome(round, t), outcome(hash, t), outcome(lambda: 2 in tf.constant([1, 2])),
        outcome(complex, t), outcome(lambda: f"{t:.1f}"), outcome(lambda: list(tf.constant(1))),
    ]  # fmt: skip


@program
def numpy_types_of_texts(tf):
    return [
        outcome(lambda t=t: tf.as_dtype(t).name)
        for t in (
            np.dtype("S"), np.dtype("S5"), np.dtype("O"), np.bytes_, np.str_, str, bytes, "S", "U"
        )
    ]  # fmt: skip
