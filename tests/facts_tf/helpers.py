"""What several files of programs do."""

from __future__ import annotations

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
