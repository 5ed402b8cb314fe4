import numpy as np

from benchmarks.agreement import check_agreement, difference


def test_equal_within_tolerance():
    assert difference(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-7]), 1e-6) is None


def test_tolerance_is_relative_to_the_largest_magnitude():
    expected, actual = np.array([1e6, 0.0]), np.array([1e6, 0.5])
    assert difference(expected, actual, 1e-6) is None
    assert "tolerance" in difference(expected, actual, 1e-7)


def test_nan_never_agrees():
    assert difference(np.array([1.0]), np.array([np.nan]), 1.0)


def test_structure_and_shape():
    one = np.ones(3)
    assert "results instead of" in difference([one, one], [one], 1e-6)
    assert "list" in difference([one], one, 1e-6)
    assert "shape" in difference(one, np.ones(4), 1e-6)
    assert difference([one, [one, one]], [one, [one, one]], 1e-6) is None


def test_the_odd_one_out_is_named():
    results = {"treadle": np.ones(3), "jax": np.zeros(3), "numpy": np.zeros(3)}
    found = check_agreement(results, 1e-5)
    assert list(found) == ["treadle"]
    assert str(found["treadle"]).startswith("disagrees with numpy: error 1")


def test_nothing_to_compare_with():
    assert check_agreement({"numba": np.ones(1)}, 1e-5) == {}
