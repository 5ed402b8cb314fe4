"""Branches and loops of graphs: `cond`, `where`, and Fibonacci's numbers by `while_loop`."""

import treadle.compat.v1 as tf

EXPECTED = [1, 1, 2, 3, 5, 8, 13, 21]


def last(n):
    """The n-th number."""
    _, _, found = tf.while_loop(
        lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a + b), (2, 1, 1)
    )
    return found


def concatenated(n):
    """The first n numbers, in a vector that grows: its size is declared as unknown."""
    def body(i, a, b, found):
        return i + 1, b, a + b, tf.concat([found, [a + b]], axis=0)

    scalar = tf.TensorShape([])
    *_, found = tf.while_loop(
        lambda i, *_: i < n, body, (2, 1, 1, tf.constant([1, 1])),
        shape_invariants=(scalar, scalar, scalar, tf.TensorShape([None])),
    )
    return found


def written(n):
    """The first n numbers, in an array of tensors."""
    numbers = tf.TensorArray(tf.int32, n)
    numbers = numbers.write(0, 1).write(1, 1)

    def body(i, a, b, found):
        return i + 1, b, a + b, found.write(i, a + b)

    *_, numbers = tf.while_loop(lambda i, *_: i < n, body, (2, 1, 1, numbers))
    return numbers.stack()


def main():
    n = tf.placeholder_with_default(5, [])
    with tf.Session() as session:
        a, b = tf.constant(1), tf.constant(2)
        assert session.run(tf.cond(tf.constant(True), lambda: a + b, lambda: a * b)) == 3
        a, b, p = tf.constant([1, 1]), tf.constant([2, 2]), tf.constant([True, False])
        assert session.run(tf.where(p, a + b, a * b)).tolist() == [3, 2]

        ways = [last(n), concatenated(n), written(n)]
        fifth, *rows = session.run(ways)
        assert fifth == 5 and all(row.tolist() == EXPECTED[:5] for row in rows)
        eighth, *rows = session.run(ways, {n: 8})
        assert eighth == 21 and all(row.tolist() == EXPECTED for row in rows)
        # A vector whose size changes must be declared.
        try:
            tf.while_loop(
                lambda x: tf.size(x) < 5, lambda x: tf.concat([x, x], 0), [tf.constant([1])]
            )
        except ValueError as error:
            assert "shape" in str(error)
        else:
            raise AssertionError("a shape changed unseen")
    print(rows[0].tolist())


if __name__ == "__main__":
    main()
