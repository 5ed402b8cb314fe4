"""Softmax and cross-entropy as they are written down, and as they can be computed."""

import numpy as np

import treadle.compat.v1 as tf


def unstable_softmax(logits):
    powers = tf.exp(logits)
    return powers / tf.reduce_sum(powers)


def softmax(logits):
    """The same, since a constant may be taken from all logits: the largest power is 1."""
    return unstable_softmax(logits - tf.reduce_max(logits))


def unstable_cross_entropy(labels, logits):
    return -tf.reduce_sum(labels * tf.log(softmax(logits)))


def cross_entropy(labels, logits):
    """The same without the logarithm of a probability that is rounded to 0."""
    scaled = logits - tf.reduce_max(logits)
    return -tf.reduce_sum(labels * (scaled - tf.reduce_logsumexp(scaled)))


def main():
    with np.errstate(all="ignore"):
        tiny, huge, one = np.float32(1e-50), np.float32(1e39), np.float32(1)
        assert np.isnan(one * tiny / tiny) and np.isnan(one * huge / huge)
    with tf.Session() as session:
        logits, labels = tf.constant([1000.0, 0.0]), tf.constant([0.5, 0.5])
        np.testing.assert_array_equal(session.run(unstable_softmax(logits)), [np.nan, 0.0])
        assert session.run(softmax(logits)).tolist() == [1.0, 0.0]
        assert session.run(unstable_cross_entropy(labels, logits)) == np.inf
        stable = cross_entropy(labels, logits)
        assert session.run(stable) == 500.0
        (gradient,) = session.run(tf.gradients(stable, logits))
        assert gradient.tolist() == [0.5, -0.5]
        # Where both can be computed, they agree, with treadle's own, too.
        logits = tf.constant([1.0, -2.0])
        own = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        ways = [cross_entropy(labels, logits), unstable_cross_entropy(labels, logits), own]
        np.testing.assert_allclose(session.run(ways), [1.5485873] * 3, rtol=1e-5)
    print("cross-entropy of [0.5, 0.5] and logits [1000, 0]: 500, gradient", gradient)


if __name__ == "__main__":
    main()
