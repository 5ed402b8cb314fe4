import pickle

import ml_dtypes
import numpy as np
import pytest

from treadle.core import dtypes


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_every_dtype_round_trips(dtype):
    assert dtypes.as_dtype(dtype) is dtype
    assert dtypes.as_dtype(dtype.name) is dtype
    assert dtypes.as_dtype(dtype.as_numpy_dtype) is dtype
    assert dtypes.from_numpy(np.dtype(dtype.as_numpy_dtype)) is dtype
    assert dtypes.BY_SHORT[dtype.short] is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert dtype.size == np.dtype(dtype.as_numpy_dtype).itemsize


@pytest.mark.parametrize(
    ("python", "dtype"),
    [
        (float, dtypes.float32),
        (int, dtypes.int32),
        (bool, dtypes.bool),
        (complex, dtypes.complex128),
    ],
)
def test_python_types_map_as_in_tensorflow(python, dtype):
    assert dtypes.as_dtype(python) is dtype


def test_equality_accepts_names_and_numpy_types():
    assert dtypes.float32 == "float32"
    assert dtypes.float32 == np.float32
    assert dtypes.float32 != dtypes.float64
    assert dtypes.float32 != "no such dtype"
    assert dtypes.float32 is not None
    assert hash(dtypes.float32) == hash(dtypes.as_dtype("float32"))


def test_kinds():
    assert dtypes.bfloat16.is_floating and not dtypes.bfloat16.is_integer
    assert dtypes.uint8.is_integer and dtypes.uint8.is_unsigned
    assert dtypes.bool.is_bool and not dtypes.bool.is_integer
    assert dtypes.complex64.is_complex and dtypes.complex64.real_dtype is dtypes.float32


def test_limits():
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.float32.max == np.finfo(np.float32).max
    assert dtypes.bfloat16.max == ml_dtypes.finfo(ml_dtypes.bfloat16).max
    with pytest.raises(TypeError, match="complex64"):
        _ = dtypes.complex64.max


@pytest.mark.parametrize("bad", ["flot32", None, object(), str, "U3", np.dtype("M8[s]")])
def test_what_is_no_dtype_is_refused(bad):
    with pytest.raises(TypeError):
        dtypes.as_dtype(bad)


def test_big_endian_arrays_have_a_dtype():
    assert dtypes.from_numpy(np.dtype(">f4")) is dtypes.float32


def test_numbers_of_the_enumeration_of_tensorflow():
    known = [n for n in range(1, 24) if n not in (11, 12, 13, 15, 16, 20, 21)]
    numbers = {n: dtypes.as_dtype(n).name for n in known}
    assert all(getattr(dtypes, name).as_datatype_enum == n for n, name in numbers.items())
    assert [numbers[n] for n in (1, 3, 7, 9, 10, 19)] == [
        "float32", "int32", "string", "int64", "bool", "float16",
    ]  # fmt: skip
    for number in (0, 11, 24, -1):
        with pytest.raises(TypeError, match="treadle dtype"):
            dtypes.as_dtype(number)


@pytest.mark.parametrize(
    ("name", "limits"),
    [("float32", (0, 1)), ("float64", (0, 1)), ("int8", (0, 127)), ("uint8", (0, 255)),
     ("int32", (0, 2147483647)), ("uint64", (0, 18446744073709551615)), ("bool", (0, True))],
)  # fmt: skip
def test_what_tensorflow_says_of_dtypes(name: str, limits: tuple[int, int]) -> None:
    dtype = dtypes.as_dtype(name)
    assert dtype.base_dtype is dtype and not dtype.is_quantized and dtype.is_numpy_compatible
    assert dtype.limits == limits
    assert dtype.is_compatible_with(name) and not dtype.is_compatible_with("complex64")
    assert dtype.is_subtype_of(dtype) and not dtype.is_subtype_of(dtypes.string)
    assert dtype.most_specific_common_supertype([dtype]) is dtype
    assert dtype.most_specific_common_supertype([dtypes.string]) is None


@pytest.mark.parametrize("name", ["complex64", "string", "bfloat16", "float16"])
def test_dtypes_without_limits(name: str) -> None:
    with pytest.raises(ValueError, match="does not have defined limits"):
        _ = dtypes.as_dtype(name).limits
