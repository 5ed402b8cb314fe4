"""Random pipelines against the same steps on Python lists."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td

Dataset = td.data.Dataset
Numbers = list[int]


def plus_three(x: Any) -> Any:
    return x + 3


def is_even(x: Any) -> Any:
    return x % 2 == 0


def below_twenty(x: Any) -> Any:
    return x < 20


def running(state: Any, x: Any) -> Any:
    return state + x, state + x


def repeated(x: Any) -> Any:
    return Dataset.from_tensors(x).repeat(2)


# name -> (on the dataset, on the list), given a number from 1 to 6
STEPS: dict[str, tuple[Callable[[Any, int], Any], Callable[[Numbers, int], Numbers]]] = {
    "map": (lambda d, n: d.map(plus_three), lambda x, n: [v + 3 for v in x]),
    "parallel": (
        lambda d, n: d.map(plus_three, num_parallel_calls=2),
        lambda x, n: [v + 3 for v in x],
    ),
    "filter": (lambda d, n: d.filter(is_even), lambda x, n: [v for v in x if v % 2 == 0]),
    "take_while": (
        lambda d, n: d.take_while(below_twenty),
        lambda x, n: list(itertools.takewhile(lambda v: v < 20, x)),
    ),
    "scan": (
        lambda d, n: d.scan(np.int64(0), running),
        lambda x, n: list(itertools.accumulate(x)),
    ),
    "take": (lambda d, n: d.take(n), lambda x, n: x[:n]),
    "skip": (lambda d, n: d.skip(n), lambda x, n: x[n:]),
    "shard": (lambda d, n: d.shard(n, n - 1), lambda x, n: x[n - 1 :: n]),
    "repeat": (lambda d, n: d.repeat(n % 3), lambda x, n: x * (n % 3)),
    "cache": (lambda d, n: d.cache(), lambda x, n: x),
    "prefetch": (lambda d, n: d.prefetch(n), lambda x, n: x),
    "shuffle_one": (lambda d, n: d.shuffle(1), lambda x, n: x),
    "concatenate": (lambda d, n: d.concatenate(Dataset.range(n)), lambda x, n: x + [*range(n)]),
    "flat_map": (lambda d, n: d.flat_map(repeated), lambda x, n: [v for v in x for _ in "ab"]),
    "enumerate": (
        lambda d, n: d.enumerate(n).map(lambda i, v: i * v),
        lambda x, n: [i * v for i, v in enumerate(x, n)],
    ),
    "zip": (
        lambda d, n: Dataset.zip((d, d.skip(1))).map(lambda a, b: a - b),
        lambda x, n: [a - b for a, b in zip(x, x[1:], strict=False)],
    ),
    "batch_unbatch": (lambda d, n: d.batch(n).unbatch(), lambda x, n: x),
    "batch_drop": (
        lambda d, n: d.batch(n, drop_remainder=True).unbatch(),
        lambda x, n: x[: len(x) - len(x) % n],
    ),
    "batch_sum": (
        lambda d, n: d.batch(n).map(lambda v: td.reduce_sum(v)),
        lambda x, n: [sum(x[i : i + n]) for i in range(0, len(x), n)],
    ),
    "window_sum": (
        lambda d, n: d.window(n, shift=2).flat_map(lambda w: w.batch(n)).map(
            lambda v: td.reduce_sum(v)
        ),
        lambda x, n: [sum(x[i : i + n]) for i in range(0, len(x), 2)],
    ),
}  # fmt: skip

pipelines = st.tuples(
    st.integers(0, 25),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 6)), max_size=5),
)


def built(count: int, steps: list[tuple[str, int]]) -> tuple[Any, Numbers]:
    dataset, numbers = Dataset.range(count), list(range(count))
    for name, number in steps:
        on_dataset, on_list = STEPS[name]
        dataset, numbers = on_dataset(dataset, number), on_list(numbers, number)
    return dataset, numbers


@settings(max_examples=120, deadline=None)
@given(pipelines)
def test_pipelines_are_what_lists_are(pipeline: tuple[int, list[tuple[str, int]]]) -> None:
    dataset, numbers = built(*pipeline)
    for _ in range(2):  # a second pass gives the same
        assert [int(x) for x in dataset.as_numpy_iterator()] == numbers
    count = int(dataset.cardinality())
    assert count in (len(numbers), td.data.UNKNOWN_CARDINALITY)
    for batch in dataset.batch(4):
        assert batch.dtype is td.int64


@settings(max_examples=40, deadline=None)
@given(pipelines, st.integers(1, 5))
def test_loops_in_functions_are_loops_in_python(
    pipeline: tuple[int, list[tuple[str, int]]], size: int
) -> None:
    dataset, numbers = built(*pipeline)
    expected = 0
    for start in range(0, len(numbers), size):
        expected = expected * 3 + sum(numbers[start : start + size])
        if abs(expected) > 10**6:
            break
    assert int(folded(dataset.batch(size))) == expected


@td.function
def folded(dataset: Any) -> Any:
    result = td.constant(0, td.int64)
    for values in dataset:
        result = result * 3 + td.reduce_sum(values)
        if td.abs(result) > 10**6:
            break
    return result


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 60), st.integers(1, 70), st.integers(1, 7), st.booleans())
def test_shuffled_rows_are_a_permutation_within_the_buffer(
    count: int, buffer: int, size: int, in_memory: bool
) -> None:
    dataset = Dataset.range(count)
    if not in_memory:  # element by element instead of positions
        dataset = dataset.map(lambda x: x)
    batches = list(dataset.shuffle(buffer, seed=7).batch(size).as_numpy_iterator())
    assert all(len(b) == size for b in batches[:-1])
    found = [int(x) for b in batches for x in b]
    assert sorted(found) == list(range(count))
    assert all(value < place + buffer for place, value in enumerate(found))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20), st.integers(1, 4), st.integers(1, 4))
def test_rows_and_elements_agree(count: int, times: int, size: int) -> None:
    """The quick way for arrays and the general one give the same."""
    arrays = {"x": np.arange(count * 3.0).reshape(count, 3), "i": np.arange(count)}
    quick = Dataset.from_tensor_slices(arrays)
    slow = quick.filter(lambda row: True)
    for d in (quick, slow):
        chain = d.repeat(times).skip(1).take(17).shard(2, 1).batch(size)
        rows = np.concatenate([np.arange(count)] * times)[1:18][1::2].astype(int)
        found = list(chain.as_numpy_iterator())
        assert [int(i) for b in found for i in b["i"]] == rows.tolist()
        for batch in found:
            assert np.array_equal(batch["x"], arrays["x"][batch["i"]])


def test_endless_rows_are_shuffled_from_a_buffer():
    rows = np.arange(20)
    for size in (5, 50):  # smaller and larger than the data
        dataset = td.data.Dataset.from_tensor_slices(rows).repeat().shuffle(size, seed=1).batch(40)
        batch = next(iter(dataset)).numpy()
        assert batch.shape == (40,)
        assert set(batch) <= set(rows)
