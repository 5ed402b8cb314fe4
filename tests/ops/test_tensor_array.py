"""Lists of tensors and TensorArray: eager, traced, in loops, with gradients."""

import numpy as np
import pytest

import treadle as td
from treadle.core import errors
from treadle.core.list_value import ListValue
from treadle.core.shapes import UNKNOWN_RANK, UNKNOWN_SHAPE
from treadle.core.spec import ListSpec, TensorSpec, has_element_shape
from treadle.ops.collections import lists
from treadle.ops.collections.tensor_array import TensorArray

F32 = TensorSpec((2,), "float32")


def values(items: object) -> list[list[float]]:
    return lists.list_stack(items).numpy().tolist()


def test_versions_of_a_list_are_independent() -> None:
    empty = lists.list_new(F32)
    one = lists.list_push(empty, [1.0, 1.0])
    two = lists.list_push(one, [2.0, 2.0])
    other = lists.list_push(one, [3.0, 3.0])
    changed = lists.list_set(two, 0, [9.0, 9.0])
    assert values(one) == [[1, 1]]
    assert values(two) == [[1, 1], [2, 2]]
    assert values(other) == [[1, 1], [3, 3]]
    assert values(changed) == [[9, 9], [2, 2]]
    assert [int(lists.list_length(x)) for x in (empty, one, two, other)] == [0, 1, 2, 2]
    assert values(lists.list_truncate(two, 1)) == [[1, 1]]
    assert values(lists.list_extend(one, 3)) == [[1, 1], [0, 0], [0, 0]]
    assert values(lists.list_add(two, other)) == [[2, 2], [5, 5]]
    assert lists.list_stack(empty).shape == (0, 2)


def test_any_history_of_versions_reads_as_plain_lists() -> None:
    rng = np.random.default_rng(0)
    spec = ListSpec((), "int64")
    versions: list[tuple[ListValue, list[int]]] = [(ListValue([], spec), [])]
    for step in range(400):
        value, plain = versions[rng.integers(max(0, len(versions) - 5), len(versions))]
        if plain and rng.integers(2):
            position = int(rng.integers(len(plain)))
            new = value.set(position, np.array(step), spec)
            expected = [*plain[:position], step, *plain[position + 1 :]]
        else:
            new, expected = value.push(np.array(step), spec), [*plain, step]
        versions.append((new, expected))
    for value, plain in versions:
        assert [int(x) for x in value.items()] == plain


def test_appending_does_not_copy() -> None:
    value = ListValue([], ListSpec((), "float32"))
    items = value.items()
    for i in range(100):
        value = value.push(np.float32(i), value.spec)
    assert value.items() is items


def test_lists_print() -> None:
    assert "a list of 1 elements" in repr(lists.list_push(lists.list_new(F32), [1.0, 2.0]))
    assert repr(TensorArray(td.int32)) == "<td.TensorArray dtype=int32 element_shape=None>"


def test_list_specs_are_learned_and_kept() -> None:
    unknown = lists.list_new(ListSpec(UNKNOWN_SHAPE, "float32"))
    assert not has_element_shape(unknown.spec)
    assert lists.list_push(unknown, [1.0]).spec is ListSpec((1,), "float32")
    rank_only = lists.list_new(ListSpec(UNKNOWN_RANK, "float32"))
    assert lists.list_push(rank_only, [1.0]).spec is ListSpec((None,), "float32")
    with pytest.raises(ValueError, match=r"shape \(3,\) in a list of elements of shape \(2,\)"):
        lists.list_push(lists.list_new(F32), [1.0, 2.0, 3.0])
    with pytest.raises(errors.OutOfRangeError, match="index 0 is out of range"):
        lists.list_get(lists.list_new(F32), 0)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: lists.list_stack(lists.list_push(lists.list_unstack(x), x[0] * 2)),
        lambda x: lists.list_get(lists.list_unstack(x), 1) * x[0],
        lambda x: lists.list_stack(lists.list_set(lists.list_unstack(x), 2, x[0] * x[1])),
        lambda x: lists.list_concat(lists.list_unstack(x))[0] ** 2,
        lambda x: lists.list_get(lists.list_split(x, [1, 2]), 1) ** 2,
        lambda x: lists.list_stack(lists.list_scatter(lists.list_unstack(x), [2, 0], x[:2] ** 2)),
        lambda x: lists.list_stack(
            lists.list_add(lists.list_unstack(x), lists.list_unstack(x * x))
        ),
        lambda x: lists.list_stack(lists.list_truncate(lists.list_unstack(x * x), 2)),
        lambda x: lists.list_stack(lists.list_extend(lists.list_unstack(x * x), 5)),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_list_ops(fn: object, traced: bool) -> None:
    """Slopes of a weighted sum against central differences."""
    x = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])
    run = td.function(fn, autograph=False) if traced else fn
    weights = np.random.default_rng(1).standard_normal(run(td.constant(x)).shape)

    def total(array: np.ndarray) -> float:
        return float(np.sum(run(td.constant(array)).numpy() * weights))

    t = td.constant(x)
    with td.GradientTape() as tape:
        tape.watch(t)
        loss = td.reduce_sum(run(t) * weights)
    slope = tape.gradient(loss, t).numpy()
    numeric = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-6
        numeric[i] = (total(x + step) - total(x - step)) / 2e-6
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def test_eager_array_as_tensorflow() -> None:
    array = TensorArray(td.float32, size=3)
    assert array.element_shape is None
    assert array.write(0, [1.0, 2.0]) is array
    assert array.element_shape == [2]
    assert array.stack().numpy().tolist() == [[1, 2], [0, 0], [0, 0]]
    assert array.read(0).numpy().tolist() == [1, 2]
    assert int(array.size()) == len(array) == 3
    with pytest.raises(errors.OutOfRangeError):
        array.write(3, [1.0, 2.0])
    with pytest.raises(ValueError, match="does not fit"):
        array.write(1, [1.0, 2.0, 3.0])
    with pytest.raises(errors.InvalidArgumentError, match="int32"):
        array.write(1, td.constant([1, 2]))
    assert array.scatter([2, 1], [[5.0, 6.0], [7.0, 8.0]]).gather([1, 2]).numpy().tolist() == [
        [7, 8], [5, 6],
    ]  # fmt: skip


def test_dynamic_size_unstack_split_and_concat() -> None:
    array = TensorArray(td.float32, size=0, dynamic_size=True)
    for i in range(3):
        array.write(i, [float(i)])
    assert array.concat().numpy().tolist() == [0, 1, 2]
    array = TensorArray(td.float32, size=0).unstack([[1.0], [2.0]])
    assert array.stack().numpy().tolist() == [[1], [2]]
    array = TensorArray(td.float32, size=2, infer_shape=False).split([1.0, 2.0, 3.0], [1, 2])
    assert array.read(1).numpy().tolist() == [2, 3]
    array = TensorArray(td.float32, size=2, infer_shape=False)
    array.write(0, [1.0, 2.0])
    array.write(1, [3.0])
    assert array.concat().numpy().tolist() == [1, 2, 3]
    assert TensorArray(td.float32, 2, element_shape=[3]).stack().shape == (2, 3)
    with pytest.raises(ValueError, match="write an element first or give element_shape"):
        TensorArray(td.float32, size=2).stack()


@td.function(autograph=False)
def powers(x: td.Tensor, n: td.Tensor) -> td.Tensor:
    """x ** 2, x ** 3, ... x ** (n + 1)."""

    def body(i: td.Tensor, state: td.Tensor, array: TensorArray) -> tuple:
        state = state * x
        return i + 1, state, array.write(i, state)

    start = (td.constant(0), x, TensorArray(td.float32, size=n))
    return td.while_loop(lambda i, *_: i < n, body, start)[2].stack()


def test_an_array_is_written_in_a_traced_loop() -> None:
    x = td.constant([1.0, 2.0, -1.0])
    result = powers(x, td.constant(4)).numpy()
    np.testing.assert_allclose(result, np.stack([x.numpy() ** k for k in range(2, 6)]))
    assert powers(x, td.constant(0)).shape == (0, 3)
    assert powers.experimental_get_tracing_count() == 1


def test_gradient_through_an_array_in_a_loop() -> None:
    x = td.constant([1.0, 2.0, -1.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(powers(x, td.constant(3)))
    expected = sum(k * x.numpy() ** (k - 1) for k in range(2, 5))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-6)


def test_an_array_is_read_in_a_loop_and_may_be_written_in_a_branch() -> None:
    @td.function(autograph=False)
    def shifted(x: td.Tensor) -> td.Tensor:
        source = TensorArray(td.float32, size=0).unstack(x)

        def body(i: td.Tensor, target: TensorArray) -> tuple:
            value = source.read(i)
            longer = lambda: target.write(target.size(), value * 10.0)
            return i + 1, td.cond(value > 0.0, longer, lambda: target)

        start = (td.constant(0), TensorArray(td.float32, size=0, dynamic_size=True))
        return td.while_loop(lambda i, _: i < 3, body, start)[1].stack()

    assert shifted(td.constant([1.0, -2.0, 3.0])).numpy().tolist() == [10, 30]


def test_arrays_pass_in_and_out_of_functions_as_structures() -> None:
    @td.function(autograph=False)
    def twice(array: TensorArray) -> TensorArray:
        return array.write(0, array.read(1) * 2.0)

    start = TensorArray(td.float32, size=2, element_shape=[]).write(1, 4.0)
    result = twice(start)
    assert isinstance(result, TensorArray)
    assert result.stack().numpy().tolist() == [8, 4]
    assert start.stack().numpy().tolist() == [0, 4]


def test_an_array_in_a_loop_as_users_write_it() -> None:
    @td.function
    def powers_or_sums(x: td.Tensor, n: td.Tensor) -> td.Tensor:
        array = td.TensorArray(td.float32, size=n)
        state = x
        for i in td.range(n):
            if td.reduce_sum(state) > 0.0:
                state = state * x
            else:
                state = state + 1.0
            array = array.write(i, state)
        return array.stack()

    x = td.constant([1.0, 2.0, -1.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = powers_or_sums(x, td.constant(3))
        total = td.reduce_sum(y)
    np.testing.assert_allclose(y.numpy(), np.stack([x.numpy() ** k for k in (2, 3, 4)]))
    assert tape.gradient(total, x).numpy().tolist() == [9, 48, -3]


def test_an_array_is_written_in_a_branch_inside_a_loop() -> None:
    @td.function
    def positive(xs: td.Tensor) -> tuple[td.Tensor, td.Tensor, td.Tensor]:
        kept = td.TensorArray(td.float32, size=0, dynamic_size=True)
        where = td.TensorArray(td.int32, size=3)
        i = 0
        for x in xs:
            if x > 0:
                kept = kept.write(kept.size(), x * td.ones([2]))
                where = where.write(i, i)
            elif x < -5:
                where = where.write(i, -i)
            i += 1
        return kept.stack(), where.stack(), kept.size()

    for values in ([1.0, -2.0, 3.0], [1.0, -9.0, -9.0]):
        rows, places, count = positive(td.constant(values))
        wanted = [v for v in values if v > 0]
        np.testing.assert_array_equal(rows, np.array([[v, v] for v in wanted], np.float32))
        signs = [i if v > 0 else -i if v < -5 else 0 for i, v in enumerate(values)]
        np.testing.assert_array_equal(places, signs)  # what was not written is 0
        assert count.numpy() == len(wanted)


def test_gradient_of_what_a_branch_in_a_loop_writes() -> None:
    @td.function
    def slope(xs: td.Tensor) -> td.Tensor:
        with td.GradientTape() as tape:
            tape.watch(xs)
            kept = td.TensorArray(td.float32, size=0, dynamic_size=True)
            for x in xs:
                if x > 0:
                    kept = kept.write(kept.size(), x * x)
            total = td.reduce_sum(kept.stack())
        return tape.gradient(total, xs)

    np.testing.assert_array_equal(slope(td.constant([1.0, -2.0, 3.0])), [2.0, 0.0, 6.0])


def test_a_stack_has_the_static_size_of_its_array() -> None:
    """TensorFlow 2.21 gives the same static shapes."""
    shapes = {}

    @td.function
    def f(x, n):
        fixed = td.TensorArray(td.float32, size=4)
        grown = td.TensorArray(td.float32, size=4, dynamic_size=True)
        counted = td.TensorArray(td.float32, size=n)
        refilled = td.TensorArray(td.float32, size=4).unstack(x)
        for i in td.range(4):
            fixed = fixed.write(i, x[0] * td.cast(i, td.float32))
            grown = grown.write(i, x[0])
            counted = counted.write(i, x[0])
        for name, array in (
            ("fixed", fixed), ("grown", grown), ("counted", counted), ("refilled", refilled),
        ):  # fmt: skip
            shapes[name] = array.stack().shape.as_list()
        shapes["scan"] = td.scan(lambda a, b: a + b, x).shape.as_list()
        shapes["map_fn"] = td.map_fn(lambda row: row[:1], x).shape.as_list()
        return fixed.stack() + 1.0

    x = td.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    got = f(x, td.constant(4))
    assert shapes == {
        "fixed": [4, 2], "grown": [None, 2], "counted": [None, 2], "refilled": [None, 2],
        "scan": [3, 2], "map_fn": [3, 1],
    }  # fmt: skip
    assert got.numpy().tolist() == [[1, 1], [2, 3], [3, 5], [4, 7]]
    (program,) = f.concrete_functions
    assert "ensure_shape" not in str(program.executable.graph)  # the pass proves the size


def test_an_array_that_a_branch_refills_has_no_static_size() -> None:
    @td.function
    def f(x, y, first):
        array = td.TensorArray(td.float32, size=2)
        array = array.unstack(x) if first else array.unstack(y)
        return array.stack()

    x, y = td.zeros([2]), td.ones([3])
    assert f(x, y, td.constant(True)).shape == (2,)
    assert f(x, y, td.constant(False)).shape == (3,)


def test_types_of_arrays_in_signatures():
    spec = td.TensorArraySpec([None], td.float32, dynamic_size=True)

    @td.function(input_signature=[spec, td.TensorSpec([])])
    def extended(ta, x):
        return ta.write(ta.size(), [x, x]).stack()

    ta = td.TensorArray(td.float32, 1, dynamic_size=True).write(0, [1.0, 2.0])
    own = td.type_spec_from_value(ta)
    assert own.is_subtype_of(spec) and spec.is_compatible_with(ta)
    assert own.element_shape == [2] and spec.value_type is td.TensorArray
    np.testing.assert_array_equal(extended(ta, 3.0), [[1.0, 2.0], [3.0, 3.0]])
    with pytest.raises(TypeError, match="does not fit"):
        extended(td.TensorArray(td.int32, 1), 3.0)


def test_an_array_without_elements_or_their_shape_is_stacked_to_no_numbers():
    for dtype in (td.float32, td.string):
        found = td.TensorArray(dtype, size=0, dynamic_size=True).stack()
        assert found.shape == (0,)
        assert found.dtype is dtype
    assert td.TensorArray(td.float32, size=0, element_shape=[3]).stack().shape == (0, 3)
