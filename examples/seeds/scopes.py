"""Names of tensors and variables: name scopes, variable scopes, reuse, templates."""

import numpy as np

import treadle.compat.v1 as tf


def made(scope):
    """The names of a constant, a variable and one of `get_variable` in a scope."""
    with scope:
        a, b = tf.constant(1, name="a"), tf.Variable(1, name="b")
        c = tf.get_variable(name="c", shape=[])
    return a.name, b.name, c.name


def main():
    assert (tf.constant(1).name, tf.Variable(1).name) == ("Const:0", "Variable:0")
    assert (tf.constant(1, name="a").name, tf.Variable(1, name="b").name) == ("a:0", "b:0")
    # A name scope is for all names but those of get_variable; a variable scope for these, too.
    assert made(tf.name_scope("scope")) == ("scope/a:0", "scope/b:0", "c:0")
    assert made(tf.variable_scope("other")) == ("other/a:0", "other/b:0", "other/c:0")

    # A name is made once, and used again where the program says so.
    with tf.variable_scope("shared"):
        first = tf.get_variable("v", shape=[])
        try:
            tf.get_variable("v", shape=[])
        except ValueError as error:
            assert "Variable shared/v already exists" in str(error)
        else:
            raise AssertionError("a variable was made twice")
    with tf.variable_scope("shared", reuse=True):
        assert tf.get_variable("v", shape=[]) is first
    with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", shape=[]) is first

    # Two images, one convolution: by reuse, and by a template.
    images = tf.random_uniform([2, 8, 8, 3]), tf.random_uniform([2, 8, 8, 3])
    with tf.variable_scope("conv"):
        tf.layers.conv2d(images[0], filters=32, kernel_size=3, name="layer")
    with tf.variable_scope("conv", reuse=True):
        tf.layers.conv2d(images[1], filters=32, kernel_size=3, name="layer")
    names = [v.name for v in tf.global_variables() if v.name.startswith("conv")]
    assert names == ["conv/layer/kernel:0", "conv/layer/bias:0"]

    convolve = tf.make_template("conv3x32", lambda x: tf.layers.conv2d(x, 32, 3))
    same, again = convolve(images[0]), convolve(images[0])
    names = [v.name for v in tf.global_variables() if v.name.startswith("conv3x32")]
    assert names == ["conv3x32/conv2d/kernel:0", "conv3x32/conv2d/bias:0"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        x, y = session.run([same, again])
    assert x.shape == (2, 6, 6, 32)
    np.testing.assert_array_equal(x, y)
    print("\n".join(names))


if __name__ == "__main__":
    main()
