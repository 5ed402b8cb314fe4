"""Philox and the random functions: TensorFlow's numbers, streams, seeds, distributions."""

import numpy as np
import pytest
from scipy import special, stats

import treadle as td
from tests.ops.lowered import check_lowering
from treadle.core.devices import HOST
from treadle.ops.random.arrays import scramble
from treadle.ops.random.philox import philox
from treadle.ops.random.state import streams

SEEDED = scramble(np.array([1, 2]))
FLOATS = ("float16", "float32", "float64")


def test_philox_known_answer():
    """The vectors of the Random123 distribution."""
    ones = 0xFFFFFFFF
    cases = [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones,) * 4, (ones, ones), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ]  # fmt: skip
    for counter, key, expected in cases:
        words = philox(tuple(np.array([c], np.uint64) for c in counter), key)
        assert tuple(int(w[0]) for w in words) == expected


def test_stateless_numbers_are_tensorflows():
    """Recorded from TensorFlow 2.21: seed [1, 2]."""
    u = td.random.stateless_uniform
    np.testing.assert_array_equal(
        u([5], [1, 2]),
        np.array([0.8440604, 0.19204533, 0.9962232, 0.1603874, 0.27199018], "f"),
    )
    np.testing.assert_allclose(
        u([3], [1, 2], dtype="float64"), [0.75248375, 0.96978577, 0.17592234], atol=5e-9
    )
    np.testing.assert_array_equal(u([5], [1, 2], 0, 10, "int32"), [0, 9, 4, 9, 7])
    np.testing.assert_array_equal(
        u([5], [1, 2], None, None, "uint32"),
        [1105988140, 1738052849, 3959391294, 370444179, 10670227],
    )
    np.testing.assert_array_equal(
        u([5], [1, 2], 0, 10**12, "int64"),
        [146280614444, 637757961278, 318164050067, 516007002203, 327646026923],
    )
    np.testing.assert_allclose(
        td.random.stateless_normal([5], [1, 2]),
        [0.5441101, 0.20738031, 0.07356432, 0.04643455, -1.3015898], rtol=1e-6,
    )  # fmt: skip
    np.testing.assert_allclose(
        td.random.stateless_normal([4], [1, 2], dtype="float64"),
        [-0.14231181, 0.74060725, -1.46904767, 1.14774745], atol=5e-9,
    )  # fmt: skip


def test_generator_numbers_are_tensorflows():
    """Recorded from TensorFlow 2.21."""
    g = td.random.Generator.from_seed(1234)
    np.testing.assert_allclose(g.uniform([3]), [0.3581475, 0.11322761, 0.56670904], rtol=1e-7)
    np.testing.assert_array_equal(g.state.numpy(), [2002, 0, 0])
    g.normal([5])
    np.testing.assert_array_equal(g.state.numpy(), [3282, 0, 0])
    g.reset_from_seed(1234)
    np.testing.assert_allclose(
        g.normal([5]), [0.9356609, 1.0854305, -0.93788373, -0.5061547, 1.3169702], rtol=2e-6
    )
    g.uniform([3], dtype="float64")
    bits = g.uniform_full_int([3], dtype="uint32")
    np.testing.assert_array_equal(bits, [1342172476, 413305809, 2117449150])
    np.testing.assert_array_equal(g.uniform([5], 0, 10, dtype="int32"), [6, 1, 9, 7, 8])
    g.reset_from_seed(7)
    keys = [int(x.key) for x in g.split(2)]
    assert keys == [784853886890614065, 8349095772848317176]
    g.reset_from_seed(3)
    before = np.array(g.state)
    np.testing.assert_array_equal(g.skip(10), before)
    expected = [[5985134477901094273, 8997524118787730826], [0, 0]]
    np.testing.assert_array_equal(g.make_seeds(2), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["random_uniform", "random_normal", "random_truncated_normal"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4)])
def test_float_lowering(name, dtype, shape):
    tolerance = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    check_lowering(name, SEEDED, shape=shape, dtype=dtype, tolerance=tolerance)


def test_integer_lowering():
    for dtype in ("uint32", "uint64"):
        check_lowering("random_bits", SEEDED, shape=(3, 5), dtype=dtype)
    for dtype in ("int32", "int64", "uint32", "uint64"):
        low, high = np.array(3, dtype), np.array(1000, dtype)
        check_lowering("random_uniform_int", SEEDED, low, high, shape=(3, 5))
    check_lowering("random_uniform_int", SEEDED, np.int32(-7), np.int32(2**31 - 1), shape=(9,))
    check_lowering("random_skip", SEEDED, shape=(3, 5))
    check_lowering("random_seed_state", np.array([-1, 2**40]))
    check_lowering("random_seed_state", np.array([-1, 7], np.int32))


def test_the_counter_carries_into_its_high_half():
    state = np.array([-2, 5, 7])
    words = check_lowering("random_bits", state, shape=(13,), dtype="uint32")
    after = check_lowering("random_bits", np.array([0, 6, 7]), shape=(5,), dtype="uint32")
    np.testing.assert_array_equal(words[8:], after)


def test_uniform_bits_are_equal_in_compiled_code():
    from tests.ops.lowered import run_lowered
    from treadle.ops.registry import OPS

    for dtype in FLOATS:
        eager = OPS["random_uniform"].eager(SEEDED, shape=(101,), dtype=dtype)
        compiled = run_lowered("random_uniform", SEEDED, shape=(101,), dtype=dtype)
        np.testing.assert_array_equal(compiled, eager)


def test_distributions():
    td.random.set_seed(11)
    count = 20000
    assert stats.kstest(td.random.uniform([count]).numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(td.random.normal([count], 2, 3).numpy(), stats.norm(2, 3).cdf).pvalue > 1e-3
    cut = td.random.truncated_normal([count], dtype="float64").numpy()
    assert stats.kstest(cut, "truncnorm", (-2, 2)).pvalue > 1e-3
    dice = np.bincount(td.random.uniform([count], 1, 7, "int32").numpy(), minlength=7)
    assert dice[0] == 0 and stats.chisquare(dice[1:]).pvalue > 1e-3
    logits = np.log([[0.1, 0.2, 0.7]]).astype("f")
    drawn = np.bincount(td.random.categorical(logits, count).numpy()[0])
    assert stats.chisquare(drawn, np.array([0.1, 0.2, 0.7]) * count).pvalue > 1e-3


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-14)])
def test_truncated_normal_is_the_inverse_distribution(dtype, tolerance):
    u = td.random.stateless_uniform([5000], [3, 4], dtype=dtype).numpy().astype("float64")
    y = td.random.stateless_truncated_normal([5000], [3, 4], dtype=dtype).numpy()
    expected = np.sqrt(2) * special.erfinv((2 * u - 1) * special.erf(np.sqrt(2)))
    np.testing.assert_allclose(y, expected, atol=tolerance)


def test_uniform_limits():
    x = td.random.uniform([1000], -3.0, 5.0)
    assert -3.0 <= x.numpy().min() and x.numpy().max() < 5.0
    y = td.random.uniform([3], [0.0, 10.0, 20.0], [1.0, 11.0, 21.0]).numpy()
    assert [int(v) // 10 for v in y] == [0, 1, 2]
    with pytest.raises(ValueError, match="maxval"):
        td.random.uniform([2], dtype="int32")
    with pytest.raises(td.errors.InvalidArgumentError, match=r"minval must be below maxval"):
        td.random.uniform([2], 5, 5, "int32")
    with pytest.raises(ValueError, match="random integers are int32"):
        td.random.uniform([2], 0, 5, "int16")


def draws():
    return [
        td.random.uniform([3]), td.random.normal([2, 2]), td.random.normal([3], seed=4),
        td.random.uniform([2], 0, 100, "int32", seed=4), td.random.truncated_normal([5]),
        td.random.shuffle(td.range(6)), td.random.categorical([[0.0, 1.0]], 4),
        td.nn.dropout(td.ones([8]), 0.5),
    ]  # fmt: skip


def values(tensors):
    return [t.numpy().tolist() for t in tensors]


def test_a_seed_starts_all_streams_anew():
    td.random.set_seed(5)
    first, second = values(draws()), values(draws())
    assert first != second
    td.random.set_seed(5)
    assert values(draws()) == first and values(draws()) == second
    td.random.set_seed(6)
    assert values(draws()) != first


def test_a_function_gives_the_eager_numbers():
    f = td.function(draws, autograph=False)
    td.random.set_seed(5)
    eager = [values(draws()) for _ in range(3)]
    td.random.set_seed(5)
    traced = [values(f()) for _ in range(3)]
    for a, b in zip(eager, traced, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
    td.random.set_seed(5)
    again = values(f())
    assert again == traced[0], "set_seed before a call decides its numbers"
    assert f.experimental_get_tracing_count() == 1


def test_op_seeds_have_their_own_streams():
    td.random.set_seed(1)
    a = td.random.uniform([4], seed=9).numpy()
    td.random.set_seed(1)
    td.random.uniform([100])  # does not move the stream of seed 9
    np.testing.assert_array_equal(td.random.uniform([4], seed=9), a)
    assert not np.array_equal(td.random.uniform([4], seed=9), a)
    td.random.set_seed(2)
    assert not np.array_equal(td.random.uniform([4], seed=9), a)


def test_programs_see_nothing_of_the_variables_of_streams():
    made = []

    def creator(make, **given):
        made.append(given["name"])
        return make(**given)

    with td.variable_creator_scope(creator), td.name_scope("outer"):
        td.Variable(1.0, name="own")
        td.random.uniform([2], seed=816)  # a stream that no other test has
        data = td.data.Dataset.range(2).map(lambda x: td.random.uniform([], seed=816))
        list(data)
    assert made == ["own"]
    assert streams.made[816, HOST].name == "random_state:0"


def test_symbolic_shapes():
    @td.function(autograph=False, input_signature=[td.TensorSpec([None, 2])])
    def noise(x):
        return td.random.uniform(td.shape(x)), td.random.normal([td.shape(x)[0], 3])

    td.random.set_seed(8)
    u, n = noise(np.zeros((4, 2), "f"))
    td.random.set_seed(8)
    np.testing.assert_array_equal(u, td.random.uniform([4, 2]))
    np.testing.assert_allclose(n, td.random.normal([4, 3]), rtol=1e-6)
    assert noise(np.zeros((7, 2), "f"))[1].shape == (7, 3)


def test_generators_in_functions():
    g = td.random.Generator.from_seed(3)
    f = td.function(lambda: g.normal([3]), autograph=False)
    a, b = f().numpy(), f().numpy()
    g.reset_from_seed(3)
    np.testing.assert_allclose(g.normal([3]), a, rtol=1e-6)
    np.testing.assert_allclose(g.normal([3]), b, rtol=1e-6)


def test_shuffle_permutes_rows():
    x = np.arange(40).reshape(20, 2)
    y = td.random.shuffle(x).numpy()
    assert sorted(map(tuple, y)) == sorted(map(tuple, x)) and not np.array_equal(x, y)
    with pytest.raises(td.errors.InvalidArgumentError, match="scalar"):
        td.random.shuffle(3)


def test_gradients_flow_to_the_parameters():
    scale = td.Variable(2.0)
    with td.GradientTape() as tape:
        td.random.set_seed(0)
        y = td.reduce_sum(td.random.normal([5], stddev=scale))
    td.random.set_seed(0)
    expected = td.reduce_sum(td.random.normal([5]))
    np.testing.assert_allclose(tape.gradient(y, scale), expected, rtol=1e-6)


def test_split_makes_different_seeds():
    seeds = td.random.split([1, 2], 3).numpy()
    assert seeds.shape == (3, 2) and seeds.dtype == np.int32 and len(set(map(tuple, seeds))) == 3


def test_wrong_seeds_and_states():
    with pytest.raises(TypeError, match="two int32 or int64"):
        td.random.stateless_uniform([2], [1, 2, 3])
    with pytest.raises(ValueError, match="3 elements"):
        td.random.Generator.from_state([1, 2])
    with pytest.raises(ValueError, match="threefry"):
        td.random.Generator.from_seed(1, alg="threefry")


def test_streams_advance_inside_loops_and_branches():
    def walk(steps):
        return td.while_loop(
            lambda i, x: i < steps,
            lambda i, x: (i + 1, x + td.cond(i % 2 == 0, lambda: td.random.uniform([2]), jump)),
            (td.constant(0), td.zeros([2])),
        )[1]

    def jump():
        return td.random.normal([2], 10.0)

    td.random.set_seed(4)
    eager = walk(td.constant(5)).numpy()
    program = td.function(walk, autograph=False)
    td.random.set_seed(4)
    np.testing.assert_allclose(program(td.constant(5)), eager, rtol=1e-6)
    after = td.random.uniform([1]).numpy()
    td.random.set_seed(4)
    walk(td.constant(5))
    np.testing.assert_array_equal(td.random.uniform([1]), after)


def test_threads_do_not_share_numbers():
    from concurrent.futures import ThreadPoolExecutor

    td.random.set_seed(9)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: td.random.uniform([8]).numpy().tobytes(), range(64)))
    td.random.set_seed(9)
    expected = {td.random.uniform([8]).numpy().tobytes() for _ in range(64)}
    assert set(parts) == expected
