"""When `tf.function` traces: Python code runs once for each kind of arguments, the graph each time.

Variables keep what a function writes; `if` and `while` become branches and loops of the graph.
"""

import numpy as np

import treadle as tf

traced, counter = [], tf.Variable(0.0)


@tf.function
def double(x):
    traced.append(x)  # Python: it runs while the function is traced
    return x * 2


@tf.function
def count():
    counter.assign(counter + 1.0)
    return counter.read_value()


@tf.function
def square_if_positive(x):
    if x > 0:
        x = x * x
    else:
        x = 0
    return x


@tf.function
def written_and_read():
    array = tf.TensorArray(dtype=tf.float32, size=3)
    for i in tf.range(3):
        array = array.write(i, tf.cast(i, tf.float32) * 1.5)
    return array.read(0), array.read(1), array.read(2)


def main():
    calls = [
        (tf.constant(1), True), (tf.constant(2), False), (np.array(2, dtype=np.int32), False),
        (tf.constant(0.1), True), (tf.constant(0.2), False),  # another dtype: another graph
        (1, True), (2, True), (1, False), (0.1, True), (0.2, True), (0.1, False),  # by their values
    ]
    for argument, is_new in calls:
        before = len(traced)
        result = double(argument)
        np.testing.assert_allclose(result, np.asarray(argument) * 2, rtol=1e-6)
        assert len(traced) - before == is_new, argument
    print(f"{len(calls)} calls, {len(traced)} traces")

    assert [float(count()) for _ in range(3)] == [1.0, 2.0, 3.0] and counter.numpy() == 3.0
    assert [int(square_if_positive(tf.constant(n))) for n in (3, -3)] == [9, 0]
    code = tf.autograph.to_code(square_if_positive.python_function)
    print(code)
    assert "if_stmt" in code
    assert [float(x) for x in written_and_read()] == [0.0, 1.5, 3.0]


if __name__ == "__main__":
    main()
