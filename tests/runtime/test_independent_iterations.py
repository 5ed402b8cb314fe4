"""Loops that change an array in place and read it: in vectors where no iteration needs another."""

import re

import numpy as np
import pytest

import treadle as td
from tests.runtime.in_place_loops import difference, same_bits
from treadle.core.switches import disabled

MARK = "llvm.loop.parallel_accesses"


def shortest_paths(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def shortest_paths_if(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


def downwards(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n - 1, -1, -1):
            for j in range(n - 1, -1, -1):
                d[i, j] = d[i, j] + d[k, j] * d[i, k]


def read_after(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                old = d[i, j]
                d[i, j] = old + 1.0
                d[i, j] = old * d[i, k]


def elimination(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            d[i, k] = d[i, k] / (d[k, k] + 20.0)
            for j in range(k + 1, n):
                d[i, j] -= d[i, k] * d[k, j]


def columns(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[j, i] = 0.5 * d[j, i] + 0.25 * d[j, k]


def scaled_row(d):
    n = d.shape[0]
    for i in range(n):
        for j in range(n):
            d[i, j] = d[i, j] / (d[i, i] + 20.0)


def swapped(d):
    n = d.shape[0]
    for i in range(n):
        for j in range(i):
            old = d[i, j]
            d[i, j] = d[j, i]
            d[j, i] = old


def flattened(x):
    n = 23
    for k in range(n):
        for i in range(n):
            for j in range(n):
                x[i * n + j] = min(x[i * n + j], x[i * n + k] + x[k * n + j])


def every_other(x):
    n = x.shape[0] // 2
    for j in range(n):
        x[2 * j] = x[2 * j] + 3.0 * x[2 * j + 1]


def halves(x):
    n = x.shape[0] // 2
    for j in range(n):
        x[j] = x[j] + 3.0 * x[n + j]


def prefix_sums(x):
    for j in range(1, x.shape[0]):
        x[j] += x[j - 1]


def suffix_sums(x):
    for j in range(x.shape[0] - 2, -1, -1):
        x[j] += x[j + 1]


def shifted(x):
    for j in range(x.shape[0] - 1):
        x[j + 1] = x[j]


def reversed_in_place(x):
    n = x.shape[0]
    for j in range(n):
        x[j] = x[n - 1 - j] + 1.0


def one_element(x):
    for j in range(x.shape[0]):
        x[3] = 0.5 * x[3] + x[j]


def gauss_seidel(d):
    n = d.shape[0]
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            d[i, j] = 0.25 * (d[i - 1, j] + d[i + 1, j] + d[i, j - 1] + d[i, j + 1])


def knapsack(x):
    for weight in range(1, 6):
        for j in range(x.shape[0] - 1, weight - 1, -1):
            x[j] = max(x[j], x[j - weight] + weight)


SQUARE = [shortest_paths, shortest_paths_if, downwards, elimination, scaled_row]
LINE = [flattened, halves]
SPREAD = [columns, swapped, read_after]
SUMS = [prefix_sums, suffix_sums, one_element]
DEPENDENT = [*SUMS, shifted, reversed_in_place, knapsack, every_other]


def square(n=23, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n))


def line(n=23 * 23, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def text_of(jitted):
    return jitted.concrete_functions[-1].executable.stages["llvm"]


def check(program, array):
    """The jitted program, which gives NumPy's bits, whatever is switched on."""
    want = array.copy()
    with np.errstate(all="ignore"):
        program(want)
    for switch in ("independent", None):
        got, jitted = array.copy(), td.jit(program)
        with disabled("contraction", *[switch] if switch else []):  # rounds once less
            jitted(got)
            assert same_bits(got, want)
            assert switch is None or MARK not in text_of(jitted)
    return jitted


@pytest.mark.parametrize("program", SQUARE, ids=lambda p: p.__name__)
def test_iterations_that_share_one_element_at_most_are_marked(program):
    assert MARK in text_of(check(program, square()))


@pytest.mark.parametrize("program", SQUARE, ids=lambda p: p.__name__)
def test_all_accesses_of_a_marked_loop_are_of_its_group(program):
    """LLVM compares addresses, and gives up, if there is a single other one."""
    text = text_of(check(program, square()))
    for branch in re.findall(r"br label %head(\d+), !llvm.loop", text):
        loop = text[text.index(f"\nhead{branch}:") : text.index(f"\nlatch{branch}:")]
        accesses = re.findall(r"^ .*(?:= load|store) .*$", loop, re.MULTILINE)
        assert accesses and all("!llvm.access.group" in line for line in accesses)


@pytest.mark.parametrize("program", LINE, ids=lambda p: p.__name__)
def test_the_same_in_arrays_of_one_axis(program):
    assert MARK in text_of(check(program, line()))


@pytest.mark.parametrize("program", DEPENDENT, ids=lambda p: p.__name__)
def test_iterations_that_need_others_stay_in_order(program):
    check(program, line(40))


@pytest.mark.parametrize(
    "program", [prefix_sums, suffix_sums, one_element], ids=lambda p: p.__name__
)
def test_iterations_that_always_need_the_one_before_are_not_marked(program):
    assert MARK not in text_of(check(program, line(40)))


@pytest.mark.parametrize("program", [gauss_seidel, *SPREAD], ids=lambda p: p.__name__)
def test_loops_that_vectors_gain_nothing_in(program):
    assert MARK not in text_of(check(program, square()))


@pytest.mark.parametrize("program", [shortest_paths, shortest_paths_if, downwards, scaled_row])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 0.0])
def test_special_numbers_at_the_element_that_all_read(program, special):
    d = square(11)
    np.fill_diagonal(d, special)
    check(program, d)
    d = np.where(square(11, 1) > 0.8, special, square(11, 2))
    check(program, d)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.int16, np.uint8, np.float16])
def test_other_dtypes(dtype):
    d = np.random.default_rng(0).integers(0, 90, (19, 19)).astype(dtype)
    check(shortest_paths, d)
    check(shortest_paths_if, d)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 33, 64, 65])
def test_rows_of_any_length(n):
    check(shortest_paths, square(n))
    check(downwards, square(n) * 0.1)


def along_a_row(x, numbers):
    i, k, first, last = numbers[0], numbers[1], numbers[2], numbers[3]
    for j in range(first, last):
        x[i, j] = 0.5 * x[i, j] + x[i, k] - x[k, j]
    return x


@pytest.mark.parametrize("i", [0, 3, -1, -2])
@pytest.mark.parametrize("k", [0, 2, 3, 8, -1, -9, 9])
@pytest.mark.parametrize("span", [(0, 9), (2, 3), (3, 9), (-9, 0), (-4, 4), (5, 5), (7, 2)])
def test_numbers_that_only_a_call_knows(i, k, span):
    jitted, d, numbers = _ALONG, square(9), np.array([i, k, *span])
    want, got = d.copy(), d.copy()
    try:
        along_a_row(want, numbers)
    except IndexError:
        with pytest.raises((IndexError, td.errors.InvalidArgumentError)):
            jitted(got, numbers)
        return
    np.testing.assert_array_equal(jitted(got, numbers), want)
    np.testing.assert_array_equal(got, want)


_ALONG = td.jit(along_a_row)


def test_the_program_whose_numbers_only_a_call_knows_is_marked():
    _ALONG(square(9), np.array([1, 2, 0, 9]))
    assert MARK in text_of(_ALONG)


def apart(x, numbers):
    a, b, step, count = numbers[0], numbers[1], numbers[2], numbers[3]
    for j in range(count):
        x[a + step * j] = 2.0 * x[b + step * j] - 1.0


@pytest.mark.parametrize("step", [1, 2, -1, -3, 0])
@pytest.mark.parametrize("distance", [0, 1, -1, 2, 5, -5, 16, 20, -20])
def test_distances_and_steps_that_only_a_call_knows(step, distance):
    x = line(200)
    for count in (1, 4, 17, 20):
        want, got = x.copy(), x.copy()
        numbers = np.array([90, 90 + distance, step, count])
        apart(want, numbers)
        _APART(got, numbers)
        np.testing.assert_array_equal(got, want)


_APART = td.jit(apart)


def test_arguments_that_share_memory():
    def from_other(x, y):
        for j in range(y.shape[0]):
            x[j] = x[j] + 2.0 * y[j]

    jitted, memory = td.jit(from_other), line(60)
    for x, y in [(slice(1, 41), slice(0, 40)), (slice(0, 40), slice(1, 41)), (slice(0, 40),) * 2]:
        want, got = memory.copy(), memory.copy()
        from_other(want[x], want[y])
        jitted(got[x], got[y])
        np.testing.assert_array_equal(got, want)


def test_loops_longer_than_a_strip():
    """The element that all iterations read is stored in one strip of many."""

    def scaled(x, numbers):
        k = numbers[0]
        for j in range(numbers[1]):
            x[j] = 0.5 * x[j] - x[k]

    jitted, x = td.jit(scaled), line(50_000)
    for k in (0, 1, 255, 256, 257, 30_000, 49_999, -1):
        want, got = x.copy(), x.copy()
        numbers = np.array([k, x.shape[0]])
        scaled(want, numbers)
        with disabled("contraction"):
            jitted(got, numbers)
        np.testing.assert_array_equal(got, want)
    assert MARK in text_of(jitted)


def test_numbers_of_32_bits():
    @td.function
    def scaled(x, k, first, last):
        for j in td.range(first, last):
            x[2 * j + 1] = x[2 * j + 1] + x[2 * j] * 0.5 + x[k]
        return x

    x = line(300)
    for k in (0, 1, 7, 298, 299):
        for first, last in ((0, 150), (0, 4), (3, 149), (4, 4)):
            want = x.copy()
            for j in range(first, last):
                want[2 * j + 1] = want[2 * j + 1] + want[2 * j] * 0.5 + want[k]
            got = scaled(td.constant(x), *map(np.int32, (k, first, last)))
            np.testing.assert_allclose(got, want, rtol=1e-15)


def test_sums_of_integers_beside_the_stores():
    def count(x):
        changed = 0
        for j in range(x.shape[0]):
            changed += j * 3
            x[j] = 1.5 - x[j]
        return changed

    x = line(333)
    want, got = x.copy(), x.copy()
    assert td.jit(count)(got) == count(want)
    np.testing.assert_array_equal(got, want)


def test_an_error_in_the_loop_comes_where_numpys_does():
    def checked(x, numbers):
        for j in range(x.shape[0]):
            x[j] = x[j] + x[numbers[0] + j]

    jitted = td.jit(checked)
    for k in (1, 39, 40, -41):
        with pytest.raises((IndexError, td.errors.InvalidArgumentError)):
            jitted(line(40), np.array([k]))


def test_counters_with_constant_limits_are_known():
    """So positions that only a call knows are checked before such loops, too."""

    def gather(x, numbers):
        k = numbers[0]
        for j in range(100):
            x[j] = x[j] + x[j + k]

    jitted = td.jit(gather)
    for k in (0, 1, 100, -100, -20):
        want, got = line(200), line(200)
        gather(want, np.array([k]))
        jitted(got, np.array([k]))
        np.testing.assert_array_equal(got, want)
    assert MARK in text_of(jitted)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed):
    assert difference(seed) is None
