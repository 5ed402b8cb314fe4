"""The entropy of distributions given by logits, and the divergence of two Gaussians."""

import numpy as np

import treadle.compat.v1 as tf


def softmax(logits, axis=-1):
    powers = tf.exp(logits - tf.reduce_max(logits, axis, keepdims=True))
    return powers / tf.reduce_sum(powers, axis, keepdims=True)


def entropy(logits, axis=-1):
    distances = tf.reduce_logsumexp(logits, axis, keepdims=True) - logits
    return tf.reduce_sum(softmax(logits, axis) * distances, axis)


def gaussian_divergence(q, p=(0.0, 0.0)):
    """Kullback and Leibler's divergence of Gaussians with means and logarithms of variances."""
    (mean_q, log_q), (mean_p, log_p) = q, p
    scaled = tf.exp(log_q - log_p) + tf.square(mean_q - mean_p) / tf.exp(log_p)
    return tf.reduce_sum(0.5 * (log_p - log_q + scaled - 1), axis=-1)


def main():
    logits = tf.constant([[0.0, 0.0, 0.0, 0.0], [50.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    q = tf.constant([1.0, 2.0]), tf.constant([0.5, -0.5])
    p = tf.constant([0.0, 1.0]), tf.constant([1.0, 0.0])
    with tf.Session() as session:
        entropies, chances = session.run([entropy(logits), softmax(logits)])
        divergences = session.run([gaussian_divergence(*of) for of in ((q,), (q, p), (q, q))])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-6)
    with np.errstate(all="ignore"):
        by_hand = -np.nansum(chances * np.log(chances), axis=1)
    np.testing.assert_allclose(entropies, by_hand, atol=1e-6)
    assert np.isclose(entropies[0], np.log(4)) and entropies[1] < 1e-6
    known = 0.5 * np.sum(np.exp([0.5, -0.5]) + np.square([1.0, 2.0]) - 1)
    np.testing.assert_allclose(divergences[0], known, rtol=1e-6)
    assert divergences[1] > 0 and abs(divergences[2]) < 1e-6
    print("entropies", entropies.round(4), "divergences", np.round(divergences, 4))


if __name__ == "__main__":
    main()
