"""Losses of sampled classes, and what is known of the classes that are drawn.

The losses and the weighted sums of their gradients are TensorFlow 2.21's, for candidates that are
given; expected counts without repetition are those of its samplers' documentation.
"""

import numpy as np
import pytest

import treadle as td

WEIGHTS = (np.arange(12).reshape(6, 2) / 10 - 0.5).astype(np.float32)
BIASES = (np.arange(6) / 7).astype(np.float32)
INPUTS = np.array([[1, 2], [-1, 0.5], [0.3, -0.7]], np.float32)
ONE = (
    np.array([[1], [4], [0]]),
    (np.array([3, 1, 5]), np.float32([[0.4], [0.2], [0.9]]), np.float32([0.3, 0.4, 0.1])),
)
TWO = (
    np.array([[1, 2], [4, 0], [0, 5]]),
    (
        np.array([3, 1, 5]), np.float32([[0.4, 0.5], [0.2, 0.9], [0.9, 0.1]]),
        np.float32([0.3, 0.4, 0.1]),
    ),
)  # fmt: skip
# Loss, number of true classes, whether hits are removed: losses; each gradient's sum, weighted by
# 1, 2, 3, ...: of the weights, the biases and the inputs.
FACTS = [
    ("nce_loss", ONE, False, [8.388708, 6.312668, 6.505491], [41.035246, 29.873301, 12.266822]),
    ("nce_loss", ONE, True, [7.499949, 6.312668, 6.505491], [34.55807, 28.695633, 12.679006]),
    ("nce_loss", TWO, False, [9.355022, 8.066648, 8.058763], [45.254557, 37.231453, 13.068633]),
    ("nce_loss", TWO, True, [8.466264, 8.066648, 5.249736], [43.570035, 30.415367, 7.748425]),
    ("sampled_softmax_loss", ONE, False, [4.453999, 1.426945, 2.962282],
     [19.491091, 7.672493, 10.822709]),
    ("sampled_softmax_loss", ONE, True, [4.442298, 1.426945, 2.962282],
     [19.757299, 7.716861, 10.849329]),
    ("sampled_softmax_loss", TWO, False, [4.213512, 2.308656, 2.199476],
     [15.994254, 6.885206, 8.51439]),
    ("sampled_softmax_loss", TWO, True, [4.202038, 2.308656, 1.706527],
     [16.602987, 6.488882, 7.573849]),
]  # fmt: skip


def loss_and_sums(name, labels, candidates, removes):
    leaves = [td.constant(a) for a in (WEIGHTS, BIASES, INPUTS)]
    with td.GradientTape() as tape:
        tape.watch(leaves)
        w, b, x = leaves
        loss = getattr(td.nn, name)(
            w, b, labels, x, 3, 6, labels.shape[1], candidates, remove_accidental_hits=removes
        )
    sums = []
    for g in tape.gradient(loss, leaves):
        flat = td.reshape(td.convert_to_tensor(g), [-1])
        sums.append(td.reduce_sum(flat * td.range(1.0, flat.shape[0] + 1.0)))
    return loss, td.stack(sums)


@pytest.mark.parametrize(("name", "case", "removes", "losses", "sums"), FACTS)
def test_losses_and_gradients(name, case, removes, losses, sums):
    for run in (loss_and_sums, td.function(loss_and_sums)):
        found = run(name, case[0], case[1], removes)
        np.testing.assert_allclose(found[0], losses, rtol=2e-6)
        np.testing.assert_allclose(found[1], sums, rtol=2e-5)


def test_losses_draw_their_own_classes():
    td.random.set_seed(3)
    labels, x = td.constant([1, 4, 0]), td.constant(INPUTS)

    @td.function
    def losses(labels, x):
        return [
            f(WEIGHTS, BIASES, labels, x, 3, 6)
            for f in (td.nn.nce_loss, td.nn.sampled_softmax_loss)
        ]

    first, second = losses(labels, x), losses(labels, x)
    for a, b in zip(first, second, strict=True):
        assert a.shape == (3,) and np.isfinite(a).all() and not np.array_equal(a, b)


def test_the_draws_of_all_samplers():
    td.random.set_seed(5)
    r, n, labels = td.random, 5000, [[0], [3]]
    rank = np.arange(4.0)
    shares = {
        "log_uniform": np.log((rank + 2) / (rank + 1)) / np.log(5.0),
        "uniform": np.full(4, 0.25),
        "fixed": np.array([0.0, 1, 4, 9]) / 14,
    }
    drawn = {
        "log_uniform": r.log_uniform_candidate_sampler(labels, 1, n, False, 4),
        "uniform": r.uniform_candidate_sampler(labels, 1, n, False, 4),
        "fixed": r.fixed_unigram_candidate_sampler(
            labels, 1, n, False, 4, unigrams=[1, 2, 3], num_reserved_ids=1, distortion=2.0
        ),
    }
    for kind, (classes, true, expected) in drawn.items():
        found = np.bincount(classes.numpy(), minlength=4) / n
        # Five standard deviations of a share of 5000 draws.
        np.testing.assert_allclose(found, shares[kind], atol=5 * np.sqrt(0.25 / n))
        np.testing.assert_allclose(true[:, 0], shares[kind][[0, 3]] * n, rtol=1e-5)
        np.testing.assert_allclose(expected, shares[kind][classes.numpy()] * n, rtol=1e-5)
    classes, true, expected = r.all_candidate_sampler(labels, 1, 4, True)
    assert classes.numpy().tolist() == [0, 1, 2, 3]
    assert true.numpy().tolist() == [[1.0], [1.0]] and expected.numpy().tolist() == [1.0] * 4


def test_different_classes_come_up_as_in_repeated_draws():
    """Draws are repeated until three classes are found: the shares of first classes are those
    of the distribution, and counts are ``1 - (1 - share) ** tries``."""
    td.random.set_seed(7)
    shares = np.array([0.5, 0.25, 0.15, 0.1])

    @td.function
    def draw():
        return td.random.fixed_unigram_candidate_sampler(
            [[0], [3]], 1, 3, True, 4, unigrams=list(shares)
        )

    missing, all_tries = [], []
    for _ in range(600):
        classes, true, expected = (x.numpy() for x in draw())
        assert len(set(classes.tolist())) == 3
        rarest = shares[classes].min()  # 0.5 ** tries is soon too small for 1 - it in float32
        rest = 1.0 - float(expected[shares[classes].argmin()])
        tries = round(np.log(rest) / np.log1p(-rarest))
        np.testing.assert_allclose(expected, 1 - (1 - shares[classes]) ** tries, rtol=1e-5)
        np.testing.assert_allclose(true[:, 0], 1 - np.power([0.5, 0.9], tries), rtol=1e-5)
        missing.append(6 - classes.sum())
        all_tries.append(tries)
    rng = np.random.default_rng(0)
    reference = [repeated(rng, shares) for _ in range(600)]
    for found, wanted in zip((missing, all_tries), np.transpose(reference), strict=True):
        # Both are means of 600; five of their standard errors, which add up.
        error = 5 * np.std(wanted) * np.sqrt(2 / 600)
        assert abs(np.mean(found) - np.mean(wanted)) < error


def repeated(rng, shares):
    seen, tries = set(), 0
    while len(seen) < 3:
        seen.add(int(rng.choice(4, p=shares)))
        tries += 1
    return 6 - sum(seen), tries


def test_accidental_hits():
    hits = td.nn.compute_accidental_hits([[3, 1], [0, 5]], td.constant([5, 1, 3], td.int64), 2)
    places = sorted(zip(hits.indices.numpy().tolist(), hits.ids.numpy().tolist(), strict=True))
    assert places == [(0, 1), (0, 2), (1, 0)] and hits.indices.dtype is td.int32
    assert hits.weights.numpy().tolist() == [np.finfo(np.float32).min] * 3


def test_what_samplers_refuse():
    r = td.random
    for call, text in (
        (lambda: r.uniform_candidate_sampler([[0]], 1, 5, True, 4), "range is too small"),
        (lambda: r.uniform_candidate_sampler([0], 1, 2, True, 4), r"must be \[batch, 1\]"),
        (lambda: r.fixed_unigram_candidate_sampler([[0]], 1, 2, True, 4), "Must provide either"),
        (lambda: r.fixed_unigram_candidate_sampler([[0]], 1, 2, True, 4, unigrams=[1.0]),
         "range_max is 4 but there are 1"),
    ):  # fmt: skip
        with pytest.raises(td.errors.InvalidArgumentError, match=text):
            call()
    with pytest.raises(td.errors.NotFoundError, match="no/file; No such file"):
        r.fixed_unigram_candidate_sampler([[0]], 1, 2, True, 4, "no/file")
