"""contrib.crf against all sequences of tags, one by one."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle.compat.v1 as tf

RANDOM = np.random.default_rng(0)
SCORES = RANDOM.normal(size=(4, 5, 3)).astype(np.float32)
MATRIX = RANDOM.normal(size=(3, 3)).astype(np.float32)
LENGTHS = np.array([5, 3, 1, 0], np.int32)
TAGS = RANDOM.integers(0, 3, (4, 5)).astype(np.int32)
crf = tf.contrib.crf


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def total(i: int, tags: Any) -> float:
    unary = sum(SCORES[i, t, tag] for t, tag in enumerate(tags))
    return float(unary + sum(MATRIX[a, b] for a, b in itertools.pairwise(tags)))


def every(i: int) -> list[tuple[float, Any]]:
    return [(total(i, tags), tags) for tags in itertools.product(range(3), repeat=LENGTHS[i])]


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def test_scores_and_norms_are_sums_over_all_sequences() -> None:
    x, lengths = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.int32, [None])
    bitmap = RANDOM.random((4, 5, 3)) > 0.3
    bitmap[..., 1] = True
    found = run(
        {
            "score": crf.crf_sequence_score(x, TAGS, lengths, MATRIX),
            "norm": crf.crf_log_norm(x, lengths, MATRIX),
            "allowed": crf.crf_multitag_sequence_score(x, bitmap, lengths, MATRIX),
            "likelihood": crf.crf_log_likelihood(x, TAGS, lengths, MATRIX)[0],
        },
        {x: SCORES, lengths: LENGTHS},
    )
    for i, n in enumerate(LENGTHS):
        score = total(i, TAGS[i, :n])
        norm = np.log(sum(np.exp(s) for s, _ in every(i))) if n else 0.0
        some = [s for s, tags in every(i) if all(bitmap[i, t, tag] for t, tag in enumerate(tags))]
        allowed = np.log(sum(np.exp(some))) if n else 0.0
        expected = {"score": score, "norm": norm, "allowed": allowed, "likelihood": score - norm}
        for key, value in expected.items():
            np.testing.assert_allclose(found[key][i], value, rtol=1e-5, atol=1e-5)


def test_the_best_sequences_are_found() -> None:
    tags, score = run(crf.crf_decode(SCORES, MATRIX, LENGTHS))
    assert tags.dtype == np.int32
    for i, n in enumerate(LENGTHS[:3]):
        best, expected = max(every(i))
        np.testing.assert_allclose(score[i], best, rtol=1e-5)
        assert tags[i].tolist() == [*expected, *[0] * (5 - n)]
        found, alone = crf.viterbi_decode(SCORES[i, :n], MATRIX)
        assert tuple(found) == expected and alone == pytest.approx(best, rel=1e-5)


def test_transitions_are_learned() -> None:
    rows = np.tile(np.arange(6) % 3, (8, 1)).astype(np.int32)  # 0 1 2 0 1 2
    x = tf.placeholder(tf.float32, [8, 6, 3])
    lengths = np.full(8, 6)
    likelihood, transitions = crf.crf_log_likelihood(x, rows, lengths)
    assert transitions.name == "transitions:0"
    loss = tf.reduce_mean(-likelihood)
    step = tf.train.AdamOptimizer(0.3).minimize(loss)
    tags, _ = crf.crf_decode(x, transitions, lengths)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        given = np.zeros((8, 6, 3), np.float32)
        given[:, 0, 0] = 3.0  # only the first tag is told
        losses = [session.run([loss, step], {x: given})[0] for _ in range(40)]
        assert losses[-1] < 0.2 * losses[0]
        np.testing.assert_array_equal(session.run(tags, {x: given}), rows)
