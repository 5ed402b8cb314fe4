"""Floats that loops make integers of: nearly all fit, and the others give what they gave."""

import numpy as np
import pytest

import treadle as td

NUMBERS = [0.0, -0.0, 0.99, -0.99, 1.5, -1.5, 127.5, 128.0, -128.9, -129.0, 255.5, 256.0, 32767.9,
           32768.0, -32768.5, -32769.0, 65535.5, 65536.0, 2147483647.0, 2147483648.0,
           -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 2.0**62, 2.0**63, -(2.0**63),
           2.0**64, -(2.0**64), 1e300, -1e300, np.inf, -np.inf, np.nan, -1.0, 5e-324]  # fmt: skip
TYPES = [td.int8, td.int16, td.int32, td.int64, td.uint8, td.uint16, td.uint32, td.uint64]


def in_a_loop(kind):
    @td.function
    def f(x):
        y = td.zeros([36], kind)
        last = td.cast(0, kind)
        for i in td.range(36):
            last = td.cast(x[i], kind) + last * td.cast(0, kind)  # numbers go from one to the next
            y[i] = last
        return y

    return f


@pytest.mark.parametrize("kind", TYPES, ids=lambda k: k.name)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_the_same_as_without_a_loop(kind, source):
    with np.errstate(over="ignore"):
        x = td.constant(np.array(NUMBERS, np.float64).astype(source))
    want = td.function(lambda x: td.cast(x, kind))(x)
    np.testing.assert_array_equal(in_a_loop(kind)(x), want)


def test_a_position_that_a_float_tells():
    @td.function
    def bins(x, size):
        found = td.zeros([8], td.int32)
        for i in td.range(x.shape[0]):
            k = td.cast(x[i] * size, td.int32)
            found[k] = found[k] + 1
        return found

    x = np.array([0.0, 0.1, 0.99, -0.5, 0.5, -0.01])
    want = np.zeros(8, np.int32)
    for v in x:
        want[int(v * 8.0)] += 1
    np.testing.assert_array_equal(bins(x, np.float64(8.0)), want)
    for bad in (1.0, -1.2, 1e10, -1e10, 2.0**62, 1e300, -np.inf):
        with pytest.raises(td.errors.InvalidArgumentError, match=r"found\[k\]"):
            bins(np.array([0.0, bad]), np.float64(8.0))


def test_the_branch_is_only_where_llvm_makes_no_vectors():
    def taken(x):
        y = td.zeros([36], td.int32)
        for i in td.range(36):
            y[i] = td.cast(x[i], td.int32)
        return y

    text = td.function(taken).get_concrete_function(td.constant(np.zeros(36))).executable
    assert "cvttsd2si64" not in text.stages["llvm"]
