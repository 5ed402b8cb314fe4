"""contrib.seq2seq against loops in NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle.compat.v1 as tf

pytestmark = pytest.mark.thorough

s2s = tf.contrib.seq2seq
RANDOM = np.random.default_rng(4)
TABLE = RANDOM.normal(size=(6, 3)).astype(np.float32)  # of 6 symbols
OUT = RANDOM.normal(size=(4, 6)).astype(np.float32)
END = 1


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


class Linear:
    """A layer with a matrix that is known."""

    units = 6

    def __call__(self, x: Any) -> Any:
        return tf.tensordot(x, tf.constant(OUT), 1)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_training_is_the_cell_along_time() -> None:
    x = tf.placeholder(tf.float32, [None, None, 3])
    lengths = tf.placeholder(tf.int32, [None])
    cell = tf.nn.rnn_cell.LSTMCell(4)
    zero = cell.zero_state(tf.shape(x)[0], tf.float32)
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, zero)
    decoder = s2s.BasicDecoder(cell, s2s.TrainingHelper(x, lengths), zero)
    (found, ids), last, ends = s2s.dynamic_decode(decoder, impute_finished=True)
    slope = tf.gradients(tf.reduce_sum(found**2), [x])[0]
    expected = tf.gradients(tf.reduce_sum(outputs**2), [x])[0]
    fetches = [found, outputs, last, state, ends, ids, slope, expected]
    given = RANDOM.normal(size=(3, 5, 3))
    got = run(fetches, {x: given, lengths: [5, 2, 3]})
    np.testing.assert_allclose(got[0], got[1], rtol=1e-5)
    np.testing.assert_allclose(got[2], got[3], rtol=1e-5)
    np.testing.assert_allclose(got[6], got[7], rtol=1e-4, atol=1e-6)
    assert got[4].tolist() == [5, 2, 3] and got[5].shape == (3, 5)
    np.testing.assert_array_equal(got[5][0], got[0][0].argmax(-1))
    shorter = run(fetches[4], {x: given[:, :2], lengths: [0, 2, 1]})
    assert shorter.tolist() == [0, 2, 1]


def rnn_values(cell: Any, session: Any) -> Any:
    kernel, bias = session.run(cell.variables)
    return lambda x, h: np.tanh(np.concatenate([x, h], -1) @ kernel + bias)


def test_greedy_decoding_goes_on_from_the_best_ids() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    helper = s2s.GreedyEmbeddingHelper(tf.constant(TABLE), [0, 2, 5], END)
    start = RANDOM.normal(size=(3, 4)).astype(np.float32)
    decoder = s2s.BasicDecoder(cell, helper, tf.constant(start), Linear())
    (logits, ids), _, lengths = s2s.dynamic_decode(decoder, maximum_iterations=7)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, chosen, ends = session.run([logits, ids, lengths])
        step = rnn_values(cell, session)
    for i, token in enumerate([0, 2, 5]):
        h, t, want = start[i], token, []
        while len(want) < 7 and (not want or want[-1] != END):
            h = step(TABLE[t], h)
            t = int((h @ OUT).argmax())
            want.append(t)
        assert chosen[i, : len(want)].tolist() == want and ends[i] == len(want)
    assert found.shape == (*chosen.shape, 6)


def beams(step: Any, start: Any, token: int, width: int, penalty: float, most: int) -> Any:
    """Beam search as a loop: the sequences of the beams, the best first."""
    kept = [(0.0, [], start, token, False, 0)]
    scores = []
    for _ in range(most):
        found = []
        for total, ids, h, t, ended, length in kept:
            if ended:
                share = np.where(np.arange(6) == END, 0.0, np.finfo(np.float32).min)
                new = h
            else:
                new = step(TABLE[t], h)
                share = np.log(softmax(new @ OUT))
            for word in range(6):
                longer = length + (not ended and word != END)
                score = (total + share[word]) / ((5 + longer) / 6) ** penalty
                found.append((score, total + share[word], [*ids, word], new, word,
                              ended or word == END, length + (not ended)))  # fmt: skip
        found.sort(key=lambda f: -f[0])
        kept, scores = [f[1:] for f in found[:width]], [f[0] for f in found[:width]]
        if all(k[4] for k in kept):
            break
    return [k[1] for k in kept], scores


@pytest.mark.parametrize("penalty", [0.0, 0.8])
def test_beam_search(penalty: float) -> None:
    cell, width = tf.nn.rnn_cell.BasicRNNCell(4), 3
    start = RANDOM.normal(size=(2, 4)).astype(np.float32)
    decoder = s2s.BeamSearchDecoder(
        cell, tf.constant(TABLE), [0, 4], END, s2s.tile_batch(tf.constant(start), width), width,
        Linear(), length_penalty_weight=penalty,
    )  # fmt: skip
    output, state, _ = s2s.dynamic_decode(decoder, maximum_iterations=6)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, scores, state = session.run(
            [output.predicted_ids, output.beam_search_decoder_output.scores, state]
        )
        step = rnn_values(cell, session)
    assert found.shape[0] == 2 and found.shape[2] == width
    assert state.lengths.dtype == np.int64 and state.cell_state.shape == (2, width, 4)
    for i, token in enumerate([0, 4]):
        sequences, expected = beams(step, start[i], token, width, penalty, found.shape[1])
        np.testing.assert_allclose(scores[i, -1], expected, rtol=1e-4)
        for beam, sequence in enumerate(sequences):
            assert found[i, :, beam].tolist() == sequence


def test_a_tree_gives_the_sequences_of_its_leaves() -> None:
    ids = [[[1, 2]], [[3, 4]], [[5, 9]], [[7, 8]]]
    parents = [[[0, 0]], [[1, 0]], [[0, 1]], [[1, 0]]]
    found = run(s2s.gather_tree(ids, parents, [4], 9))
    assert found[:, 0].T.tolist() == [[1, 4, 9, 9], [2, 3, 5, 8]]
    assert run(s2s.gather_tree(ids, parents, [2], 9))[:, 0].T.tolist() == [[2, 3, 9, 9],
                                                                          [1, 4, 9, 9]]


@pytest.mark.parametrize("kind", ["luong", "scaled", "bahdanau", "normed"])
def test_attention(kind: str) -> None:
    memory = RANDOM.normal(size=(2, 4, 5)).astype(np.float32)
    query = RANDOM.normal(size=(2, 3)).astype(np.float32)
    lengths = np.array([4, 2])
    if kind in ("luong", "scaled"):
        mechanism = s2s.LuongAttention(3, memory, lengths, scale=kind == "scaled")
    else:
        mechanism = s2s.BahdanauAttention(3, memory, lengths, normalize=kind == "normed")
    weights, _ = mechanism(tf.constant(query), mechanism.initial_state(2, tf.float32))
    names = {v.op.name.rpartition("attention/")[2]: v for v in tf.global_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        changed = [v for n, v in names.items() if n in ("attention_g", "attention_b")]
        session.run([tf.assign_add(v, tf.fill(v.shape, 0.5)) for v in changed])
        found, v = session.run([weights, names])
    assert sorted(v) == sorted({
        "luong": ["memory_layer/kernel"], "scaled": ["memory_layer/kernel", "attention_g"],
        "bahdanau": ["memory_layer/kernel", "query_layer/kernel", "attention_v"],
        "normed": ["memory_layer/kernel", "query_layer/kernel", "attention_v", "attention_g",
                   "attention_b"],
    }[kind])  # fmt: skip
    kept = memory * (np.arange(4) < lengths[:, None])[..., None]
    keys = kept @ v["memory_layer/kernel"]
    if kind in ("luong", "scaled"):
        score = np.einsum("btd,bd->bt", keys, query) * v.get("attention_g", 1.0)
    else:
        vector = v["attention_v"]
        if kind == "normed":
            vector = v["attention_g"] * vector / np.sqrt((vector**2).sum())
        asked = (query @ v["query_layer/kernel"])[:, None]
        score = np.tanh(keys + asked + v.get("attention_b", 0.0)) @ vector
    score[1, 2:] = -np.inf
    np.testing.assert_allclose(found, softmax(score), rtol=1e-4)


def model(inference: str | None, memory: Any, lengths: Any, x: Any = None, size: int = 16) -> Any:
    """An encoder and a decoder with attention; `inference` says how it decodes."""
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        table = tf.get_variable("table", [6, 8])
        encoder = tf.nn.rnn_cell.GRUCell(size)
        embedded = tf.nn.embedding_lookup(table, memory)
        outputs, state = tf.nn.dynamic_rnn(encoder, embedded, lengths, dtype=tf.float32,
                                           scope="encoder")  # fmt: skip
        batch, width = tf.shape(memory)[0], 2
        if inference == "beam":
            outputs, state, lengths = s2s.tile_batch((outputs, state, lengths), width)
        mechanism = s2s.LuongAttention(size, outputs, lengths)
        cell = s2s.AttentionWrapper(
            tf.nn.rnn_cell.GRUCell(size), mechanism, size, alignment_history=inference is not None
        )
        total = batch * width if inference == "beam" else batch
        start = cell.zero_state(total, tf.float32).clone(cell_state=state)
        layer = tf.layers.Dense(6, name="out")
        tokens = tf.fill([batch], 0)
        if inference == "beam":
            decoder = s2s.BeamSearchDecoder(cell, table, tokens, END, start, width, layer)
        else:
            helper = (
                s2s.GreedyEmbeddingHelper(table, tokens, END) if inference
                else s2s.TrainingHelper(tf.nn.embedding_lookup(table, x), lengths + 1)
            )  # fmt: skip
            decoder = s2s.BasicDecoder(cell, helper, start, layer)
        return s2s.dynamic_decode(decoder, maximum_iterations=8, scope="decoder")


@pytest.mark.thorough
def test_a_model_learns_to_turn_sequences_around() -> None:
    memory, lengths = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    x, y = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
    (logits, _), _, _ = model(None, memory, lengths, x)
    weights = tf.sequence_mask(lengths + 1, dtype=tf.float32)
    loss = s2s.sequence_loss(logits, y, weights)
    step = tf.train.AdamOptimizer(0.02).minimize(loss)
    names = [v.op.name for v in tf.trainable_variables()]
    assert "model/decoder/attention_wrapper/attention_layer/kernel" in names
    assert "model/memory_layer/kernel" in names
    (_, ids), last, _ = model("greedy", memory, lengths)
    best, final, _ = model("beam", memory, lengths)
    assert [v.op.name for v in tf.trainable_variables()] == names  # all are used again
    history = last.alignment_history.stack()

    def batch(n: int) -> Any:
        rows = RANDOM.integers(2, 6, (n, 3))
        turned = rows[:, ::-1]
        ends = np.full((n, 1), END)
        return rows, np.hstack([turned, ends]), np.hstack([np.zeros((n, 1), int), turned])

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            rows, targets, given = batch(32)
            feed = {memory: rows, lengths: np.full(32, 3), x: given, y: targets}
            value, _ = session.run([loss, step], feed)
        assert value < 0.2
        rows, targets, _ = batch(5)
        feed = {memory: rows, lengths: np.full(5, 3)}
        decoded, weights_of, beam, aligned = session.run(
            [ids, history, best.predicted_ids, final.cell_state.alignment_history], feed
        )
    assert (decoded[:, :4] == targets).mean() > 0.9
    assert (beam[:, :4, 0] == targets).mean() > 0.9
    np.testing.assert_allclose(weights_of.sum(-1), 1.0, rtol=1e-5)
    assert aligned.shape == (beam.shape[1], 10, 3)
    first = aligned.reshape(-1, 5, 2, 3)[:4, :, 0]  # of the best beams, in their own order
    same = (beam[:, :4, 0] == decoded[:, :4]).all(1)
    np.testing.assert_allclose(first[:, same], weights_of[:4, same], rtol=1e-4, atol=1e-5)


def test_scheduled_sampling_is_between_training_and_decoding() -> None:
    x = tf.constant(TABLE[RANDOM.integers(0, 6, (2, 4))])
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    zero = cell.zero_state(2, tf.float32)

    def decode(helper: Any) -> Any:
        decoder = s2s.BasicDecoder(cell, helper, zero, Linear())
        return s2s.dynamic_decode(decoder)[0]

    lengths = [4, 4]
    never = decode(s2s.ScheduledEmbeddingTrainingHelper(x, lengths, tf.constant(TABLE), 0.0))
    always = decode(s2s.ScheduledEmbeddingTrainingHelper(x, lengths, tf.constant(TABLE), 1.0))
    plain = decode(s2s.TrainingHelper(x, lengths))
    fed = decode(s2s.ScheduledOutputTrainingHelper(
        x, lengths, 1.0, next_input_layer=lambda y: tf.tanh(y[:, :3])))  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        never, always, plain, fed = session.run([never, always, plain, fed])
        step = rnn_values(cell, session)
        first = x.eval()[:, 0]
    np.testing.assert_allclose(never.rnn_output, plain.rnn_output, rtol=1e-5)
    assert (never.sample_id == -1).all() and (always.sample_id >= 0).all()
    h, given = np.zeros((2, 4), np.float32), first
    for t in range(4):
        h = step(given, h)
        np.testing.assert_allclose(always.rnn_output[:, t], h @ OUT, rtol=1e-4, atol=1e-5)
        given = TABLE[always.sample_id[:, t]]
    h, given = np.zeros((2, 4), np.float32), first
    for t in range(4):
        h = step(given, h)
        np.testing.assert_allclose(fed.rnn_output[:, t], h @ OUT, rtol=1e-4, atol=1e-5)
        given = np.tanh(h @ OUT)[:, :3]


def test_losses_of_sequences() -> None:
    logits = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    targets, weights = np.array([[0, 1, 3], [2, 2, 0]]), np.array([[1.0, 1, 0], [0.5, 0, 0]])
    each = -np.log(np.take_along_axis(softmax(logits), targets[..., None], -1))[..., 0] * weights
    w = tf.constant(weights, tf.float32)
    loss = lambda *flags, **more: s2s.sequence_loss(logits, targets, w, *flags, **more)
    found = run([
        loss(), loss(True, False), loss(False, True), loss(False, False),
        loss(False, False, sum_over_timesteps=True, sum_over_batch=True),
        loss(False, False, sum_over_batch=True),
        loss(False, False, softmax_loss_function=lambda labels, logits: logits[:, 0]),
    ])  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = [
            each.sum() / weights.sum(), each.sum(1) / weights.sum(1),
            np.nan_to_num(each.sum(0) / weights.sum(0)), each, each.sum() / 3,
            np.nan_to_num(each.sum(0) / (weights != 0).sum(0)), logits[..., 0] * weights,
        ]  # fmt: skip
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_is_refused() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(4)
    state = tf.zeros([2, 4])
    with pytest.raises(NotImplementedError, match="length_penalty_weight"):
        s2s.BeamSearchDecoder(cell, TABLE, [0], END, state, 2, coverage_penalty_weight=0.1)
    with pytest.raises(TypeError, match="type Decoder"):
        s2s.dynamic_decode(cell)
    with pytest.raises(ValueError, match="must be a vector"):
        s2s.GreedyEmbeddingHelper(tf.constant(TABLE), 0, END)
    with pytest.raises(ValueError, match="Targets must be"):
        s2s.sequence_loss(tf.zeros([2, 3, 4]), tf.zeros([2], tf.int32), tf.ones([2, 3]))
    with pytest.raises(AttributeError, match="BahdanauMonotonicAttention"):
        s2s.BahdanauMonotonicAttention
