"""Calls of all public functions with right and wrong arguments: the same eagerly and in a function,
and every exception one of the documented types that tells the line. `tests.arguments.run` makes
many more, each batch in a process of its own."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter
from random import Random

import numpy as np
import pytest

import treadle as td
from tests.arguments.check import check, interpreted, seed_of
from tests.arguments.run import run_batch
from tests.arguments.surface import functions

OPEN_SEED = 20_000_000


@pytest.mark.parametrize("turn", range(1))
def test_random_calls(turn):
    """Each function twice, eagerly and in a function: some 1,000 calls a turn."""
    count = len(functions())
    _, counts, faults = run_batch(turn * count, count, 10**9)
    assert faults == []
    assert counts["calls"] == 2 * count and counts["accepted"] > count // 5


def test_random_calls_with_open_sizes():
    """Some functions, eagerly and compiled for a signature that leaves sizes open."""
    _, counts, faults = run_batch(OPEN_SEED, 90, 10**9, open_sizes=True)
    assert faults == []
    assert counts["calls"] > 30 and counts["accepted"] > 5


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


# Calls that were refused, or accepted, in one way only: which random calls of a function.
MENDED = {
    "Tensor.transpose": (3074,), "Variable.scatter_nd_max": (373,),
    "Variable.scatter_nd_update": (2165,), "Variable.sum": (369,), "argmin": (1634,),
    "as_string": (365,), "dynamic_partition": (341,), "eig": (358,),
    "histogram_fixed_width_bins": (3136,), "image.adjust_hue": (363,), "image.central_crop": (325,),
    "image.encode_jpeg": (3075, 3118), "image.random_brightness": (1297, 1357),
    "image.random_hue": (341,), "image.random_saturation": (326,), "image.rot90": (404,),
    "image.sample_distorted_bounding_box": (350,), "image.stateless_random_brightness": (1324,),
    "linalg.band_part": (325, 327, 349), "linalg.banded_triangular_solve": (329, 367),
    "linalg.diag": (377,), "linalg.eigh": (327, 369), "linalg.lu": (354,),
    "linalg.matrix_rank": (404,), "linalg.qr": (2934,), "linalg.solve": (562,),
    "linalg.svd": (331, 352, 494), "linalg.triangular_solve": (354,), "math.bincount": (560,),
    "math.confusion_matrix": (554, 3073), "math.igammac": (325,), "math.segment_max": (330,),
    "math.segment_prod": (335,), "math.top_k": (2424,), "math.unsorted_segment_min": (1310,),
    "math.unsorted_segment_prod": (2136,), "nn.collapse_repeated": (1308,), "nn.conv2d": (501,),
    "nn.depthwise_conv2d": (3149,), "nn.weighted_moments": (1680,),
    "nn.with_space_to_batch": (1527,), "one_hot": (1349,), "operator.and_": (356,),
    "operator.getitem": (1673,), "operator.matmul": (2312,), "operator.or_": (566,),
    "pad": (369, 1472, 1524, 2105, 2171), "parallel_stack": (491,), "random.gamma": (398,),
    "random.normal": (1361, 1368), "random.poisson": (1519, 2302),
    "random.stateless_binomial": (567,), "random.stateless_parameterized_truncated_normal": (1299,),
    "random.stateless_truncated_normal": (1294,), "random.truncated_normal": (1307,),
    "random.uniform": (1308, 2591, 2956), "range": (332, 336, 339, 349, 363, 372, 3295),
    "reduce_mean": (2271,), "required_space_to_batch_paddings": (1364, 2585), "roll": (364,),
    "sequence_mask": (1318, 3132), "signal.dct": (1671,), "signal.inverse_stft": (1518,),
    "signal.mdct": (385, 2930), "signal.stft": (558, 2583), "strings.join": (334,),
    "strings.reduce_join": (365,), "tuple": (1306,), "unique": (3096,),
    "while_loop": (328, 2139, 2452, 2583),
}  # fmt: skip


@pytest.mark.parametrize("name", MENDED)
def test_calls_that_once_differed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seeds = [seed_of(name, turn) for turn in MENDED[name]]
        assert [fault for seed in seeds for fault in check(seed, Counter())] == []


COMPLEX, BYTES = td.constant([1 + 1j, 2.0]), td.constant([1, 2], td.uint32)
REFUSED = {
    "complex numbers in an order": lambda: COMPLEX < COMPLEX,
    "an integer beyond the range": lambda: td.constant([1, 2]) >= -(2**63),
    "unique elements of a matrix": lambda: td.unique(td.ones([2, 2])),
    "a condition that is no bool": lambda: td.cond(td.constant([5]), lambda: 1, lambda: 2),
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
    "a segment id of no row": lambda: td.math.segment_prod(td.ones([3, 4]), [2**62]),
    "a fraction that is no scalar": lambda: td.image.central_crop(
        td.ones([4, 4, 1]), td.constant([0.5])
    ),
    "a fraction that is some rows": lambda: td.image.central_crop(
        td.ones([4, 4, 1]), td.IndexedSlices(td.ones([1]), [0], [3])
    ),
    "a band of several widths": lambda: td.linalg.band_part(td.ones([2, 2]), 1, td.ones([2])),
    "a band of half a diagonal": lambda: td.linalg.band_part(td.ones([2, 2]), td.constant(0.5), 0),
    "limits that are no scalars": lambda: td.image.random_saturation(
        td.ones([4, 4, 3]), td.constant([0.5]), td.constant([1.0])
    ),
    "a hue for each pixel": lambda: td.image.adjust_hue(td.ones([4, 4, 3]), td.constant([[0.5]])),
    "a number of iterations in a list": lambda: td.while_loop(
        lambda i: i < 3, lambda i: i + 1, [0], maximum_iterations=[2]
    ),
    "a range of strings": lambda: td.range(0.0, 5.0, 1, "string"),
    "a range up to a vector": lambda: td.range(td.constant([5.0])),
    "a shift that is a matrix": lambda: td.roll(td.ones([2, 2]), td.constant([[1]]), 0),
    "a shift by halves": lambda: td.roll(td.ones([2, 2]), td.constant(0.5), 0),
    "paddings of floats": lambda: td.pad(td.ones([]), td.zeros([0])),
    "a tensor between strings": lambda: td.strings.join(["a", "b"], td.constant([1])),
    "two numbers of partitions": lambda: td.dynamic_partition([1], [0], (-1, 2)),
    "attempts in a vector": lambda: td.image.sample_distorted_bounding_box(
        [4, 4, 3], td.ones([1, 1, 4]), max_attempts=np.array([5])
    ),
    "turns in a vector": lambda: td.image.rot90(td.ones([4, 4, 1]), td.constant([1])),
    "eigenvalues of float16": lambda: td.linalg.eig(td.ones([2, 2], td.float16)),
    "a decomposition of bfloat16": lambda: td.linalg.lu(td.eye(2, dtype=td.bfloat16)),
    "eigenvectors of what is not finite": lambda: td.linalg.eigh([[1.0, np.inf], [np.inf, 2.0]]),
    "positions that are no integers": lambda: td.tensor_scatter_nd_max(
        td.ones([3]), td.zeros([0]), td.ones([3])
    ),
    "more rows than the diagonal has": lambda: td.linalg.diag(
        td.ones([3, 3]), num_rows=td.constant(2)
    ),
    "complex samples": lambda: td.signal.mdct(td.ones([8], td.complex64), 4),
    "a size beyond 64 bits": lambda: td.random.gamma(2**64, [1.0]),
    "an array for a dtype": lambda: td.ones([2]).prod(dtype=td.ones([2])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_eagerly_as_in_graphs(name):
    kinds = []
    for call in (REFUSED[name], td.function(lambda: REFUSED[name](), autograph=False)):
        with pytest.raises((TypeError, ValueError)) as found:
            call()
        kinds.append(type(found.value))
    assert issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])


def test_functions_refuse_the_assertion_of_an_integer_whose_truth_counts_eagerly():
    """As TensorFlow does: eagerly it asks Python for the truth of a value."""
    td.Assert(td.constant([5]), [])
    with pytest.raises(td.errors.InvalidArgumentError):
        td.Assert(td.constant([0]), [])
    with pytest.raises((TypeError, ValueError)):
        td.function(lambda: td.Assert(td.constant([5]), []), autograph=False)()


@pytest.mark.parametrize("other", [set(), Random, {"a": 1}])
def test_operators_of_builtin_classes_do_not_hide_the_line(other):
    for call in (lambda: td.constant([1]) | other, lambda: td.constant([1]) & other):
        with pytest.raises(TypeError) as found:
            call()
        assert f"{__file__}:" in str(found.value)


def test_operands_of_other_classes_are_asked_first():
    class Asked:
        def __rsub__(self, other):
            return "asked"

    assert td.constant([1.0]) - Asked() == "asked"


def test_vectors_have_the_same_signs_eagerly_and_in_functions():
    x = np.random.default_rng(0).standard_normal((9, 4, 4)).astype(np.float32)
    for call in (td.linalg.eigh, td.linalg.svd):
        pairs = zip(call(td.constant(x)), td.function(call)(td.constant(x)), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("size", [1, 3, 40])
def test_singular_values_of_what_is_not_finite(size):
    """NaN as in TensorFlow, for the matrices concerned only; LAPACK may not come to an end."""
    x = np.stack([np.eye(size, dtype=np.float32)] * 2)
    x[1, 0, -1] = -np.inf
    for call in (td.linalg.svd, td.function(td.linalg.svd)):
        found = [y.numpy() for y in call(td.constant(x))]
        assert np.allclose(found[0][0], 1) and all(np.isnan(y[1]).all() for y in found)
    assert td.linalg.matrix_rank(td.constant(x)).numpy().tolist() == [size, 0]


def test_an_infinite_number_is_its_own_eigenvalue():
    for call in (td.linalg.eigh, td.function(td.linalg.eigh)):
        values, vectors = call(td.constant([[-np.inf]]))
        assert values.numpy().tolist() == [-np.inf] and vectors.numpy().tolist() == [[1.0]]


@pytest.mark.parametrize("function", [td.math.zeta, td.math.igammac])
def test_series_of_forty_axes(function):
    for call in (function, td.function(function)):
        assert call(td.constant(nested(40)), td.fill([2, 3], 2.0)).shape == (*(1,) * 38, 2, 3)


def test_a_loop_over_a_variable_is_one_over_its_value():
    v = td.Variable([1.0, 2.0, 4.0])

    @td.function
    def total():
        found = 0.0
        for x in v:
            found += x
        first, *_ = v
        return found + first

    assert float(total()) == 8.0
    assert [n.op.name for n in total.get_concrete_function().graph.nodes].count("while") == 1


def test_a_map_of_no_scalars_in_the_interpreter():
    mapped = td.function(lambda x: td.map_fn(lambda y: y, x), autograph=False)
    (found,) = interpreted(mapped, [np.zeros(0, np.int64)])
    assert found.shape == (0,)


def test_limits_of_a_range_are_cast_to_its_dtype():
    for call in (td.range, td.function(td.range)):
        assert call(td.constant(2.5), dtype=td.int32).numpy().tolist() == [0, 1]


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
