"""Functions of TensorFlow that a program lets work on objects of its own classes."""

import typing

from tests.facts_tf.registry import outcome, program, raised


def masked(tf):
    """A class of values and a mask, two objects of it, and what tells the values of one."""

    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        mask: tf.Tensor

    x = Masked(tf.constant([1.0, 2.0]), tf.constant([True, False]))
    y = Masked(tf.constant([3.0, 4.0]), tf.constant([True, True]))
    return Masked, x, y


def told(value):
    return [value.values, value.mask] if hasattr(value, "mask") else value


def tried(function, *args, **kwargs):
    return outcome(lambda: told(function(*args, **kwargs)))


@program
def one_function(tf):
    Masked, x, y = masked(tf)

    def add(x, y, name=None):
        return Masked(x.values + y.values, x.mask & y.mask)

    tf.experimental.dispatch_for_api(tf.math.add, {"x": Masked, "y": Masked})(add)
    found = [
        tried(tf.add, x, y), tried(tf.math.add, x=x, y=y), raised(lambda: x + y),
        raised(tf.add, x, 1.0), tried(tf.add, 1.0, 2.0), tried(tf.function(tf.add), x, y),
    ]  # fmt: skip
    tf.experimental.unregister_dispatch_for(add)
    return found, raised(tf.add, x, y)


@program
def a_list_of_tensors(tf):
    Masked, x, y = masked(tf)

    def concat(values, axis, name=None):
        parts = ([v.values for v in values], [v.mask for v in values])
        return Masked(*(tf.concat(part, axis) for part in parts))

    tf.experimental.dispatch_for_api(tf.concat, {"values": typing.List[Masked]})(concat)  # noqa: UP006
    found = tried(tf.concat, [x, y], 0), tried(tf.concat, axis=0, values=[x, y])
    mixed = raised(tf.concat, [x, tf.constant([1.0])], 0)
    tf.experimental.unregister_dispatch_for(concat)
    return found, mixed


@program
def annotations_tell_the_types(tf):
    Masked, x, _ = masked(tf)

    def reduce_sum(input_tensor, axis=None, keepdims=False, name=None):
        return tf.reduce_sum(tf.where(input_tensor.mask, input_tensor.values, 0.0), axis)

    reduce_sum.__annotations__["input_tensor"] = Masked
    tf.experimental.dispatch_for_api(tf.reduce_sum)(reduce_sum)
    found = tried(tf.reduce_sum, x), tried(tf.math.reduce_sum, x, axis=0)
    tf.experimental.unregister_dispatch_for(reduce_sum)
    return found


@program
def all_functions_of_elements(tf):
    Masked, x, y = masked(tf)

    def unary(api, x):
        return Masked(api(x.values), x.mask)

    def binary(api, x, y):
        return Masked(api(x.values, y.values), x.mask & y.mask)

    def with_tensor(api, x, y):
        return Masked(api(x.values, y), x.mask)

    def compare(api, x, y):
        return api(x.values, y.values)

    experimental = tf.experimental
    experimental.dispatch_for_unary_elementwise_apis(Masked)(unary)
    experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)(binary)
    experimental.dispatch_for_binary_elementwise_apis(Masked, tf.Tensor)(with_tensor)
    experimental.dispatch_for_binary_elementwise_assert_apis(Masked, Masked)(compare)
    return [
        [tried(f, x) for f in (tf.abs, tf.negative, tf.nn.relu, tf.zeros_like, tf.math.square)],
        [tried(tf.cast, x, tf.int32), tried(tf.clip_by_value, x, 0.0, 1.0), raised(lambda: -x)],
        [tried(f, x, y) for f in (tf.add, tf.multiply, tf.maximum, tf.pow, tf.less, tf.equal)],
        [tried(tf.multiply, x, tf.constant(2.0)), raised(tf.multiply, x, 2.0)],
        [tried(tf.debugging.assert_equal, x, x), raised(tf.debugging.assert_less, y, x)],
        [tried(tf.function(lambda a, b: tf.abs(tf.subtract(a, b))), x, y)],
        raised(experimental.dispatch_for_unary_elementwise_apis(Masked), unary),
        raised(experimental.dispatch_for_binary_elementwise_apis(Masked, Masked), unary),
    ]


@program
def what_is_refused(tf):
    Masked, _, _ = masked(tf)
    experimental = tf.experimental
    return [
        raised(lambda: experimental.dispatch_for_api(len)(lambda x: x)),
        raised(lambda: experimental.dispatch_for_api(tf.add, {"x": Masked})(lambda x: x)),
        raised(lambda: experimental.dispatch_for_api(tf.add)(lambda x, y, name=None: x)),
        raised(experimental.unregister_dispatch_for, len),
    ]


@program
def two_functions_for_one_call(tf):
    Masked, x, y = masked(tf)

    def first(x, y, name=None):
        return x

    def second(x, y, name=None):
        return y

    tf.experimental.dispatch_for_api(tf.math.subtract, {"x": Masked})(first)
    tf.experimental.dispatch_for_api(tf.math.subtract, {"y": Masked})(second)
    found = raised(tf.subtract, x, y), tried(tf.subtract, x, 1.0), tried(tf.subtract, 1.0, y)
    tf.experimental.unregister_dispatch_for(first)
    tf.experimental.unregister_dispatch_for(second)
    return found
