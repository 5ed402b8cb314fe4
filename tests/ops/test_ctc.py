"""Losses and decoders of label sequences whose times are not known, and distances of sequences."""

import itertools

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients

RNG = np.random.default_rng(4)


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def merged(path, blank):
    """What a path of classes means: repetitions merged, blanks left out."""
    return tuple(c for i, c in enumerate(path) if c != blank and (not i or path[i - 1] != c))


def probabilities(frames, blank):
    """The probability of every label sequence, by a sum over all paths."""
    scores = log_softmax(frames)
    found = {}
    for path in itertools.product(range(frames.shape[1]), repeat=len(frames)):
        p = np.exp(sum(scores[t, c] for t, c in enumerate(path)))
        name = merged(path, blank)
        found[name] = found.get(name, 0.0) + p
    return found


LABELS = np.array([[1, 2, 0], [2, 2, 1], [1, 0, 0], [0, 0, 0]])
COUNTS, FRAMES = np.array([2, 3, 1, 0]), np.array([5, 5, 3, 4])
LOGITS = RNG.normal(size=(5, 4, 4)) * 2


def expected_losses(blank):
    names = [tuple(row[:n]) for row, n in zip(LABELS, COUNTS, strict=True)]
    names = [tuple(c + (blank == 0 and c < 1) for c in name) for name in names]
    all_of = [probabilities(LOGITS[:n, i], blank) for i, n in enumerate(FRAMES)]
    return names, [-np.log(found[name]) for found, name in zip(all_of, names, strict=True)]


def test_losses_are_sums_over_all_paths():
    for blank in (0, 3):
        names, expected = expected_losses(blank)
        given = td.nn.ctc_loss(LABELS, LOGITS, COUNTS, FRAMES, blank_index=blank)
        np.testing.assert_allclose(given, expected, rtol=1e-10)
        by_batch = td.nn.ctc_loss(
            LABELS, LOGITS.transpose(1, 0, 2), COUNTS, FRAMES, logits_time_major=False,
            blank_index=blank - 4,
        )  # fmt: skip
        np.testing.assert_allclose(by_batch, expected, rtol=1e-10)
        places = [[i, j] for i, name in enumerate(names) for j in range(len(name))]
        sparse = td.SparseTensor(places, [c for name in names for c in name], [4, 3])
        found = td.nn.ctc_loss(sparse, LOGITS, None, FRAMES, blank_index=blank)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_losses_of_open_sizes():
    specs = [
        td.TensorSpec([None, None], td.int32), td.TensorSpec([None, None, None], td.float64),
        td.TensorSpec([None], td.int32), td.TensorSpec([None], td.int32),
    ]  # fmt: skip
    traced = td.function(
        lambda *given: td.nn.ctc_loss(*given, blank_index=-1), input_signature=specs
    )
    _, expected = expected_losses(3)
    np.testing.assert_allclose(traced(LABELS, LOGITS, COUNTS, FRAMES), expected, rtol=1e-10)
    few = traced(LABELS[:1, :2], LOGITS[:1, :1], [2], [1])
    assert few.numpy().tolist() == [np.inf]


def test_gradients_of_the_loss():
    def loss(x):
        return td.nn.ctc_loss(LABELS, x, COUNTS, FRAMES, blank_index=3)

    check_gradients(loss, LOGITS)
    x = td.constant(LOGITS, td.float32)
    with td.GradientTape() as tape:
        tape.watch(x)
        total = td.reduce_sum(loss(x))
    slopes = tape.gradient(total, x).numpy()
    assert np.isfinite(slopes).all()
    assert not slopes[3:, 2].any(), "frames behind a row's last have no influence"


def best(found, paths):
    return sorted(found.items(), key=lambda item: -item[1])[:paths]


def test_a_wide_beam_finds_the_most_probable_sequences():
    decoded, score = td.nn.ctc_beam_search_decoder(LOGITS, FRAMES, beam_width=400, top_paths=3)
    rows = [td.sparse.to_dense(d, -1).numpy() for d in decoded]
    for i, n in enumerate(FRAMES):
        for k, (name, p) in enumerate(best(probabilities(LOGITS[:n, i], 3), 3)):
            assert [c for c in rows[k][i] if c >= 0] == list(name)
            np.testing.assert_allclose(score[i, k], np.log(p), rtol=1e-10)
    narrow, _ = td.nn.ctc_beam_search_decoder(LOGITS, FRAMES, beam_width=1)
    assert len(narrow) == 1 and narrow[0].dense_shape[0] == 4


@pytest.mark.parametrize("merge", [True, False])
def test_greedy_decoding(merge):
    def decode(x, lengths):
        (rows,), score = td.nn.ctc_greedy_decoder(x, lengths, merge)
        return rows, score

    open_sizes = [td.TensorSpec([None, None, 4], td.float64), td.TensorSpec([None], td.int32)]
    traced = td.function(decode, input_signature=open_sizes)
    for function in (decode, traced):
        rows, score = function(LOGITS, FRAMES)
        dense = td.sparse.to_dense(rows, -1).numpy()
        for i, n in enumerate(FRAMES):
            path = LOGITS[:n, i].argmax(-1).tolist()
            kept = merged(path, 3) if merge else [c for c in path if c != 3]
            assert [c for c in dense[i] if c >= 0] == list(kept)
        sums = [-LOGITS[:n, i].max(-1).sum() for i, n in enumerate(FRAMES)]
        np.testing.assert_allclose(score[:, 0], sums)


def test_edit_distance():
    words = ["kitten", "flaw", "", "gumbo", "same"], ["sitting", "lawn", "new", "", "same"]
    wanted = [3, 2, 3, 5, 0]

    def sparse(rows):
        places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
        return td.SparseTensor(places, [c for row in rows for c in row], [len(rows), 7])

    a, b = map(sparse, words)
    distance = td.function(lambda a, b: td.edit_distance(a, b, normalize=False))
    for function in (distance, distance.python_function):
        assert function(a, b).numpy().tolist() == wanted
    lengths = [len(word) for word in words[1]]
    shares = [w / n if n else np.inf for w, n in zip(wanted, lengths, strict=True)]
    np.testing.assert_allclose(td.edit_distance(a, b), shares, rtol=1e-6)


def test_what_does_not_fit():
    n = td.nn
    with pytest.raises(ValueError, match="blank_index"):
        n.ctc_loss(td.SparseTensor([[0, 0]], [1], [1, 1]), LOGITS[:, :1], None, [5])
    with pytest.raises(td.errors.InvalidArgumentError, match="none of 4 classes"):
        n.ctc_loss(LABELS, LOGITS, COUNTS, FRAMES, blank_index=4)
    with pytest.raises(td.errors.InvalidArgumentError, match="3 axes"):
        n.ctc_loss(LABELS, LOGITS[0], COUNTS, FRAMES)
    with pytest.raises(td.errors.InvalidArgumentError, match="top_paths"):
        n.ctc_beam_search_decoder(LOGITS, FRAMES, beam_width=2, top_paths=3)
    with pytest.raises(td.errors.InvalidArgumentError, match="batch"):
        n.ctc_greedy_decoder(LOGITS[0], FRAMES)
    with pytest.raises(TypeError, match="SparseTensor"):
        td.edit_distance([1], [2])


def test_keras_names():
    rows, logits = LABELS[:3] + 1, LOGITS.transpose(1, 0, 2)[:3]
    rows[2, 1:] = 0
    rows[0, 2] = 0
    counts = np.array([2, 3, 1])
    steps = np.array([5, 5, 5])
    expected = td.nn.ctc_loss(rows, LOGITS[:, :3], counts, steps, blank_index=0)
    np.testing.assert_allclose(td.keras.losses.ctc(rows, logits), expected)
    mean = td.keras.losses.CTC(dtype="float64")(rows, logits)
    np.testing.assert_allclose(mean, td.reduce_mean(expected))
    assert isinstance(td.keras.losses.get("CTC"), td.keras.losses.CTC)
    found = td.keras.ops.ctc_loss(rows, logits, counts, steps)
    np.testing.assert_allclose(found, expected)
    for blank in (0, 1, -1):
        ops = td.keras.ops
        for strategy in ("greedy", "beam_search"):
            labels, _ = ops.ctc_decode(logits, steps, strategy, 400, mask_index=blank)
            for i in range(3):
                path = logits[i].argmax(-1).tolist()
                wanted = merged(path, blank % 4)
                if strategy == "beam_search":
                    ((wanted, _),) = best(probabilities(logits[i], blank % 4), 1)
                assert [c for c in labels[0, i].numpy() if c >= 0] == list(wanted)
    with pytest.raises(ValueError, match="Invalid strategy"):
        td.keras.ops.ctc_decode(logits, steps, "no")


def test_names_of_keras_2():
    backend = td.keras.backend
    shares = np.exp(log_softmax(LOGITS)).transpose(1, 0, 2)
    cost = backend.ctc_batch_cost(LABELS, shares, FRAMES[:, None], COUNTS[:, None])
    _, expected = expected_losses(3)
    np.testing.assert_allclose(cost[:, 0], expected, rtol=1e-4)
    sparse = backend.ctc_label_dense_to_sparse(LABELS, COUNTS)
    assert sparse.values.numpy().tolist() == [1, 2, 2, 2, 1, 1]
    for greedy in (True, False):
        (rows,), _ = backend.ctc_decode(shares, FRAMES, greedy)
        assert rows.shape == (4, 5)


def test_graphs_of_tensorflow_1():
    tf = td.compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        scores = tf.placeholder(tf.float64, [None, None, 4])
        frames, names = tf.placeholder(tf.int32, [None]), tf.sparse_placeholder(tf.int32)
        loss = tf.nn.ctc_loss(names, scores, frames)
        lenient = tf.nn.ctc_loss(
            labels=names, inputs=scores, sequence_length=frames,
            ignore_longer_outputs_than_inputs=True,
        )  # fmt: skip
        slope = tf.gradients(loss, scores)[0]
        (beams,), _ = tf.nn.ctc_beam_search_decoder(scores, frames, merge_repeated=True)
        distance = tf.edit_distance(tf.cast(beams, tf.int32), names)
        places = [[i, j] for i, n in enumerate(COUNTS) for j in range(n)]
        given = tf.SparseTensorValue(places, [LABELS[i, j] for i, j in places], [4, 3])
        feed = {scores: LOGITS, frames: FRAMES, names: given}
        losses, _, slopes, _ = session.run([loss, lenient, slope, distance], feed)
        np.testing.assert_allclose(losses, expected_losses(3)[1])
        assert np.isfinite(slopes).all()
        feed[frames] = [1, 1, 1, 1]
        few, none = session.run([loss, lenient], feed)
        assert np.isinf(few[:2]).all() and not none[:2].any() and np.isfinite(few[2:]).all()
        with pytest.raises(NotImplementedError, match="collapse_repeated"):
            tf.nn.ctc_loss(names, scores, frames, preprocess_collapse_repeated=True)


def test_a_blank_among_the_labels_is_a_state_of_its_own():
    # TensorFlow 2.21 gives these for labels that have their blank, 0, within.
    logits = (np.arange(24).reshape(2, 4, 3).astype(np.float32) - 12) / 100
    for labels, lengths, expected in (
        ([[1, 2, 1, 0], [1, 2, 0, 2]], [3, 3], [2.4429312, 2.4543595]),
        ([[1, 2, 1, 0], [1, 2, 0, 2]], [3, 2], [2.4429312, 1.6844572]),
        ([[1, 0, 2, 1], [0, 1, 2, 2]], [3, 3], [2.45436, 2.4543595]),
    ):
        given = td.nn.ctc_loss(
            labels, logits, lengths, [4, 4], logits_time_major=False, blank_index=0
        )
        np.testing.assert_allclose(given, expected, rtol=1e-5)
