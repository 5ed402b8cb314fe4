"""AutoGraph: conditions on tensors, what the branches define and return."""

from __future__ import annotations

from tests.facts_tf.helpers import calls
from tests.facts_tf.registry import outcome, program


@program
def square_if_positive(tf):
    def f(x):
        if x > 0:
            return x * x
        return -x

    return calls(tf, f, 3, -3, 1.5)


@program
def python_condition_is_static(tf):
    log = []

    @tf.function
    def f(x, flag):
        if flag:
            log.append("yes")
            return x + 1
        log.append("no")
        return x - 1

    one = tf.constant(1)
    return f(one, True), f(one, False), f(one, True), log


@program
def tensor_condition_traces_both(tf):
    log = []

    @tf.function
    def f(x):
        if x > 0:
            log.append("then")
            y = x + 1
        else:
            log.append("else")
            y = x - 1
        return y

    return f(tf.constant(1)), f(tf.constant(-1)), log


@program
def undefined_in_one_branch_read_later(tf):
    def f(x):
        if x > 0:
            y = x * 2
        return y

    return calls(tf, f, 1, -1)


@program
def undefined_in_one_branch_not_read(tf):
    def f(x):
        if x > 0:
            y = x * 2
            x = y + 1
        return x

    return calls(tf, f, 1, -1)


@program
def undefined_in_both_branches(tf):
    def f(x):
        if x > 0:
            x = x + 1
        else:
            x = x - 1
        return undefined_name  # noqa: F821

    return calls(tf, f, 1)


@program
def undefined_with_a_python_condition(tf):
    @tf.function
    def f(x, flag):
        if flag:
            y = x
        return y

    return outcome(f, tf.constant(1), True), outcome(f, tf.constant(1), False)


@program
def branches_of_different_dtype(tf):
    def f(x):
        if x > 0:
            y = tf.constant(1)
        else:
            y = tf.constant(1.0)
        return y

    return calls(tf, f, 1)


@program
def branches_of_int_and_float_literals(tf):
    def f(x):
        if x > 0:
            y = 1
        else:
            y = 2.5
        return y

    return calls(tf, f, 1, -1)


@program
def branches_of_tensor_and_literal(tf):
    def f(x):
        y = 0
        if x > 0:
            y = x * 2
        return y

    return calls(tf, f, 1, -1, 1.5, -1.5)


@program
def literal_set_in_a_branch(tf):
    def f(x):
        if x > 0:
            n = 10
        else:
            n = 20
        return n

    return calls(tf, f, 1, -1)


@program
def branches_of_different_shape(tf):
    def f(x):
        if x > 0:
            y = tf.zeros([2])
        else:
            y = tf.zeros([3])
        return y

    return calls(tf, f, 1, -1)


@program
def branches_of_different_rank(tf):
    def f(x):
        if x > 0:
            y = tf.zeros([2])
        else:
            y = tf.zeros([3, 1])
        return y

    return calls(tf, f, 1, -1)


@program
def shape_after_branches(tf):
    shapes = []

    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = tf.zeros([2, 3])
        else:
            y = tf.zeros([4, 3])
        shapes.append(y.shape)
        return y

    f(tf.constant([1.0]))
    return shapes


@program
def none_in_one_branch(tf):
    def f(x):
        y = None
        if x > 0:
            y = x
        return y

    return calls(tf, f, 1, -1)


@program
def none_in_both_branches(tf):
    def f(x):
        if x > 0:
            y = None
        else:
            y = None
        return x if y is None else -x

    return calls(tf, f, 1, -1)


@program
def return_in_one_branch_only(tf):
    def f(x):
        if x > 0:
            return x * 2

    return calls(tf, f, 1, -1)


@program
def return_none_in_a_branch(tf):
    def f(x):
        if x > 0:
            return None
        return x

    return calls(tf, f, 1, -1)


@program
def returns_of_different_dtype(tf):
    def f(x):
        if x > 0:
            return x
        return 0.5

    return calls(tf, f, 1, -1, 1.5)


@program
def returns_of_different_structure(tf):
    def f(x):
        if x > 0:
            return x, x
        return x

    return calls(tf, f, 1)


@program
def returns_of_equal_structure(tf):
    def f(x):
        if x > 0:
            return {"a": x, "b": [x]}
        return {"a": -x, "b": [x * 2]}

    return calls(tf, f, 1, -1)


@program
def lists_in_branches(tf):
    def f(x):
        if x > 0:
            items = [x, x + 1]
        else:
            items = [x, x - 1]
        return items

    return calls(tf, f, 1, -1)


@program
def lists_of_different_length_in_branches(tf):
    def f(x):
        if x > 0:
            items = [x]
        else:
            items = [x, x]
        return items

    return calls(tf, f, 1)


@program
def objects_in_branches(tf):
    class A:
        pass

    def f(x):
        if x > 0:
            a = A()
        else:
            a = A()
        return x if a else -x

    return calls(tf, f, 1)


@program
def strings_in_branches(tf):
    def f(x):
        if x > 0:
            mode = "a"
        else:
            mode = "a"
        return x if mode == "a" else -x

    return calls(tf, f, 1)


@program
def attribute_set_in_a_branch(tf):
    class Box:
        value = None

    @tf.function
    def f(x):
        box = Box()
        box.value = x
        if x > 0:
            box.value = x * 2
        return box.value

    return f(tf.constant(2)), f(tf.constant(-2))


@program
def item_set_in_a_branch(tf):
    @tf.function
    def f(x):
        d = {"v": x}
        if x > 0:
            d["v"] = x * 2
        return d["v"]

    return outcome(f, tf.constant(2)), outcome(f, tf.constant(-2))
