"""What several files of programs do."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome


def calls(tf, f, *values):
    """What the function of one tensor gives for each of the values."""
    return [outcome(tf.function(f), tf.constant(v)) for v in values]


def slope(tf, f, *values):
    """df/dx of a traced scalar function at float values."""

    @tf.function
    def g(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return [outcome(g, tf.constant(v)) for v in values]


def both(tf, fn, *args):
    """What a function gives eagerly, and traced for arguments of open shapes."""
    arrays = [np.asarray(a) for a in args]
    specs = [tf.TensorSpec([None] * a.ndim, a.dtype) for a in arrays]
    traced = tf.function(fn, input_signature=specs)
    tensors = [tf.constant(a) for a in arrays]
    return outcome(fn, *tensors), outcome(traced, *tensors)


def known(tf, fn, *args):
    """What a function gives eagerly, and traced for arguments of known shapes."""
    tensors = [tf.constant(a) for a in args]
    return outcome(fn, *tensors), outcome(tf.function(fn), *tensors)


def gradients(tf, fn, *args):
    """The gradients of the sum of squares of all results of a function, eagerly and traced."""

    def of(*operands):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            found = tf.nest.flatten(fn(*operands))
            loss = tf.add_n([tf.reduce_sum(tf.abs(y) ** 2) for y in found])
        return tape.gradient(loss, operands)

    tensors = [tf.constant(a) for a in args]
    return outcome(of, *tensors), outcome(tf.function(of), *tensors)
