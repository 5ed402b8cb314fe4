"""Gamma, Poisson, binomial and truncated normal numbers: their distributions, gradients, states."""

import warnings

import numpy as np
import pytest
from scipy import special, stats

import treadle as td
from treadle.ops.random.families import BINOMIAL, GAMMA, POISSON
from treadle.ops.random.orders import ORDER
from treadle.ops.random.permutations import SHUFFLED
from treadle.ops.registry import run

COUNT = 20_000
# How far the empirical distribution of COUNT numbers is from the true one, at most, in all but one
# of a million experiments (Massart); the seeds below are fixed.
FARTHEST = np.sqrt(np.log(2e6) / (2 * COUNT))


def distance(numbers, distribution):
    return stats.kstest(np.asarray(numbers), distribution.cdf).statistic


def distance_of_counts(numbers, distribution):
    """The same for whole numbers, whose distribution has steps."""
    values, counts = np.unique(np.asarray(numbers), return_counts=True)
    return np.abs(np.cumsum(counts) / COUNT - distribution.cdf(values)).max()


@pytest.mark.parametrize("alpha", [0.1, 0.9, 1.0, 1.5, 30.0, 1e5])
def test_gamma_numbers_are_gamma_distributed(alpha):
    numbers = td.random.stateless_gamma([COUNT], [1, 2], alpha, 2.0, td.float64)
    assert distance(numbers, stats.gamma(alpha, scale=0.5)) < FARTHEST
    td.random.set_seed(3)
    drawn = td.random.gamma([COUNT], alpha, dtype=td.float64)
    assert distance(drawn, stats.gamma(alpha)) < FARTHEST


@pytest.mark.parametrize("rate", [0.2, 9.0, 11.0, 400.0])
def test_counts_are_poisson_distributed(rate):
    numbers = td.random.stateless_poisson([COUNT], [1, 2], rate)
    assert distance_of_counts(numbers, stats.poisson(rate)) < FARTHEST
    td.random.set_seed(4)
    assert distance_of_counts(td.random.poisson([COUNT], rate), stats.poisson(rate)) < FARTHEST


@pytest.mark.parametrize(
    ("count", "prob"), [(5, 0.3), (40, 0.1), (40, 0.4), (1000, 0.5), (300, 0.9), (9, 0.8)]
)
def test_successes_are_binomially_distributed(count, prob):
    numbers = td.random.stateless_binomial([COUNT], [5, 2], float(count), prob)
    assert distance_of_counts(numbers, stats.binom(count, np.float32(prob))) < FARTHEST
    generator = td.random.Generator.from_seed(8)
    drawn = generator.binomial([COUNT], float(count), prob)
    assert distance_of_counts(drawn, stats.binom(count, np.float32(prob))) < FARTHEST


LIMITS = [
    (-2.0, 2.0), (-1.0, 0.5), (1.0, 1.5), (3.0, np.inf), (-np.inf, -8.0), (6.0, 6.5), (35.0, 36.0),
    (36.9, 37.2), (45.0, np.inf), (-60.0, -59.9), (-np.inf, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), LIMITS)
def test_normal_numbers_between_limits(low, high):
    """Against the distribution of what the logarithms of normal probabilities give."""
    mean, stddev = 3.0, 2.0
    limits = [np.float64(mean + stddev * a) for a in (low, high)]
    numbers = td.random.stateless_parameterized_truncated_normal(
        [COUNT], [1, 2], np.float64(mean), np.float64(stddev), *limits
    ).numpy()
    assert numbers.min() >= limits[0] and numbers.max() <= limits[1]
    z = (numbers - mean) / stddev
    if low > 0:  # in the tail on the left there are digits
        z, low, high = -z, -high, -low
    first, last = special.log_ndtr(low), special.log_ndtr(high)
    inside = np.exp(special.log_ndtr(np.sort(z)) - last)  # parts of the upper limit's probability
    below = (inside - np.exp(first - last)) / -np.expm1(first - last)
    steps = np.arange(1, COUNT + 1) / COUNT
    approximate = 2e-3 if last < -650 else 0.0
    assert np.abs(below - steps).max() < FARTHEST + approximate


def test_parameters_of_truncated_normals():
    between = td.random.stateless_parameterized_truncated_normal
    for wrong in ({"stddevs": 0.0}, {"minvals": 2.0}, {"minvals": -np.inf, "maxvals": np.inf}):
        with pytest.raises(td.errors.InvalidArgumentError):
            between([3], [1, 2], **wrong)
        with pytest.raises(td.errors.InvalidArgumentError, match="stddevs must be positive"):
            td.function(lambda w=wrong: between([3], [1, 2], **w))()
    means = td.constant([[0.0], [100.0]])
    numbers = between([1500, 2, 1], [1, 2], means, 1.0, means - 1.0, means + 2.0).numpy()
    assert np.abs(numbers.mean((0, 2)) - stats.truncnorm(-1, 2).mean() - [0, 100]).max() < 0.1


def test_gradients_of_gamma_numbers():
    """The number whose probability stays the same moves with alpha: against SciPy's quantiles."""
    alpha = np.array([0.05, 0.3, 1.0, 1.5, 4.0, 25.0, 300.0])
    with td.GradientTape() as tape:
        a = td.constant(alpha)
        tape.watch(a)
        x = td.random.stateless_gamma([40, 7], [3, 4], a, dtype=td.float64)
        total = td.reduce_sum(td.math.log(x))
    slope = tape.gradient(total, a).numpy()
    step = 1e-5 * alpha
    below, above = (special.gammainc(alpha, x.numpy()), special.gammaincc(alpha, x.numpy()))

    def moved(to):
        lower, upper = special.gammaincinv(to, below), special.gammainccinv(to, above)
        return np.log(np.where(below < 0.5, lower, upper))

    near = (moved(alpha + step) - moved(alpha - step)) / (2 * step)
    np.testing.assert_allclose(slope, near.sum(0), rtol=2e-6)


def test_second_derivative_of_gamma_numbers_is_refused():
    a = td.constant(2.0)
    with td.GradientTape() as outer:
        outer.watch(a)
        with td.GradientTape() as tape:
            tape.watch(a)
            x = td.random.stateless_gamma([3], [3, 4], a)
        slope = tape.gradient(x, a)
    with pytest.raises(td.errors.UnimplementedError, match="second derivative"):
        outer.gradient(slope, a)


def test_numbers_are_the_same_in_functions_and_for_open_sizes():
    signature = [td.TensorSpec([None]), td.TensorSpec([], td.int32)]

    @td.function(input_signature=signature)
    def drawn(p, count):
        counts = [count, td.shape(p)[0]]
        return (
            td.random.stateless_gamma(counts, [1, 2], p),
            td.random.stateless_poisson(counts, [1, 2], p * 9.0),
            td.random.stateless_binomial(counts, [1, 2], 30.0, p / 8.0),
            td.random.stateless_parameterized_truncated_normal(counts, [1, 2], p),
            td.random.experimental.stateless_shuffle(td.range(count), [3, 4]),
        )

    eager = drawn.python_function
    for sizes in ((1, 1), (3, 40), (2, 0)):
        p = np.linspace(0.2, 5.0, sizes[0]).astype("f")
        for a, b in zip(drawn(p, sizes[1]), eager(td.constant(p), sizes[1]), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(td.errors.InvalidArgumentError):
        td.function(lambda p: td.random.stateless_gamma([4, 3], [1, 2], p),
                    input_signature=signature[:1])(np.ones(2, "f"))  # fmt: skip


STREAMS = np.array([[[5, 0, 3], [-1, -1, 9]]])  # the second one's counter overflows
ODD = [np.nan, -1.0, 0.0, np.inf]


def drawings():
    """Calls of ops that routines compute, with parameters that are at limits, too."""
    alphas = np.array([*ODD, 0.2, 1.0, 2.5, 1e6])
    rates = np.array([*ODD[:3], 0.3, 9.99, 10.0, 80.0, 1e12])
    counts = np.array([4.0, 4.0, 4.0, 4.0, 0.0, 1000.0, 40.0, 40.0, 1e12])
    probs = np.array([*ODD, 0.5, 0.01, 0.9, 1.0, 0.3])
    for dtype in ("f4", "f8"):
        yield GAMMA, (alphas.astype(dtype),), {"shape": (20,)}
        for kind in ("int32", "int64", "float32", "float64"):
            yield POISSON, (rates.astype(dtype),), {"shape": (20,), "dtype": kind}
            both = counts.astype(dtype), probs.astype(dtype)
            yield BINOMIAL, both, {"shape": (20, 9), "dtype": kind}
    yield POISSON, (np.array([0, 3, 500], "i4"),), {"shape": (9, 5), "dtype": "int64"}
    yield ORDER, (), {"shape": (2, 37), "dtype": "int64"}
    yield ORDER, (), {"shape": (0,), "dtype": "int32"}


@pytest.mark.parametrize("streams", [STREAMS[0, 0], STREAMS[0], STREAMS, STREAMS[:0]])
def test_routines_draw_what_numpy_does(streams):
    for op, parameters, attrs in drawings():
        own = [np.broadcast_to(p, (*streams.shape[:-1], *p.shape)).copy() for p in parameters]
        found = np.asarray(run(op, *map(td.constant, (streams, *own)), **attrs))
        with np.errstate(all="ignore"):
            wanted = op.eager(streams, *own, **attrs)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        close = 1e-12 if found.dtype == np.float64 else 1e-6
        np.testing.assert_allclose(found, wanted, rtol=close, atol=1e-300)


@pytest.mark.parametrize("last", [0, 5, 200, 65535, 65536, 2**31 - 1])
def test_shuffled_positions_are_those_of_numpy(last):
    rng = np.random.default_rng(last)
    count = 30 if last > 100 else 1  # few positions are enciphered many times
    for dtype in (np.int32, np.uint32, np.int64, np.uint64)[: 4 if count > 1 else 1]:
        index = rng.integers(0, last, count, np.int64, endpoint=True).astype(dtype)
        seed, most = rng.integers(-(2**31), 2**31, (count, 3)), np.full(count, last, dtype)
        found = run(SHUFFLED, *map(td.constant, (index, seed, most)), rounds=6)
        np.testing.assert_array_equal(found, SHUFFLED.eager(index, seed, most, rounds=6))


def test_positions_beyond_the_last_one_are_refused():
    shuffled = td.random.experimental.index_shuffle
    for wrong in ([3, 10], [-1, 2]):
        for call in (shuffled, td.function(shuffled)):
            with pytest.raises(td.errors.InvalidArgumentError, match="from 0 to max_index"):
                call(td.constant(wrong), [1, 2], 9)


def test_gradients_of_truncated_normals():
    """Against differences: the seed keeps the uniform numbers."""
    between = td.random.stateless_parameterized_truncated_normal
    inf = np.inf
    given = np.array([
        [0.0, 1.0, -2.0, 1.5], [1.0, 2.0, 3.0, inf], [0.5, 0.3, -inf, 0.1], [0.0, 1.0, 38.0, 39.0],
        [0.0, 1.0, 40.0, inf], [-1.0, 0.5, 2.0, 2.1],
    ]).T  # fmt: skip

    def total(*parameters):
        return td.reduce_sum(between([30, 6], [1, 2], *parameters), 0)

    tensors = [td.constant(p) for p in given]
    with td.GradientTape() as tape:
        tape.watch(tensors)
        y = total(*tensors)
    for k, slope in enumerate(tape.gradient(y, tensors)):
        step = np.eye(4)[k][:, None] * 1e-6
        ahead, behind = (total(*map(td.constant, given + s)).numpy() for s in (step, -step))
        np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-4)


def test_numbers_depend_on_their_position_alone():
    """More numbers, or other parameters beside, change none of the others."""
    long = td.random.stateless_gamma([100], [1, 2], 2.0)
    np.testing.assert_array_equal(td.random.stateless_gamma([30], [1, 2], 2.0), long[:30])
    rates = td.constant([3.0, 50.0])
    both = td.random.stateless_poisson([9, 2], [1, 2], rates)
    np.testing.assert_array_equal(
        td.random.stateless_poisson([9, 2], [1, 2], [3.0, 7.0])[:, 0], both[:, 0]
    )


def test_streams_move_on_and_repeat():
    drawn = td.function(lambda: (td.random.gamma([3], 2.0), td.random.poisson([3], 5.0)))
    td.random.set_seed(1)
    first, again = drawn(), drawn()
    td.random.set_seed(1)
    eager = td.random.gamma([3], 2.0), td.random.poisson([3], 5.0)
    for a, b, c in zip(first, eager, again, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (np.asarray(a) != np.asarray(c)).any()


@pytest.mark.parametrize("last", [0, 1, 5, 6, 255, 256, 1000, 65535, 65536])
def test_shuffled_positions_are_a_permutation(last):
    count = min(last + 1, 3000)
    places = td.random.experimental.index_shuffle(td.range(count), [1, last], last).numpy()
    assert len(set(places.tolist())) == count and 0 <= places.min() and places.max() <= last
    if count == last + 1 and last > 100:
        assert (places != np.arange(count)).mean() > 0.9


def test_a_seed_for_each_position():
    seeds = td.constant([[1, 2], [3, 4]])
    shuffled = td.random.experimental.index_shuffle
    both = shuffled(td.constant([5, 6]), seeds, 99)
    single = [int(shuffled(k, seeds[i], 99)) for i, k in enumerate((5, 6))]
    assert both.numpy().tolist() == single
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = td.vectorized_map(lambda p: shuffled(p[0], p[1], 99), (td.constant([5, 6]), seeds))
    assert rows.numpy().tolist() == single


def test_algorithms():
    with pytest.raises(ValueError, match="use alg='philox'"):
        td.random.Generator.from_seed(1, alg="threefry")
    with pytest.raises(ValueError, match="unknown"):
        td.random.split([1, 2], alg="mersenne")
    with pytest.raises(TypeError):
        td.random.fold_in([1, 2], 3, alg=2.5)
    with pytest.raises(ValueError, match="copy_from or a state"):
        td.random.Generator()
    with pytest.raises(ValueError, match="3 elements"):
        td.random.Generator(state=[1, 2])
    with pytest.raises(ValueError, match="two words"):
        td.random.Generator.from_key_counter(1, [])
    for wrong in ({"index": 1.0}, {"seed": [1.0, 2.0, 3.0]}, {"rounds": 5}, {"seed": [1, 2]}):
        with pytest.raises(td.errors.InvalidArgumentError):
            td.random_index_shuffle(**{"index": 1, "seed": [1, 2, 3], "max_index": 4, **wrong})
    state = td.Variable([1, 2, 3], dtype=td.int64)
    generator = td.random.Generator(state=state)
    generator.uniform([2])
    assert state.numpy().tolist() == [513, 2, 3]


def test_parameters_of_other_dtypes():
    r = td.random
    for call in (
        lambda: r.stateless_poisson([2], [1, 2], td.constant(1j)),
        lambda: r.stateless_binomial([2], [1, 2], td.constant(3), td.constant(1)),
        lambda: r.stateless_poisson([2], [1, 2], 3.0, "uint8"),
        lambda: r.stateless_parameterized_truncated_normal([2], [1, 2], td.constant(1)),
    ):
        for attempt in (call, td.function(call)):
            with pytest.raises((TypeError, td.errors.InvalidArgumentError)):
                attempt()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uniform", "td.random.uniform_candidate_sampler"),
        ("log_uniform", "td.random.log_uniform_candidate_sampler"),
        ("learned_unigram", "td.random.fixed_unigram_candidate_sampler"),
    ],
)
def test_samplers_say_what_to_use(name, text):
    with pytest.raises(AttributeError, match=text):
        getattr(td.nn, f"{name}_candidate_sampler")
