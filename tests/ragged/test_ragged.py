"""Ragged tensors as values of programs: arguments, results, loops, branches, gradients, elements of
datasets. What single functions give is compared with TensorFlow in tests/facts_tf/calls/ragged.txt.
"""

import numpy as np
import pytest

import treadle as td


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch):
    """A graph that cannot be compiled is an error here, not a warning."""
    monkeypatch.setenv("TREADLE_STRICT", "1")


def rows(*lists, dtype=td.float32):
    return td.ragged.constant(lists, dtype)


def test_a_trace_serves_all_lengths_of_rows():
    @td.function(input_signature=[td.RaggedTensorSpec([None, None], td.float32)])
    def f(x):
        return td.concat([x, 2 * x], axis=1), td.reduce_sum(x, axis=1), x.to_tensor(-1.0)

    for lists in ([[1, 2], [], [3]], [[]], [[4], [5, 6, 7]], []):
        joined, sums, whole = f(td.ragged.constant(lists, td.float32, ragged_rank=1))
        assert joined.to_list() == [[*row, *(2 * v for v in row)] for row in lists]
        np.testing.assert_array_equal(sums, [float(sum(row)) for row in lists])
        width = max(map(len, lists), default=0)
        expected = [[*row, *[-1.0] * (width - len(row))] for row in lists]
        np.testing.assert_array_equal(whole, np.reshape(expected, (len(lists), width)))
    assert f.experimental_get_tracing_count() == 1


def test_gradients_go_through_the_elements():
    x = rows([1, 2], [], [3])

    @td.function
    def slope(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            total = td.reduce_sum(td.reduce_sum(x * x, axis=1) ** 2)
        return tape.gradient(total, x)

    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(td.reduce_sum(x * x, axis=1) ** 2)
    # d/dx of (x1^2 + x2^2)^2 is 4 x (x1^2 + x2^2)
    expected = [[20.0, 40.0], [], [108.0]]
    assert tape.gradient(y, x).to_list() == expected
    assert slope(x).to_list() == expected


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.to_tensor() ** 2,
        lambda x: td.gather(x, [2, 0]).flat_values ** 2,
        lambda x: x[:, ::-1].flat_values * [1.0, 2.0, 3.0, 4.0],
        lambda x: td.concat([x, x[:, :1]], axis=1).flat_values ** 3,
        lambda x: td.reduce_max(x[:1], axis=1) * 2,
        lambda x: td.reduce_mean(x, axis=0) ** 2,
        lambda x: (x * td.constant([[1.0], [2.0], [3.0]])).flat_values ** 2,
        lambda x: td.nn.softmax(x).flat_values * [1.0, 2.0, 3.0, 4.0],
        lambda x: td.ragged.boolean_mask(x, x > 1.5).flat_values ** 2,
    ],
)
def test_gradients_are_finite_differences(function):
    splits = td.constant([0, 3, 3, 4], td.int64)
    flat = np.array([1.0, 2.5, 2.0, 4.0])

    def total(values):
        return td.reduce_sum(
            td.cast(function(td.RaggedTensor.from_row_splits(values, splits)), td.float64)
        )

    def ragged(values):
        return td.cast(values, td.float32)

    x = td.constant(flat, td.float32)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = total(x)
    found = td.convert_to_tensor(tape.gradient(y, x)).numpy()
    step = 1e-2
    for i in range(4):
        moved = [flat.copy(), flat.copy()]
        moved[0][i] -= step
        moved[1][i] += step
        low, high = (float(total(ragged(m))) for m in moved)
        assert abs((high - low) / (2 * step) - found[i]) < 2e-2 * max(1, abs(found[i]))


def test_loops_carry_and_branches_give_ragged_tensors():
    @td.function
    def grown(x, n):
        for _ in td.range(n):
            x = td.concat([x, x[:, :1]], axis=1)
        return x

    @td.function
    def chosen(x):
        if td.reduce_sum(x.flat_values) > 3:
            y = x[1:]
        else:
            y = x
        return y

    x = rows([1, 2], [3])
    assert grown(x, 2).to_list() == [[1, 2, 1, 1], [3, 3, 3]]
    assert chosen(x).to_list() == [[3]]
    assert chosen(rows([1], [])).to_list() == [[1], []]


def test_loops_over_rows():
    @td.function
    def f(x):
        total = 0.0
        for row in x:
            total += td.reduce_max(row)
        return total

    x = rows([1, 5], [3])
    assert float(f(x)) == 8
    assert [row.numpy().tolist() for row in x] == [[1, 5], [3]]


def test_nested_structures_hold_ragged_tensors():
    f = td.function(lambda parts: {"sum": parts["x"] + parts["y"], "n": parts["x"].nrows()})
    found = f({"x": rows([1], [2, 3]), "y": rows([4], [5, 6])})
    assert found["sum"].to_list() == [[5], [7, 9]]
    assert int(found["n"]) == 2


def test_slices_of_ragged_tensors_are_batched_to_ragged_tensors():
    x = td.ragged.constant([[1, 2], [], [3, 4, 5], [6]])
    dataset = td.data.Dataset.from_tensor_slices(x)
    assert dataset.element_spec == td.RaggedTensorSpec([None], td.int32, 0)
    assert [e.numpy().tolist() for e in dataset] == x.to_list()
    batches = dataset.batch(3)
    assert [b.to_list() for b in batches] == [[[1, 2], [], [3, 4, 5]], [[6]]]
    assert [e.numpy().tolist() for e in batches.unbatch()] == x.to_list()
    doubled = batches.map(lambda b: (b * 2, td.reduce_sum(b, axis=1)))
    assert [(a.to_list(), s.numpy().tolist()) for a, s in doubled] == [
        ([[2, 4], [], [6, 8, 10]], [3, 0, 12]),
        ([[12]], [6]),
    ]

    @td.function
    def count(elements):
        n = 0
        for batch in elements:
            n += td.size(batch)
        return n

    assert int(count(batches)) == 6


def test_deeper_rows_in_datasets():
    x = td.ragged.constant([[[1], [2, 3]], [], [[4]], [[], [5]]])
    dataset = td.data.Dataset.from_tensor_slices((x, [0, 1, 2, 3])).shuffle(4, seed=1).batch(2)
    found = {}
    for ragged, numbers in dataset:
        found |= dict(zip(numbers.numpy().tolist(), ragged.to_list(), strict=True))
    assert [found[i] for i in range(4)] == x.to_list()


def test_ragged_batches():
    dataset = td.data.Dataset.from_tensor_slices([1, 3, 0]).map(
        lambda n: (td.range(n), td.ones([n, 2, n]), n)
    )
    (first, cubes, n), (last, _, _) = dataset.ragged_batch(2)
    assert first.to_list() == [[0], [0, 1, 2]] and last.to_list() == [[]]
    assert cubes.ragged_rank == 3 and cubes.to_list()[1] == [[[1.0] * 3] * 2] * 3
    assert n.numpy().tolist() == [1, 3]
    applied = dataset.map(lambda a, b, c: a).apply(
        td.data.experimental.dense_to_ragged_batch(3, row_splits_dtype=td.int32)
    )
    (only,) = applied
    assert only.to_list() == [[0], [0, 1, 2], []] and only.row_splits.dtype is td.int32


def test_generators_give_ragged_tensors():
    def generate():
        yield td.ragged.constant([[1], [2, 3]])
        yield td.ragged.constant([[4, 5]])

    spec = td.RaggedTensorSpec([None, None], td.int32)
    dataset = td.data.Dataset.from_generator(generate, output_signature=spec)
    assert [e.to_list() for e in dataset] == [[[1], [2, 3]], [[4, 5]]]
    assert dataset.element_spec == spec


def test_what_pipelines_refuse():
    dataset = td.data.Dataset.from_tensors(rows([1], [2, 3]))
    with pytest.raises(TypeError, match="padded_batch: ragged"):
        dataset.padded_batch(2)
    assert [r.to_list() for window in dataset.window(2) for r in window] == [[[1], [2, 3]]]


def test_functions_without_a_form_say_what_to_do():
    x = rows([1], [2, 3])
    with pytest.raises(TypeError, match="matrix_transpose does not take ragged tensors: use"):
        td.linalg.matrix_transpose(x)
    with pytest.raises(td.errors.InvalidArgumentError, match="rows of a matrix are of different"):
        td.matmul(x, x)
    with pytest.raises(TypeError, match=r"reshape of a ragged tensor takes a .*DynamicRaggedShape"):
        td.reshape(x, [-1])
    with pytest.raises(TypeError, match="bounding_shape"):
        td.cast(td.shape(x), td.int64)
    with pytest.raises(TypeError, match="may not be used as a boolean"):
        bool(x)


def test_specs():
    spec = td.RaggedTensorSpec([None, None, 3], td.int32, 1)
    assert spec.shape.as_list() == [None, None, 3] and spec.ragged_rank == 1
    assert spec.is_compatible_with(td.ragged.constant([[[1, 2, 3]], []], ragged_rank=1))
    assert not spec.is_compatible_with(td.ragged.constant([[1], []]))
    assert td.type_spec_from_value(td.ragged.constant([[1], []])).shape.as_list() == [2, None]
    with pytest.raises(ValueError, match="needs a shape or a ragged_rank"):
        td.RaggedTensorSpec(None, td.int32)


def test_text_of_ragged_tensors():
    assert repr(td.ragged.constant([[1, 2], []])) == "<tf.RaggedTensor [[1, 2], []]>"


def test_masked_recurrent_layers_take_padded_rows():
    """The way of TensorFlow's guides: `to_tensor`, Embedding with a mask, and a recurrent layer."""
    td.random.set_seed(1)
    words = td.ragged.constant([[3, 1, 4], [1]])
    embedding = td.keras.layers.Embedding(6, 4, mask_zero=True)
    layer = td.keras.layers.LSTM(3)
    both = layer(embedding(words.to_tensor()), mask=embedding.compute_mask(words.to_tensor()))
    alone = layer(embedding(words[1][None, :]))
    np.testing.assert_allclose(both[1], alone[0], rtol=1e-5, atol=1e-6)


def test_strings_in_rows():
    pieces = td.strings.split(["a bc", "", "d"])
    assert pieces.to_list() == [[b"a", b"bc"], [], [b"d"]]
    assert td.strings.split("x y").numpy().tolist() == [b"x", b"y"]

    @td.function
    def lengths(lines):
        return td.strings.length(td.strings.split(lines)), td.strings.split(lines).to_tensor("?")

    counts, whole = lengths(td.constant(["a bc", "d"]))
    assert counts.to_list() == [[1, 2], [1]]
    assert whole.numpy().tolist() == [[b"a", b"bc"], [b"d", b"?"]]


def test_results_of_functions_know_what_their_traces_know():
    @td.function
    def made(x, rows):
        uniform = td.RaggedTensor.from_uniform_row_length(x, 2)
        return uniform, [td.expand_dims(rows, 1), td.RaggedTensor.from_row_lengths(x, [2, 4])]

    rows = td.ragged.constant([[1], [2, 3]])
    for _ in range(2):  # the second call does not trace
        uniform, (deeper, other) = made(td.range(6), rows)
        assert [r.shape.as_list() for r in (uniform, deeper, other)] == [
            [3, 2], [2, 1, None], [2, None],
        ]  # fmt: skip
        assert uniform.to_tensor().shape == (3, 2)
    assert made.get_concrete_function(td.range(6), rows).structured_outputs[0].shape == (3, 2)


def test_arguments_of_one_length_do_not_make_traces_of_their_own():
    traces = []

    @td.function(input_signature=[td.RaggedTensorSpec([None, None], td.int32)])
    def same(x):
        traces.append(x.shape)
        return x

    for length in (2, 3):
        x = td.RaggedTensor.from_uniform_row_length(td.range(6), length)
        found = same(x)
        assert found.to_list() == x.to_list()
        assert found.shape.as_list() == [None, None] or found.shape.as_list() == [6 // length, None]
    assert len(traces) == 1
