"""print and Assert. Expected texts were printed by TensorFlow 2.21."""

import numpy as np
import pytest

import treadle as td
from treadle.core.dtypes import bfloat16
from treadle.core.errors import InvalidArgumentError
from treadle.ops.control import io
from treadle.ops.conversion import constant


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, "float32", "1"), (0.1, "float32", "0.1"), (3.1415927, "float32", "3.14159274"),
        (3.1415927, "float64", "3.1415927"), (1e-7, "float32", "1e-07"), (1e10, "float32", "1e+10"),
        (1e10, "float64", "10000000000"), (123456789.0, "float32", "123456792"),
        (float("nan"), "float32", "nan"), (float("inf"), "float32", "inf"), (-0.0, "float32", "-0"),
        (1 / 3, "float32", "0.333333343"), (1 / 3, "float64", "0.33333333333333331"),
        (1.5, bfloat16, "1.5"), (True, "bool", "1"), (7, "int64", "7"),
    ],
)  # fmt: skip
def test_numbers(value, dtype, text):
    assert io.format_array(constant(value, dtype).numpy()[()]) == text


def test_arrays():
    assert io.format_array(np.arange(10)) == "[0 1 2 ... 7 8 9]"
    assert io.format_array(np.arange(10), -1) == "[0 1 2 3 4 5 6 7 8 9]"
    assert io.format_array(np.arange(4.0).reshape(2, 2)) == "[[0 1]\n [2 3]]"
    assert io.format_array(np.zeros((0,))) == "[]"
    assert (
        io.format_array(np.arange(8).reshape(2, 2, 2)) == "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"
    )
    tall = io.format_array(np.arange(20).reshape(10, 2))
    assert tall.splitlines()[3] == " ..." and len(tall.splitlines()) == 7


def test_mixed_values(capsys):
    io.print(constant([1, 2]), True, "s", {"a": constant(1)}, [constant(2), 3], (1, 2), None)
    assert capsys.readouterr().err == "[1 2] True s {'a': 1} [2, 3] (1, 2) None\n"


def test_separator_end_and_streams(capsys, tmp_path):
    import sys

    io.print(constant(1), "x", sep="|", end="$", output_stream=sys.stdout)
    assert capsys.readouterr().out == "1|x$"
    path = tmp_path / "log.txt"
    io.print(constant(1), output_stream=f"file://{path}")
    io.print(constant(2), output_stream=f"file://{path}")
    assert path.read_text() == "1\n2\n"
    with pytest.raises(ValueError, match="cannot write"):
        io.print(1, output_stream=3)
    with pytest.raises(ValueError, match="keywords"):
        io.print(1, colour="red")


def test_conditions_of_one_element():
    """TensorFlow asks Python for the truth of a condition that has a value."""
    for holds in ([True], [[True]], 1, [2.0]):
        td.debugging.Assert(td.constant(holds), ["no"])
    for fails in ([False], [[0]], [], 0.0):
        with pytest.raises(td.errors.InvalidArgumentError, match="no"):
            td.debugging.Assert(td.constant(fails), ["no"])
    with pytest.raises(ValueError, match="ambiguous"):
        td.debugging.Assert(td.constant([True, True]), ["no"])

    @td.function
    def checked(x):
        td.debugging.Assert(x, ["no"])
        return x

    checked(td.constant([True]))
    with pytest.raises(td.errors.InvalidArgumentError, match="no"):
        checked(td.constant([False]))


def test_assert():
    io.Assert(constant(True), [constant(1)])
    with pytest.raises(InvalidArgumentError, match=r"must be small.*\n\[1 2\]"):
        io.Assert(constant(False), ["must be small", constant([1, 2])])
