"""Datasets in functions: traces, state, memory, what is refused."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as td

Dataset = td.data.Dataset


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@td.function
def total(dataset: Any) -> Any:
    result = td.constant(0, td.int64)
    for x in dataset:
        result += td.reduce_sum(x)
    return result


def test_the_loop_is_one_node_and_runs_natively() -> None:
    concrete = total.get_concrete_function(Dataset.range(3))
    names = [node.op.name for node in concrete.graph.nodes]
    assert names.count("while") == 1
    assert "close_iterator" in names
    assert concrete.executable.mode == "native"
    assert [n.op.name for n in concrete.graph.walk()].count("iterator_get_next") == 1


def test_datasets_of_one_type_share_a_trace() -> None:
    before = total.experimental_get_tracing_count()
    kinds = [Dataset.range(9).batch(n) for n in (1, 2, 3)]
    assert [int(total(d)) for d in kinds] == [36] * 3
    assert total.experimental_get_tracing_count() <= before + 1
    total(Dataset.from_tensor_slices(np.zeros((2, 3), np.int64)))
    assert total.experimental_get_tracing_count() <= before + 2


def test_datasets_die_after_the_call() -> None:
    dataset = Dataset.from_tensor_slices(np.arange(10)).batch(4)
    total(dataset)
    reference = weakref.ref(dataset)
    del dataset
    gc.collect()
    assert reference() is None


def test_captured_datasets_live_as_long_as_the_function() -> None:
    @td.function
    def captured(dataset: Any = Dataset.range(4)) -> Any:
        return dataset.reduce(td.constant(0, td.int64), lambda s, x: s + x)

    def make() -> Any:
        dataset = Dataset.range(5)

        @td.function
        def summed() -> Any:
            result = td.constant(0, td.int64)
            for x in dataset:
                result += x
            return result

        return summed

    summed = make()
    gc.collect()
    assert [int(summed()), int(summed()), int(captured())] == [10, 10, 6]


def test_an_iterator_is_advanced_by_functions_and_by_python() -> None:
    @td.function
    def following(iterator: Any) -> Any:
        return next(iterator)

    iterator = iter(Dataset.range(6))
    assert int(following(iterator)) == 0
    assert int(next(iterator)) == 1
    assert int(following(iterator)) == 2
    assert [int(x) for x in iterator] == [3, 4, 5]
    with pytest.raises(td.errors.OutOfRangeError, match="End of sequence"):
        following(iterator)


def test_a_captured_iterator_goes_on() -> None:
    iterator = iter(Dataset.range(3))

    @td.function
    def following() -> Any:
        return iterator.get_next()

    assert [int(following()) for _ in range(3)] == [0, 1, 2]


def test_elements_keep_their_structure() -> None:
    rows = {"a": np.arange(4.0, dtype=np.float32), "b": (np.arange(4), np.eye(4, dtype=np.int32))}

    @td.function
    def folded(dataset: Any) -> Any:
        s = td.constant(0.0)
        for row in dataset:
            number, (index, one) = row["a"], row["b"]
            s += number * td.cast(index * td.cast(td.reduce_sum(one), td.int64), td.float32)
        return s

    assert float(folded(Dataset.from_tensor_slices(rows))) == 0 + 1 + 4 + 9


def test_sizes_of_the_last_batch_are_right_natively() -> None:
    @td.function
    def shifted(dataset: Any) -> Any:
        before = td.zeros([0], td.int64)
        seen = td.zeros([0], td.int64)
        last = td.zeros([3], td.int64)
        for last in dataset:
            seen = td.concat([seen, last + td.reduce_sum(before)], 0)
            before = last
        return seen, last

    dataset = Dataset.range(8).batch(3)
    seen, last = shifted(dataset)
    assert seen.numpy().tolist() == [0, 1, 2, 6, 7, 8, 18, 19]
    assert last.numpy().tolist() == [6, 7]
    assert shifted.get_concrete_function(dataset).executable.mode == "native"


def test_memory_of_a_pass_does_not_grow() -> None:
    import tracemalloc

    rows = np.zeros((64, 1 << 16), np.float32)  # 16 MiB in batches of 1 MiB
    shuffled = Dataset.from_tensor_slices(rows).shuffle(64).batch(4)

    @td.function
    def summed(dataset: Any) -> Any:
        s = td.constant(0.0)
        for x in dataset:
            s += td.reduce_sum(x)
        return s

    summed(shuffled)
    tracemalloc.start()
    try:
        summed(shuffled)
        assert tracemalloc.get_traced_memory()[1] < 6 << 20
    finally:
        tracemalloc.stop()


def test_training_in_one_call_equals_training_batch_by_batch() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)).astype(np.float32)
    y = (x @ np.array([1.0, -2.0, 0.5], np.float32)).astype(np.float32)
    dataset = Dataset.from_tensor_slices((x, y)).batch(8)

    def trained(fit: Any) -> Any:
        weights = td.Variable([0.0, 0.0, 0.0])

        def step(x: Any, y: Any) -> Any:
            with td.GradientTape() as tape:
                loss = td.reduce_mean((td.linalg.matvec(x, weights) - y) ** 2)
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            return loss

        fit(step)
        return weights.numpy()

    def epochs_inside(step: Any) -> None:
        @td.function
        def fit(dataset: Any) -> Any:
            for _ in td.range(3):
                for x, y in dataset:
                    step(x, y)

        fit(dataset)

    def loop_outside(step: Any) -> None:
        for _ in range(3):
            for x, y in dataset:
                step(x, y)

    np.testing.assert_allclose(trained(epochs_inside), trained(loop_outside), rtol=1e-5)


def test_random_orders_in_functions_follow_the_seed() -> None:
    def orders() -> Any:
        td.random.set_seed(11)
        dataset = Dataset.range(6).shuffle(6)

        @td.function
        def digits(dataset: Any) -> Any:
            result = td.constant(0, td.int64)
            for x in dataset:
                result = result * 10 + x
            return result

        return [int(digits(dataset)) for _ in range(3)]

    first = orders()
    assert first == orders()
    assert len(set(first)) > 1


@td.function
def without_end(dataset: Any) -> Any:
    return len(dataset)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda d: without_end(d.repeat()), td.errors.InvalidArgumentError, "infinite"),
        (
            lambda d: td.function(lambda d: d.as_numpy_iterator())(d),
            RuntimeError,
            "inside a function",
        ),
        (lambda d: d.fingerprint(), AttributeError, "not supported"),
        (lambda d: td.data.experimental.service, AttributeError, "service"),
        (lambda d: d.window(2).cache("file"), TypeError, "cannot be kept in files"),
        (lambda d: d.save("file", checkpoint_args={}), NotImplementedError, "shards"),
        (lambda d: Dataset.from_tensors(object), TypeError, "Cannot convert"),
        (lambda d: Dataset([1, 2]), TypeError, "from_tensor_slices"),
        (lambda d: d.window(2).batch(2), TypeError, "datasets cannot be batched"),
    ],
)
def test_refusals_say_what_to_do(use: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        use(Dataset.range(3))


def test_errors_when_building_name_the_line() -> None:
    with pytest.raises(ValueError, match=r"test_functions.py:\d+.*from_tensor_slices"):
        Dataset.from_tensor_slices(([1, 2], [3]))


def test_a_dataset_of_a_finished_trace_is_refused() -> None:
    kept = []

    @td.function
    def leaky(count: Any) -> Any:
        kept.append(Dataset.range(count))
        return count

    leaky(td.constant(3, td.int64))
    with pytest.raises(td.errors.InaccessibleTensorError, match="depends on tensors of a function"):
        iter(kept[0])


def test_explanations_name_the_types_of_elements() -> None:
    @td.function
    def first(dataset: Any) -> Any:
        return dataset.reduce(td.constant(0), lambda s, x: s + 1)

    first(Dataset.range(3))
    first(Dataset.range(3).batch(2))
    text = str(first.explain())
    assert "dataset: dataset i64[] -> dataset i64[?] (elements of another type)" in text


def test_later_calls_take_the_quick_path() -> None:
    @td.function
    def count(dataset: Any) -> Any:
        return dataset.reduce(td.constant(0), lambda s, x: s + 1)

    for n in range(4):
        assert int(count(Dataset.range(n))) == n
    assert int(count(Dataset.range(5).map(lambda x: x))) == 5
    assert count.experimental_get_tracing_count() == 1
    assert int(count(Dataset.range(5).batch(2))) == 3
    assert count.experimental_get_tracing_count() == 2


@pytest.mark.filterwarnings("error")  # both are compiled
def test_functions_of_a_pipeline_close_over_tensors_of_the_trace():
    offset = td.constant([1.0, 2.0])

    @td.function
    def total(n, w):
        s = td.zeros([2])
        rows = td.data.Dataset.range(n, output_type=td.float32)
        for x in rows.map(lambda x: td.linalg.matvec(w, td.stack([x, x])) + offset):
            s += x
        return s

    w = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    for n in (3, 4):
        expected = sum(w * n @ [i, i] + offset.numpy() for i in range(n))
        assert np.array_equal(total(td.constant(n), w * n), expected)


def stacked() -> td.data.Dataset:
    """Elements [i, i + 1], of whose type a function of Python says the dtype only."""

    def pair(x: td.Tensor) -> td.Tensor:
        return td.py_function(lambda v: td.stack([v, v + 1]), [x], td.int64)

    return td.data.Dataset.range(4).map(pair)


def test_stages_over_elements_of_unknown_rank() -> None:
    data = stacked()
    for each in (data, data.unbatch(), data.batch(2), data.batch(2).unbatch()):
        assert each.element_spec.shape.rank is None
    assert list(data.unbatch().as_numpy_iterator()) == [0, 1, 1, 2, 2, 3, 3, 4]
    again = [x.tolist() for x in data.batch(2).unbatch().as_numpy_iterator()]
    assert again == [[0, 1], [1, 2], [2, 3], [3, 4]]
    padded = data.padded_batch(2, padded_shapes=[3])
    assert padded.element_spec.shape.as_list() == [None, 3]
    assert next(iter(padded)).numpy().tolist() == [[0, 1, 0], [1, 2, 0]]


def test_functions_that_must_know_the_rank_of_elements() -> None:
    data = stacked()
    totals = data.map(lambda x: td.reduce_sum(x))
    assert totals.element_spec == td.TensorSpec([], td.int64)
    assert [int(x) for x in totals] == [1, 3, 5, 7]
    first = data.map(lambda x: x[0] + x[-1])
    assert first.element_spec.shape.rank is None and [int(x) for x in first] == [1, 3, 5, 7]
    wide = data.map(lambda x: td.expand_dims(x, 0) * 2)
    assert wide.element_spec.shape.rank is None
    assert [x.numpy().tolist() for x in wide.take(2)] == [[[0, 2]], [[2, 4]]]


class TestErrorsWithinPasses(td.test.TestCase):
    """`assertRaises` clears the frames of an error; the pass goes on behind it all the same."""

    def test_passes_go_on(self) -> None:
        numbers = Dataset.from_tensor_slices([1.0, np.nan, 3.0])
        mapped = numbers.map(lambda x: td.debugging.check_numerics(x, "wrong"))
        given = Dataset.from_generator(lambda: [1.0, "no", 3.0], td.float32, [])
        for dataset in (
            mapped, mapped.map(lambda x: x, num_parallel_calls=2), mapped.take(3), given,
            mapped.prefetch(1), Dataset.zip((mapped,)).map(lambda x: x), mapped.batch(1).unbatch(),
        ):  # fmt: skip
            iterator = iter(dataset)
            assert float(next(iterator)) == 1.0
            with self.assertRaises(td.errors.InvalidArgumentError):
                next(iterator)
            assert float(next(iterator)) == 3.0
