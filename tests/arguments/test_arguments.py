"""Calls of all public functions with right and wrong arguments: the same eagerly and in a function,
and every exception one of the documented types that tells the line. `tests.arguments.run` makes
many more, each batch in a process of its own."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest

import treadle as td
from tests.arguments.run import run_batch
from tests.arguments.surface import functions


@pytest.mark.parametrize("turn", range(1))
def test_random_calls(turn):
    """Each function twice, eagerly and in a function: some 1,000 calls a turn."""
    count = len(functions())
    _, counts, faults = run_batch(turn * count, count, 10**9)
    assert faults == []
    assert counts["calls"] == 2 * count and counts["accepted"] > count // 5


def test_new_modules_are_among_the_functions():
    found = Counter(name.rpartition(".")[0] for name in functions())
    assert {"", "math", "linalg", "nn", "signal", "strings", "Tensor", "Variable"} <= set(found)
    assert len(functions()) > 400


WRONG = {
    "a list of a thousand levels": lambda: td.add(nested(1500), 1.0),
    "an attribute that it lacks": lambda: td.einsum(True, [td.ones([2])]),
    "an axis that is a float": lambda: td.reduce_sum(td.ones([2]), td.constant(0.5)),
    "no number for an int": lambda: td.nn.avg_pool1d(td.ones([2, 4, 3]), 2, object(), "VALID"),
    "an array for a flag": lambda: td.cumsum(td.ones([2]), exclusive=np.ones(3)),
    "a tensor for a dtype": lambda: td.ones([2], td.constant(1.5)),
    "an array for a setting": lambda: td.debugging.set_log_device_placement(np.ones(3)),
    "no list of tensors": lambda: td.tuple(-1),
    "records as an index": lambda: td.ones([2])[np.zeros(2, "i4,f4")],
    "too few arguments": lambda: td.matmul(td.ones([2, 2])),
    "a method": lambda: td.Variable([1.0]).scatter_add(nested(1500)),
    "an operator": lambda: td.ones([2]) * nested(1500),
    "an operator's other side": lambda: nested(1500) - td.ones([2]),
    "an equality": lambda: td.ones([2]) == nested(1500),
    "an operand of a class that has no such operator": lambda: td.constant([1]) | td.TensorSpec([]),
    "an index": lambda: td.ones([2])[nested(1500)],
    "a list that contains itself": lambda: td.Variable([1.0]) + endless(),
}  # fmt: skip


def nested(depth):
    found = 1.0
    for _ in range(depth):
        found = [found]
    return found


def endless():
    found = [1.0]
    found.append(found)
    return found


@pytest.mark.parametrize("name", WRONG)
def test_what_python_refuses_inside_names_the_function_and_the_line(name):
    wrong = WRONG[name]
    texts = []
    for call in (wrong, td.function(lambda: wrong(), autograph=False)):
        with pytest.raises((TypeError, ValueError)) as found:
            call()
        assert f"{__file__}:" in str(found.value)
        texts.append((type(found.value), str(found.value).partition("\n  at ")[0]))
    assert texts[0][0] is texts[1][0]


def test_errors_of_the_users_own_functions_stay_as_they_are():
    with pytest.raises(KeyError, match="^'missing'$"):
        td.map_fn(lambda x: {}["missing"], td.ones([3]))


def test_functions_are_found_by_their_names():
    assert td.add is td.math.add and pickle.loads(pickle.dumps(td.nn.relu)) is td.nn.relu


COMPLEX, BYTES = td.constant([1 + 1j, 2.0]), td.constant([1, 2], td.uint32)
REFUSED = {
    "complex numbers in an order": lambda: COMPLEX < COMPLEX,
    "an integer beyond the range": lambda: td.constant([1, 2]) >= -(2**63),
    "unique elements of a matrix": lambda: td.unique(td.ones([2, 2])),
    "a condition that is no bool": lambda: td.cond(td.constant([5]), lambda: 1, lambda: 2),
    "an assertion of an integer": lambda: td.Assert(td.constant([5]), []),
    "the inverse of integers": lambda: td.linalg.inv(td.constant([[1, 2], [3, 5]])),
    "random complex numbers": lambda: td.random.stateless_normal([2], [1, 2], dtype="complex64"),
    "a matrix as a shape": lambda: td.zeros(td.constant([[2, 3]])),
    "bools added up": lambda: td.tensor_scatter_nd_add([True, False], [[0]], [True]),
    "sums of bools": lambda: td.math.unsorted_segment_sum([True, False], [0, 0], 1),
    "a shape beyond all memory that does not fit": lambda: td.reshape(td.ones([3]), [2**40, 2**40]),
    "rates that are no floats": lambda: td.random.stateless_poisson([2], [1, 2], BYTES),
    "strings in an identity matrix": lambda: td.eye(2, dtype="string"),
    "a vector in the places of one_hot": lambda: td.one_hot(0, 2, td.ones([2])),
    "a vector in its other places": lambda: td.one_hot([0, 1], 3, 1.0, td.ones([3])),
    "a rate of another dtype": lambda: td.nn.dropout(td.ones([2]), td.constant(0.5, td.float64)),
    "a number that is no rate": lambda: td.nn.dropout(td.ones([2]), np.float32(1.5)),
    "shape invariants that are no list": lambda: td.while_loop(
        lambda i: i < 3, lambda i: i + 1, [1], np.ones(3)
    ),
    "a window beyond all memory": lambda: td.signal.hann_window(2**63),
    "a segment id of another length": lambda: td.math.segment_max(nested(40), [0, 0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_eagerly_as_in_graphs(name):
    kinds = []
    for call in (REFUSED[name], td.function(lambda: REFUSED[name](), autograph=False)):
        with pytest.raises((TypeError, ValueError)) as found:
            call()
        kinds.append(type(found.value))
    assert issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])


@pytest.mark.parametrize("function", [td.math.segment_max, td.math.segment_mean])
def test_segments_of_forty_axes(function):
    found = function(nested(40), [0])
    assert found.shape == (1,) * 40 and float(td.reshape(found, [])) == 1.0


def test_added_at_positions_in_forty_axes():
    found = td.tensor_scatter_nd_add(nested(40), [[0], [0]], [nested(39), nested(39)])
    assert found.shape == (1,) * 40 and float(td.reshape(found, [])) == 3.0


@pytest.mark.parametrize(("rate", "factor"), [(0.0, 1.0), (-1.0, 0.5), (1.0, 0.0), (1.5, 0.0)])
def test_the_value_of_a_rate_that_is_a_tensor_is_not_looked_at(rate, factor):
    """As in TensorFlow; ones are compared, of which none or all are dropped at these rates."""
    def drop(rate):
        return td.nn.dropout(td.ones([4]), rate)

    for call in (drop, td.function(drop)):
        assert call(td.constant(rate)).numpy().tolist() == [factor] * 4


def test_a_radius_beyond_the_channels():
    x = td.reshape(td.range(8.0), [1, 1, 2, 4])
    near, all_of_it = (td.nn.local_response_normalization(x, r) for r in (3, 2**63))
    assert np.array_equal(near, all_of_it)


def test_ranges_without_end():
    for call in (td.range, td.function(td.range)):
        with pytest.raises(td.errors.InvalidArgumentError, match="range"):
            call(td.constant(np.inf))


def test_bins_do_not_depend_on_where_a_program_rounds():
    x = td.constant(np.random.default_rng(0).standard_normal(500) * 3, td.bfloat16)
    limits = td.constant([-3.0, 4.0], td.bfloat16)
    eager = td.histogram_fixed_width_bins(x, limits, 100)
    assert np.array_equal(td.function(td.histogram_fixed_width_bins)(x, limits, 100), eager)


def test_the_brightness_of_float64_images():
    images = np.random.default_rng(0).uniform(0, 1000, (4, 4, 3))
    wanted = images @ np.float32([0.2989, 0.587, 0.114]).astype(float)
    for call in (td.image.rgb_to_grayscale, td.function(td.image.rgb_to_grayscale)):
        np.testing.assert_allclose(call(images)[..., 0], wanted, 1e-14)
