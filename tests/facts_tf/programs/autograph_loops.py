"""AutoGraph: loops and what may change in them."""

from __future__ import annotations

from tests.facts_tf.helpers import calls
from tests.facts_tf.registry import outcome, program


@program
def collatz(tf):
    def f(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    return calls(tf, f, 27, 1, 6)


@program
def body_is_traced_once(tf):
    log = []

    @tf.function
    def f(n):
        total = 0
        for i in tf.range(n):
            log.append("body")
            total += i
        return total

    return f(tf.constant(4)), f(tf.constant(5)), log


@program
def python_range_is_unrolled(tf):
    log = []

    @tf.function
    def f(x):
        for i in range(3):
            log.append(i)
            x = x + i
        return x

    return f(tf.constant(1)), f(tf.constant(2)), log


@program
def range_of_a_tensor(tf):
    def f(n):
        total = 0
        for i in range(n):
            total = total + i
        return total

    return calls(tf, f, 4, 0)


@program
def for_over_a_vector_and_matrix(tf):
    def f(x):
        total = tf.zeros_like(x[0])
        for row in x:
            total = total + row
        return total

    return calls(tf, f, [1, 2, 3], [[1.0, 2.0], [3.0, 4.0]])


@program
def for_over_a_scalar(tf):
    def f(x):
        for t in x:
            x = t
        return x

    return calls(tf, f, 1)


@program
def loop_variable_after_the_loop(tf):
    def f(n):
        i = -1
        for i in tf.range(n):
            pass
        return i

    return calls(tf, f, 3, 0)


@program
def loop_variable_undefined_after_the_loop(tf):
    def f(n):
        for i in tf.range(n):
            last = i
        return last

    return calls(tf, f, 3)


@program
def target_read_after_the_loop_without_definition(tf):
    def f(n):
        for i in tf.range(n):
            pass
        return i

    return calls(tf, f, 3)


@program
def temporary_inside_a_loop(tf):
    def f(n):
        total = 0
        for i in tf.range(n):
            square = i * i
            total += square
        return total

    return calls(tf, f, 4)


@program
def break_and_continue(tf):
    def f(n):
        total = 0
        for i in tf.range(n):
            if i == 2:
                continue
            if i > 5:
                break
            total += i
        return total

    return calls(tf, f, 4, 10)


@program
def while_true_with_break(tf):
    def f(n):
        i = 0
        while True:
            if i >= n:
                break
            i += 2
        return i

    return calls(tf, f, 5, 0)


@program
def return_inside_a_loop(tf):
    def f(n):
        for i in tf.range(n):
            if i * i > 10:
                return i
        return -1

    return calls(tf, f, 10, 3)


@program
def return_inside_a_loop_only(tf):
    def f(n):
        for i in tf.range(n):
            if i > 2:
                return i

    return calls(tf, f, 10)


@program
def else_of_loops(tf):
    def f(n):
        for i in tf.range(n):
            if i > 3:
                r = 1
                break
        else:
            r = 2
        return r

    return calls(tf, f, 2, 10)


@program
def nested_loops(tf):
    def f(n):
        total = 0
        for i in tf.range(n):
            for j in tf.range(i):
                if (i + j) % 2 == 0:
                    continue
                total += i * j
        return total

    return calls(tf, f, 6)


@program
def dtype_changes_in_a_loop(tf):
    def f(n):
        x = 0
        while x < n:
            x = x + 0.5
        return x

    return calls(tf, f, 2)


@program
def dtype_of_a_tensor_changes_in_a_loop(tf):
    def f(n):
        x = tf.constant(0)
        for i in tf.range(n):
            x = tf.cast(x, tf.float32) + 1.0
        return x

    return calls(tf, f, 2)


@program
def int_literal_meets_a_float_in_a_loop(tf):
    def f(x):
        total = 0
        for t in x:
            total = total + t
        return total

    return calls(tf, f, [1.5, 2.5], [1, 2])


@program
def shape_changes_in_a_loop(tf):
    def f(n):
        x = tf.zeros([1])
        for i in tf.range(n):
            x = tf.concat([x, tf.ones([1])], 0)
        return x

    return calls(tf, f, 2)


@program
def shape_invariants(tf):
    def f(n):
        x = tf.zeros([1])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(x, tf.TensorShape([None]))]
            )
            x = tf.concat([x, tf.ones([1])], 0)
        return x

    return calls(tf, f, 2, 0)


@program
def rank_changes_in_a_loop(tf):
    def f(n):
        x = tf.zeros([2])
        for i in tf.range(n):
            x = tf.stack([x, x])
        return x

    return calls(tf, f, 1)


@program
def none_before_a_loop(tf):
    def f(n):
        x = None
        for i in tf.range(n):
            x = i
        return x

    return calls(tf, f, 3)


@program
def structure_changes_in_a_loop(tf):
    def f(n):
        x = (n, n)
        for i in tf.range(n):
            x = (n, n, n)
        return x

    return calls(tf, f, 1)


@program
def tuples_as_loop_state(tf):
    def f(n):
        pair = (0, {"a": 1})
        for i in tf.range(n):
            pair = (pair[0] + i, {"a": pair[1]["a"] * 2})
        return pair

    return calls(tf, f, 4)


@program
def items_and_attributes_made_in_a_loop(tf):
    class Holder:
        pass

    def item(n):
        made = {}
        for i in tf.range(n):
            made["v"] = i * 2
        return made["v"]

    def attribute(n):
        holder = Holder()
        i = 0
        while i < n:
            holder.v = i + 5
            i += 1
        return holder.v

    def of_both_loops(n, m):
        made, total = {}, 0
        for i in tf.range(n):
            for j in tf.range(m):
                made["v"] = i + j
            total += made["v"]
        return total, made

    def in_a_branch(n):
        made = {"n": n}
        if n > 1:
            made["v"] = 1
        return made

    both = tf.function(of_both_loops)
    each = [
        outcome(tf.function(f), tf.constant(n))
        for f, n in ((item, 3), (item, 0), (attribute, 2), (attribute, 0), (in_a_branch, 2))
    ]
    sizes = [(2, 2), (0, 2)]  # for (2, 0) TensorFlow gives zeros, treadle an error
    return each, [outcome(both, tf.constant(n), tf.constant(m)) for n, m in sizes]
