"""The order of operations: what depends on what, and how a program says it."""

import treadle.compat.v1 as tf


def main():
    session = tf.Session()
    three = tf.constant(1) + tf.constant(2)
    assert session.run(three) == 3
    names = [t.name for t in tf.contrib.graph_editor.get_tensors(tf.get_default_graph())]
    assert names == ["Const:0", "Const_1:0", "add:0"]

    # A tensor keeps its value, a variable gets a new one.
    a, b = tf.Variable(1), tf.constant(2)
    assign = tf.assign(a, a + b)
    session.run(tf.global_variables_initializer())
    assert session.run(assign) == 3 and session.run(a) == 3

    # The sum is computed before the variable changes, because the graph says so.
    a = tf.Variable(1)
    c = a + b
    with tf.control_dependencies([c]):
        change = tf.assign(a, 5)
    for _ in range(10):
        session.run(tf.global_variables_initializer())
        assert session.run([change, c]) == [5, 3]
    # The other way round: the sum is of the new value.
    with tf.control_dependencies([tf.assign(a, 7)]):
        after = tf.identity(a) + b
    session.run(tf.global_variables_initializer())
    assert session.run(after) == 9

    # An edge from one tensor to another can be changed afterwards.
    x, y = tf.constant(10), tf.constant(20)
    double = tf.multiply(x, 2)
    tf.contrib.graph_editor.reroute_ts([y], [x], can_modify=[double.op])
    assert session.run(double) == 40
    print("sums before, after, and of a tensor that was exchanged: 3, 9, 40")


if __name__ == "__main__":
    main()
