"""Beam search: the most probable sequences of a recurrent model, kept in a beam as they grow."""

import itertools

import numpy as np

import treadle.compat.v1 as tf

CLASSES, LENGTH, BEGIN, END = 4, 4, 0, 3


def sizes(tensor):
    known = tensor.shape.as_list()
    return [n if n is not None else tf.shape(tensor)[axis] for axis, n in enumerate(known)]


def rows_of_batch(tensor, indices):
    """``tensor[i, indices[i, j]]`` for all i and j."""
    batch, rows, *rest = sizes(tensor)
    flat = tf.reshape(tensor, [batch * rows, *rest])
    first = tf.reshape(tf.range(batch) * rows, [batch, 1])
    return tf.gather(flat, indices + first)


def beam_search(update, state, length, width, begin, end, name="rnn"):
    """The best sequences of a model, and the logarithms of their probabilities.

    Args:
        update: gives for states and ids the next states and the logits of the next id.
        state: [batch, size].
        width: how many sequences are kept.
        begin, end: the id before the first one, and the one behind which nothing counts.
    """
    batch = state.shape.as_list()[0]
    state = tf.tile(tf.expand_dims(state, 1), [1, width, 1])
    scores = tf.log([[1.0] + [0.0] * (width - 1)])  # at first all sequences of a beam are equal
    ids = tf.fill([batch, width], begin)
    sequences, is_open = tf.expand_dims(ids, 2), tf.ones([batch, width])
    for i in range(length):
        with tf.variable_scope(name, reuse=i > 0):
            state, logits = update(state, ids)
        chances = logits - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        total = tf.expand_dims(scores, 2) + chances * tf.expand_dims(is_open, 2)
        count = logits.shape.as_list()[-1]
        scores, best = tf.nn.top_k(tf.reshape(total, [batch, width * count]), k=width)
        ids, beams = best % count, best // count
        state, sequences = rows_of_batch(state, beams), rows_of_batch(sequences, beams)
        sequences = tf.concat([sequences, tf.expand_dims(ids, 2)], axis=2)
        is_open = rows_of_batch(is_open, beams) * tf.to_float(tf.not_equal(ids, end))
    return sequences, scores


def main():
    table = np.log(np.random.RandomState(1).dirichlet(np.ones(CLASSES), size=CLASSES))

    def update(state, ids):
        scores = tf.get_variable("scores", initializer=np.float32(table))
        return state + 1, tf.gather(scores, ids)

    # The end does not occur here: a beam as wide as all sequences finds the best one.
    found = {}
    for width in (1, 3, CLASSES ** (LENGTH - 1)):
        with tf.Graph().as_default(), tf.Session() as session:
            result = beam_search(update, tf.zeros([2, 5]), LENGTH, width, BEGIN, CLASSES)
            session.run(tf.global_variables_initializer())
            ids, scores = session.run(result)
        assert ids.shape == (2, width, LENGTH + 1) and (np.diff(scores, axis=1) <= 0).all()
        np.testing.assert_array_equal(ids[0], ids[1])
        found[width] = tuple(ids[0, 0, 1:].tolist()), scores[0, 0]

    def chance(path):
        return sum(table[a, b] for a, b in zip((BEGIN, *path), path))

    for path, score in found.values():
        np.testing.assert_allclose(score, chance(path), rtol=1e-5)
    best = max(itertools.product(range(CLASSES), repeat=LENGTH), key=chance)
    assert found[CLASSES ** (LENGTH - 1)][0] == best
    assert found[1][1] <= found[3][1] <= chance(best) + 1e-5

    # Behind an end nothing is added any more.
    with tf.Graph().as_default(), tf.Session() as session:
        result = beam_search(update, tf.zeros([1, 5]), LENGTH, 3, BEGIN, END)
        session.run(tf.global_variables_initializer())
        (ids,), (scores,) = session.run(result)
    for path, score in zip(ids[:, 1:].tolist(), scores):
        length = path.index(END) + 1 if END in path else LENGTH
        np.testing.assert_allclose(score, chance(path[:length]), rtol=1e-5)
    print("best path", best, f"{chance(best):.3f}, by a beam of 3 {found[3][1]:.3f}")


if __name__ == "__main__":
    main()
