"""Threads of pipelines: they end, errors arrive, nothing is left behind."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

import treadle as td
from treadle.ops.collections import iterators

Dataset = td.data.Dataset


def listed(dataset: Any) -> list[Any]:
    return list(dataset.as_numpy_iterator())


def own_threads() -> list[threading.Thread]:
    kinds = ("treadle-prefetch", "treadle-map")
    return [t for t in threading.enumerate() if t.name.startswith(kinds)]


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    yield
    gc.collect()
    deadline = time.monotonic() + 60
    while own_threads() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert not own_threads()


def test_prefetch_gives_everything_in_order() -> None:
    assert listed(Dataset.range(1000).prefetch(3)) == list(range(1000))


def test_prefetch_runs_ahead_by_its_size_only() -> None:
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            yield i

    dataset = Dataset.from_generator(numbers, output_signature=td.TensorSpec((), td.int32))
    iterator = iter(dataset.prefetch(4))
    next(iterator)
    deadline = time.monotonic() + 60
    while len(made) < 6 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(made) == 6  # one given, four in the buffer, one waiting for its place


def test_an_abandoned_iterator_ends_its_thread() -> None:
    iterator = iter(Dataset.range(10**6).prefetch(2))
    next(iterator)
    assert own_threads()
    del iterator


def test_prefetch_after_prefetch_and_take() -> None:
    dataset = Dataset.range(10**6).prefetch(2).map(lambda x: x + 1).prefetch(2).take(5)
    assert listed(dataset) == [1, 2, 3, 4, 5]


def failing_generator() -> Iterator[int]:
    yield 1
    raise ValueError("boom")  # the line that errors name


def failing_dataset() -> Any:
    return Dataset.from_generator(failing_generator, output_signature=td.TensorSpec((), td.int32))


LINE = failing_generator.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d,
        lambda d: d.prefetch(2),
        lambda d: d.map(lambda x: x + 1, num_parallel_calls=2),
        lambda d: d.batch(2).prefetch(1),
        lambda d: d.shuffle(10),
    ],
)
def test_errors_of_a_generator_name_its_line(change: Callable[[Any], Any]) -> None:
    with pytest.raises(td.errors.InvalidArgumentError, match=rf"ValueError: boom .*:{LINE}\)"):
        listed(change(failing_dataset()))


def test_what_came_before_an_error_arrives() -> None:
    iterator = iter(failing_dataset().prefetch(5))
    assert int(next(iterator)) == 1
    with pytest.raises(td.errors.InvalidArgumentError):
        next(iterator)


def check_positive(x: Any) -> Any:
    td.Assert(x > 0, ["not positive"])
    return x


@pytest.mark.parametrize("calls", [None, 1, 3, td.data.AUTOTUNE])
def test_errors_of_a_map_function_name_its_line(calls: int | None) -> None:
    dataset = Dataset.range(1, -3, -1).map(check_positive, num_parallel_calls=calls)
    line = check_positive.__code__.co_firstlineno + 1
    with pytest.raises(td.errors.InvalidArgumentError, match=rf"test_threads.py:{line}"):
        listed(dataset)


def test_an_error_in_a_function_names_the_loop_and_closes_the_iterator() -> None:
    @td.function
    def total(dataset: Any) -> Any:
        result = td.constant(0)
        for x in dataset:
            result += x
        return result

    with pytest.raises(td.errors.InvalidArgumentError, match="ValueError: boom") as caught:
        total(failing_dataset().prefetch(1))
    assert "for x in dataset" in str(caught.value)


def test_an_error_of_the_body_closes_the_iterator() -> None:
    @td.function
    def total(dataset: Any) -> Any:
        result = td.constant(0, td.int64)
        for x in dataset:
            td.Assert(x < 3, ["too large"])
            result += x
        return result

    with pytest.raises(td.errors.InvalidArgumentError):
        total(Dataset.range(10**6).prefetch(2))


def test_a_break_closes_the_iterator() -> None:
    @td.function
    def first(dataset: Any) -> Any:
        result = td.constant(-1, td.int64)
        for x in dataset:
            result = x
            break
        return result

    assert int(first(Dataset.range(10**6).prefetch(2))) == 0


def test_parallel_maps_run_at_once() -> None:
    together = threading.Barrier(3)

    def wait(x: Any) -> Any:
        together.wait(60)
        return x

    def waited(x: Any) -> Any:
        return td.numpy_function(wait, [x], td.TensorSpec((), td.int64))

    assert listed(Dataset.range(6).map(waited, num_parallel_calls=3)) == list(range(6))


@pytest.mark.parametrize("ordered", [True, False])
def test_parallel_maps_go_on_while_the_consumer_works(ordered: bool) -> None:
    six = threading.Event()

    def count(x: Any) -> Any:
        if x == 5:
            six.set()
        return x

    def counted(x: Any) -> Any:
        return td.numpy_function(count, [x], td.TensorSpec((), td.int64))

    mapped = Dataset.range(10**6).map(counted, num_parallel_calls=2, deterministic=ordered)
    iterator = iter(mapped)
    next(iterator)
    assert six.wait(60)
    del iterator
    gc.collect()
    assert not [t for t in threading.enumerate() if t.name.startswith("treadle-map")]


def test_several_threads_share_an_iterator() -> None:
    iterator = iter(Dataset.range(2000).map(lambda x: x * 2))
    found: list[int] = []

    def consume() -> None:
        found.extend(int(x) for x in iterator)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(0, 4000, 2))


def test_threads_iterate_in_one_function() -> None:
    @td.function
    def total(dataset: Any) -> Any:
        result = td.constant(0, td.int64)
        for x in dataset:
            result += x
        return result

    dataset = Dataset.range(300)
    total(dataset)
    sums: list[int] = []
    threads = [threading.Thread(target=lambda: sums.append(int(total(dataset)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [44850] * 6


def test_shuffled_prefetch_is_reproducible() -> None:
    def orders() -> list[Any]:
        td.random.set_seed(3)
        dataset = Dataset.range(100).shuffle(20).prefetch(4)
        return [listed(dataset), listed(dataset)]

    first = orders()
    assert first == orders()
    assert first[0] != first[1]
    assert np.array_equal(sorted(first[0]), np.arange(100))


def test_a_handle_whose_making_is_interrupted_is_made_again(monkeypatch):
    """An interrupt between an object's number and its entry left a number without an object."""

    class Interrupted(WeakValueDictionary):
        def __setitem__(self, number, obj):
            raise KeyboardInterrupt

    source = td.data.Dataset.range(3)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(iterators, "_objects", Interrupted())
        iterators.number_of(source)
    assert iterators.object_of(iterators.number_of(source)) is source


def test_programs_leave_processors_to_the_threads_of_a_map(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from treadle.core import processors
    from treadle.runtime.cpu.threads import pool

    found = []

    def look(x: Any) -> Any:
        found.append(pool()._workers.value)
        return x

    monkeypatch.setattr(processors, "usable", lambda: 4)
    before = td.config.threading.get_intra_op_parallelism_threads()
    td.config.threading.set_intra_op_parallelism_threads(4)
    try:
        dataset = td.data.Dataset.range(20).map(
            lambda x: td.numpy_function(look, [x], td.int64), num_parallel_calls=2
        )
        assert len(list(dataset)) == 20
        assert pool()._workers.value == 3
    finally:
        td.config.threading.set_intra_op_parallelism_threads(before)
    assert set(found) <= {1, 2} and found


def test_random_numbers_of_a_parallel_map_do_not_depend_on_threads() -> None:
    def noisy(x: Any) -> Any:
        return td.random.uniform([2]) + td.random.normal([], seed=4), x

    def passes(calls: int) -> list[Any]:
        td.random.set_seed(7)
        dataset = Dataset.range(40).map(noisy, num_parallel_calls=calls)
        return [[x.tolist() for x, _ in dataset.as_numpy_iterator()] for _ in range(2)]

    first = passes(1)
    assert first == passes(3) == passes(td.data.AUTOTUNE)
    assert first[0] == first[1] and len({tuple(x) for x in first[0]}) == 40  # seeds begin anew
    td.random.set_seed(None)
    free = Dataset.range(9).map(lambda x: td.random.uniform([]), num_parallel_calls=2)
    assert list(free.as_numpy_iterator()) != list(free.as_numpy_iterator())


def test_random_elements_go_on_after_a_restart() -> None:
    def noisy(x: Any) -> Any:
        return td.cast(x, td.float32) + td.random.uniform([])

    def make() -> Any:
        return Dataset.range(20).shuffle(20).map(noisy, num_parallel_calls=2).batch(4).prefetch(1)

    iterator = iter(make())
    next(iterator)
    state = iterator._state_dict()
    rest = [x.numpy().tolist() for x in iterator]
    again = iter(make())
    again._load_state_dict(state)
    assert [x.numpy().tolist() for x in again] == rest and len(rest) == 4


def test_random_programs_run_beside_each_other() -> None:
    inside, most, changed = [0], [0], threading.Condition()

    def wait(x: Any) -> Any:
        with changed:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            changed.notify_all()
            changed.wait_for(lambda: most[0] > 1, 60)  # until somebody else is here, too
            inside[0] -= 1
        return x

    def noisy(x: Any) -> Any:
        return td.numpy_function(wait, [td.random.uniform([])], td.float32)

    assert len(listed(Dataset.range(12).map(noisy, num_parallel_calls=3))) == 12
    assert most[0] > 1


def batches_of(calls: int, size: int, drop: bool, bad: tuple[int, ...]) -> list[Any]:
    """What batches of a map give that fails for some elements, with errors as "error"."""

    def row(i: Any) -> Any:
        for number in bad:
            td.debugging.assert_none_equal(i, np.int64(number))
        return td.fill([3, 2], i), td.strings.as_string(i), i

    iterator = iter(Dataset.range(23).map(row, num_parallel_calls=calls).batch(size, drop))
    found: list[Any] = []
    while True:
        try:
            found.append([part.numpy().tolist() for part in next(iterator)])
        except StopIteration:
            return found
        except td.errors.InvalidArgumentError:
            found.append("error")


@pytest.mark.parametrize("bad", [(), (5,), (0, 22), (4, 5, 6)])
@pytest.mark.parametrize("drop", [False, True])
def test_batches_that_threads_fill_are_those_of_one_thread(drop: bool, bad: Any) -> None:
    """An element that fails loses all of its batch, and the others stay what they are."""
    found = batches_of(3, 4, drop, bad)
    assert found == batches_of(1, 4, drop, bad)
    assert [i for i, batch in enumerate(found) if batch == "error"] == sorted(
        {number // 4 for number in bad}
    )


def test_arrays_that_threads_fill() -> None:
    numbers = np.arange(48.0).reshape(12, 2, 2)
    data = Dataset.from_tensor_slices(numbers)
    found = list(data.map(lambda x: (x, x[0, 0]), num_parallel_calls=2).batch(4))
    for step, (arrays, firsts) in enumerate(found):
        part = numbers[4 * step : 4 * step + 4]
        np.testing.assert_array_equal(arrays, part)
        np.testing.assert_array_equal(firsts, part[:, 0, 0])
    rows = Dataset.range(1, 9).map(lambda i: td.range(i), num_parallel_calls=2).batch(2)
    with pytest.raises(td.errors.InvalidArgumentError, match="element 1 has shape"):
        list(rows)
    plus = data.map(lambda x: x + 1.0, num_parallel_calls=2).batch(3)
    before, again = iter(plus), iter(plus)
    next(before)
    again._load_state_dict(before._state_dict())
    np.testing.assert_array_equal(next(again), numbers[3:6] + 1.0)
