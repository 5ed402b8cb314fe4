"""TensorFlow's private module ``nest``, which libraries import, and structures of loops."""

from __future__ import annotations

import collections
import importlib

from tests.facts_tf.registry import outcome, program, raised

Point = collections.namedtuple("Point", "x y")
UPPER = [1, (2,), {"b": 3, "a": 4}]
LOWER = [[5, 6], ("seven",), {"b": {"c": 8}, "a": None}]


def nest_of(tf):
    places = {"tensorflow": "tensorflow.python.util.nest"}
    return importlib.import_module(
        places.get(tf.__name__, "treadle.compat.replacement.structures")
    )


@program
def up_to_another_structure(tf):
    nest = nest_of(tf)
    return (
        nest.flatten_up_to(UPPER, LOWER), nest.flatten_up_to(0, LOWER) == [LOWER],
        nest.map_structure_up_to(UPPER, lambda *parts: len(parts), LOWER, LOWER),
        nest.map_structure_up_to(Point(0, 0), lambda v, scale: [v, scale], Point(1, [2]), scale=3),
        nest.map_structure_with_tuple_paths_up_to(UPPER, lambda path, v: [*map(str, path)], LOWER),
        nest.map_structure_with_tuple_paths(lambda path, v: [*map(str, path), v], Point(1, [2])),
        nest.map_structure_with_paths(lambda path, v: f"{path}={v}", {"a": [1], "b": 2}),
        [[*map(str, p)] for p, _ in nest.flatten_with_tuple_paths({"k": Point(1, [2, 3])})],
        nest.flatten_with_joined_string_paths({"k": Point(1, [2, 3])}),
        [[*map(str, p)] for p in nest.yield_flat_paths(UPPER)],
    )  # fmt: skip


@program
def upper_parts_that_do_not_fit(tf):
    nest = nest_of(tf)
    return [
        raised(nest.assert_shallow_structure, upper, lower)
        for upper, lower in (
            ([1], 2), ([1, 2], [1]), ({"a": 1}, {"b": 1}), ((1,), [1]), (Point(1, 2), (1, 2)),
        )
    ]  # fmt: skip


@program
def parts_that_are_taken_apart(tf):
    nest = nest_of(tf)
    structure = [1, (2, [3, 4]), {"a": 5}]
    return (
        nest.get_traverse_shallow_structure(lambda part: not isinstance(part, tuple), structure),
        nest.get_traverse_shallow_structure(lambda part: False, structure),
        nest.get_traverse_shallow_structure(
            lambda part: [True, False, False] if part is structure else True, structure
        ),
        nest.is_namedtuple(Point(1, 2)), nest.is_namedtuple((1, 2)), nest.is_mapping({}),
        nest.is_nested([]), nest.is_nested("text"), nest._sequence_like(Point(1, 2), [3, 4]),
        nest._sequence_like({"b": 1, "a": 2}, [3, 4]),
        [list(pair) for pair in nest._yield_sorted_items(Point(1, 2))],
        [list(pair) for pair in nest._yield_sorted_items({"b": 1, "a": 2})],
        nest.same_namedtuples(Point(1, 2), Point(3, 4)),
    )  # fmt: skip


@program
def loops_over_named_tuples(tf):
    def last(start):
        return tf.while_loop(lambda x, y: x < 3, lambda x, y: Point(x + 1, y * 2.0), start)

    names = [type(last(Point(0, tf.constant(1.0)))).__name__]
    found = tf.function(lambda: last(Point(0, tf.constant(1.0))))()
    return [*names, type(found).__name__], found.x, found.y


@program
def exceptions_within_return(tf):
    """A loop whose body returns what may raise goes on where it did."""

    def fails(x):
        raise AttributeError(x)

    def first(functions, x):
        for function in functions:
            try:
                return function(x)
            except AttributeError:
                pass
        return x - 1.0

    @tf.function
    def f(x):
        return first([fails, tf.square], x), first([fails, fails], x)

    return f(tf.constant(3.0))


@program
def arguments_of_other_types(tf):
    import numpy as np

    operand = tf.ones([2, 3])

    @tf.function
    def over_computed_axes(x):
        return tf.reduce_sum(x, axis=tf.range(tf.rank(x) - tf.rank(x[0])))

    return (
        tf.TensorShape(np.int32(3)).as_list(), tf.TensorShape(np.array(4)).as_list(),
        outcome(tf.TensorShape, 2.0),
        tf.searchsorted([1.0, 2.0, 3.0], [2.5], out_type=None),
        tf.debugging.assert_same_float_dtype([tf.Variable(1.0)]).name,
        over_computed_axes(operand),
    )  # fmt: skip


@program
def lists_of_keys_and_dimensions(tf):
    """A list with slices stands for a tuple; sizes as TensorFlow 1 has them are numbers."""
    x = tf.reshape(tf.range(12), [3, 4])
    size = tf.compat.v1.Dimension(6)

    made = (
        lambda end: x[[slice(None, -1)]], lambda end: x[[slice(None), slice(1, end)]],
        lambda end: x[[slice(None), 1]], lambda end: x[[Ellipsis, tf.newaxis]],
        lambda end: x[[None, 0]], lambda end: tf.convert_to_tensor(size),
        lambda end: tf.reshape(x, [size, -1]),
    )  # fmt: skip
    end = tf.constant(3)
    eagerly = tf.convert_to_tensor([size, 2]), tf.concat([[size], [end]], 0)
    return [(outcome(f, end), outcome(tf.function(f), end)) for f in made], eagerly
