"""AutoGraph: boolean logic, conditional expressions, called functions."""

from __future__ import annotations

from tests.facts_tf.helpers import calls
from tests.facts_tf.registry import outcome, program, raised


@program
def vector_condition(tf):
    def f(x):
        if x > 0:
            return x
        return -x

    return calls(tf, f, [1, 2], [1])


@program
def number_condition(tf):
    def f(x):
        if x:
            return x
        return x + 100

    return calls(tf, f, 1, 0, 2.5, 0.0, True)


@program
def logic_on_tensors(tf):
    def f(x):
        return x > 0 and x < 10, x < 0 or x > 10, not x > 0

    return calls(tf, f, 5, 50, -5)


@program
def logic_short_circuits(tf):
    log = []

    def noted(x):
        log.append("called")
        return x

    @tf.function
    def f(x, flag):
        return flag and noted(x > 0)

    one = tf.constant(1)
    return outcome(f, one, False), outcome(f, one, True), log


@program
def logic_on_numbers(tf):
    def f(x):
        return x and 3

    return calls(tf, f, 5), outcome(tf.function(lambda x: x or 7), tf.constant(0))


@program
def logic_of_vectors(tf):
    def f(x):
        return x > 0 and x < 2

    return calls(tf, f, [1, 2, 3])


@program
def mixed_python_and_tensor_logic(tf):
    @tf.function
    def f(x, n):
        if n > 0 and x > 0:
            return x
        return -x

    one = tf.constant(1)
    return f(one, 1), f(one, 0), f(-one, 1)


@program
def chained_comparison(tf):
    def f(x):
        return 0 < x < 10, 10 > x > 3 != 4

    return calls(tf, f, 5, 50, -5)


@program
def equality_of_tensors(tf):
    def f(x):
        return x == 1, x != 1, x is None, x == None  # noqa: E711

    return calls(tf, f, 1, 2)


@program
def conditional_expression(tf):
    def f(x):
        return x * 2 if x > 0 else x - 1

    return calls(tf, f, 3, -3)


@program
def conditional_expression_of_dtypes(tf):
    def f(x):
        return 1 if x > 0 else 2.0

    return calls(tf, f, 3, -3)


@program
def conditional_expression_is_lazy(tf):
    v = tf.Variable(0)

    def noted(n):
        return v.assign_add(n)

    @tf.function
    def f(x):
        return noted(1) if x > 0 else noted(10)

    return f(tf.constant(1)), v, f(tf.constant(-1)), v


@program
def effects_in_branches(tf):
    v = tf.Variable(0)

    @tf.function
    def f(x):
        if x > 0:
            v.assign_add(1)
        else:
            v.assign_sub(10)

    f(tf.constant(1))
    first = v.read_value()
    f(tf.constant(-1))
    return first, v


@program
def elif_chain(tf):
    def f(x):
        if x > 10:
            y = 3
        elif x > 5:
            y = 2
        elif x > 0:
            y = 1
        else:
            y = 0
        return y

    return calls(tf, f, 11, 6, 1, -1)


@program
def assertion_message(tf):
    def f(x):
        assert x > 0, f"bad {x}"
        return x

    return calls(tf, f, 1, -1)


@program
def python_raise_in_a_tensor_branch(tf):
    def f(x):
        if x > 0:
            raise ValueError("positive")
        return x

    return calls(tf, f, 1, -1)


@program
def inner_function_with_nonlocal(tf):
    @tf.function
    def f(x):
        total = x

        def add(n):
            nonlocal total
            total = total + n

        add(1)
        if x > 0:
            add(10)
        return total

    return outcome(f, tf.constant(1)), outcome(f, tf.constant(-1))


@program
def inner_function_with_conditions(tf):
    @tf.function
    def f(x):
        def relu(t):
            if t > 0:
                return t
            return tf.zeros_like(t)

        return relu(x) + relu(-x)

    return f(tf.constant(3)), f(tf.constant(-4))


@program
def called_helpers_are_converted(tf):
    def helper(x):
        if x > 0:
            return x
        return -x

    f = tf.function(lambda x: helper(x))
    return f(tf.constant(-3)), f(tf.constant(3))


@program
def helpers_not_converted(tf):
    @tf.autograph.experimental.do_not_convert
    def helper(x):
        if x > 0:
            return x
        return -x

    f = tf.function(lambda x: helper(x))
    return raised(f, tf.constant(-3)), f(3)


@program
def autograph_off(tf):
    @tf.function(autograph=False)
    def f(x):
        if x > 0:
            return x
        return -x

    return raised(f, tf.constant(1)), f(-2)


@program
def lambda_with_a_condition(tf):
    f = tf.function(lambda x: x if x > 0 else -x)
    return f(tf.constant(-2)), f(tf.constant(2))


@program
def shapes_as_static_conditions(tf):
    @tf.function
    def f(x):
        if x.shape[0] > 2:
            return tf.reduce_sum(x)
        return tf.reduce_max(x)

    return f(tf.constant([1, 2])), f(tf.constant([1, 2, 3])), f.experimental_get_tracing_count()


@program
def dtype_as_a_static_condition(tf):
    @tf.function
    def f(x):
        if x.dtype == tf.float32:
            return x / 2
        return x // 2

    return f(tf.constant(3)), f(tf.constant(3.0))


@program
def isinstance_and_is_tensor(tf):
    seen = []

    @tf.function
    def f(x):
        seen.append((isinstance(x, tf.Tensor), tf.is_tensor(x), isinstance(x, int)))

    for value in (tf.constant(1), 1, tf.Variable(1)):
        f(value)
    return seen


@program
def match_statement(tf):
    @tf.function
    def f(x, mode):
        match mode:
            case "double":
                return x * 2
            case _:
                return x

    return outcome(f, tf.constant(2), "double"), outcome(f, tf.constant(2), "other")


@program
def same_variable_swapped(tf):
    @tf.function
    def f(a, b):
        if a > b:
            a, b = b, a
        return a, b

    return f(tf.constant(2), tf.constant(1)), f(tf.constant(1), tf.constant(2))


@program
def with_block_in_a_branch(tf):
    @tf.function
    def f(x):
        if x > 0:
            with tf.name_scope("inside"):
                y = x * 3
        else:
            y = x
        return y

    return f(tf.constant(2)), f(tf.constant(-2))


@program
def del_in_a_branch(tf):
    def f(x):
        y = x
        if x > 0:
            z = y + 1
            del y
            x = z
        return x

    return calls(tf, f, 1, -1)
