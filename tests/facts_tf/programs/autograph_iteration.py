"""AutoGraph: lists, TensorArrays, built-ins, effects and Python loops."""

from __future__ import annotations

from tests.facts_tf.helpers import calls
from tests.facts_tf.registry import program, raised


@program
def list_appended_in_a_python_loop(tf):
    @tf.function
    def f(x):
        items = []
        for i in range(3):
            items.append(x + i)
        return tf.stack(items)

    return f(tf.constant(1))


@program
def list_appended_in_a_tensor_loop(tf):
    def f(n):
        items = []
        for i in tf.range(n):
            items.append(i * i)
        return tf.stack(items)

    return calls(tf, f, 3)


@program
def tensor_array_in_a_loop(tf):
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            ta = ta.write(i, i * i)
        return ta.stack()

    return calls(tf, f, 4, 0)


@program
def tensor_array_written_without_assignment(tf):
    def f(n):
        ta = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            ta.write(i, i * i)
        return ta.stack()

    return calls(tf, f, 3)


@program
def tensor_array_operations(tf):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
        ta = ta.write(1, tf.constant([9.0, 9.0]))
        return ta.read(0), ta.size(), ta.stack(), ta.gather([2, 0]), ta.concat()

    return f(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))


@program
def tensor_array_errors(tf):
    def make(**options):
        return tf.TensorArray(tf.float32, size=2, **options)

    full = make().unstack(tf.constant([1.0, 2.0]))
    return [
        raised(lambda: make().write(2, 1.0)),
        raised(lambda: make().write(-1, 1.0)),
        raised(lambda: make().write(0, tf.constant(1))),
        raised(lambda: make().read(0)),
        raised(lambda: full.read(5)),
        raised(lambda: make().write(0, [1.0]).write(1, [1.0, 2.0])),
    ]


@program
def tensor_array_errors_in_a_function(tf):
    def write_at(i):
        return lambda n: tf.TensorArray(tf.float32, size=n).write(i, 1.0).stack()

    def read_twice(n):
        ta = tf.TensorArray(tf.float32, size=n).write(0, 1.0)
        return ta.read(0) + ta.read(0)

    n = tf.constant(2)
    results = [raised(tf.function(write_at(i)), n) for i in (1, 2, -1)]
    return results, raised(tf.function(read_twice), n)


@program
def unwritten_parts_of_a_tensor_array(tf):
    @tf.function
    def f(x):
        ta = tf.TensorArray(tf.float32, size=3, element_shape=[2])
        return ta.write(1, x).stack()

    return f(tf.constant([1.0, 2.0]))


@program
def enumerate_over_a_tensor(tf):
    def f(x):
        total = tf.constant(0)
        for i, t in enumerate(x):
            total += i * t
        return total

    return calls(tf, f, [5, 6, 7])


@program
def zip_over_tensors(tf):
    def f(x):
        total = tf.constant(0)
        for a, b in zip(x, x * 2):
            total += a * b
        return total

    return calls(tf, f, [1, 2, 3])


@program
def len_of_tensors(tf):
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int32)])
    def f(x):
        seen.append(type(len(x)).__name__ == "int")
        return len(x), len(tf.transpose(x))

    return f(tf.ones([3, 2], tf.int32)), seen


@program
def len_of_a_scalar(tf):
    return calls(tf, lambda x: len(x), 1)


@program
def builtins_on_tensors(tf):
    def f(x):
        return abs(x), max(x, 2), min(x, 2), sum([x, x]), pow(x, 2), divmod(x, 2), round(x)

    return calls(tf, f, -3)


@program
def builtin_int_and_float_on_tensors(tf):
    def f(x):
        return int(x), float(x)

    return calls(tf, f, 3, 2.7)


@program
def any_and_all_on_tensors(tf):
    def f(x):
        return any(x), all(x)

    return calls(tf, f, [True, False])


@program
def sorted_and_map_on_tensors(tf):
    return (
        calls(tf, lambda x: sorted(x), [3, 1, 2]),
        calls(tf, lambda x: list(map(lambda t: t * 2, x)), [3, 1, 2]),
        calls(tf, lambda x: sum(x), [3, 1, 2]),
        calls(tf, lambda x: list(x), [3, 1]),
        calls(tf, lambda x: [t + 1 for t in x], [3, 1]),
    )


@program
def unpacking_tensors(tf):
    def f(x):
        a, b = x
        return a - b

    return calls(tf, f, [5, 3]), calls(tf, f, [5, 3, 1])


@program
def condition_of_a_loop_is_a_number(tf):
    def f(n):
        while n:
            n = n - 1
        return n

    return calls(tf, f, 3)


@program
def loop_over_a_python_list_of_tensors(tf):
    @tf.function
    def f(x):
        total = x
        for t in [x, x + 1, x + 2]:
            total = total + t
        return total

    return f(tf.constant(1))


@program
def loop_over_a_dict(tf):
    @tf.function
    def f(d):
        total = 0
        for key in d:
            total = total + d[key]
        return total

    return f({"a": tf.constant(1), "b": tf.constant(2)})


@program
def python_break_on_a_tensor_condition(tf):
    def f(x):
        for i in range(5):
            if x > 3:
                break
            x = x + 1
        return x

    return calls(tf, f, 0, 10)


@program
def python_loop_becomes_a_tensor_loop(tf):
    def f(x):
        n = 0
        while n < 3:
            n = n + x
        return n

    return calls(tf, f, 1)


@program
def variables_in_loops(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f(n):
        for i in tf.range(n):
            v.assign(v * 2.0)
        return v.read_value()

    return f(tf.constant(3)), f(tf.constant(2)), v


@program
def effects_stop_at_break(tf):
    v = tf.Variable(0)

    @tf.function
    def f(n):
        for i in tf.range(n):
            if i == 3:
                break
            v.assign_add(1)

    f(tf.constant(10))
    return v


@program
def item_assignment_on_a_tensor(tf):
    def f(x):
        x[0] = 5
        return x

    return calls(tf, f, [1, 2])


@program
def augmented_assignment(tf):
    def f(x):
        y = x
        y += 1
        return x, y

    return calls(tf, f, 1)


@program
def loop_in_a_branch(tf):
    def f(x):
        if x > 0:
            for i in tf.range(x):
                x = x + i
        return x

    return calls(tf, f, 4, -4)


@program
def try_in_a_loop(tf):
    def f(n):
        total = 0
        for i in tf.range(n):
            try:
                total += i
            finally:
                total += 1
        return total

    return calls(tf, f, 3)


@program
def closures_made_in_a_loop(tf):
    @tf.function
    def f(x):
        functions = [lambda t, k=k: t * k for k in range(3)]
        return [g(x) for g in functions]

    return f(tf.constant(5))


@program
def maximum_iterations(tf):
    def f(n):
        i = 0
        while i < n:
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            i += 1
        return i

    return calls(tf, f, 2, 10)


@program
def generators_in_functions(tf):
    def f(n):
        yield n

    return calls(tf, f, 1)


@program
def walrus_in_a_while(tf):
    def f(n):
        total = 0
        while (n := n - 1) > 0:
            total += n
        return total

    return calls(tf, f, 4)


@program
def recursion_on_tensors(tf):
    def f(n):
        if n <= 1:
            return n
        return n * f(n - 1)

    return raised(tf.function(f), tf.constant(5))
